"""Which files a plan or a marker may have deleted: data files, by their names, and nothing else of a table."""

import logging
from collections.abc import Iterable, Iterator

from pyhudi.format.names import HOODIE, BaseFileName, LogFileName

log = logging.getLogger("pyhudi")


def only_data_files(paths: Iterable[str], *, of: str) -> Iterator[str]:
    """Those of the paths, relative to the table, that name base files or logs outside of `.hoodie`.

    Plans and markers are files of the table: anybody who may write there may have made them up. One that names the
    table's properties, or a file that is not Hudi's, must not have it deleted. A log line tells. `of`: who names it.
    """
    for path in paths:
        folder, _, name = path.rpartition("/")
        is_data = BaseFileName.parse(name) is not None or LogFileName.parse(name) is not None
        if is_data and folder.split("/")[0] != HOODIE:
            yield path
        else:
            log.warning("%s names '%s', which is no data file: it stays", of, path)
