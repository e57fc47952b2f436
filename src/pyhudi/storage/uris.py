"""The path of a table, as data. It is parsed from the user's text, without a look at any store.

A path is taken as it is written: `%20` is three characters, not a space. Seen: Hadoop (3.5) reads local paths, and the
paths of its S3 client, in this way. The same path must name the same table to both.
"""

import os
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyhudi.errors import Invalid
from pyhudi.storage.memory import MEMORY_SCHEME

_LOCAL_HOSTS = ("", "localhost")
_EXPECTED = f"a local path, 'file:///...', '{MEMORY_SCHEME}NAME' or a URI such as 's3://bucket/folder/table'"

ObjectKind: TypeAlias = Literal["s3", "gs", "az"]

_OBJECT_SCHEMES: dict[str, ObjectKind] = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "azure", "abfs", "abfss"), "az"),
}
_OTHER_SCHEMES = (
    "adl", "cosn", "dbfs", "ftp", "hdfs", "http", "https", "oss", "sftp", "viewfs", "wasb", "wasbs", "webhdfs",
)  # fmt: skip
_KNOWN_SCHEMES = "|".join(("file", "memory", *_OBJECT_SCHEMES, *_OTHER_SCHEMES))

# A name before ":/" is a scheme, unless it is one letter, which is a Windows drive. "day:1" is a relative path. But the
# name of a known scheme is none: "s3:bucket/t" is a URI whose slashes were forgotten.
_URI = re.compile(rf"(?P<scheme>{_KNOWN_SCHEMES}|[a-z][a-z0-9+.-]+(?=:(?:/|\Z))):.*", re.DOTALL | re.IGNORECASE)

_PUBLIC_CLOUD = "core.windows.net"
_CLOUDS = (_PUBLIC_CLOUD, "core.chinacloudapi.cn", "core.usgovcloudapi.net", "fabric.microsoft.com")
_AZURE_HOST = re.compile(
    r"(?P<container>[^@]+)@(?P<account>[^.@]+)\.(?:dfs|blob)\.(?P<cloud>" + "|".join(map(re.escape, _CLOUDS)) + ")"
)


@dataclass(frozen=True, slots=True)
class LocalUri:
    """A folder of this machine. `root` is absolute."""

    root: str

    @property
    def uri(self) -> str:
        return self.root


@dataclass(frozen=True, slots=True)
class MemoryUri:
    """The content that this process keeps under `name`."""

    name: str

    @property
    def uri(self) -> str:
        return f"{MEMORY_SCHEME}{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectUri:
    """A prefix in a bucket, or in an Azure container. `account`: the Azure account, if the URI names it.

    `cloud`: the domain of the account, where it is none of Azure's public cloud. `uri`: the URI in one spelling.
    Example: `s3a://` becomes `s3://`.
    """

    kind: ObjectKind
    bucket: str
    prefix: str
    account: str | None
    cloud: str | None = None
    uri: str


@dataclass(frozen=True, slots=True)
class OtherUri:
    """A URI whose scheme is left to fsspec."""

    scheme: str
    uri: str


Uri: TypeAlias = LocalUri | MemoryUri | ObjectUri | OtherUri


def parse_uri(uri: str) -> Uri:
    """The parts of a location's `uri`.

    Raises: Invalid for a text that names no storage.
    """
    if not uri or "\x00" in uri:
        raise Invalid(f"path {uri!r}: expected {_EXPECTED}")

    match = _URI.fullmatch(uri)
    if match is None:
        return LocalUri(os.path.abspath(uri))

    scheme = match["scheme"].lower()
    rest = uri[len(scheme) + 1 :]
    if scheme == "memory":
        name = rest.removeprefix("//").rstrip("/")
        if not rest.startswith("//") or not name:
            raise Invalid(f"path {uri!r}: expected '{MEMORY_SCHEME}NAME'")
        return MemoryUri(name)
    if scheme == "file":
        return _parse_local(uri, rest)

    kind = _OBJECT_SCHEMES.get(scheme)
    if kind is not None:
        return _parse_object(uri, scheme, kind, rest)
    if rest and not rest.startswith("/"):
        raise Invalid(f"path {uri!r}: expected '{scheme}://' and a place there{_meant_here(uri)}")
    return OtherUri(scheme, uri.rstrip("/"))


def _parse_local(uri: str, rest: str) -> LocalUri:
    host, path = "", rest
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        path = slash + path
    if host not in _LOCAL_HOSTS or not path.startswith("/"):
        raise Invalid(f"path {uri!r}: expected an absolute path without a host, such as 'file:///folder/table'")
    return LocalUri(os.path.abspath(path))


def _parse_object(uri: str, scheme: str, kind: ObjectKind, rest: str) -> ObjectUri:
    host, _, path = rest.removeprefix("//").partition("/")
    prefix = path.strip("/")
    if not rest.startswith("//") or not host:
        expected = f"a bucket after '{scheme}://', such as '{scheme}://bucket/folder/table'"
        raise Invalid(f"path {uri!r}: expected {expected}{'' if rest.startswith('/') else _meant_here(uri)}")
    if prefix and any(part in ("", ".", "..") for part in prefix.split("/")):
        raise Invalid(f"path {uri!r}: expected a path without empty parts, '.' and '..'")
    if kind == "az" and "@" in host:
        azure = _AZURE_HOST.fullmatch(host)
        if azure is None:
            raise Invalid(
                f"path {uri!r}: expected '{scheme}://CONTAINER@ACCOUNT.dfs.{_PUBLIC_CLOUD}/folder/table', or a host "
                f"that ends in {' or '.join(_CLOUDS[1:])}; another host goes into storage_options: "
                "'az://CONTAINER/folder/table' with account_name='ACCOUNT' and endpoint='https://HOST'"
            )
        return ObjectUri(
            kind=kind,
            bucket=azure["container"],
            prefix=prefix,
            account=azure["account"],
            cloud=None if azure["cloud"] == _PUBLIC_CLOUD else azure["cloud"],
            uri=f"abfss://{host}/{prefix}".rstrip("/"),
        )
    return ObjectUri(kind=kind, bucket=host, prefix=prefix, account=None, uri=f"{kind}://{host}/{prefix}".rstrip("/"))


def _meant_here(uri: str) -> str:
    """What to do about a local path that looks like a URI without slashes."""
    return f"; for a folder of this machine with that name: './{uri}'"
