"""The command line could say something else than the table: each command on tables that Apache Hudi wrote, as text and
as JSON, compared with what the files on disk show; and damage could pass for an answer."""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from pyhudi import HudiTable
from pyhudi.api.metadata import perf
from pyhudi.cli import output
from pyhudi.cli.app import app
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.metadata.store.files_partition import MetadataListing
from tests.support.golden_tables import GoldenTables

RUNNER = CliRunner()
ALL_PARTITIONS = "mor_mdt_all_v9_h120"
WRITABLE = "cow_part_v8_h102"


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> GoldenTables:
    return GoldenTables(tmp_path_factory.mktemp("golden"))


@pytest.fixture
def own_copy(golden: GoldenTables, tmp_path: Path) -> Path:
    """A table that the test may change."""
    return Path(shutil.copytree(golden.get(WRITABLE).path, tmp_path / "table"))


def run(*arguments: str | Path, code: int = 0, answer: str | None = None) -> Result:
    result = RUNNER.invoke(app, ["metadata", *map(str, arguments)], input=answer)
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


def ask(*arguments: str | Path, code: int = 0) -> Any:
    return json.loads(run(*arguments, "--json", code=code).stdout)


def data_files(path: Path) -> dict[str, int]:
    """Relative path -> bytes of base files and logs."""
    found = {}
    for file in path.rglob("*"):
        relative = file.relative_to(path)
        is_data = BaseFileName.parse(file.name) is not None or LogFileName.parse(file.name) is not None
        if relative.parts[0] != ".hoodie" and is_data:
            found[str(relative)] = file.stat().st_size
    return found


def one_file(path: Path, pattern: str) -> Path:
    return sorted(path.glob(pattern))[0]


@pytest.mark.parametrize("name", [ALL_PARTITIONS, "mor_mdt_all_v6_h0150", "cow_nonpart_v9_h120"])
def test_lists_name_the_partitions_and_files_on_disk(golden: GoldenTables, name: str) -> None:
    path = golden.get(name).path
    expected = data_files(path)
    partitions = sorted({str(Path(file).parent) for file in expected})

    assert run("list-partitions", path).stdout.splitlines() == partitions
    listed = ask("list-files", path)
    assert listed["source"] == "metadata"
    assert {str(Path(f["partition"]) / f["name"]): f["size_bytes"] for f in listed["files"]} == expected
    lines = run("list-files", path, partitions[0]).stdout.splitlines()
    in_first = {file: size for file, size in expected.items() if str(Path(file).parent) == partitions[0]}
    assert {line.split("  ")[-1]: int(line.split("  ")[-2].replace(",", "")) for line in lines} == in_first


def test_stats_count_the_files_of_each_metadata_partition(golden: GoldenTables) -> None:
    path = golden.get(ALL_PARTITIONS).path
    stats = ask("stats", path)

    by_name = {of["name"]: of for of in stats["partitions"]}
    assert list(by_name) == ["bloom_filters", "column_stats", "files", "partition_stats", "record_index"]
    assert [by_name["files"][of] for of in ("file_groups", "base_files", "log_files")] == [1, 1, 1]
    assert by_name["bloom_filters"]["file_groups"] == 4
    assert stats["data_files"] == len(data_files(path))
    stored = [file for file in (path / ".hoodie" / "metadata").rglob("*") if file.is_file()]
    assert stats["stored_bytes"] <= sum(file.stat().st_size for file in stored)
    assert f"files={len(data_files(path))}, partitions=3" in run("stats", path).stdout


def test_lookup_shows_a_record_and_tells_of_keys_that_are_not_there(golden: GoldenTables) -> None:
    path = golden.get(ALL_PARTITIONS).path

    found = ask("lookup", path, "p1", "__all_partitions__")
    assert found["__all_partitions__"] == {"partitions": ["p1", "p2", "p3"]}
    assert {f"p1/{name}" for name in found["p1"]["files"]} == {f for f in data_files(path) if f.startswith("p1/")}
    assert ask("lookup", path, "p9", code=1) == {"p9": None}
    assert run("lookup", path, "p9", code=1).stdout == "p9: not in metadata partition 'files'\n"
    key = pq.read_table(one_file(path, "p1/*.parquet"), columns=["_hoodie_record_key"]).column(0)[0].as_py()
    located = ask("lookup", path, key, "--partition", "record_index")[key]["locations"]
    assert [(row["partition"], len(row["file_id"])) for row in located] == [("p1", 38)]
    assert located[0]["file_id"] in run("lookup", path, key, "--partition", "record_index").stdout
    assert "no metadata partition 'nope'" in run("lookup", path, "p1", "--partition", "nope", code=3).stderr


