"""Opens a base file by the format that its name tells."""

from collections.abc import Callable
from importlib.util import find_spec
from io import SEEK_END
from typing import BinaryIO, Final

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.names import BASE_FILE_EXTENSIONS
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.hfile import HFileBaseFile
from pyhudi.table.slices.base_files.orc import OrcBaseFile
from pyhudi.table.slices.base_files.parquet import ParquetBaseFile
from pyhudi.table.slices.base_files.protocol import OpenBaseFile
from pyhudi.table.view.missing_files import told_as_missing


def _open_lance(source: BinaryIO, path: str) -> OpenBaseFile:
    # Asked first: of two threads whose import fails at once, one gets the module half made, and another error.
    if find_spec("lance") is None:
        raise Unsupported(f"{path}: Lance files need the package pylance: pip install 'pyhudi[lance]'")
    from pyhudi.table.slices.base_files.lance import LanceBaseFile

    return LanceBaseFile(source, path)


_FORMATS: Final[dict[str, Callable[[BinaryIO, str], OpenBaseFile]]] = {
    ".parquet": ParquetBaseFile,
    ".orc": OrcBaseFile,
    ".hfile": HFileBaseFile,
    ".lance": _open_lance,
}
assert tuple(_FORMATS) == BASE_FILE_EXTENSIONS


def open_base_file(
    storage: Storage, path: str, *, format_of: str | None = None, size_bytes: int | None = None
) -> OpenBaseFile:
    """A base file, open at what it states of itself.

    `format_of`: the path of another file that has the same format, for a file whose name tells none. `size_bytes`: of
    the file that is meant; None: any is. Raises: CorruptFile when it is no whole file of its format, or of another
    size; Unsupported for a format that is not read; NotFound.
    """
    name = (format_of or path).rpartition("/")[2]
    extension = name[name.rfind(".") :] if "." in name else ""
    opened = _FORMATS.get(extension)
    if opened is None:
        raise Unsupported(f"{path}: a base file of a format that is not read: expected one of {', '.join(_FORMATS)}")

    with told_as_missing(path):
        source = storage.open_input(path).__enter__()
    try:
        with told_as_missing(path):  # some stores open the file only at the first read
            if size_bytes is not None:
                _refuse_other_size(source, path, size_bytes)
            return opened(source, path)
    except BaseException:
        source.close()
        raise


def _refuse_other_size(source: BinaryIO, path: str, size_bytes: int) -> None:
    found = source.seek(0, SEEK_END)
    source.seek(0)
    if found != size_bytes:
        raise CorruptFile(
            path, 0, expected=f"the {size_bytes:,} bytes that it had when the table was bootstrapped from it",
            found=f"{found:,}",
            hint="Rows go by their position, so those of another file would be mixed up; put back the file of that "
            "time.",
        )  # fmt: skip
