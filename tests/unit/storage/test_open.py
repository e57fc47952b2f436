"""A path could open another table than is meant: a decoded character, a relative folder, another store."""

import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from obstore.exceptions import GenericError

from pyhudi.errors import Invalid, Unavailable, Unsupported
from pyhudi.storage.fsspec_store import FsspecStorage
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.object_client import make_clients, store_errors
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.storage.protocol import StorageLocation
from pyhudi.storage.uris import LocalUri, MemoryUri, ObjectUri, OtherUri, parse_uri

NO_ROLES = [
    ("Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 1ms - Connect", True),
    ("Generic GCS error: Error performing GET http://metadata.google.internal/computeMetadata/v1/x", True),
    ("Generic S3 error: Error performing GET https://b.s3.amazonaws.com/x in 1ms - Connect", False),
]
"""What obstore says where it asked the machine for credentials, and where it did not."""

ACCOUNT = {"account_name": "acc", "account_key": "a2V5"}


@pytest.mark.parametrize(
    "uri,root",
    [
        ("/data/trips", "/data/trips"),
        ("/data/trips/", "/data/trips"),
        ("file:///data/trips", "/data/trips"),
        ("file:/data/trips/", "/data/trips"),
        ("FILE:///data/trips", "/data/trips"),
        ("file://localhost/data/trips", "/data/trips"),
        ("file:///data/a b%20c/日本", "/data/a b%20c/日本"),
        ("/data/a b%20c/日本", "/data/a b%20c/日本"),
        ("/data/x\ny", "/data/x\ny"),
        ("file:///", "/"),
    ],
)
def test_every_spelling_of_a_local_path_is_one_uri(uri: str, root: str) -> None:
    assert parse_uri(uri) == LocalUri(root)
    assert parse_location(uri) == StorageLocation(root)


@pytest.mark.parametrize("path", ["trips", "./trips", "a/../trips", "day:1", "c:/trips"])
def test_a_relative_path_is_taken_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(tmp_path)

    location = parse_location(path)

    monkeypatch.chdir("/")
    assert location == StorageLocation(os.path.normpath(tmp_path / path))


@pytest.mark.parametrize("uri,name", [("memory://a", "a"), ("memory://a b/%20/", "a b/%20"), ("Memory://é", "é")])
def test_a_memory_path_is_a_name(uri: str, name: str) -> None:
    assert parse_uri(uri) == MemoryUri(name)
    assert parse_location(uri) == StorageLocation(f"memory://{name}")


@pytest.mark.parametrize(
    "uri,parsed",
    [
        (
            "s3://b/a b/%20/t",
            ObjectUri(kind="s3", bucket="b", prefix="a b/%20/t", account=None, uri="s3://b/a b/%20/t"),
        ),
        ("s3a://b/t/", ObjectUri(kind="s3", bucket="b", prefix="t", account=None, uri="s3://b/t")),
        ("S3N://b", ObjectUri(kind="s3", bucket="b", prefix="", account=None, uri="s3://b")),
        ("gs://b/t", ObjectUri(kind="gs", bucket="b", prefix="t", account=None, uri="gs://b/t")),
        ("gcs://b/t", ObjectUri(kind="gs", bucket="b", prefix="t", account=None, uri="gs://b/t")),
        ("az://c/t", ObjectUri(kind="az", bucket="c", prefix="t", account=None, uri="az://c/t")),
        (
            "abfss://c@acc.blob.core.usgovcloudapi.net/t/",
            ObjectUri(
                kind="az",
                bucket="c",
                prefix="t",
                account="acc",
                cloud="core.usgovcloudapi.net",
                uri="abfss://c@acc.blob.core.usgovcloudapi.net/t",
            ),
        ),
        (
            "abfss://ws@onelake.dfs.fabric.microsoft.com/lh/Tables/t",
            ObjectUri(
                kind="az",
                bucket="ws",
                prefix="lh/Tables/t",
                account="onelake",
                cloud="fabric.microsoft.com",
                uri="abfss://ws@onelake.dfs.fabric.microsoft.com/lh/Tables/t",
            ),
        ),
        (
            "abfs://c@acc.dfs.core.windows.net/t",
            ObjectUri(kind="az", bucket="c", prefix="t", account="acc", uri="abfss://c@acc.dfs.core.windows.net/t"),
        ),
    ],
)
def test_every_spelling_of_an_object_path_is_one_uri(uri: str, parsed: ObjectUri) -> None:
    assert parse_uri(uri) == parsed
    assert parse_location(uri) == StorageLocation(parsed.uri)
    assert parse_uri(parsed.uri) == parsed
    assert (
        open_storage(parse_location(uri, ACCOUNT if parsed.kind == "az" and not parsed.account else {})).location.uri
        == parsed.uri
    )


