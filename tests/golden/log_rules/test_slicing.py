"""A reader could put a log upon a base file that holds it already, or leave it with one that is no longer read; or see
files of writers that never committed.

Small tables laid down by hand, each for one rule that no table of Apache Hudi in this suite pins.
Spec: format/timeline.md section 7.
"""

import pytest

from tests.support.made_tables import COMMIT_TIME, MadeTable, done, row, t

VERSIONS = pytest.mark.parametrize("version", [5, 6, 8, 9])
BY_COMPLETION = pytest.mark.parametrize("version", [8, 9])


def made(version: int) -> MadeTable:
    return MadeTable(version, COMMIT_TIME[version])


def base_name(table: MadeTable, base: str = t(1)) -> str | None:
    return base if table.version <= 6 else None


def compaction_at_3(version: int) -> MadeTable:
    """A base file at 1, a delta commit that begins at 2, and the base file of a compaction that begins at 3.

    The delta commit's log is not in the compacted file, whose `b` is the base file's.
    """
    table = made(version)
    table.base(t(1), row("a", 0, "base"), row("b", 0, "base"))
    table.log(t(2), table.rows(t(2), row("b", 0, "two")))
    table.base(t(3), row("a", 0, "compacted"), row("b", 0, "base"))
    return table


@BY_COMPLETION
@pytest.mark.parametrize("is_archived", [False, True], ids=["active", "archived"])
def test_a_log_that_completed_after_a_compaction_began_is_upon_the_compacted_file(
    version: int, is_archived: bool
) -> None:
    """It began before the compaction, whose plan could not have it."""
    table = compaction_at_3(version)
    table.base(t(9), row("c", 0, "nine"), group="g-0")
    table.commit(t(9), action="commit")
    if is_archived:
        table.archive((t(1), done(1)), (t(2), done(4)))
        table.archive((t(3), done(5)), action="commit")
    else:
        table.commit(t(1))
        table.commit(t(2), done(4))
        table.commit(t(3), done(5), action="commit")

    assert table.shown() == {"a": "compacted", "b": "two", "c": "nine"}


@BY_COMPLETION
@pytest.mark.parametrize("is_archived", [False, True], ids=["active", "archived"])
def test_a_log_that_completed_before_a_compaction_began_is_not_merged_again(version: int, is_archived: bool) -> None:
    table = compaction_at_3(version)
    table.base(t(9), row("c", 0, "nine"), group="g-0")
    table.commit(t(9), action="commit")
    if is_archived:
        table.archive((t(1), done(1)), (t(2), done(2)))
        table.archive((t(3), done(5)), action="commit")
    else:
        table.commit(t(1))
        table.commit(t(2), done(2))
        table.commit(t(3), done(5), action="commit")

    assert table.shown() == {"a": "compacted", "b": "base", "c": "nine"}


@BY_COMPLETION
def test_while_a_compaction_is_pending_all_logs_stand_upon_the_base_file_before_it(version: int) -> None:
    table = made(version)
    table.base(t(1), row("a", 0, "base"), row("b", 0, "base"))
    table.log(t(2), table.rows(t(2), row("a", 0, "two")))
    table.base(t(3), row("a", 0, "compacted"), row("b", 0, "compacted"))
    table.log(t(4), table.rows(t(4), row("b", 0, "four")))
    table.commit(t(1))
    table.commit(t(2))
    table.begin(t(3), action="compaction")
    table.commit(t(4))

    assert table.shown() == {"a": "two", "b": "four"}
    assert table.shown(query="read_optimized") == {"a": "base", "b": "base"}


def test_up_to_version_6_logs_after_a_pending_compaction_stand_upon_the_base_file_before_it() -> None:
    table = made(6)
    table.base(t(1), row("a", 0, "base"), row("b", 0, "base"))
    table.log(t(2), table.rows(t(2), row("a", 0, "two")), base=t(1))
    table.log(t(4), table.rows(t(4), row("b", 0, "four")), base=t(3))
    table.commit(t(1))
    table.commit(t(2))
    table.begin(t(3), action="compaction", state="REQUESTED")
    table.commit(t(4))

    assert table.shown() == {"a": "two", "b": "four"}


@VERSIONS
@pytest.mark.parametrize("is_rolled_back", [False, True], ids=["pending", "gone from the timeline"])
def test_nothing_of_a_write_that_did_not_complete_is_seen(version: int, is_rolled_back: bool) -> None:
    """Its logs upon a file group, one of logs alone, a newer base file, and the base file of a new group."""
    table = made(version)
    table.base(t(1), row("a", 0, "base"), group="f-0")
    table.base(t(1), row("b", 0, "base"), group="g-0")
    table.log(t(2), table.rows(t(2), row("a", 0, "dead")), base=base_name(table))
    table.log(t(2), table.rows(t(2), row("c", 0, "dead")), base=base_name(table, t(2)), group="only-0")
    table.base(t(2), row("b", 0, "dead"), group="g-0")
    table.base(t(2), row("d", 0, "dead"), group="new-0")
    table.log(t(3), table.rows(t(3), row("e", 0, "three")), base=base_name(table), number=2)
    table.commit(t(1))
    table.commit(t(3))
    if not is_rolled_back:
        table.begin(t(2))

    assert table.shown() == {"a": "base", "b": "base", "e": "three"}
    assert table.shown(query="read_optimized") == {"a": "base", "b": "base"}

    if not is_rolled_back:
        table.storage.delete(table.layout.folder + f"/{t(2)}.deltacommit.requested")
        table.storage.delete(table.layout.folder + f"/{t(2)}.deltacommit.inflight")
        table.commit(t(2))
        assert table.shown() == {"a": "dead", "b": "dead", "c": "dead", "d": "dead", "e": "three"}


