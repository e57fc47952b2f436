"""What Spark finds wrong with the SQL texts that a call was given, or with their values, as an error of that call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from pyhudi.errors import Invalid

_MISTAKE: Final = re.compile(r"(\[[A-Z][A-Z_.]+\] .*?)(?:\s*SQLSTATE|\s*\(line \d|; line \d|\n|$)")
"""A condition of Spark and its sentence, without where they lie in a text that pyhudi made."""

_UNFIT_VALUE: Final = re.compile(
    r"\[(?:CAST_OVERFLOW|CAST_INVALID_INPUT|ARITHMETIC_OVERFLOW|DIVIDE_BY_ZERO|NUMERIC_VALUE_OUT_OF_RANGE)"
)
"""How conditions begin that tell of values."""


@dataclass(frozen=True, slots=True)
class GivenText:
    """An SQL text of a call. `what`: names it in messages, such as `when_matched_update: 'n'`."""

    what: str
    text: str


@contextmanager
def told_mistakes(spark: SparkSession, given: Sequence[GivenText], *, what: str) -> Iterator[None]:
    """Mistakes in these texts, and values that do not fit, become Invalid. `what`: the call, for messages."""
    try:
        yield
    except Exception as error:
        if isinstance(error, ParseException):
            _refuse_unreadable(spark, given)
        said = _MISTAKE.search(str(error))
        if said is None or not (isinstance(error, AnalysisException) or _UNFIT_VALUE.match(said[1])):
            raise
        raise Invalid(f"{what}: {said[1]}; nothing was written") from error


def _refuse_unreadable(spark: SparkSession, given: Sequence[GivenText]) -> None:
    """Raises: Invalid for the first text that is no SQL."""
    nothing = spark.range(0)
    for one in given:
        try:
            nothing.selectExpr(one.text).schema  # noqa: B018
        except ParseException as error:
            said = _MISTAKE.search(str(error))
            raise Invalid(f"{one.what}: {one.text!r}: {said[1] if said else error}") from error
        except AnalysisException:  # its columns are not there
            continue
