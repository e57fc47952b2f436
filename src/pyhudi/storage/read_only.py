"""Why pyhudi only reads the stores behind fsspec: what each driver lacks, and what to do instead.

Writing a table safely needs two things. When two writers create a file, exactly one succeeds, and the file is whole.
And the table's guard can be taken: a lock that dies with its process, or a file that is replaced only if nobody else
has replaced it. fsspec promises neither. `pipe_file(mode="create")` first looks, then writes, unless a driver overrides
it (in fsspec's words: "non-atomic but simple"). And no call replaces a file on a condition, or returns the version that
it wrote; a lease needs both. The drivers for S3, Google and Azure could do this, but are not used: pyhudi speaks to
these stores itself.

Seen (fsspec 2026.9.0, pyarrow 26): of 8 threads that create one file, up to 8 succeed on `local` and up to 3 on
`memory`; `open(mode="xb")` lets one succeed on `local`, but shows the file before it is whole.
"""

from dataclasses import dataclass

_ELSEWHERE = "write the table on local disk or in an object store"
_HADOOP = "write it with Apache Hudi, which has locks there, or keep it on local disk or in an object store"
_AS_S3 = "if it speaks S3, name it 's3://BUCKET/...' with storage_options={'endpoint': ...}"


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """Why a driver is not written through. `lacks`: what the driver cannot do. `instead`: what a user can do."""

    lacks: str
    instead: str


_UNKNOWN = ReadOnly("its driver is not known to create a file whole and only if absent, in one step", _ELSEWHERE)

_DRIVERS: dict[str, ReadOnly] = {
    **dict.fromkeys(
        ("hdfs", "arrow_hdfs"),
        # libhdfs warns that "hdfs does not truly support O_CREATE && O_EXCL"; Arrow's Move deletes its target.
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
    """The end of an error's text: why pyhudi does not write through fsspec's driver of a scheme, and what to do."""
    driver = _DRIVERS.get(scheme, _UNKNOWN)
    return (
        f"pyhudi reads '{scheme}' through fsspec and does not write to it: {driver.lacks}, so that two writers could "
        f"both commit; {driver.instead}, or pass storage= and lock= that keep their contracts"
    )