@BY_COMPLETION
def test_the_log_of_a_write_that_did_not_complete_is_not_even_opened(version: int) -> None:
    """Its name tells whose it is; what is in it may not be a log yet, or be gone the moment after."""
    table = made(version)
    table.base(t(1), row("a", 0, "base"))
    table.log(t(2), bytes(100))
    table.commit(t(1))
    table.begin(t(2))

    assert table.shown() == {"a": "base"}


@VERSIONS
@pytest.mark.parametrize("action", ["commit", "deltacommit", "compaction"])
def test_a_write_that_has_not_completed_is_not_seen_though_it_be_the_first_of_the_timeline(
    version: int, action: str
) -> None:
    """What lies before the first instant is archived: neither that one, of whatever action, nor what comes after it and
    was rolled back."""
    table = made(version)
    table.base(t(1), row("a", 0, "base"))
    table.base(t(2), row("a", 0, "dead"))
    table.begin(t(2), action=action)
    table.base(t(3), row("c", 0, "dead"), group="g-0")
    table.log(t(4), table.rows(t(4), row("b", 0, "four")), base=base_name(table))
    table.commit(t(4))

    assert table.shown() == {"a": "base", "b": "four"}


@VERSIONS
@pytest.mark.parametrize("valid", ["0-1-0", "0-2-7", "1-1-0"])
def test_of_base_files_that_differ_by_their_write_token_the_one_that_the_commit_names_counts(
    version: int, valid: str
) -> None:
    for is_archived in [False, True] if version >= 8 else [False]:
        table = made(version)
        for token in ("0-1-0", "0-2-7", "1-1-0"):
            table.base(t(1), row("a", 0, token), token=token, is_named=token == valid)
        table.base(t(2), row("b", 0, "two"), group="g-0")
        if is_archived:
            table.archive((t(1), done(1)))
        else:
            table.commit(t(1))
        table.commit(t(2))

        assert table.shown() == {"a": valid, "b": "two"}


@BY_COMPLETION
@pytest.mark.parametrize("valid", ["0-1-0", "0-2-7", "1-1-0"])
def test_of_logs_that_differ_by_their_write_token_the_one_that_the_commit_names_counts(
    version: int, valid: str
) -> None:
    """A lost attempt may hold rows that the other one does not, and deletes."""
    for is_archived in (False, True):
        table = made(version)
        table.base(t(1), row("a", 0, "base"), row("b", 0, "base"))
        for token in ("0-1-0", "0-2-7", "1-1-0"):
            blocks = table.rows(t(2), row("a", 0, token), row(token, 0, token))
            if token != valid:
                blocks += table.deletes(t(2), ("b",), ordering=())
            table.log(t(2), blocks, token=token, is_named=token == valid)
        table.base(t(3), row("c", 0, "three"), group="g-0")
        if is_archived:
            table.archive((t(1), done(1)), (t(2), done(2)))
        else:
            table.commit(t(1))
            table.commit(t(2))
        table.commit(t(3))

        assert table.shown() == {"a": valid, valid: valid, "b": "base", "c": "three"}


@VERSIONS
def test_what_was_written_before_the_timeline_starts_is_seen(version: int) -> None:
    """Base file and log are of archived instants, which a table of version 6 may have forgotten altogether."""
    table = made(version)
    table.base(t(1), row("a", 0, "base"), row("b", 0, "base"))
    table.log(t(2), table.rows(t(2), row("a", 0, "two")), base=base_name(table), number=1)
    table.log(t(3), table.rows(t(3), row("b", 0, "three")), base=base_name(table), number=2)
    table.archive((t(1), done(1)), (t(2), done(2)))
    table.commit(t(3))

    assert table.shown() == {"a": "two", "b": "three"}
    assert table.shown(query="read_optimized") == {"a": "base", "b": "base"}
    assert table.shown(as_of=t(2)) == {"a": "two", "b": "base"}


@VERSIONS
def test_the_timeline_does_not_start_at_a_commit_that_a_savepoint_pins(version: int) -> None:
    """It stays when those after it are archived, which count all the same."""
    table = made(version)
    table.base(t(1), row("a", 0, "base"))
    table.log(t(2), table.rows(t(2), row("a", 0, "two")), base=base_name(table), number=1)
    table.log(t(3), table.rows(t(3), row("b", 0, "three")), base=base_name(table), number=2)
    table.commit(t(1))
    table.commit(t(1), done(1), action="savepoint")
    table.archive((t(2), done(2)))
    table.commit(t(3))

    assert table.shown() == {"a": "two", "b": "three"}
