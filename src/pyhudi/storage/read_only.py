"""Why pyhudi only reads the stores behind fsspec: for each driver what it lacks, and what to do instead.

A table is safe to write where of two writers exactly one creates a file, whole, and where its guard can be taken: a
lock that dies with its process, or a file that is replaced only if nobody else has replaced it. fsspec promises
neither. `pipe_file(mode="create")` looks first and writes then, unless a driver knows better (its own words:
"non-atomic but simple"); and no call replaces a file on a condition, or returns the version that it wrote, which a
lease hangs on. The drivers that could (of S3, Google and Azure) are not asked: pyhudi speaks to these stores itself.

Seen (fsspec 2026.9.0, pyarrow 26): of 8 threads that create one file, up to 8 succeed on `local` and up to 3 on
`memory`; `open(mode="xb")` lets one succeed on `local`, but shows the file before it is whole.
"""

from dataclasses import dataclass

_ELSEWHERE = "write the table on local disk or in an object store"
_HADOOP = "write it with Apache Hudi, which has locks there, or keep it on local disk or in an object store"
_AS_S3 = "if it speaks S3, name it 's3://BUCKET/...' with storage_options={'endpoint': ...}"


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """`lacks`: what the driver cannot do. `instead`: what a user can."""

    lacks: str
    instead: str


_UNKNOWN = ReadOnly("its driver is not known to create a file whole and only if absent, in one step", _ELSEWHERE)

_DRIVERS: dict[str, ReadOnly] = {
    **dict.fromkeys(
        ("hdfs", "arrow_hdfs"),
        # libhdfs warns that "hdfs does not truly support O_CREATE && O_EXCL"; Arrow's Move deletes its target
        ReadOnly("its client replaces a file that exists, both when it creates one and when it renames one", _HADOOP),
    ),
    "webhdfs": ReadOnly(
        "its driver always creates with overwrite=true, and does not tell whether a rename was done", _HADOOP
    ),
    **dict.fromkeys(
        ("sftp", "ssh"),
        ReadOnly("its driver renames over a file that exists, and a file that it creates is seen in part", _ELSEWHERE),
    ),
    "local": ReadOnly(
        "its driver looks whether a file exists and creates it then", "write to the same folder as 'file:///...'"
    ),
    **dict.fromkeys(
        ("oss", "oci", "tos"),
        ReadOnly(
            "its driver is not known to keep conditions, and no lease can be held", f"{_AS_S3}; else {_ELSEWHERE}"
        ),
    ),
    **dict.fromkeys(("http", "https"), ReadOnly("it has no way to create a file only if absent", _ELSEWHERE)),
}


def why_read_only(scheme: str) -> str:
    """What keeps pyhudi from writing through fsspec's driver of a scheme, and what to do: for the end of an error."""
    driver = _DRIVERS.get(scheme, _UNKNOWN)
    return (
        f"pyhudi reads '{scheme}' through fsspec and does not write to it: {driver.lacks}, so that two writers could "
        f"both commit; {driver.instead}, or pass storage= and lock= that keep their contracts"
    )
