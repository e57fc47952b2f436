"""The key of a lock that is derived from the table's path."""

import base64

import pyarrow as pa

from pyhudi.format.metadata.hashes import short_hashes


def path_key(uri: str) -> str:
    """Sixteen hexadecimal digits that stand for a table's path.

    Seen: Apache Hudi (1.2) hashes the path as its writer was given it, with `s3a://` as `s3://`.
    """
    hashed = short_hashes(pa.array([uri]))
    return base64.b64decode(hashed.tobytes()).hex().upper()
