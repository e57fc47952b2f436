"""The public surface of pyhudi."""

from pyhudi.api.changes import Changes
from pyhudi.api.metadata.table import TableMetadata
from pyhudi.api.neighbours.by_path import scan_dataset, scan_polars
from pyhudi.api.rows.rescaling import RescaleResult
from pyhudi.api.scan import Scan
from pyhudi.api.table import HudiTable
from pyhudi.format.keys.own_generators import KeyGenerator, register_key_generator
from pyhudi.format.timeline.instant import Instant
from pyhudi.index.own.protocol import IndexOf, LocationChanges, OwnIndex, register_index
from pyhudi.merge.mergers import RecordMerger, register_merger, register_payload_class
from pyhudi.options.dotted_names import allow_dotted_names
from pyhudi.options.verdicts import OptionVerdict, option_verdicts
from pyhudi.services.archive.run import ArchiveResult
from pyhudi.services.clean.run import CleanResult
from pyhudi.services.compaction.run import CompactionResult
from pyhudi.services.expiry.plan import ExpiryResult
from pyhudi.services.undo.restore import RestoreResult
from pyhudi.services.undo.rollback import RollbackResult
from pyhudi.services.undo.savepoint import Savepoint
from pyhudi.table.read.plan import Explanation
from pyhudi.table.read.tasks import ScanTask
from pyhudi.write.operation import WriteResult
from pyhudi.write.rows.clauses import When

__all__ = [
    "ArchiveResult",
    "Changes",
    "CleanResult",
    "CompactionResult",
    "ExpiryResult",
    "RescaleResult",
    "Explanation",
    "HudiTable",
    "IndexOf",
    "Instant",
    "KeyGenerator",
    "LocationChanges",
    "OptionVerdict",
    "OwnIndex",
    "RecordMerger",
    "RestoreResult",
    "RollbackResult",
    "Savepoint",
    "Scan",
    "ScanTask",
    "TableMetadata",
    "When",
    "WriteResult",
    "allow_dotted_names",
    "option_verdicts",
    "register_index",
    "register_key_generator",
    "register_merger",
    "register_payload_class",
    "scan_dataset",
    "scan_polars",
]
