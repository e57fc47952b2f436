"""Delete blocks of table version 5 could hold what Java's Kryo serializer reads otherwise, or 0.13 writes otherwise."""

import random

import pyarrow as pa
import pytest

from pyhudi.errors import Unsupported
from pyhudi.format.log.delete import decode_delete_content, encode_delete_content, make_deletes, no_deletes
from pyhudi.format.log.kryo_writing import refuse_java_ordering
from pyhudi.versions import LogContent

TEXTS = ("", "a", "ab", "é", "a€", "😀b", "x" * 63, "x" * 64, "y" * 70_000, "😀" * 40)
TYPES = {
    pa.int32(): (0, -1, 2**31 - 1, -(2**31)),
    pa.int64(): (0, 5, -5, 2**63 - 1, -(2**63), 1 << 55),
    pa.float32(): (0.5, -1e30),
    pa.float64(): (0.1, -1e300),
    pa.bool_(): (True, False),
    pa.string(): TEXTS,
}


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("count", [0, 1, 9, 2_000])
def test_deletes_come_back(kind: pa.DataType, count: int) -> None:
    draw = random.Random(count)
    keys, partitions = (pa.array([draw.choice(TEXTS[:8]) for _ in range(count)], pa.string()) for _ in range(2))
    values = pa.array([draw.choice((None, *TYPES[kind])) for _ in range(count)], kind)
    deletes = make_deletes(keys, partitions, [values])

    content = encode_delete_content(deletes, LogContent.JAVA)

    assert content[:4] == b"\0\0\0\2"
    assert decode_delete_content(content, path="log").equals(deletes)


def test_the_bytes_are_those_of_java() -> None:
    """Spec: format/log-format.md section 2.4, the example."""
    content = encode_delete_content(make_deletes(pa.array(["k1", "key2"]), pa.array(["p=0", "p=0"])), LogContent.JAVA)
    assert content[8:] == (
        b"\x01\x00[Lorg.apache.hudi.common.model.DeleteRecord\xbb\x01\x03"
        b"\x01\x01org.apache.hudi.common.model.DeleteRecor\xe4\x01\x01\x02org.apache.hudi.common.model.HoodieKe\xf9\x01"
        b"\x01p=\xb0\x01k\xb1\x02\x00\x01\x01\x01\x01\x02\x01\x05\x01key\xb2\x02\x00"
    )
    assert encode_delete_content(no_deletes(), LogContent.JAVA)[4:] == (
        b"\x00\x00\x000\x01\x00[Lorg.apache.hudi.common.model.DeleteRecord\xbb\x01\x01"
    )


@pytest.mark.parametrize("kind", [pa.date32(), pa.decimal128(10, 2), pa.binary()], ids=str)
def test_values_that_this_form_does_not_hold_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(Unsupported, match="of which this release writes numbers, booleans and texts"):
        refuse_java_ordering([kind], what="table 't'")
    deletes = make_deletes(pa.array(["a"]), pa.array([""]), [pa.array([b"1"]).cast(pa.binary())])
    with pytest.raises(Unsupported, match="ordered by a bytes"):
        encode_delete_content(deletes, LogContent.JAVA)
