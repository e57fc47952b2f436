"""The public surface of pyhudi."""

from pyhudi.api.scan import Scan
from pyhudi.api.table import HudiTable
from pyhudi.model.instant import Instant
from pyhudi.services.archive import ArchiveResult
from pyhudi.services.clean import CleanResult
from pyhudi.table.read_plan import Explanation
from pyhudi.write.operation import WriteResult

__all__ = ["ArchiveResult", "CleanResult", "Explanation", "HudiTable", "Instant", "Scan", "WriteResult"]
