"""The commands `pyhudi metadata ...`: make, update, delete, read, time and validate the metadata table."""

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from pyhudi.cli.arguments import Json, Path, StorageOptions, TableOptions, pairs
from pyhudi.cli.output import DIFFERENT, Output
from pyhudi.errors import CorruptFile, NotFound

if TYPE_CHECKING:
    from pyhudi.api.metadata.table import ListedBy, MetadataChange, TableMetadata

T = TypeVar("T")

metadata_app = typer.Typer(help="The metadata table: what it knows, and whether that is true.", no_args_is_help=True)

Fallback = Annotated[
    bool, typer.Option("--fallback-to-listing", help="List the storage where the metadata table is missing or damaged.")
]
FromStorage = Annotated[bool, typer.Option("--from-storage", help="List the storage, not the metadata table.")]


@metadata_app.command("create")
def create(path: Path, option: TableOptions = None, storage_option: StorageOptions = None, json: Json = False) -> None:
    """Make the metadata table anew from the files that are stored, with the indexes that it had."""
    _change(path, storage_option, json, lambda metadata: metadata.create(options=pairs(option, option="--option")))


@metadata_app.command("update")
def update(path: Path, option: TableOptions = None, storage_option: StorageOptions = None, json: Json = False) -> None:
    """Catch up: make it where it is missing, undo what dead writers left, compact when due, switch its partitions."""
    _change(path, storage_option, json, lambda metadata: metadata.update(options=pairs(option, option="--option")))


