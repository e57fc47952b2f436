"""The command `pyhudi cluster`: joins, splits and sorts the files of a table."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pyhudi.cli.arguments import Json, Path, StorageOptions, TableOptions, pairs
from pyhudi.cli.output import Output

if TYPE_CHECKING:
    from pyhudi.services.clustering.run import ClusteringResult


def cluster(
    path: Path,
    partition: Annotated[
        list[str] | None, typer.Option("--partition", help="Plan this partition path only; may be repeated.")
    ] = None,
    sort: Annotated[str | None, typer.Option("--sort", metavar="COLUMNS", help="Sort rows by a,b,...")] = None,
    layout: Annotated[
        str | None, typer.Option("--layout", help="How rows are sorted: linear, z-order or hilbert.")
    ] = None,
    schedule: Annotated[bool, typer.Option("--schedule", help="Plan only; whoever clusters next does it.")] = False,
    run: Annotated[bool, typer.Option("--run", help="Do what is planned only.")] = False,
    option: TableOptions = None,
    storage_option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Write the rows of small files anew into larger ones, and sort them: what is pending first, then what is there."""
    if run and (schedule or partition):
        raise typer.BadParameter("expected no --schedule and no --partition beside it", param_hint="--run")

    output = Output(json)
    with output.errors():
        from pyhudi import HudiTable

        options = pairs(option, option="--option")
        options |= {} if sort is None else {"hoodie.clustering.plan.strategy.sort.columns": sort}
        options |= {} if layout is None else {"hoodie.layout.optimize.strategy": layout}

        table = HudiTable.open(path, storage_options=pairs(storage_option, option="--storage-option"))
        if run:
            result = table.run_clusterings(options=options)
        elif schedule:
            result = table.schedule_clustering(partitions=partition, options=options)
        else:
            result = table.cluster(partitions=partition, options=options)

        if json:
            output.document(asdict(result))
        else:
            _show(output, result)


def _show(output: Output, result: "ClusteringResult") -> None:
    for requested in result.given_up:
        output.line(f"Given up, as its file groups have changed: {requested}")
    if result.requested is None:
        output.line(f"Nothing was clustered: {result.reason}")
    elif result.completed is None:
        output.line(f"Planned as {result.requested}: {result.file_groups:,} file groups")
    else:
        output.line(
            f"Clustered as {result.requested}: {result.file_groups:,} file groups became {result.files:,} files with "
            f"{result.rows:,} rows and {result.size_bytes:,} bytes"
        )
