"""An option could promise something, be accepted, and do nothing.

Every name that Apache Hudi knows has one verdict: it is a setting that code reads, harmless for a reason in words, or
refused beyond its default. Apache Hudi's own defaults, as its classes state them, always pass.
"""

import ast
import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import pyhudi
from pyhudi.api.commit_callback import CommitCallback
from pyhudi.errors import HudiError, Invalid, Unsupported
from pyhudi.options.entries import VERDICTS, Kind, Verdict
from pyhudi.options.metastore_sync import MetastoreSyncSettings
from pyhudi.options.names import canonical_name, known_names
from pyhudi.options.read_options import read_request_from_options
from pyhudi.options.resolve import merge_options
from pyhudi.options.stream_settings import StreamSinkSettings
from pyhudi.options.verdicts import ENTRIES, OPEN_ENDED, find_entry, option_verdicts
from pyhudi.services.after_commit import AfterCommitSettings
from pyhudi.sql.insert_settings import InsertSettings
from pyhudi.table.facts import key_properties
from pyhudi.table.facts.creation import NewTable, new_table_properties
from pyhudi.write import settings as settings_module
from pyhudi.write.input.key_settings import KeySettings
from pyhudi.write.settings import WriteSettings

NAMES, BEGINNINGS = known_names()
DEFAULTS = Path(__file__).parents[2] / "golden" / "options" / "defaults.tsv"
SOURCE = Path(pyhudi.__file__).parent
OPTION_TABLES = (
    "entries", "facts", "harmless", "names", "promises", "reads", "refused", "settings", "tuning", "values", "verdicts",
)  # fmt: skip

NO_DEFAULT_OF_A_WRITE = {
    # 0.15 states this class, and asks for no lock unless writers at a time are asked for.
    ("hoodie.write.lock.provider", "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"),
}