def test_perf_has_the_rows_of_the_specification(golden: GoldenTables) -> None:
    path = golden.get(ALL_PARTITIONS).path
    times = ask("perf", path)

    assert [row["name"] for row in times["rows"]] == [
        "getAllPartitions", "getAllFilesInPartition", "getAllBaseFiles", "getAllFileGroups", "getAllFileSlices",
        "getLatestBaseFiles", "getLatestFileSlices", "getLatestUnCompactedFileSlices",
    ]  # fmt: skip
    assert all(row["existing_ms"] > 0 and row["metadata_ms"] > 0 for row in times["rows"])
    assert (times["files"], times["partitions"]) == (len(data_files(path)), 3)
    assert "getLatestUnCompactedFileSlices" in run("perf", path).stdout


def test_perf_counts_reading_the_metadata_table_as_opening_it(
    golden: GoldenTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    read = MetadataListing._look_up

    def noting(self: MetadataListing, keys: Iterable[str]) -> None:
        before = (self._loaded, len(self._looked_up))
        read(self, keys)
        if (self._loaded, len(self._looked_up)) != before:
            reads.append(len(rows))

    rows: list[object] = []
    timed = perf._timed

    def counting(call: Callable[[], object]) -> object:
        rows.append(call)
        return timed(call)

    monkeypatch.setattr(MetadataListing, "_look_up", noting)
    monkeypatch.setattr(perf, "_timed", counting)
    ask("perf", golden.get(ALL_PARTITIONS).path)

    assert reads
    assert set(reads) == {0}


@pytest.mark.parametrize("name", [ALL_PARTITIONS, "mor_mdt_all_v6_h0150", "cow_mdt_all_v9_h120"])
def test_a_true_metadata_table_is_valid(golden: GoldenTables, name: str) -> None:
    found = ask("validate", golden.get(name).path)

    assert found["is_valid"]
    assert found["differences"] == []
    assert {"files", "record_index"} <= {*found["checked"]}


def test_validate_tells_what_it_does_not_compare(golden: GoldenTables, tmp_path: Path) -> None:
    path = Path(shutil.copytree(golden.get("cow_expr_index_v8_h102").path, tmp_path / "table"))
    definitions = path / ".hoodie" / ".index_defs" / "index.json"
    definitions.write_text(definitions.read_text().replace("from_unixtime", "to_the_moon"))

    not_checked = ask("validate", path)["not_checked"]
    assert not_checked == ["expr_index_idx_day"]
    assert f"not compared by this release: {not_checked[0]}" in run("validate", path).stderr


def test_validate_names_rows_that_the_record_index_places_elsewhere_or_not_at_all(
    golden: GoldenTables, tmp_path: Path
) -> None:
    path = Path(shutil.copytree(golden.get("cow_mdt_all_v9_h120").path, tmp_path / "table"))
    newest = sorted(path.glob("p1/*.parquet"), key=lambda file: file.name.split("_")[-1])[-1]
    rows = pq.read_table(newest)
    keys = rows.column("_hoodie_record_key").to_pylist()
    changed = pa.array(["unknown", *keys[1:]])
    pq.write_table(
        rows.set_column(rows.column_names.index("_hoodie_record_key"), "_hoodie_record_key", changed), newest
    )

    differences = [d for d in ask("validate", path, code=1)["differences"] if d["metadata_partition"] == "record_index"]

    assert [(d["kind"], d["name"]) for d in differences] == [("record missing from the metadata table", "unknown")]


def test_validate_names_each_file_that_differs(own_copy: Path) -> None:
    files = sorted(file for file in data_files(own_copy) if file.startswith("p1/"))
    (own_copy / files[0]).unlink()
    with (own_copy / files[1]).open("ab") as longer:
        longer.write(b"more")
    name = BaseFileName.parse(Path(files[1]).name)
    assert name is not None
    stray = own_copy / "p2" / BaseFileName("stray-0", "0-0-0", name.requested, ".parquet").format()
    stray.write_bytes(b"not listed")

    found = ask("validate", own_copy, code=1)

    shown = {(d["kind"], f"{d['partition']}/{d['name']}") for d in found["differences"]}
    assert shown == {
        ("file is not in the storage", files[0]),
        ("size differs", files[1]),
        ("file missing from the metadata table", f"p2/{stray.name}"),
    }
    assert "3 differences" in run("validate", own_copy, code=1).stdout


def test_create_heals_what_validate_finds(own_copy: Path) -> None:
    (own_copy / sorted(data_files(own_copy))[0]).unlink()
    run("validate", own_copy, code=1)

    assert ask("create", own_copy)["after"] == ["files"]

    assert ask("validate", own_copy)["is_valid"]


def test_delete_asks_then_readers_list_the_storage(own_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "can_ask", lambda: True)
    expected = data_files(own_copy)
    for answer in ("n\n", ""):
        assert "Nothing was deleted" in run("delete", own_copy, answer=answer).stderr
    assert (own_copy / ".hoodie" / "metadata").exists()

    assert "none (before: files)" in run("delete", own_copy, answer="y\n").stdout

    assert "no metadata table" in run("list-files", own_copy, code=3).stderr
    listed = ask("list-files", own_copy, "--from-storage")
    assert {f"{f['partition']}/{f['name']}" for f in listed["files"]} >= set(expected)
    assert HudiTable.open(own_copy).scan().to_arrow().num_rows > 0


def test_what_asks_names_the_option_where_nobody_can_answer(own_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = run("delete", own_copy, answer="y\n", code=2)
    assert told.stdout == ""
    assert told.stderr == (
        f"Invalid: this asks first ('Delete the metadata table of {own_copy}?'), and there is no terminal: give --yes\n"
    )

    monkeypatch.setattr(output, "can_ask", lambda: True)
    told = run("delete", own_copy, "--json", answer="y\n", code=2)
    assert told.stdout == ""
    assert json.loads(told.stderr)["error"] == "Invalid"
    assert "give --yes" in json.loads(told.stderr)["message"]

    assert (own_copy / ".hoodie" / "metadata").exists()
    assert ask("delete", own_copy, "--yes")["after"] == []


def test_update_makes_a_missing_one_and_the_next_write_keeps_it(own_copy: Path) -> None:
    run("delete", own_copy, "--yes")
    assert ask("update", own_copy) == {"before": [], "after": ["files"]}
    table = HudiTable.open(own_copy)
    rows = table.scan(meta_fields=False).to_arrow()
    table.upsert(rows.slice(0, 1))

    assert table.metadata.validate().is_valid
    assert ask("update", own_copy) == {"before": ["files"], "after": ["files"]}
    assert isinstance(table.metadata.list_files(), pa.Table)


def test_a_damaged_file_is_named_and_the_storage_listed_only_where_that_is_asked_for(own_copy: Path) -> None:
    base = one_file(own_copy, ".hoodie/metadata/files/*.hfile")
    base.write_bytes(base.read_bytes()[:-20])

    for command in ("list-partitions", "list-files", "stats", "perf", "validate"):
        failed = run(command, own_copy, code=4)
        assert base.name in failed.stderr
    error = json.loads(run("validate", own_copy, "--json", code=4).stderr)
    assert (error["error"], base.name in error["message"]) == ("CorruptFile", True)
    listed = run("list-partitions", own_copy, "--fallback-to-listing")
    assert listed.stdout.splitlines() == ["p1", "p2"]
    assert base.name in listed.stderr

    run("create", own_copy)

    assert ask("validate", own_copy)["is_valid"]


def test_a_folder_without_a_table_and_a_wrong_option_are_told_apart_by_their_exit_codes(tmp_path: Path) -> None:
    run("stats", tmp_path, code=3)
    run("stats", tmp_path, "--storage-option", "secret", code=2)
    assert "secret" not in run("stats", tmp_path, "--storage-option", "secret", code=2).output


def test_an_option_of_another_spelling_is_refused_before_anything_changes(own_copy: Path) -> None:
    failed = run("create", own_copy, "--option", "hoodie.metadata.enabel=true", code=2)

    assert "hoodie.metadata.enable" in failed.stderr
    assert ask("validate", own_copy)["is_valid"]
