"""Which names of files mean something to a reader or a writer of a table. A listing that lacks such a file misleads."""

import re
from typing import Final

from pyhudi.format.names import BASE_FILE_EXTENSIONS, HOODIE, LogFileName, is_partition_metafile

_IN_HOODIE: Final = re.compile(
    r"[0-9].*"  # instants, archived instants, heartbeats, histories of columns, rings of buckets
    r"|\.commits_\.archive\..*|manifest_[0-9]+|_version_"
    r"|MARKERS.*|.*\.marker\.(CREATE|MERGE|APPEND)"
)


def is_table_file(path: str) -> bool:
    """Whether a file of this name may hold rows, or makes a partition, or, in `.hoodie`, may tell of actions.

    `path`: relative to the table. Any other file, such as `README` or `_SUCCESS`, is none of a table's.
    """
    top, _, _ = path.partition("/")
    name = path.rpartition("/")[2]
    return (
        is_partition_metafile(name)
        or name.endswith(BASE_FILE_EXTENSIONS)  # the source of a bootstrap names its files as it likes
        or LogFileName.parse(name) is not None
        or (top == HOODIE and _IN_HOODIE.fullmatch(name) is not None)
    )
