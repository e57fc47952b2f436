"""How the JVM of a Spark session of tests runs."""

import os
from typing import Final

_COMPILER: Final = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Without the second compiler: it takes a third of the JVM's time here, and never earns that back."""

_INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Without code that Spark generates and compiles for each query: that takes a fifth of the JVM's time here."""

INTERPRETED: Final = "PYHUDI_TEST_INTERPRETED"
"""Set by the tests of every change. The long tests, and those of every PySpark, run as users do: Spark compiles."""

SHORT_LIVED: Final = {**_COMPILER, **(_INTERPRETED if os.environ.get(INTERPRETED) else {})}
"""Settings of a session that answers many small queries."""
