"""How messages tell names: the one that was probably meant, and of many the first ones."""

import difflib
from collections.abc import Collection, Iterable

TOLD_MAX = 20
"""A message lists at most so many names. A table may have hundreds of columns."""

_LIKENESS_MIN, _LIKENESS_OF_SHORT_MIN = 0.75, 0.6
"""The share of letters that a name has in common with the one that it misspells."""


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is meant by a misspelled one, whatever the capital letters. None where none is close.

    A quarter of the letters may differ; of short names, one letter. `nun` is close to `num`, and `uper` to `upper`;
    what only begins or ends alike is not close: `hoodie.x` and `hoodie.index.type`, `curent_date` and `to_date`.
    """
    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), sorted(by_lower), n=1, cutoff=_LIKENESS_OF_SHORT_MIN)
    return by_lower[near[0]] if near and _is_close(name.lower(), near[0]) else None


def _is_close(name: str, known: str) -> bool:
    likeness = difflib.SequenceMatcher(None, known, name).ratio()
    letters = len(name) + len(known)
    return likeness >= _LIKENESS_MIN or round(letters * (1 - likeness)) <= 2


def listed(texts: Collection[str], separator: str = ", ", *, most: int = TOLD_MAX) -> str:
    """Texts one after the other. Of more than `most`, the first ones, and how many more there are."""
    shown = separator.join(list(texts)[:most])
    return f"{shown} and {len(texts) - most:,} more" if len(texts) > most else shown