@metadata_app.command("delete")
def delete(
    path: Path,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    option: TableOptions = None,
    storage_option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Delete the metadata table. The data stay; readers list the storage until the next write makes it anew."""
    output = Output(json)
    with output.errors():
        if not yes and not output.confirm(f"Delete the metadata table of {path}?"):
            typer.echo("Nothing was deleted.", err=True)
            return
    _change(path, storage_option, json, lambda metadata: metadata.delete(options=pairs(option, option="--option")))


@metadata_app.command("list-partitions")
def list_partitions(
    path: Path,
    from_storage: FromStorage = False,
    fallback_to_listing: Fallback = False,
    storage_option: StorageOptions = None,
    json: Json = False,
) -> None:
    """The table's partitions, one a line."""
    output = Output(json)
    with output.errors():
        metadata = _open(path, storage_option)
        found, source = _listed(
            output, from_storage, fallback_to_listing, lambda by: metadata.list_partitions(listed_by=by)
        )
        if json:
            output.document({"source": source, "partitions": found})
            return
        for partition in found:
            output.line(partition or ".")


@metadata_app.command("list-files")
def list_files(
    path: Path,
    partition: Annotated[
        list[str] | None, typer.Argument(help="Partition paths, `.` for the root; none: every partition.")
    ] = None,
    from_storage: FromStorage = False,
    fallback_to_listing: Fallback = False,
    storage_option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Files with their sizes in bytes, by partition."""
    output = Output(json)
    wanted = ["" if name == "." else name for name in partition] if partition else None

    with output.errors():
        metadata = _open(path, storage_option)
        files, source = _listed(
            output, from_storage, fallback_to_listing, lambda by: metadata.list_files(wanted, listed_by=by)
        )
        if json:
            output.document({"source": source, "files": files.to_pylist()})
            return

        for batch in files.to_batches():
            columns = (batch.column(name).to_pylist() for name in ("partition", "name", "size_bytes"))
            for folder, name, size_bytes in zip(*columns, strict=True):
                output.line(f"{size_bytes:>14,}  {folder + '/' if folder else ''}{name}")


@metadata_app.command("stats")
def stats(path: Path, storage_option: StorageOptions = None, json: Json = False) -> None:
    """The metadata partitions with their file groups and bytes."""
    output = Output(json)
    with output.errors():
        found = _open(path, storage_option).stats()
        if json:
            output.document(asdict(found))
            return

        headings = ("partition", "file groups", "base files", "bytes", "log files", "bytes")
        rows = [tuple(asdict(partition).values()) for partition in found.partitions]
        output.table("Metadata partitions", headings, rows)
        output.line(f"File counts: files={found.data_files:,}, partitions={found.data_partitions:,}")
        output.line(f"On disk: {found.stored_files:,} files, {found.stored_bytes:,} bytes")
        output.line(f"Deltacommits since the last compaction: {found.deltacommits_since_compaction}")
        output.line(f"Newest instant: {found.newest_instant or '-'}; pending: {found.pending_instants}")
        if found.unused:
            output.line(f"Not used by readers: {', '.join(found.unused)}")


@metadata_app.command("lookup")
def lookup(
    path: Path,
    keys: Annotated[
        list[str],
        typer.Argument(
            help="Keys of the metadata partition: of `files` partition paths or __all_partitions__, of `record_index` "
            "record keys, of a secondary index values."
        ),
    ],
    partition: Annotated[
        str, typer.Option("--partition", help="The metadata partition to look in; `files` unless given.")
    ] = "files",
    storage_option: StorageOptions = None,
    json: Json = False,
) -> None:
    """What the metadata table holds under keys. Exit code 1 when a key is not there."""
    output = Output(json)
    with output.errors():
        found = _open(path, storage_option).lookup(keys, metadata_partition=partition)

        if json:
            output.document(found)
        else:
            for key, record in found.items():
                output.line(f"{key}: " if record is not None else f"{key}: not in metadata partition '{partition}'")
                for name, value in (record or {}).items():
                    _show_entry(output, name, value)

        if any(record is None for record in found.values()):
            raise typer.Exit(DIFFERENT)


@metadata_app.command("perf")
def perf(
    path: Path,
    partitions: Annotated[int, typer.Option(min=1, help="How many partitions to time, spread over all.")] = 20,
    storage_option: StorageOptions = None,
    json: Json = False,
) -> None:
    """How long listing takes by the storage and by the metadata table."""
    output = Output(json)
    with output.errors():
        metadata = _open(path, storage_option)
        with output.progress("Timing") as on_progress:
            times = metadata.time_listings(partitions_max=partitions, on_progress=on_progress)

        if json:
            rows = [{**asdict(row), "difference_percent": row.difference_percent} for row in times.rows]
            output.document({**asdict(times), "rows": rows})
            return

        output.line(f"Manifest total size: {sum(size for _, size in times.manifest):,}")
        output.line(f"Manifest total files: {len(times.manifest):,}")
        output.line("Manifest paths/sizes:")
        for name, size_bytes in times.manifest:
            output.line(f"    {name}: {size_bytes:,}")
        output.line(f"File counts: files={times.files:,}, partitions={times.partitions:,}")
        output.line(f"Files/partition (avg): files={times.files / max(1, times.partitions):,.2f}")
        output.line(f"Opening the metadata table: {times.open_ms:,.2f} msec; {times.partitions_timed} partitions timed")

        output.table(
            "Performance (milliseconds)",
            ("", "", "existing", "with metadata", "difference %"),
            [(row.group, row.name, row.existing_ms, row.metadata_ms, row.difference_percent) for row in times.rows],
        )


@metadata_app.command("validate")
def validate(path: Path, storage_option: StorageOptions = None, json: Json = False) -> None:
    """Compare the metadata table with the data. Exit code 1 when they differ."""
    output = Output(json)
    with output.errors():
        metadata = _open(path, storage_option)
        with output.progress("Comparing") as on_progress:
            found = metadata.validate(on_progress=on_progress)

        if json:
            output.document({"is_valid": found.is_valid, **asdict(found)})
        else:
            if found.differences:
                output.table(
                    f"{len(found.differences):,} differences",
                    ("metadata", "what", "partition", "file or key", "stored", "metadata table"),
                    [
                        (d.metadata_partition, d.kind.value, d.partition or ".", d.name, d.stored, d.known)
                        for d in found.differences
                    ],
                )
            output.line(f"Compared: {', '.join(found.checked)}: {'no difference' if found.is_valid else 'different'}")
            if found.pending_cleans:
                output.line(f"Pending cleans, whose files may be gone already: {', '.join(found.pending_cleans)}")

        if found.not_checked:
            output.warn(f"not compared by this release: {', '.join(found.not_checked)}")
        if not found.is_valid:
            raise typer.Exit(DIFFERENT)


def _open(path: str, storage_option: list[str] | None) -> "TableMetadata":
    from pyhudi.api.metadata.table import TableMetadata

    return TableMetadata.open(path, storage_options=pairs(storage_option, option="--storage-option"))


def _change(
    path: str, storage_option: list[str] | None, is_json: bool, call: "Callable[[TableMetadata], MetadataChange]"
) -> None:
    output = Output(is_json)
    with output.errors():
        change = call(_open(path, storage_option))
        if is_json:
            output.document(asdict(change))
        else:
            before, after = (", ".join(names) or "none" for names in (change.before, change.after))
            output.line(f"Metadata partitions: {after} (before: {before})")


def _listed(
    output: Output, from_storage: bool, falls_back: bool, ask: "Callable[[ListedBy], T]"
) -> "tuple[T, ListedBy]":
    """The answer, and its source. The storage answers only if the user asked for that.

    `from_storage`: ask the storage at once. `falls_back`: ask the storage if the metadata table is missing or damaged.
    """
    if from_storage:
        return ask("storage"), "storage"

    try:
        return ask("metadata"), "metadata"
    except (CorruptFile, NotFound) as error:
        if not falls_back:
            raise
        output.warn(f"{error}: listing the storage instead")
        return ask("storage"), "storage"


def _show_entry(output: Output, name: str, value: object) -> None:
    """Print a field of a record. A list or a mapping takes one line per entry."""
    if isinstance(value, dict):
        for key, held in value.items():
            output.line(f"    {key}: {held:,}" if isinstance(held, int) else f"    {key}: {held}")
    elif isinstance(value, list):
        for item in value:
            shown = item if isinstance(item, str) else ", ".join(f"{key}={held}" for key, held in item.items())
            output.line(f"    {shown or '.'}")
    else:
        output.line(f"    {name}: {value}")
