"""A sequence of writes could leave a table that pyhudi alone reads right: hudi-rs watches the random sequences that run
against a dict, after every step and over the table's whole past.

hudi-rs does not know what was archived or cleaned. There its answers are held to what it can know.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant

from tests.property.test_table_against_dict import LONG, QUICK, TableAgainstDict, variants
from tests.second_reader.watched import bounds, of_active_commits
from tests.support.compare import assert_same_rows
from tests.support.hudi_rs import NO_SCHEMA, read_hudi_rs
from tests.support.model import Key, Stored, dump, read_rows


def is_merged_alike(variant: dict[str, object]) -> bool:
    """Whether hudi-rs knows the version, and orders the rows of a log as we do: see second_reader for version 6."""
    if variant["version"] in (5, 7):
        return False
    return not (variant["version"] == 6 and variant["logs"] and variant["order"] == "commit time, ordered")


class HudiRsAgainstDict(TableAgainstDict):
    """hudi-rs beside the two: it reads a copy on the local disk."""

    @initialize(variant=variants.filter(is_merged_alike), seed=st.integers(0, 999))
    def create(self, variant: dict[str, object], seed: int) -> None:
        super().create(variant, seed)

    def on_disk(self, ask: Callable[[Path], None]) -> None:
        with TemporaryDirectory() as folder:
            for path, content in dump(self.storage).items():
                file = Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            ask(Path(folder))

    @property
    def orders_deletes(self) -> bool:
        """hudi-rs compares the deletes of version 6 with other rows as those of version 8: see second_reader."""
        return not (self.version == 6 and self.has_logs)

    @invariant()
    def hudi_rs_finds_the_dict(self) -> None:
        def ask(path: Path) -> None:
            if not self.model.past:
                with NO_SCHEMA.expected():
                    read_hudi_rs(path)
                return
            found = read_hudi_rs(path)
            assert read_rows(found) == self.model.rows
            assert_same_rows(found, self.table.scan().to_arrow())

        self.on_disk(ask)

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "model"):
            self.on_disk(self.hudi_rs_finds_the_past)

    def hudi_rs_finds_the_past(self, path: Path) -> None:
        for at, past in enumerate(self.model.past):
            found = read_rows(read_hudi_rs(path, as_of=past.requested))
            assert found == past.rows or (at < self.first_retained and self.was_there(found, at))
            if self.has_logs:  # it reads a slice whole, rows of archived commits and late ones too: see second_reader
                continue
            for end in range(at + 1, len(self.model.past) + 1):
                changes = read_rows(read_hudi_rs(path, incremental=bounds(self.model, at, end)))
                known = of_active_commits(self.table, self.model.between(at, end))
                assert changes == known or (at < self.first_retained and self.was_there(changes, end - 1, known))

    def was_there(self, found: dict[Key, Stored], at: int, expected: dict[Key, Stored] | None = None) -> bool:
        """Whether an answer for a moment whose files were cleaned away is made of what is left: of expected rows. What
        a savepoint keeps is older: hudi-rs, which does not ask what was cleaned, takes it for the rows of that moment.
        """
        rows = self.model.past[at].rows if expected is None else expected
        if self.saved is None and not self.restored:
            return found.items() <= rows.items()
        return all(any(past.rows.get(key) == of for past in self.model.past[: at + 1]) for key, of in found.items())


class TestHudiRsAgainstDict(HudiRsAgainstDict.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(QUICK, max_examples=5)


@pytest.mark.long
class TestHudiRsAgainstDictForLong(HudiRsAgainstDict.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(LONG, max_examples=40)
