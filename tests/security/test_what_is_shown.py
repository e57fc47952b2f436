"""Texts of a table or of a caller could command a terminal, show secrets, or end in an error of Python's own."""

import json
import logging
import pickle
import traceback
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from pyhudi import CorruptFile, HudiError, HudiTable, Invalid, NotFound, Unavailable
from pyhudi.cli.app import app
from pyhudi.cli.output import printable
from pyhudi.errors import hide_secrets, is_secret
from pyhudi.storage.protocol import StorageLocation
from pyhudi.write.settings import WriteSettings

COMMANDS = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    path = tmp_path_factory.mktemp("shown") / "t"
    made = HudiTable.create(path, name="t", record_key="id", partition_by="p")
    made.upsert(pa.table({"id": ["a"], "p": [f"oslo{COMMANDS}"], "n": [1], "s": [{"x": 1}]}))
    return made


@pytest.mark.parametrize("arguments", [["list-partitions"], ["list-files"], ["validate"], ["stats"]])
@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_line_prints_no_commands(table: HudiTable, arguments: list[str], as_json: bool) -> None:
    result = CliRunner().invoke(app, ["metadata", *arguments, table.path, *(["--json"] if as_json else [])])

    assert not set(result.output) & set("\x1b\x07\x9b\u202e")
    if as_json and result.exit_code == 0:
        json.loads(result.stdout)


def test_errors_on_the_command_line_print_no_commands(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["metadata", "validate", f"{tmp_path}/{COMMANDS}"])

    assert result.exit_code != 0
    assert "\\u001b[2J" in result.output
    assert not set(result.output) & set("\x1b\x07\x9b\u202e")


def test_new_lines_and_letters_stay_as_they_are() -> None:
    assert printable("a\nb é 東京 [bold]") == "a\nb é 東京 [bold]"


SHOWN = {
    "s3://user:pass@bucket/t": "s3://***@bucket/t",
    "ftp://user@host/t": "ftp://***@host/t",
    "cannot read 'https://h/t?sig=abc&x=1'; call again": "cannot read 'https://h/t?***'; call again",
    "http://a:b@c/?d=e f": "http://***@c/?*** f",
    "abfss://files@account.dfs.core.windows.net/t?sig=1": "abfss://files@account.dfs.core.windows.net/t?***",
    "abfss://files@other.host/t?sig=1": "abfss://files@other.host/t?***",
    "abfss://user:pass@account.dfs.core.windows.net/t": "abfss://***@account.dfs.core.windows.net/t",
    "option 'fs.s3a.secret.key'='abc': expected": "option 'fs.s3a.secret.key'='***': expected",
    "option 'callback.http.api.key'='abc'": "option 'callback.http.api.key'='***'",
    "option 'hoodie.datasource.write.recordkey.field'='id'": "option 'hoodie.datasource.write.recordkey.field'='id'",
    "where \"a = 'b@c' AND d LIKE '%?e'\"": "where \"a = 'b@c' AND d LIKE '%?e'\"",
    "/data/a@b/what?": "/data/a@b/what?",
}


@pytest.mark.parametrize("text", SHOWN)
def test_secrets_of_urls_and_options_are_hidden(text: str) -> None:
    assert hide_secrets(text) == SHOWN[text]
    assert str(Invalid(text)) == SHOWN[text]
    assert str(pickle.loads(pickle.dumps(NotFound(text)))) == SHOWN[text]
    assert SHOWN[text] in str(CorruptFile(text, 0, expected="x", found="y"))


def test_a_store_that_fails_shows_no_secret_however_the_error_is_printed(caplog: pytest.LogCaptureFixture) -> None:
    options = {
        "aws_access_key_id": "hush", "aws_secret_access_key": "hush", "endpoint": "http://me:hush@127.0.0.1:1/?sig=hush",
        "allow_http": "true", "region": "eu", "max_retries": "0",
    }  # fmt: skip
    uri = "s3://me:hush@bucket/t?sig=hush"
    with pytest.raises(Unavailable) as caught:
        HudiTable.open(uri, storage_options=options)

    assert "hush" not in "".join(traceback.format_exception(caught.value))
    assert "hush" not in repr(StorageLocation(uri, tuple(options.items())))
    with caplog.at_level(logging.INFO, "pyhudi"):
        logging.getLogger("pyhudi").warning("%s: passed over", uri)
    assert caplog.messages == ["s3://***@bucket/t?***: passed over"]


def test_secret_options_do_not_go_into_commits() -> None:
    options = {
        "hoodie.datasource.write.commitmeta.key.prefix": "fs.", "fs.s3a.secret.key": "hush", "fs.s3a.path": "/x",
    }  # fmt: skip
    assert WriteSettings(commit_metadata_prefix="fs.").commit_metadata(options) == {"fs.s3a.path": "/x"}
    assert not is_secret("hoodie.datasource.write.recordkey.field")


@pytest.mark.parametrize("count", [300, 5_000, 50_000])
@pytest.mark.parametrize(
    "predicate",
    [
        lambda n: "(" * n + "n = 1" + ")" * n,
        lambda n: "NOT " * n + "n = 1",
        lambda n: "n = " + "- " * n + "1",
        lambda n: "cast(" * n + "n" + " as int)" * n + " = 1",
        lambda n: "n = " + "9" * n,
        lambda n: "n = 0." + "9" * n,
        lambda n: f"n = 1e{n}0",
        lambda n: "s" + ".x" * n + " = 1",
    ],
    ids=["parentheses", "not", "minus", "cast", "digits", "decimals", "exponent", "fields"],
)
def test_endless_predicates_are_invalid(table: HudiTable, predicate: object, count: int) -> None:
    assert callable(predicate)
    with pytest.raises(Invalid) as caught:
        table.scan(where=predicate(count))
    assert len(str(caught.value)) < 1_000


STRUCTS, LISTS = (lambda kind: pa.struct([("a", kind)])), pa.list_


@pytest.mark.parametrize("nest, depth", [(STRUCTS, 60), (STRUCTS, 300), (LISTS, 60), (LISTS, 900)])
def test_types_nested_deeply_are_invalid(table: HudiTable, tmp_path: Path, nest: object, depth: int) -> None:
    assert callable(nest)
    kind = pa.int64()
    for _ in range(depth):
        kind = nest(kind)
    rows = pa.table({"id": pa.array(["a"]), "v": pa.array([None], kind)})
    new = HudiTable.create(tmp_path / "t", name="t", record_key="id")

    for call in (
        lambda: new.upsert(rows),
        lambda: table.upsert(rows),
        lambda: table.delete(rows),
        lambda: HudiTable.create(tmp_path / "u", name="t", record_key="id", schema=rows.schema),
    ):
        with pytest.raises(HudiError, match=r"nested 49 deep at most|missing") as caught:
            call()
        assert isinstance(caught.value, Invalid)
    assert new.timeline() == ()
    assert not (tmp_path / "u").exists()


def test_types_as_deep_as_may_be_are_stored(tmp_path: Path) -> None:
    kind = pa.int64()
    for _ in range(48):
        kind = pa.struct([("a", kind)])
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    table.upsert(pa.table({"id": pa.array(["a"]), "v": pa.array([None], kind)}))
    assert table.scan().to_arrow().num_rows == 1
