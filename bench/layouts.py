"""`python -m bench.layouts`: how many files a query reads, by the layout of the rows and by the places of values.

For each pair of columns: rows in the order of a layout, in 64 files of equal size. A query asks for 3 % of the rows by
a range of one column, or for both ranges together. A file is read where its least and greatest values do not rule it
out, which is what column statistics know. Ways in which a value becomes a place on its side of the cube:

* bits: the 64 bits of the value, as Apache Hudi's `direct` takes them; the first eight bytes of text;
* scaled: from the least value to the greatest;
* distinct: by the number of distinct values below;
* share: by the share of the rows below, and half of those equal. This is what pyhudi does.

Then the seconds that the order of 2 M rows takes. Prints both, and writes them to `build/bench/layouts.md`. Takes half
a minute.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.data import SEED
from pyhudi.write.place.curves import CURVES, curve_order, spread
from pyhudi.write.place.value_codes import Keys, Rows, value_codes, words_at
from tests.support.reference.environment import PROJECT

OUTPUT = PROJECT / "build" / "bench"
FILES = 64
QUERIES = 300
SELECTED = 0.03
BITS = 20
TIMED_ROWS = 2_000_000

Numbers: TypeAlias = npt.NDArray[np.generic]
DAY_MICROSECONDS = 86_400_000_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.layouts", description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000, help="rows of each pair of columns (%(default)s)")
    rows: int = parser.parse_args().rows

    lines = [
        "| columns | layout | place by | files by a, % | files by b, % | by both, % |",
        "|---|---|---|---|---|---|",
    ]
    print(*lines, sep="\n")
    for name, (a, b) in column_pairs(rows).items():
        for layout, way, shares in measured(pa.table({"a": a, "b": b})):
            lines.append(f"| {name} | {layout} | {way} | {' | '.join(f'{100 * share:.1f}' for share in shares)} |")
            print(lines[-1])

    for line in timed():
        lines.append(line)
        print(line)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / "layouts.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def timed() -> Iterator[str]:
    """The processor seconds of each layout of many rows by two columns; the best of three."""
    random = np.random.default_rng(SEED)
    numbers, floats = random.integers(-(1 << 62), 1 << 62, TIMED_ROWS), random.normal(0, 1, TIMED_ROWS)
    texts = pa.array(random.integers(0, 1 << 60, TIMED_ROWS)).cast(pa.string())
    for names, table in {
        "long, double": pa.table({"a": numbers, "b": floats}),
        "long, string": pa.table({"a": numbers, "b": texts}),
    }.items():
        for layout in ("linear", *CURVES):
            seconds = []
            for _ in range(3):
                start = time.process_time()
                order_of(table, layout)
                seconds.append(time.process_time() - start)
            yield f"{names}, {TIMED_ROWS:,} rows, {layout}: {min(seconds):.2f} s"


def column_pairs(rows: int) -> dict[str, tuple[Numbers, Numbers]]:
    """Pairs of columns that a query may filter by."""
    random = np.random.default_rng(SEED)
    normal = random.normal(0, 1, rows)
    hosts = np.array([f"host-{number:05d}.example.org" for number in range(10_000)])
    return {
        "uniform": (random.integers(0, 1 << 40, rows), random.integers(0, 1 << 40, rows)),
        "skewed": (
            (random.lognormal(0, 3, rows) * 1000).astype(np.int64),
            random.zipf(1.3, rows).clip(0, 1 << 40),
        ),
        "correlated": (normal, normal + random.normal(0, 0.2, rows)),
        "four values": (random.choice(4, rows, p=[0.7, 0.2, 0.07, 0.03]), random.integers(0, 1 << 40, rows)),
        "time of a day, host": (
            1_700_000_000_000_000 + random.integers(0, DAY_MICROSECONDS, rows),
            hosts[random.zipf(1.2, rows).clip(0, 9_999)],
        ),
    }


def measured(table: pa.Table) -> list[tuple[str, str, tuple[float, float, float]]]:
    """Layout, way to places, and the shares of the files that queries read."""
    codes = [value_codes(table.column(name), name=name)[0] for name in ("a", "b")]
    ranges = queries(*codes)
    answers = [("linear", "", files_read(order_of(table, "linear"), codes, ranges))]
    for way, places in (("bits", by_bits), ("scaled", by_scale), ("distinct", by_distinct)):
        coordinates, bits = places(table)
        for layout, positions in CURVES.items():
            order = np.argsort(positions(coordinates, bits), kind="stable")
            answers.append((layout, way, files_read(order, codes, ranges)))
    for layout in CURVES:
        answers.append((layout, "share", files_read(order_of(table, layout), codes, ranges)))
    return answers


def order_of(table: pa.Table, layout: str) -> Rows:
    return np.asarray(curve_order(table, ["a", "b"], layout))  # type: ignore[arg-type]


def queries(a: Rows, b: Rows) -> npt.NDArray[np.int64]:
    """Least and greatest code of a, then of b, for each query. Shape: (queries, 4)."""
    random = np.random.default_rng(SEED)
    width = int(a.size * SELECTED)
    starts = random.integers(0, a.size - width, (2, QUERIES))
    in_order = (np.sort(a), np.sort(b))
    ends = [side[at] for side, start in zip(in_order, starts, strict=True) for at in (start, start + width)]
    return np.stack(ends, axis=1)


def files_read(order: Rows, codes: list[Rows], ranges: npt.NDArray[np.int64]) -> tuple[float, float, float]:
    """The mean share of the files that queries by a, by b and by both cannot leave out."""
    hits = []
    for side, column in enumerate(codes):
        files = np.array_split(column[order], FILES)
        least, greatest = np.array([one.min() for one in files]), np.array([one.max() for one in files])
        low, high = ranges[:, 2 * side, None], ranges[:, 2 * side + 1, None]
        hits.append((least <= high) & (greatest >= low))
    return float(hits[0].mean()), float(hits[1].mean()), float((hits[0] & hits[1]).mean())


def by_bits(table: pa.Table) -> tuple[Keys, int]:
    """The bits of the values. Those that all values share tell nothing, and are left out for room."""
    sides = np.stack([value_bits(table.column(name)) for name in ("a", "b")])
    differing = np.bitwise_or.reduce(sides ^ sides[:, :1], axis=1)
    width = max(int(bits).bit_length() for bits in differing)
    shift = np.uint64(max(0, width - 32))
    return (sides & np.uint64((1 << width) - 1)) >> shift, min(width, 32)


def value_bits(column: pa.ChunkedArray) -> Keys:
    array = column.combine_chunks()
    if pa.types.is_string(array.type):
        large = array.cast(pa.large_binary())
        _, offsets, data = large.buffers()
        return words_at(np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int64), 0)
    numbers = array.to_numpy()
    bits = numbers.view(np.uint64)
    is_negative = bits >> np.uint64(63) == 1
    return np.where(is_negative, ~bits, bits | np.uint64(1 << 63)) if numbers.dtype == np.float64 else bits


def by_scale(table: pa.Table) -> tuple[Keys, int]:
    sides = []
    for name in ("a", "b"):
        column = table.column(name)
        is_text = pa.types.is_string(column.type)
        numbers = value_codes(column, name=name)[0] if is_text else column.to_numpy()
        span = float(numbers.max() - numbers.min())
        sides.append(((numbers - numbers.min()) / span * ((1 << BITS) - 1)).astype(np.uint64))
    return np.stack(sides), BITS


def by_distinct(table: pa.Table) -> tuple[Keys, int]:
    sides = []
    for name in ("a", "b"):
        codes, distinct = value_codes(table.column(name), name=name)
        sides.append(spread(np.arange(distinct), distinct, BITS)[codes])
    return np.stack(sides), BITS


if __name__ == "__main__":
    raise SystemExit(main())