@pytest.mark.parametrize(
    "uri",
    ["s3:bucket/t", "S3A:bucket/t", "s3:", "gs:b", "gcs:b/t", "az:c/t", "abfss:c@a.dfs.core.windows.net/t", "hdfs:t"],
)
def test_a_uri_whose_slashes_were_forgotten_is_no_local_folder(uri: str) -> None:
    with pytest.raises(Invalid, match=rf"expected .*://.*; for a folder of this machine with that name: '\./{uri}'"):
        parse_location(uri)
    assert parse_location(f"./{uri}") == StorageLocation(os.path.abspath(uri))


@pytest.mark.parametrize(
    "host,asked",
    [
        ("a.dfs.core.windows.net", "a.blob.core.windows.net"),
        ("a.dfs.core.chinacloudapi.cn", "a.blob.core.chinacloudapi.cn"),
        ("a.blob.core.usgovcloudapi.net", "a.blob.core.usgovcloudapi.net"),
        ("onelake.dfs.fabric.microsoft.com", "onelake.blob.fabric.microsoft.com"),
    ],
)
def test_an_account_is_asked_in_its_own_cloud(host: str, asked: str) -> None:
    """A proxy hears the host that the client wants, and refuses to lead there."""
    with socket.create_server(("127.0.0.1", 0)) as proxy, ThreadPoolExecutor(1) as other:
        heard = other.submit(_refuse_one, proxy)
        options = {
            "account_key": "a2V5", "max_retries": "0", "timeout": "20s",
            "proxy_url": f"http://127.0.0.1:{proxy.getsockname()[1]}",
        }  # fmt: skip
        with pytest.raises(Unavailable):
            open_storage(parse_location(f"abfss://c@{host}/t", options)).get("x")
        assert heard.result(timeout=20).startswith(f"CONNECT {asked}:443 ")


def _refuse_one(proxy: socket.socket) -> str:
    proxy.settimeout(20)
    connection, _ = proxy.accept()
    with connection:
        asked = connection.recv(1_000).decode()
        connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
    return asked


def test_an_azure_host_that_is_not_known_is_told_with_its_container_and_the_way_out() -> None:
    with pytest.raises(
        Invalid, match=r"'abfss://c@a\.blob\.store\.example/t'.*'az://CONTAINER/.*endpoint='https://HOST'"
    ):
        parse_location("abfss://c@a.blob.store.example/t")


def test_another_scheme_is_left_to_fsspec(tmp_path: Path) -> None:
    assert parse_uri("hdfs://host:9000/trips/") == OtherUri("hdfs", "hdfs://host:9000/trips")
    assert isinstance(open_storage(parse_location(f"local://{tmp_path}")), FsspecStorage)


def test_a_scheme_that_nobody_knows_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="storage 'nosuch' is not supported: Protocol not known: nosuch; expected a"):
        open_storage(parse_location("nosuch://host/trips"))


