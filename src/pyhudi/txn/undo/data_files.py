"""The check before a file is deleted because a plan or a marker names it: only data files may be deleted that way."""

import logging
from collections.abc import Iterable, Iterator

from pyhudi.format.names import HOODIE, BaseFileName, LogFileName

log = logging.getLogger("pyhudi")


def only_data_files(paths: Iterable[str], *, named_by: str) -> Iterator[str]:
    """Keep the paths, relative to the table, that name base files or log files outside of `.hoodie`.

    Whoever may write to the table's folder may forge a plan or a marker. A forged one that names the table's
    properties file, or a file that is not Hudi's, must not get that file deleted. Each path left out is logged.
    `named_by`: the plan or marker that names the paths, for the log.
    """
    for path in paths:
        folder, _, name = path.rpartition("/")
        is_data = BaseFileName.parse(name) is not None or LogFileName.parse(name) is not None
        if is_data and folder.split("/")[0] != HOODIE:
            yield path
        else:
            log.warning("%s names '%s', which is no data file: it stays", named_by, path)
