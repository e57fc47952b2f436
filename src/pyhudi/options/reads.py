"""Options of queries. Writes ignore them."""

from pyhudi.options.entries import COMES_LATER, Entry, Kind, each

READS: dict[str, Entry] = {
    **each(
        (
            "path", "hoodie.datasource.query.type", "as.of.instant", "hoodie.datasource.read.begin.instanttime",
            "hoodie.datasource.read.end.instanttime", "hoodie.datasource.query.incremental.format",
            "hoodie.datasource.streaming.startOffset", "hoodie.enable.data.skipping", "hoodie.bootstrap.base.path",
            "hoodie.fileIndex.dataSkippingFailureMode", "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
        ),
        Entry(Kind.READ),
    ),
    "hoodie.datasource.merge.type": Entry(
        Kind.READ_PROMISE, accepts=("payload_combine",), knows=("skip_merge",),
        note="a snapshot merges the logs; hoodie.datasource.query.type=read_optimized reads base files alone",
    ),
    "hoodie.read.timeline.holes.resolution.policy": Entry(
        Kind.READ_PROMISE, accepts=("FAIL",), knows=("BLOCK", "USE_TRANSITION_TIME"), note=COMES_LATER
    ),
    **each(
        (
            "hoodie.datasource.read.incr.path.glob", "hoodie.datasource.read.incr.filters",
            "hoodie.datasource.read.incr.table.version", "hoodie.datasource.read.streaming.table.version",
            "hoodie.datasource.read.paths",
            "hoodie.datasource.read.table.valued.function.filesystem.relation.subpath",
        ),
        Entry(Kind.READ_PROMISE, accepts=("",), note="filter the DataFrame instead; " + COMES_LATER),
    ),
    **each(
        (
            "hoodie.datasource.read.schema.use.end.instanttime",
            "hoodie.datasource.read.create.filesystem.relation",
            "hoodie.datasource.read.extract.partition.values.from.path",
            "hoodie.datasource.read.table.valued.function.timeline.relation",
            "hoodie.datasource.read.table.valued.function.timeline.relation.archived",
        ),
        Entry(Kind.READ_PROMISE, accepts=("", "false"), note=COMES_LATER),
    ),
}  # fmt: skip
