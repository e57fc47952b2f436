"""The map could drift from the code: a picture of floors that are no more, or paths that lead nowhere.

The picture is drawn again and compared. Each path on the page is looked up.
"""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pyhudi"
PAGE = ROOT / "docs" / "architecture.md"

_PATH = re.compile(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`")


def test_the_picture_shows_the_floors_and_rooms_as_they_are() -> None:
    spec = importlib.util.spec_from_file_location("draw_architecture", ROOT / "tools" / "draw_architecture.py")
    assert spec is not None
    assert spec.loader is not None
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)

    drawn = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")

    # Line counts change with every commit: the picture shows them, and is not held to them.
    def without_counts(picture: str) -> str:
        return re.sub(r">[\d,]+ lines<", "><", picture)

    assert without_counts(drawn) == without_counts(drawing.draw(PACKAGE)), "run tools/draw_architecture.py"


def test_paths_on_the_page_are_there() -> None:
    named = _PATH.findall(PAGE.read_text(encoding="utf-8"))
    roots = (PACKAGE, ROOT)

    missing = [path for path in named if not any((root / path).exists() for root in roots)]

    assert len(named) > 60
    assert missing == []


def test_each_room_says_what_lives_there() -> None:
    silent = [
        file.parent.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("__init__.py")
        if not file.read_text(encoding="utf-8").startswith('"""')
    ]
    assert silent == []
