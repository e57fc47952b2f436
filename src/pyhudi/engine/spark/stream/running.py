"""Questions about the stream whose batch runs on this thread."""

from pyspark.sql import SparkSession

from pyhudi.errors import Bug

_QUERY_ID = "sql.streaming.queryId"


class Stopped(Exception):
    """Ends the batch of a query that somebody stopped.

    Spark tells a stop from a failure by this text. It looks for it with a regular expression that overflows its stack
    where the text is long, as that of the error is which the stop caused. Spark 3.5 wants the second line.
    """

    def __init__(self) -> None:
        super().__init__(
            "py4j.protocol.Py4JJavaError: An error occurred while calling the batch.\n: java.lang.InterruptedException"
        )


def query_id(spark: SparkSession) -> str:
    """The id of the query, which its checkpoint keeps over restarts."""
    found = find_query_id(spark)
    if found is None:
        raise Bug("a batch of a stream: expected Spark to say which query it belongs to, found nothing")
    return found


def find_query_id(spark: SparkSession) -> str | None:
    """As `query_id`; None on a thread that runs no batch."""
    found = spark.sparkContext.getLocalProperty(_QUERY_ID)
    return None if found is None else str(found)


def is_stopped(spark: SparkSession, query: str) -> bool:
    """Whether somebody has stopped the query, so that its jobs fail.

    `spark`: the session that the query was started in; that of a batch's rows is a copy, and knows no queries.
    """
    return all(not (found.id == query and found.isActive) for found in spark.streams.active)
