"""The Avro schemas of Apache Hudi's own records, as package data: one file a record, `format/schemas/<record>.avsc`.

The text that files state has no spaces (`schema_text`) and equals the text that Apache Hudi 1.0.2 writes to the byte.
Seen: 0.15.0, 1.0.2 and 1.2.0 write the same texts for the timeline's files, with one exception: in the plans of
compaction and clustering 0.15.0 has no `missingSchedulePartitions`. 0.13.1 lacks more trailing fields; readers resolve
fields by name. The stray `default` properties and the copied `doc` texts are in Hudi's own schema files.

`HoodieArchivedMetaEntry`, an archived entry of layout 1, holds the records of the timeline's own files; a test compares
them. Seen: 0.15.0 writes its fields in this order. `HoodieCompactionMetadata` in it stays empty: releases older than
table version 6 wrote it.

Spec: format/timeline.md section 4.1; format/metadata-table.md section 6.
"""

import json
from functools import cache
from importlib import resources

from pyhudi.format.avro.schema_text import schema_text


@cache
def schema_of(record: str) -> str:
    """The schema text of a record, by its name, such as `HoodieCommitMetadata`."""
    file = resources.files("pyhudi.format").joinpath("schemas", f"{record}.avsc")
    return schema_text(json.loads(file.read_text(encoding="utf-8")))


def metadata_record_schema(number: int) -> str:
    """The schema text of the metadata table's records, with meta fields. `number`: the table version that began it.

    Each is that of the releases 0.13.1 (5), 0.15.0 (6), 1.0.2 (8) and 1.2.0 (9). HFiles and log blocks state this text.
    Commits of the metadata table state it without the meta fields. Records of files and partitions have the same bytes
    in 8 and 9.
    """
    return schema_of(f"HoodieMetadataRecord-{number}")
