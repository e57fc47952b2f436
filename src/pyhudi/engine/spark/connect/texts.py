"""What a Connect session says of SQL texts without a parser in reach: columns, settings, parameters as literals."""

import datetime
import decimal
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from pyhudi.errors import Unsupported
from pyhudi.sql.words import quoted_text

_VARIABLE = re.compile(r"\$\{(?:(?:spark|sparkconf|hivevar|hiveconf):)?([\w.]+)\}")


def columns_of(spark: SparkSession, text: str) -> t.StructType:
    """The columns of `CREATE TABLE`, from the text in its brackets, as the server's parser reads them."""
    parsed = cast(Any, spark)._parse_ddl(text)
    assert isinstance(parsed, t.StructType)
    return parsed


def settings_of(spark: SparkSession, prefix: str) -> dict[str, str]:
    """The session's settings whose names begin with a prefix."""
    found: Mapping[str, str] = cast(Any, spark.conf).getAll
    return {name: text for name, text in found.items() if name.startswith(prefix)}


def variables_in(spark: SparkSession, text: str) -> str:
    """The text with the values of `${name}` in place of them. Those that are not set stay, as in Spark."""
    return _VARIABLE.sub(lambda found: spark.conf.get(found[1], None) or found[0], text)


def literal_texts(args: Mapping[str, Any] | Sequence[Any]) -> dict[str, str] | list[str]:
    """The values of parameters as SQL text: by name, or in order.

    Raises: Unsupported for a value of another type than Spark has literals for.
    """
    if isinstance(args, Mapping):
        return {name: literal_text(value) for name, value in args.items() if re.fullmatch(r"\w+", name)}
    return [literal_text(value) for value in args]


def literal_text(value: object) -> str:  # a case for each type
    """A Python value as an SQL literal."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(value) if -(2**31) <= value < 2**31 else f"{value}L"
        case float():
            return f"CAST({quoted_text(repr(value))} AS DOUBLE)"
        case str():
            return quoted_text(value).replace("${", "\\u0024{")
        case bytes() | bytearray():
            return f"X'{bytes(value).hex()}'"
        case decimal.Decimal():
            return f"{value:f}BD"
        case datetime.datetime():
            kind = "TIMESTAMP_LTZ" if value.tzinfo else "TIMESTAMP"
            return f"{kind} {quoted_text(value.isoformat(sep=' '))}"
        case datetime.date():
            return f"DATE {quoted_text(value.isoformat())}"
        case list() | tuple():
            return f"array({', '.join(map(literal_text, value))})"
        case dict():
            pairs = (literal_text(one) for pair in value.items() for one in pair)
            return f"map({', '.join(pairs)})"
    raise Unsupported(
        f"parameter {value!r} of a statement about a Hudi table: expected a number, text, time, list or dict under "
        "Spark Connect; write it into the text"
    )


def with_frames(spark: SparkSession, text: str, frames: Mapping[str, Any]) -> tuple[str, list[tuple[str, DataFrame]]]:
    """The text with names in place of `{frame}`, and the DataFrames that the names stand for."""
    from pyspark.sql.connect.sql_formatter import SQLStringFormatter

    formatter = SQLStringFormatter(cast(Any, spark))
    plain = formatter.format(text, **frames)
    return plain, [(name, cast(DataFrame, rows)) for rows, name in formatter._temp_views]
