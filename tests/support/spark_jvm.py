"""How the JVM of a Spark session of tests runs."""

from typing import Final

SHORT_LIVED: Final = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Settings without the second compiler: it takes a third of the JVM's time here, and never earns that back."""
