"""A bootstrap index that we write could differ from Apache Hudi's, so that a release finds no source file in it.

The index of a table that Apache Hudi bootstrapped is written anew from its own facts. Keys, records, and what the files
say of themselves must be the same bytes, but for the sync markers of Avro, which are random there.
"""

import pytest

from pyhudi.format.avro.container import decode_record, split_container
from pyhudi.format.bootstrap.index import FILE_IDS_FILE, PARTITIONS_FILE
from pyhudi.format.bootstrap.writing import IndexedFile, encode_file_ids_file, encode_partitions_file
from pyhudi.format.hfile.reader import HFileReader
from tests.support.golden_tables import GoldenTables


def records(content: bytes) -> dict[bytes, tuple[str, bytes]]:
    """The schema and the record of each entry, and of what the file says of itself."""
    reader = HFileReader(content, path="index")
    cells = {key: split_container(bytes(value), path="index")[:2] for key, value in reader.scan()}
    return {**cells, b"INDEX_INFO": split_container(reader.file_info["INDEX_INFO"], path="index")[:2]}


@pytest.mark.parametrize(
    "name", ["cow_bootstrap_mixed_v8_h102", pytest.param("mor_bootstrap_meta_v9_h120", marks=pytest.mark.long)]
)
def test_an_index_written_anew_is_the_same(golden: GoldenTables, name: str) -> None:
    table = golden.get(name).path
    theirs = {path: records((table / path).read_bytes()) for path in (PARTITIONS_FILE, FILE_IDS_FILE)}

    files = []
    for key, (schema, body) in theirs[FILE_IDS_FILE].items():
        if key == b"INDEX_INFO":
            continue
        record = decode_record(body, schema)
        status = record["bootstrapFileStatus"]
        assert isinstance(status, dict)
        files.append(
            IndexedFile(
                str(record["partitionPath"]), key.decode().rpartition(";fileid=")[2],
                str(record["bootstrapPartitionPath"]), status["path"]["uri"], status["length"],
                status["modificationTime"],
            )
        )  # fmt: skip
    for path, encode in ((PARTITIONS_FILE, encode_partitions_file), (FILE_IDS_FILE, encode_file_ids_file)):
        schema, body = theirs[path][b"INDEX_INFO"]
        info = decode_record(body, schema)
        ours = records(encode(str(info["bootstrapBasePath"]), files, epoch_ms=int(str(info["createdTimestamp"]))))
        assert list(ours) == list(theirs[path])
        for key, (text, record_bytes) in theirs[path].items():
            assert ours[key][0] == text
            assert decode_record(ours[key][1], text) == decode_record(record_bytes, text)
            assert sorted(ours[key][1]) == sorted(record_bytes)  # the order in a map is no matter
