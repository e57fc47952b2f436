"""We could request, begin or complete a replacement of file groups with other bytes than Apache Hudi does, which then
reads ours as something else: a clustering, or a write that replaces nothing."""

from pathlib import Path

import pytest

from pyhudi.format.avro.container import split_container
from pyhudi.format.timeline.action_files import decode_commit, encode_commit_avro
from pyhudi.format.timeline.records import CommitMetadata
from pyhudi.timeline.layout import timeline_layout
from pyhudi.write.commit_content import inflight_content
from pyhudi.write.input.source import Operation
from pyhudi.write.place.plan import FileGroupTask, TaskKind, WritePlan
from pyhudi.write.place.replacement import requested_content
from tests.support.golden_tables import GoldenTables

LAYOUT_2 = timeline_layout({"hoodie.timeline.layout.version": "2"})

TABLES = {
    "cow_insert_overwrite_v9_h120": Operation.INSERT_OVERWRITE,
    "cow_insert_overwrite_table_v9_h120": Operation.INSERT_OVERWRITE_TABLE,
    "cow_delete_partition_v9_h120": Operation.DELETE_PARTITION,
}


def files_of(golden: GoldenTables, name: str) -> dict[str, bytes]:
    """The contents of the table's only replacecommit by state."""
    timeline = Path(golden.get(name).path) / ".hoodie" / "timeline"
    found = {file.name.rpartition(".")[2]: file.read_bytes() for file in timeline.glob("*.replacecommit*")}
    assert set(found) == {"requested", "inflight", "replacecommit"}
    return found


def without_sync(content: bytes) -> tuple[str, bytes]:
    """Schema and rows of a container: each is cut into blocks by a random mark of its own."""
    header, body, _ = split_container(content, path="replacecommit")
    return header, body


@pytest.mark.parametrize("name", TABLES)
def test_a_replacement_is_requested_with_the_bytes_of_apache_hudi(golden: GoldenTables, name: str) -> None:
    theirs = files_of(golden, name)["requested"]

    assert without_sync(requested_content(TABLES[name])) == without_sync(theirs)


@pytest.mark.parametrize("name", TABLES)
def test_a_replacement_is_inflight_with_the_bytes_of_apache_hudi(golden: GoldenTables, name: str) -> None:
    theirs = files_of(golden, name)["inflight"]
    planned = decode_commit(theirs, path=name).partition_to_write_stats
    tasks = [
        FileGroupTask(
            number=at,
            kind=TaskKind.CREATE,
            partition=partition,
            file_id=f"group-{at}",
            inserts=stats[0].num_inserts or 0,
        )
        for at, (partition, stats) in enumerate(planned.items())
    ]

    assert without_sync(inflight_content(LAYOUT_2, TABLES[name], WritePlan(tuple(tasks)))) == without_sync(theirs)


@pytest.mark.parametrize("name", TABLES)
def test_a_replacement_completes_with_the_bytes_of_apache_hudi(golden: GoldenTables, name: str) -> None:
    theirs = files_of(golden, name)["replacecommit"]
    said = decode_commit(theirs, path=name)
    ours = CommitMetadata(
        said.partition_to_write_stats, TABLES[name].value, said.extra_metadata,
        partition_to_replace_file_ids=said.partition_to_replace_file_ids,
    )  # fmt: skip

    assert set(said.extra_metadata) == {"schema"}
    assert any((said.partition_to_replace_file_ids or {}).values())
    assert without_sync(encode_commit_avro(ours)) == without_sync(theirs)