ASKING: tuple[Mapping[str, str], ...] = (
    {"hoodie.write.commit.callback.on": "true", "hoodie.write.commit.callback.http.url": "http://localhost/"},
    {
        "hoodie.metadata.index.expression.enable": "true",
        "hoodie.metadata.index.expression.column": "a",
        "hoodie.metadata.index.expression.options": "expr=lower",
    },
    {"hoodie.datasource.hive_sync.enable": "true"},
    *({"hoodie.index.type": index} for index in ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX")),
)
"""Options under which the settings that count only with others are looked at."""


class Asked(Mapping[str, str]):
    """Options that remember which of them were asked for."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts, self.names = texts, set[str]()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return self.texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)


def names_in_source() -> set[str]:
    """The texts that stand in the code, but for the tables of options."""
    tables = {SOURCE / "options" / f"{name}.py" for name in OPTION_TABLES}
    assert all(table.exists() for table in tables)
    files = (file for file in SOURCE.rglob("*.py") if file not in tables)
    return {
        node.value
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def apache_defaults() -> list[tuple[str, str]]:
    with DEFAULTS.open(newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [(name, text) for name, *texts in rows[1:] for text in dict.fromkeys(texts) if text not in ("", "-")]


def test_every_known_name_has_one_verdict() -> None:
    assert [v.name for v in option_verdicts()] == sorted(NAMES)
    assert {canonical_name(beginning) for beginning in BEGINNINGS} <= set(OPEN_ENDED)


def test_no_verdict_is_of_a_name_that_nobody_knows() -> None:
    assert [name for name in ENTRIES if name not in NAMES and not name.startswith(BEGINNINGS)] == []


def test_what_is_not_done_says_why_or_what_to_do_instead() -> None:
    silent = [v.name for v in option_verdicts() if v.verdict is not Verdict.SETTING and len(v.reason.split()) < 3]

    assert silent == []


def test_every_setting_is_read() -> None:
    settings_module._known.clear()  # settings that are kept ask for no option
    read = names_in_source() | {text for text in vars(key_properties).values() if isinstance(text, str)}
    for given in ASKING:
        asked = Asked(given)
        for settings in (
            WriteSettings,
            AfterCommitSettings,
            KeySettings,
            CommitCallback,
            InsertSettings,
            StreamSinkSettings,
            MetastoreSyncSettings,
        ):
            settings.from_options(asked)
        read |= asked.names

    # What a table keeps for itself may be told by other properties, too.
    of_settings = [name for name, e in ENTRIES.items() if VERDICTS[e.kind] is Verdict.SETTING and e.accepts != ("",)]
    assert [name for name in of_settings if name not in read and ENTRIES[name].kind is not Kind.FACT] == []
    assert [name for name, entry in ENTRIES.items() if (entry.kind is Kind.FACT) != (entry.fact is not None)] == []


def test_no_harmless_option_is_read() -> None:
    """A name that code reads has an effect, and is a setting."""
    read = names_in_source()

    assert [name for name, entry in ENTRIES.items() if entry.kind is Kind.HARMLESS and name in read] == []


def test_the_defaults_of_apache_hudi_pass() -> None:
    refused = []
    for name, text in apache_defaults():
        try:
            read_or_write(find_entry(canonical_name(name)).kind, {name: text})
        except HudiError as error:
            refused.append((name, text, str(error)))

    assert [each for each in refused if each[:2] not in NO_DEFAULT_OF_A_WRITE] == []
    assert len(apache_defaults()) > 550


def test_a_refused_option_is_refused_with_a_way_out() -> None:
    for verdict in option_verdicts(verdict="refused"):
        given = {verdict.name: "something.Else"}
        with pytest.raises((Unsupported, Invalid), match=rf"option '{re.escape(verdict.newest)}'=.*expected"):
            read_or_write(find_entry(verdict.newest).kind, given)


def read_or_write(kind: Kind, given: Mapping[str, object]) -> None:
    if kind is Kind.READ_PROMISE:
        read_request_from_options(given)
    else:
        merge_options(write=given, opened=None, table={})


@pytest.mark.parametrize(
    "given",
    [
        {"hoodie.upsert.shuffle.parallelism": 2, "hoodie.insert.shuffle.parallelism": "2"},
        {"hoodie.datasource.hive_sync.enable": "false", "hoodie.datasource.hive_sync.database": "db"},
        {"hoodie.metadata.enable": True, "hoodie.embed.timeline.server": "false"},
        {"hoodie.write.markers.type": "DIRECT", "hoodie.datasource.write.row.writer.enable": "true"},
        {"hoodie.metrics.on": "false", "hoodie.table.services.enabled": "true"},
        {"hoodie.clustering.inline": "false", "hoodie.clustering.plan.strategy.sort.columns": "a"},
    ],
)
def test_what_scripts_set_without_asking_for_more_passes(given: Mapping[str, object]) -> None:
    assert len(merge_options(write=given, opened=None, table={})) == len(given)


@pytest.mark.parametrize(
    "name,value",
    [
        ("hoodie.datasource.merge.type", "skip_merge"),
        ("hoodie.realtime.merge.skip", "true"),
        ("hoodie.query.as.ro.table", "true"),
    ],
)
def test_a_promise_of_reads_is_refused_by_reads_alone(name: str, value: str) -> None:
    with pytest.raises(Unsupported, match=r"read_optimized"):
        read_request_from_options({name: value})
    assert merge_options(write={name: value}, opened=None, table={}) == {name: value}


def test_a_property_of_the_table_may_be_repeated_but_not_changed() -> None:
    table = {"hoodie.timeline.path": "timeline"}

    assert merge_options(write=table, opened=None, table=table) == table
    with pytest.raises(Invalid, match=r"'hoodie.timeline.path'='other': the table has 'timeline'"):
        merge_options(write={"hoodie.timeline.path": "other"}, opened=None, table=table)
    with pytest.raises(Invalid, match=r"the table has none"):
        merge_options(write=None, opened={"hoodie.table.metadata.partitions": "files"}, table=table)


def test_a_new_table_is_not_told_what_tables_keep_for_themselves() -> None:
    new = NewTable(
        name="t",
        record_key=("id",),
        partition_by=(),
        ordering=(),
        table_type="COPY_ON_WRITE",
        table_version=8,
        create_schema=None,
        properties={"hoodie.table.metadata.partitions": "files"},
    )

    with pytest.raises(Unsupported, match=r"'hoodie.table.metadata.partitions'='files': expected it to be left out"):
        new_table_properties(new)


def test_without_table_services_nothing_follows_a_commit() -> None:
    after = AfterCommitSettings.from_options(
        {
            "hoodie.table.services.enabled": "false",
            "hoodie.compact.inline": "true",
            "hoodie.log.compaction.inline": "true",
        }
    )

    assert (after.clean.is_automatic, after.archive.is_automatic) == (False, False)
    compaction = after.compaction
    assert [compaction.is_inline, compaction.is_scheduled_inline, compaction.logs_inline] == [False, False, False]
    assert AfterCommitSettings.from_options({}).clean.is_automatic


def test_verdicts_can_be_searched() -> None:
    (found,) = option_verdicts("cleaner.delete", "refused")

    assert (found.name, found.newest) == (
        "hoodie.cleaner.delete.bootstrap.base.file", "hoodie.clean.delete.bootstrap.base.file"
    )  # fmt: skip
    assert found.accepts == ("false",)
    with pytest.raises(ValueError, match="nonsense"):
        option_verdicts(verdict="nonsense")
