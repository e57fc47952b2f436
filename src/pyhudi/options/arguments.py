"""Arguments of calls that are several texts: names of columns, paths of partitions, requested times."""

from collections.abc import Iterable

import pyarrow as pa

from pyhudi.errors import Invalid


def several_texts(given: object, *, what: str, of: str) -> tuple[str, ...]:
    """The texts that a caller hands in, in their order. Any iterable is taken, and is read once, here.

    A bare text is refused. Letter by letter, `"12"` would name the partitions `1` and `2`.
    `what`: the argument. `of`: what its texts are, such as `column names`. Raises: Invalid.
    """
    if isinstance(given, str | bytes | bytearray) or not isinstance(given, Iterable):
        example = f", such as [{given!r}]" if isinstance(given, str) else ""
        raise Invalid(f"{what}={given!r}: expected a sequence of {of}{example}")
    texts = tuple(given.to_pylist() if isinstance(given, pa.Array | pa.ChunkedArray) else given)
    for one in texts:
        if not isinstance(one, str):
            raise Invalid(f"{what}: expected a sequence of {of}, which are texts, found {one!r} in it")
    return texts


def one_or_several_texts(given: object, *, what: str, of: str) -> tuple[str, ...]:
    """As `several_texts`, where a bare text stands for one."""
    return (given,) if isinstance(given, str) else several_texts(given, what=what, of=of)


def optional_text(given: object, *, what: str) -> str | None:
    """A text, or None. Raises: Invalid for anything else."""
    if given is None or isinstance(given, str):
        return given
    raise Invalid(f"{what}={given!r}: expected a text")
