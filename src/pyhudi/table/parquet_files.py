"""Opening base files, and what to say of those that do not open."""

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import CorruptFile, HudiError
from pyhudi.storage.protocol import Storage


def open_parquet(storage: Storage, path: str) -> pq.ParquetFile:
    """A base file, open at its footer.

    Raises: CorruptFile when it is no whole Parquet file.
    """
    source = storage.open_input(path).__enter__()
    try:
        return pq.ParquetFile(source, pre_buffer=True)
    except HudiError:
        raise
    except (pa.ArrowInvalid, OSError) as error:
        source.close()
        raise corrupt_parquet(path, error) from error


def corrupt_parquet(path: str, error: Exception) -> CorruptFile:
    return CorruptFile(
        path, 0, expected="a whole Parquet file", found=f"one that does not read ({error})",
        hint="It is cut short or damaged; restore it, or travel to a time before it was written.",
    )  # fmt: skip
