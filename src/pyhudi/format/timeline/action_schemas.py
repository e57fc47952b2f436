"""The Avro schemas of the timeline's files, with the text that Apache Hudi 1.0.2 writes.

Seen: 0.15.0, 1.0.2 and 1.2.0 write the same texts, with one exception: in the plans of compaction and clustering
0.15.0 has no `missingSchedulePartitions`. 0.13.1 lacks more trailing fields; readers resolve fields by name.
The stray `default` properties and the copied `doc` texts are in Hudi's own schema files.

Spec: format/timeline.md section 4.1.
"""

from pyhudi.format.avro.schema_text import (
    NAMESPACE,
    STRING,
    Json,
    array,
    field,
    mapping,
    optional,
    record,
    schema_text,
    version,
)


def _longs(*names: str) -> list[Json]:
    return [optional(name, "long") for name in names]


def _texts(*names: str) -> list[Json]:
    return [optional(name, STRING) for name in names]


_RUNTIME_STATS = record("HoodieRuntimeStats", *_longs("totalScanTime", "totalCreateTime", "totalUpsertTime"))

_WRITE_STAT = record(
    "HoodieWriteStat",
    *_texts("fileId", "path", "prevCommit"),
    *_longs("numWrites", "numDeletes", "numUpdateWrites", "totalWriteBytes", "totalWriteErrors"),
    *_texts("partitionPath"),
    *_longs("totalLogRecords", "totalLogFiles", "totalUpdatedRecordsCompacted", "numInserts", "totalLogBlocks"),
    *_longs("totalCorruptLogBlock", "totalRollbackBlocks", "fileSizeInBytes"),
    optional("logVersion", "int"),
    *_longs("logOffset"),
    *_texts("baseFile"),
    optional("logFiles", array(STRING, default=None)),
    optional("cdcStats", mapping("long", default=None)),
    *_texts("prevBaseFile"),
    *_longs("minEventTime", "maxEventTime"),
    optional("runtimeStats", _RUNTIME_STATS),
    *_longs("totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted"),
    *_texts("tempPath"),
    *_longs("numUpdates"),
)

_TEXTS = mapping(STRING)
_TEXTS_WITH_DEFAULT = mapping(STRING, default=None)
_WRITE_STATS = optional("partitionToWriteStats", mapping(array(_WRITE_STAT)))

COMMIT = schema_text(
    record(
        "HoodieCommitMetadata",
        _WRITE_STATS,
        optional("compacted", "boolean"),
        optional("extraMetadata", _TEXTS_WITH_DEFAULT),
        version(),
        *_texts("operationType"),
        namespace=NAMESPACE,
    )
)

REPLACE_COMMIT = schema_text(
    record(
        "HoodieReplaceCommitMetadata",
        _WRITE_STATS,
        optional("compacted", "boolean"),
        optional("extraMetadata", _TEXTS),
        version(),
        *_texts("operationType"),
        optional("partitionToReplaceFileIds", mapping(array(STRING))),
        namespace=NAMESPACE,
    )
)

_INSTANT_INFO = record("HoodieInstantInfo", field("commitTime", STRING), field("action", STRING))

ROLLBACK_PLAN = schema_text(
    record(
        "HoodieRollbackPlan",
        optional("instantToRollback", _INSTANT_INFO, doc="Hoodie instant that needs to be rolled back"),
        optional(
            "RollbackRequests",
            array(
                record(
                    "HoodieRollbackRequest",
                    field("partitionPath", STRING),
                    *_texts("fileId", "latestBaseInstant"),
                    field("filesToBeDeleted", array(STRING, default=[]), default=[]),
                    optional("logBlocksToBeDeleted", mapping("long")),
                )
            ),
        ),
        version(),
        namespace=NAMESPACE,
    )
)

_ROLLBACK_PARTITION = record(
    "HoodieRollbackPartitionMetadata",
    field("partitionPath", STRING),
    field("successDeleteFiles", array(STRING)),
    field("failedDeleteFiles", array(STRING)),
    optional("rollbackLogFiles", mapping("long")),
    optional("logFilesFromFailedCommit", mapping("long")),
)


