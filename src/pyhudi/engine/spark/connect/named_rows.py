"""SQL of a Connect session over DataFrames that have names in one text only: no view is made on the server.

Spark resolves a text when its rows are asked for, so a view would have to live as long as the rows.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame

NAME_PREFIX = "__pyhudi_"
"""How names begin that stand for DataFrames."""

_NAME = re.compile(rf"`?({re.escape(NAME_PREFIX)}\w+)`?")


def _names_in(text: str) -> set[str]:
    """The names in a text that begin as those for DataFrames do."""
    return set(_NAME.findall(text))


def sql_of_named(
    spark_sql: Callable[..., DataFrame],
    text: str,
    named: Mapping[str, DataFrame],
    args: Any = None,
    frames: Mapping[str, Any] | None = None,
) -> DataFrame:
    """`spark.sql(text, args, **frames)` where names of `named` may stand for tables. Others are left as they are.

    `frames`: as users hand them in. Then braces of the text are PySpark's, otherwise they are text.
    """
    used = _names_in(text) & set(named)
    given = {} if args is None else {"args": args}
    if not used:
        return spark_sql(text, **given, **(frames or {}))
    plain = text if frames else text.replace("{", "{{").replace("}", "}}")
    marked = _NAME.sub(lambda found: f"{{{found[1]}}}" if found[1] in used else found[0], plain)
    return spark_sql(marked, **given, **{name: named[name] for name in used}, **(frames or {}))
