"""Of two rows with one ordering value the later one could win in a table of `FirstValueAvroPayload`.

Seen: 0.15.0, merge-on-read, version 6: log rows with each other, and with the base row.
"""

import pyarrow as pa
import pytest

from pyhudi import Unsupported
from pyhudi.merge.first_value import FirstValue
from pyhudi.merge.payloads import merge_rules
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.facts.properties_file import read_table_properties, replace_table_properties
from pyhudi.versions import VERSIONS
from tests.support.model import Handles, Row, arrow

PAYLOAD = "org.apache.hudi.common.model.FirstValueAvroPayload"


def batch(values: list[int | None], texts: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": texts, "ts": pa.array(values, pa.int64()), "v": texts})


def test_the_first_of_equal_values_stays() -> None:
    older, newer = batch([1, 1, 1, None, None, 2], list("abcdef")), batch([1, 2, 0, None, 1, None], list("ABCDEF"))
    assert FirstValue(("ts",)).merge(older, newer)["v"].to_pylist() == ["a", "B", "c", "D", "E", "f"]
    assert FirstValue(()).merge(older, newer) == newer


def test_tables_of_version_6_are_read_by_it_and_not_written() -> None:
    handles = Handles(MemoryStorage())
    table = handles.create(
        table_type="MERGE_ON_READ", table_version=6, partition_by=None, properties={"hoodie.compact.inline": "false"}
    )
    table.upsert(arrow([Row("ada", "oslo", 5, 1), Row("ben", "oslo", 5, 1), Row("cleo", "oslo", 5, 1)]))
    table.upsert(arrow([Row("ada", "oslo", 5, 2), Row("ben", "oslo", 6, 2), Row("cleo", "oslo", 4, 2)]))
    table.upsert(arrow([Row("ada", "oslo", 5, 3), Row("ben", "oslo", 6, 3)]))
    assert values(handles) == {"ada": 3, "ben": 3, "cleo": 1}

    properties = {**read_table_properties(handles.storage), "hoodie.compaction.payload.class": PAYLOAD}
    replace_table_properties(handles.storage, properties, epoch_ms=0)

    assert isinstance(merge_rules(properties, version=VERSIONS[6], path="t").merger, FirstValue)
    assert values(handles) == {"ada": 1, "ben": 2, "cleo": 1}
    with pytest.raises(Unsupported, match="reads work"):
        handles.open().upsert(arrow([Row("ada", "oslo", 7, 7)]))


def values(handles: Handles) -> dict[str, int]:
    rows = handles.open().scan(["id", "v"]).to_arrow()
    return dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))
