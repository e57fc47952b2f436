"""How the JVM of a Spark session of tests runs."""

from typing import Final

SHORT_LIVED_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java without its second compiler: that takes a third of the JVM's time here, and never earns it back."""

SHORT_LIVED: Final = {"spark.driver.extraJavaOptions": SHORT_LIVED_JAVA}
"""The same, as settings of a session."""