def _rollback_metadata(namespace: str | None) -> Json:
    return record(
        "HoodieRollbackMetadata",
        field("startRollbackTime", STRING),
        field("timeTakenInMillis", "long"),
        field("totalFilesDeleted", "int"),
        field("commitsRollback", array(STRING)),
        field("partitionMetadata", mapping(_ROLLBACK_PARTITION)),
        version(),
        field("instantsRollback", array(_INSTANT_INFO, default=[]), default=[]),
        namespace=namespace,
    )


ROLLBACK = schema_text(_rollback_metadata(NAMESPACE))

RESTORE_PLAN = schema_text(
    record(
        "HoodieRestorePlan",
        field("instantsToRollback", array(_INSTANT_INFO, default=None), default=[]),
        version(2),
        *_texts("savepointToRestoreTimestamp"),
        namespace=NAMESPACE,
    )
)

RESTORE = schema_text(
    record(
        "HoodieRestoreMetadata",
        field("startRestoreTime", STRING),
        field("timeTakenInMillis", "long"),
        field("instantsToRollback", array(STRING)),
        field("hoodieRestoreMetadata", mapping(array(["null", _rollback_metadata(None)], default=None))),
        version(),
        field("restoreInstantInfo", array("HoodieInstantInfo", default=None), default=[]),
        namespace=NAMESPACE,
    )
)

CLEANER_PLAN = schema_text(
    record(
        "HoodieCleanerPlan",
        optional(
            "earliestInstantToRetain",
            record(
                "HoodieActionInstant",
                field("timestamp", STRING),
                field("action", STRING),
                field("state", STRING),
            ),
        ),
        field("lastCompletedCommitTimestamp", STRING, default=""),
        field("policy", STRING),
        optional("filesToBeDeletedPerPartition", mapping(array(STRING))),
        version(),
        optional(
            "filePathsToBeDeletedPerPartition",
            mapping(
                array(record("HoodieCleanFileInfo", *_texts("filePath"), optional("isBootstrapBaseFile", "boolean")))
            ),
            doc="This field replaces the field filesToBeDeletedPerPartition",
        ),
        optional("partitionsToBeDeleted", array(STRING), doc="partitions to be deleted"),
        optional("extraMetadata", _TEXTS_WITH_DEFAULT),
        namespace=NAMESPACE,
    )
)

CLEAN = schema_text(
    record(
        "HoodieCleanMetadata",
        field("startCleanTime", STRING),
        field("timeTakenInMillis", "long"),
        field("totalFilesDeleted", "int"),
        field("earliestCommitToRetain", STRING),
        field("lastCompletedCommitTimestamp", STRING, default=""),
        field(
            "partitionMetadata",
            mapping(
                record(
                    "HoodieCleanPartitionMetadata",
                    field("partitionPath", STRING),
                    field("policy", STRING),
                    field("deletePathPatterns", array(STRING)),
                    field("successDeleteFiles", array(STRING)),
                    field("failedDeleteFiles", array(STRING)),
                    optional("isPartitionDeleted", "boolean"),
                )
            ),
        ),
        version(),
        optional("bootstrapPartitionMetadata", mapping("HoodieCleanPartitionMetadata", default=None)),
        optional("extraMetadata", _TEXTS_WITH_DEFAULT),
        namespace=NAMESPACE,
    )
)

SAVEPOINT = schema_text(
    record(
        "HoodieSavepointMetadata",
        field("savepointedBy", STRING),
        field("savepointedAt", "long"),
        field("comments", STRING),
        field(
            "partitionMetadata",
            mapping(
                record(
                    "HoodieSavepointPartitionMetadata",
                    field("partitionPath", STRING),
                    field("savepointDataFile", array(STRING)),
                )
            ),
        ),
        version(),
        namespace=NAMESPACE,
    )
)

