"""`python -m bench.avro_codec`: rows a second to and from Avro, of the columnar codec and of fastavro.

Twelve simple columns, half of them nullable, one core, best of several rounds by processor time (so that
neighbours on the machine count less). The first call compiles, and is left out. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
from collections.abc import Callable

import fastavro
import numpy as np
import pyarrow as pa

from pyhudi.format.avro.decode import RowDecoder
from pyhudi.format.avro.encode import RowEncoder

COLUMNS: dict[str, object] = {
    "id": "long",
    "quantity": "int",
    "price": "double",
    "weight": "float",
    "name": "string",
    "is_open": "boolean",
    "day": ["null", {"type": "int", "logicalType": "date"}],
    "changed": ["null", {"type": "long", "logicalType": "timestamp-micros"}],
    "city": ["null", "string"],
    "score": ["null", "double"],
    "parent": ["null", "long"],
    "rank": ["null", "int"],
}
FASTAVRO_ROWS_MAX = 50_000
KEY_COLUMNS = ("id", "changed")


def make_batch(row_count: int) -> pa.RecordBatch:
    """Rows of the twelve columns; a tenth of what may be null is."""
    random = np.random.default_rng(7)
    numbers = np.arange(row_count)
    cities = pa.array([f"city number {number}" for number in range(500)])

    def nullable(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=random.random(row_count) < 0.1)

    columns = {
        "id": pa.array(numbers * 7919),
        "quantity": pa.array(random.integers(0, 1000, row_count, np.int32)),
        "price": pa.array(random.random(row_count)),
        "weight": pa.array(random.random(row_count, np.float32)),
        "name": pa.array([f"name {number:010d}" for number in range(row_count)]),
        "is_open": pa.array(random.random(row_count) < 0.5),
        "day": nullable(random.integers(15_000, 20_000, row_count, np.int32)).cast(pa.date32()),
        "changed": nullable(1_700_000_000_000_000 + numbers).cast(pa.timestamp("us", "UTC")),
        "city": cities.take(nullable(random.integers(0, 500, row_count, np.int32))),
        "score": nullable(random.random(row_count)),
        "parent": nullable(numbers),
        "rank": nullable(random.integers(0, 100, row_count, np.int32)),
    }
    return pa.RecordBatch.from_pydict(columns)


def best_seconds(work: Callable[[], object], rounds: int) -> float:
    """The least processor time of some rounds."""
    seconds = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return min(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.avro_codec", description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000, help="rows a round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds, the best of which counts (%(default)s)")
    arguments = parser.parse_args()
    pa.set_cpu_count(1)

    schema = json.dumps(
        {"type": "record", "name": "row", "fields": [{"name": n, "type": t} for n, t in COLUMNS.items()]}
    )
    batch = make_batch(arguments.rows)
    encoder, decoder = RowEncoder(schema), RowDecoder(schema)
    projected = RowDecoder(schema, columns=KEY_COLUMNS)
    rows = encoder.encode(batch)
    content = rows.content.tobytes()
    if decoder.decode(content, rows.starts, rows.ends) != batch:
        print("the rows did not come back as they were", file=sys.stderr)
        return 1

    parsed = fastavro.parse_schema(json.loads(schema))
    few = min(arguments.rows, FASTAVRO_ROWS_MAX)
    few_rows = batch.slice(0, few).to_pylist()
    few_content = content[: int(rows.ends[few - 1])]

    def write_fastavro() -> None:
        sink = io.BytesIO()
        for row in few_rows:
            fastavro.schemaless_writer(sink, parsed, row)

    def read_fastavro() -> None:
        source = io.BytesIO(few_content)
        for _ in range(few):
            fastavro.schemaless_reader(source, parsed, None)

    print("| | rows/s | MB/s |\n| --- | ---: | ---: |")
    for name, work, row_count, size in (
        ("encode", lambda: encoder.encode(batch), arguments.rows, len(content)),
        ("decode", lambda: decoder.decode(content, rows.starts, rows.ends), arguments.rows, len(content)),
        (
            f"decode, columns {' and '.join(KEY_COLUMNS)} only",
            lambda: projected.decode(content, rows.starts, rows.ends),
            arguments.rows,
            len(content),
        ),
        ("encode, fastavro from dicts", write_fastavro, few, len(few_content)),
        ("decode, fastavro to dicts", read_fastavro, few, len(few_content)),
    ):
        seconds = best_seconds(work, arguments.rounds)
        print(f"| {name} | {row_count / seconds:,.0f} | {size / seconds / 1e6:,.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
