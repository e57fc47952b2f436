"""HBase's reader, by which releases of Apache Hudi up to 1.0 read HFiles, could see something else in ours.

Its own classes, as the bundle of 1.0.2 carries them, scan files of each layout and look keys up in them.
"""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.format.hfile.writer import Compression, encode_hfile
from tests.support.reference.client import ReferenceHudi

SCHEMA = '{"type": "record", "name": "r", "fields": []}'


def read_by_hbase(hudi: ReferenceHudi, path: Path, wanted: list[str]) -> tuple[list[tuple[bytes, bytes]], list[str]]:
    answer = hudi.worker.ask("read_by_hbase", path=path.as_uri(), wanted=wanted)
    cells = [(bytes.fromhex(key), bytes.fromhex(value)) for key, value in answer["cells"]]
    assert answer["entries"] == len(cells)
    return cells, [key for key, is_there in answer["found"].items() if is_there]


@pytest.mark.parametrize("compression", ["GZ", "NONE"])
@pytest.mark.parametrize("count, block_size", [(1, 65_536), (700, 65_536), (700, 256)], ids=["one", "block", "blocks"])
def test_hbase_reads_what_we_write(
    hudi_102: ReferenceHudi, tmp_path: Path, compression: Compression, count: int, block_size: int
) -> None:
    cells = [(f"k{n:05}é".encode(), bytes([n % 256]) * (n % 90)) for n in range(count)]
    file = tmp_path / "cells.hfile"
    file.write_bytes(encode_hfile(cells, schema_text=SCHEMA, compression=compression, block_size=block_size))

    found, stored = read_by_hbase(hudi_102, file, ["k00000é", f"k{count - 1:05}é", "k00000", "z", "a"])

    assert found == cells
    assert set(stored) == {"k00000é", f"k{count - 1:05}é"}


def test_hbase_reads_our_metadata_table(hudi_102: ReferenceHudi, tmp_path: Path) -> None:
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="p",
        properties={"hoodie.metadata.compact.max.delta.commits": "2"},
    )  # fmt: skip
    for turn in range(4):
        table.upsert(pa.table({"id": [f"k{turn}-{n}" for n in range(40)], "p": [f"p{n}" for n in range(40)]}))
    files = sorted((tmp_path / "t" / ".hoodie" / "metadata" / "files").glob("*.hfile"))
    assert len(files) > 1

    for file in files:
        ours = list(HFileReader(file.read_bytes(), path=file.name).scan())
        found, stored = read_by_hbase(hudi_102, file, ["__all_partitions__", "p7", "absent"])
        assert found == ours
        assert set(stored) <= {"__all_partitions__", "p7"}
    assert set(stored) == {"__all_partitions__", "p7"}