_CLUSTERING_GROUP = record(
    "HoodieClusteringGroup",
    optional(
        "slices",
        array(
            record(
                "HoodieSliceInfo",
                *_texts("dataFilePath"),
                optional("deltaFilePaths", array(STRING)),
                field("fileId", ["null", STRING]),
                *_texts("partitionPath", "bootstrapFilePath"),
                version(),
            )
        ),
    ),
    optional("metrics", mapping("double")),
    field("numOutputFileGroups", ["int", "null"], default=1),
    optional("extraMetadata", _TEXTS),
    version(),
)

REQUESTED_REPLACE = schema_text(
    record(
        "HoodieRequestedReplaceMetadata",
        *_texts("operationType"),
        optional(
            "clusteringPlan",
            record(
                "HoodieClusteringPlan",
                optional("inputGroups", array(_CLUSTERING_GROUP)),
                optional(
                    "strategy",
                    record(
                        "HoodieClusteringStrategy",
                        *_texts("strategyClassName"),
                        optional("strategyParams", _TEXTS),
                        version(),
                    ),
                ),
                optional("extraMetadata", _TEXTS),
                version(),
                optional("preserveHoodieMetadata", "boolean"),
                optional("missingSchedulePartitions", array(STRING)),
            ),
        ),
        optional("extraMetadata", _TEXTS),
        version(),
        namespace=NAMESPACE,
    )
)

_CLASS_NAME_DOC = (
    "The class name that is provided here should extend CompactionExecutionStrategy abstract class, idea is "
    "that the plan generator will also provide the execution strategy to use."
)
_PARAMETERS_DOC = (
    "These parameters play a key role in determining which action type it is i.e. compaction or "
    "logcompaction and it will also include configs that determine how compaction needs to be executed."
)

COMPACTION_PLAN = schema_text(
    record(
        "HoodieCompactionPlan",
        optional(
            "operations",
            array(
                record(
                    "HoodieCompactionOperation",
                    field("baseInstantTime", ["null", STRING]),
                    optional("deltaFilePaths", array(STRING)),
                    *_texts("dataFilePath"),
                    field("fileId", ["null", STRING]),
                    *_texts("partitionPath"),
                    optional("metrics", mapping("double")),
                    *_texts("bootstrapFilePath"),
                )
            ),
        ),
        optional("extraMetadata", _TEXTS),
        version(),
        optional(
            "strategy",
            record(
                "HoodieCompactionStrategy",
                optional("compactorClassName", STRING, doc=_CLASS_NAME_DOC),
                optional("strategyParams", _TEXTS, doc=_PARAMETERS_DOC),
                version(),
            ),
        ),
        field("preserveHoodieMetadata", ["boolean", "null"], default=False),
        optional("missingSchedulePartitions", array(STRING)),
        namespace=NAMESPACE,
    )
)

_INDEX_PARTITIONS = array(
    record(
        "HoodieIndexPartitionInfo",
        version(),
        *_texts("metadataPartitionPath", "indexUptoInstant"),
        optional("extraMetadata", _TEXTS),
    )
)
_COPIED_DOC = "This field replaces the field filesToBeDeletedPerPartition"

INDEX_PLAN = schema_text(
    record("HoodieIndexPlan", version(), optional("indexPartitionInfos", _INDEX_PARTITIONS), namespace=NAMESPACE)
)

INDEX_COMMIT = schema_text(
    record(
        "HoodieIndexCommitMetadata",
        version(doc=_COPIED_DOC),
        optional("operationType", STRING, doc=_COPIED_DOC),
        optional(
            "indexPartitionInfos",
            _INDEX_PARTITIONS,
            doc="This field contains the info for each partition that got indexed",
        ),
        namespace=NAMESPACE,
    )
)

MERGE_ARCHIVE_PLAN = schema_text(
    record(
        "HoodieMergeArchiveFilePlan",
        version(),
        optional("candidate", array(STRING)),
        optional("mergedArchiveFileName", STRING),
        namespace=NAMESPACE,
    )
)