@pytest.mark.parametrize(
    "uri,module,extra", [("s3://bucket/trips", "object_store", "cloud"), ("local:///trips", "fsspec_store", "fsspec")]
)
def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, uri: str, module: str, extra: str
) -> None:
    package = {"cloud": "obstore", "fsspec": "fsspec"}[extra]
    for name in list(sys.modules):
        if name.partition(".")[0] == package or name in (f"pyhudi.storage.{module}", "pyhudi.storage.object_client"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    if extra == "cloud":
        monkeypatch.setitem(sys.modules, "obstore.exceptions", None)

    with pytest.raises(Unsupported, match=rf"needs the package {package}: pip install 'pyhudi\[{extra}\]'"):
        open_storage(parse_location(uri))


@pytest.mark.parametrize(
    "uri,options",
    [
        ("s3://b/t", {"nosuch": "x"}),
        ("s3://b/t", {"account_name": "x"}),
        ("gs://b/t", {"secret_access_key": "x"}),
        ("az://c/t", {}),
        ("s3://b/t", {"timeout": "soon"}),
        ("s3://b/t", {"max_retries": "-1"}),
    ],
)
def test_an_option_that_a_store_does_not_take_is_invalid(uri: str, options: dict[str, str]) -> None:
    with pytest.raises(Invalid, match="storage_options of"):
        open_storage(parse_location(uri, options))


def test_an_option_is_text() -> None:
    with pytest.raises(Invalid, match="'allow_http': expected text, found bool"):
        parse_location("s3://b/t", {"allow_http": True})  # type: ignore[dict-item]


def test_secrets_are_not_shown() -> None:
    location = parse_location("s3://b/t", {"access_key_id": "k", "secret_access_key": "hush"})

    assert "hush" not in repr(location)
    assert "hush" not in repr(open_storage(location))


def test_names_of_fsspecs_drivers_mean_the_same() -> None:
    parsed = parse_uri("s3://b/t")
    assert isinstance(parsed, ObjectUri)
    one = make_clients(parsed, {"key": "k", "secret": "s", "token": "t", "endpoint_url": "http://h", "anon": "false"})
    other = make_clients(
        parsed,
        {"access_key_id": "k", "secret_access_key": "s", "session_token": "t", "endpoint": "http://h",
         "skip_signature": "false"},
    )  # fmt: skip

    assert one.retrying.config == other.retrying.config
    assert one.retrying.client_options == {"allow_http": "true"}
    assert one.once.retry_config["max_retries"] == 0


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "nul\x00",
        "file:",
        "file://",
        "file:trips",
        "file://host/trips",
        "memory:",
        "memory://",
        "memory:a",
        "s3:",
        "s3:/trips",
        "s3://",
        "s3:///trips",
        "s3://bucket/a//b",
        "s3://bucket/../b",
        "abfss://c@host/t",
    ],
)
def test_a_path_that_names_no_place_is_invalid(uri: str) -> None:
    with pytest.raises(Invalid, match="path "):
        parse_location(uri)


def test_a_path_object_is_a_path(tmp_path: Path) -> None:
    assert parse_location(tmp_path) == StorageLocation(str(tmp_path))


def test_bytes_are_no_path() -> None:
    with pytest.raises(Invalid, match="found bytes"):
        parse_location(b"/trips")  # type: ignore[arg-type]


@pytest.mark.parametrize("uri", ["/trips", "memory://trips"])
def test_options_that_a_storage_does_not_have_are_refused(uri: str) -> None:
    assert parse_location(uri, {}).options == ()
    with pytest.raises(Invalid, match="expected none for this storage, found 'a', 'region'"):
        parse_location(uri, {"region": "x", "a": "y"})
    with pytest.raises(Invalid, match="found 'region'"):
        open_storage(StorageLocation(uri, (("region", "x"),)))


def test_a_location_opens_its_storage(tmp_path: Path) -> None:
    assert isinstance(open_storage(parse_location(tmp_path)), LocalStorage)
    assert isinstance(open_storage(parse_location("memory://opened")), MemoryStorage)


@pytest.mark.parametrize("said, has_none", NO_ROLES)
def test_missing_credentials_are_told(said: str, has_none: bool) -> None:
    with pytest.raises(Unavailable) as caught, store_errors("s3://b/x", "read"):
        raise GenericError(said)
    assert ("no credentials were found: give them by storage_options" in str(caught.value)) is has_none
    assert str(caught.value).endswith("call again")
