"""Tables by their path, in the forms of other libraries: for who knows Polars or DuckDB and not `HudiTable`."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyhudi.api.queries import TimeLike, Where
from pyhudi.api.table import HudiTable

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset


def scan_polars(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    as_of: TimeLike | None = None,
    query: str = "snapshot",
    meta_fields: bool = True,
    options: Mapping[str, object] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Any:
    """The table at `path` as a Polars LazyFrame: `Scan.to_polars(lazy=True)`.

    The arguments are those of `HudiTable.open` and `HudiTable.scan`.
    Raises: as these; Unsupported where Polars is not installed.
    """
    table = HudiTable.open(path, options=options, storage_options=storage_options)
    return table.scan(columns, where, as_of, query, meta_fields).to_polars(lazy=True)


def scan_dataset(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    as_of: TimeLike | None = None,
    query: str = "snapshot",
    meta_fields: bool = True,
    options: Mapping[str, object] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> "Dataset":
    """The table at `path` as a `pyarrow.dataset.Dataset`, which DuckDB queries: `Scan.to_dataset()`.

    The arguments are those of `HudiTable.open` and `HudiTable.scan`. Raises: as these.
    """
    table = HudiTable.open(path, options=options, storage_options=storage_options)
    return table.scan(columns, where, as_of, query, meta_fields).to_dataset()
