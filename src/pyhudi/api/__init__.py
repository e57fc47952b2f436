"""The public surface of pyhudi."""

from pyhudi.api.metadata import TableMetadata
from pyhudi.api.scan import Scan
from pyhudi.api.table import HudiTable
from pyhudi.merge.mergers import RecordMerger, register_merger
from pyhudi.model.instant import Instant
from pyhudi.model.option_table import OptionVerdict, option_verdicts
from pyhudi.services.archive import ArchiveResult
from pyhudi.services.clean import CleanResult
from pyhudi.services.compaction import CompactionResult
from pyhudi.services.restore import RestoreResult
from pyhudi.services.rollback import RollbackResult
from pyhudi.services.savepoint import Savepoint
from pyhudi.table.read_plan import Explanation
from pyhudi.write.operation import WriteResult

__all__ = [
    "ArchiveResult",
    "CleanResult",
    "CompactionResult",
    "Explanation",
    "HudiTable",
    "Instant",
    "OptionVerdict",
    "RecordMerger",
    "RestoreResult",
    "RollbackResult",
    "Savepoint",
    "Scan",
    "TableMetadata",
    "WriteResult",
    "option_verdicts",
    "register_merger",
]
