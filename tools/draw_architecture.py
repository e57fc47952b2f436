"""Draw the floors and rooms of the package from its imports, as `docs/architecture.svg`.

Usage: `python tools/draw_architecture.py` writes the picture; a test fails where the picture and the code differ.
A floor is a folder (or module) directly below `src/pyhudi`. A room is a folder within a floor. A line runs from
a floor to a floor that it imports, unless another floor between them says so already.
"""

import ast
from collections import defaultdict
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "pyhudi"
PICTURE = ROOT / "docs" / "architecture.svg"

WIDTH, LABEL, ROW, GAP, MARGIN = 1240, 96, 58, 22, 20
LOOSE = "(modules)"
FONT = "font-family='Helvetica, Arial, sans-serif'"


@dataclass(frozen=True, slots=True)
class Room:
    """A folder of a floor, or the modules that lie loose in it (`name` is then empty)."""

    floor: str
    name: str
    modules: int
    lines: int


def modules_of(package: Path) -> dict[str, Path]:
    """Each module by its dotted name within the package; no `__init__`, which only says what a folder is for."""
    files = (file for file in sorted(package.rglob("*.py")) if file.name != "__init__.py")
    return {".".join(file.relative_to(package).with_suffix("").parts): file for file in files}


def floor_imports(package: Path) -> dict[str, set[str]]:
    """The floors that each floor imports, itself left out."""
    imports: dict[str, set[str]] = defaultdict(set)
    for module, file in modules_of(package).items():
        floor = module.split(".")[0]
        imports[floor] |= set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{package.name}."):
                imports[floor].add(node.module.split(".")[1])
    return {floor: found - {floor} for floor, found in imports.items()}


def ranks(imports: dict[str, set[str]]) -> dict[str, int]:
    """How high each floor stands: one above the highest that it imports. The ground imports nothing."""
    height: dict[str, int] = {}

    def rank(floor: str) -> int:
        if floor not in height:
            height[floor] = 1 + max((rank(below) for below in sorted(imports[floor])), default=-1)
        return height[floor]

    for floor in sorted(imports):
        rank(floor)
    return height


def direct_lines(imports: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The imports between floors that no other floor between them implies."""
    reach: dict[str, set[str]] = {}

    def below(floor: str) -> set[str]:
        if floor not in reach:
            reach[floor] = set().union(*({to, *below(to)} for to in imports[floor])) if imports[floor] else set()
        return reach[floor]

    return [
        (floor, to)
        for floor in sorted(imports)
        for to in sorted(imports[floor])
        if not any(to in below(other) for other in imports[floor] - {to})
    ]


def rooms_of(package: Path) -> dict[str, list[Room]]:
    """The rooms of each floor, the largest first."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(list)
    for module, file in modules_of(package).items():
        floor, *folder = module.split(".")
        counts[floor, "/".join(folder[:-1])].append(len(file.read_text(encoding="utf-8").splitlines()))
    rooms: dict[str, list[Room]] = defaultdict(list)
    for (floor, name), lines in counts.items():
        rooms[floor].append(Room(floor, name, len(lines), sum(lines)))
    return {floor: sorted(found, key=lambda r: (-r.lines, r.name)) for floor, found in rooms.items()}


def draw(package: Path) -> str:
    """The picture as SVG text: a row a height, the highest first; in it the floors side by side, and their rooms."""
    imports = floor_imports(package)
    height, rooms = ranks(imports), rooms_of(package)
    rows: dict[int, list[str]] = defaultdict(list)
    for floor, rank in height.items():
        rows[rank].append(floor)

    parts: list[str] = []
    place: dict[str, tuple[float, float, float]] = {}
    y = float(MARGIN)
    for rank in sorted(rows, reverse=True):
        floors, x = sorted(rows[rank]), float(MARGIN)
        space = WIDTH - 2 * MARGIN - GAP * (len(floors) - 1)
        wanted = {floor: LABEL + sum(_text_width(room) for room in rooms[floor]) for floor in floors}
        for floor in floors:
            width = space * wanted[floor] / sum(wanted.values())
            place[floor] = (x, y, width)
            parts += _floor(floor, rooms[floor], x, y, width)
            x += width + GAP
        y += ROW + GAP

    lines = [_line(place[floor], place[to]) for floor, to in direct_lines(imports)]
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{y:.0f}' "
        f"viewBox='0 0 {WIDTH} {y:.0f}' {FONT}>"
        "<title>Floors and rooms of pyhudi: each floor imports only from those below</title>"
        f"<rect width='{WIDTH}' height='{y:.0f}' fill='white'/>"
    )
    return "\n".join([head, *lines, *parts, "</svg>", ""])


def _text_width(room: Room) -> float:
    """How wide a room's box is at least, so that its name fits."""
    return 7.0 * max(len(room.name or LOOSE), 9) + 14


def _floor(floor: str, rooms: list[Room], x: float, y: float, width: float) -> list[str]:
    total = sum(room.lines for room in rooms)
    out = [
        f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{ROW}' rx='6' fill='#eef2f7' stroke='#8496ad'/>",
        f"<text x='{x + 8:.1f}' y='{y + 25:.1f}' font-size='14' font-weight='bold'>{escape(floor)}</text>",
        f"<text x='{x + 8:.1f}' y='{y + 43:.1f}' font-size='10' fill='#555'>{total:,} lines</text>",
    ]
    at = x + LABEL
    stretch = (width - LABEL - 6) / sum(map(_text_width, rooms))
    for room in rooms:
        share = stretch * _text_width(room)
        count = f"{room.modules} module{'s' if room.modules > 1 else ''}"
        out += [
            f"<rect x='{at:.1f}' y='{y + 6:.1f}' width='{share - 4:.1f}' height='{ROW - 12}' rx='4' fill='#d3dfee'/>",
            f"<text x='{at + 5:.1f}' y='{y + 26:.1f}' font-size='11'>{escape(room.name or LOOSE)}</text>",
            f"<text x='{at + 5:.1f}' y='{y + 42:.1f}' font-size='9' fill='#555'>{count}</text>",
        ]
        at += share
    return out


def _line(start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    x1, y1, w1 = start
    x2, y2, w2 = end
    return (
        f"<line x1='{x1 + w1 / 2:.1f}' y1='{y1 + ROW:.1f}' x2='{x2 + w2 / 2:.1f}' y2='{y2:.1f}' "
        "stroke='#b7c3d3' stroke-width='1.5'/>"
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(PACKAGE), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}")
