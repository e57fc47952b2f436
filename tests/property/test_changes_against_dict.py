"""Change data could miss a change, tell one twice, or tell rows that never stood.

Random writes and services run on tables of every kind. Their changes, told from change logs or from files, must take
the rows from one moment to any later one, and those of the pieces of a range must be those of the whole.
"""

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.decimal128(12, 3)),
        ("tags", pa.list_(pa.string())),
        ("inner", pa.struct([("a", pa.float64()), ("b", pa.binary())])),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
MODES = ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER")
KINDS = [
    (kind, version, mode)
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
    for version in (6, 8, 9)
    for mode in (*MODES, None)
    if mode is None or version == 9 or mode == MODES[version // 2 - 3]
]


def rows(random_: random.Random, count: int, time: int) -> pa.Table:
    keys = random_.sample(range(40), count)
    return pa.Table.from_pylist(
        [
            {
                "k": f"k{key}",
                "p": f"p{key % 2}",
                "ts": time + random_.choice([-3, 0, 0, 1]),
                "v": random_.choice([None, f"{random_.randint(-(10**8), 10**8)}.125"]),
                "tags": random_.choice([None, [], ["x", None, 'q"']]),
                "inner": random_.choice([None, {"a": random_.random(), "b": b"\x00\xff"}]),
                "at": random_.choice([None, random_.randint(0, 10**15)]),
            }
            for key in keys
        ],
        SCHEMA.set(3, pa.field("v", pa.string())).set(6, pa.field("at", pa.int64())),
    ).cast(SCHEMA)


def change(table: HudiTable, random_: random.Random, time: int) -> None:
    write = random_.choice(["upsert"] * 5 + ["delete"] * 2 + ["insert_overwrite", "delete_partitions", "service"])
    data = rows(random_, random_.randint(1, 12), time)
    match write:
        case "upsert":
            table.upsert(data)
        case "delete":
            table.delete(data.select(["k", "p", "ts"]))
        case "insert_overwrite":
            table.insert_overwrite(data.filter(pa.compute.equal(data.column("p"), "p1")))
        case "delete_partitions":
            if "p0" in table.scan().to_arrow().column("p").to_pylist():
                table.delete_partitions(["p=p0"])
        case "service":
            if table.table_type == "MERGE_ON_READ" and random_.random() < 0.6:
                table.compact()
            else:
                table.cluster()


Row = dict[str, Any]


def by_key(found: pa.Table) -> dict[str, Row]:
    return {row["k"]: row for row in found.to_pylist()}


def applied(stood: dict[str, Row], changes: pa.Table) -> dict[str, Row]:
    """The rows after the changes. What a change says stood before must have stood."""
    found = dict(stood)
    told = changes.to_pylist()
    for requested in sorted({row["requested"] for row in told}):
        here = [row for row in told if row["requested"] == requested]
        for row in sorted(here, key=lambda row: row["op"] != "d"):  # a write may replace a row by one of the same key
            if row["op"] in "du":
                assert found.pop(row["before"]["k"]) == row["before"]
            if row["op"] in "iu":
                assert row["after"]["k"] not in found
                found[row["after"]["k"]] = row["after"]
    return found


@pytest.mark.parametrize("kind,version,mode", KINDS)
def test_changes_lead_from_each_moment_to_each_later_one(
    tmp_path: Path, kind: str, version: int, mode: str | None
) -> None:
    seed = f"{kind}-{version}-{mode}"
    random_ = random.Random(seed)
    properties = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    if mode is not None:
        properties |= {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": mode}
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="k", partition_by="p", ordering="ts", table_type=kind,
        table_version=version, properties=properties,
    )  # fmt: skip
    table.insert(rows(random_, 20, 10))
    states = [(table.timeline()[-1].requested, by_key(table.scan(meta_fields=False).to_arrow()))]
    for step in range(10):
        change(table, random_, 11 + step)
        states.append((table.timeline()[-1].requested, by_key(table.scan(meta_fields=False).to_arrow())))

    whole = table.cdc().to_arrow()
    assert applied({}, whole) == states[-1][1]
    pieces = [table.cdc(None, states[0][0]).to_arrow()]
    for (start, before), (end, after) in pairwise(states):
        piece = table.cdc(start, end).to_arrow()
        assert applied(before, piece) == after, seed
        pieces.append(piece)
    assert counted(pa.concat_tables(pieces)) == counted(whole)

    (start, before), (end, after) = sorted(random_.sample(states, 2), key=lambda state: state[0])
    assert applied(before, table.cdc(start, end).to_arrow()) == after

    # A merge-on-read table keeps change logs, too, where new rows join a small base file.
    assert any((tmp_path / "t").rglob("*.cdc")) == (mode is not None)


def counted(changes: pa.Table) -> Counter[str]:
    return Counter(map(repr, changes.to_pylist()))
