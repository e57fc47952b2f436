"""`python tools/draw_skipping.py`: draws `docs/skipping.svg`, what a clustering does to the files that a query reads.

Each square is a table of 16 files by two columns, drawn by the least and greatest values of its files. The band is a
range of one column that a query asks for; the files that it cannot leave out are filled.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from pyhudi.write.place.curves import Curve, curve_order

OUTPUT = Path(__file__).parents[1] / "docs" / "skipping.svg"
ROWS, FILES, SIDE, GAP, TOP, LEFT = 4_096, 16, 180, 40, 56, 90
LOW, HIGH = 0.40, 0.46
COLUMNS = ("a", "b")
LAYOUTS: tuple[tuple[str, Curve | None], ...] = (
    ("as written", None), ("sorted by a, b", "linear"), ("hilbert by a, b", "hilbert"),
)  # fmt: skip


def main() -> int:
    OUTPUT.write_text(draw(), encoding="utf-8")
    print(f"wrote {OUTPUT.relative_to(Path(__file__).parents[1])}")
    return 0


def draw() -> str:
    random = np.random.default_rng(7)
    rows = pa.table({name: random.random(ROWS) for name in COLUMNS})
    width, height = LEFT + len(LAYOUTS) * (SIDE + GAP), TOP + len(COLUMNS) * (SIDE + GAP) + 6
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' font-family='sans-serif' "
        "font-size='13' fill='#1f2937'>",
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
    ]
    for across, (title, curve) in enumerate(LAYOUTS):
        boxes = boxes_of(rows, curve)
        x = LEFT + across * (SIDE + GAP)
        parts.append(f"<text x='{x + SIDE / 2}' y='26' text-anchor='middle' font-weight='bold'>{title}</text>")
        for down, column in enumerate(COLUMNS):
            y = TOP + down * (SIDE + GAP)
            parts += square(boxes, column, x, y)
            if not across:
                parts.append(f"<text x='8' y='{y + SIDE / 2 - 6}'>a range</text>")
                parts.append(f"<text x='8' y='{y + SIDE / 2 + 12}'>of {column}</text>")
    return "\n".join([*parts, "</svg>", ""])


def boxes_of(rows: pa.Table, curve: Curve | None) -> np.ndarray:
    """The bounds of each file. Shape: (files, columns, 2): least and greatest value."""
    order = np.arange(ROWS) if curve is None else np.asarray(curve_order(rows, COLUMNS, curve))
    sides = [rows.column(name).to_numpy()[order].reshape(FILES, -1) for name in COLUMNS]
    return np.stack([np.stack([one.min(axis=1), one.max(axis=1)], axis=1) for one in sides], axis=1)


def square(boxes: np.ndarray, column: str, x: float, y: float) -> list[str]:
    """One table and one query. Column a goes to the right, b upwards."""
    at = COLUMNS.index(column)
    is_read = (boxes[:, at, 0] <= HIGH) & (boxes[:, at, 1] >= LOW)
    parts = [f"<rect x='{x}' y='{y}' width='{SIDE}' height='{SIDE}' fill='#f8fafc' stroke='#94a3b8'/>"]
    for box, read in sorted(zip(boxes.tolist(), is_read.tolist(), strict=True), key=lambda one: bool(one[1])):
        (left, right), (bottom, top) = box
        fill = "fill='#f59e0b' fill-opacity='0.35' stroke='#b45309'" if read else "fill='none' stroke='#64748b'"
        parts.append(
            f"<rect x='{x + left * SIDE:.1f}' y='{y + (1 - top) * SIDE:.1f}' width='{(right - left) * SIDE:.1f}' "
            f"height='{(top - bottom) * SIDE:.1f}' {fill}/>"
        )
    band = (
        f"x='{x + LOW * SIDE:.1f}' y='{y}' width='{(HIGH - LOW) * SIDE:.1f}' height='{SIDE}'"
        if column == "a"
        else f"x='{x}' y='{y + (1 - HIGH) * SIDE:.1f}' width='{SIDE}' height='{(HIGH - LOW) * SIDE:.1f}'"
    )
    parts.append(f"<rect {band} fill='#2563eb' fill-opacity='0.30'/>")
    told = f"{int(is_read.sum())} of {FILES} files"
    parts.append(f"<text x='{x + SIDE / 2}' y='{y + SIDE + 17}' text-anchor='middle'>{told}</text>")
    return parts


if __name__ == "__main__":
    raise SystemExit(main())
