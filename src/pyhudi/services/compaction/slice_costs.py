"""What a compaction of a slice costs, as the plans of Apache Hudi state it."""

from pyhudi.table.view.file_system_view import FileSlice

LOG_FILES = "TOTAL_LOG_FILES"
LOG_SIZE = "TOTAL_LOG_FILES_SIZE"
IO_MB = "TOTAL_IO_MB"


def slice_costs(file_slice: FileSlice, *, new_base_size_bytes: int | None = None) -> dict[str, float]:
    """The costs of a slice as a plan states them. Costs named `_MB` are whole mebibytes.

    `new_base_size_bytes`: the size assumed for a base file that does not exist yet; None: the size of the logs.

    Seen: Apache Hudi 1.0.2 carries out a plan that died before its own writes, and fails on one without
    `TOTAL_LOG_FILES_SIZE` (a null pointer in `HoodieCompactor`). Spec: format/actions.md section 8.
    """
    base_bytes = file_slice.base_bytes
    log_bytes = file_slice.log_bytes
    new_bytes = log_bytes if new_base_size_bytes is None else new_base_size_bytes
    read_mb, write_mb = (base_bytes + log_bytes) >> 20, (base_bytes or new_bytes) >> 20
    return {
        LOG_FILES: float(len(file_slice.log_files)),
        LOG_SIZE: float(log_bytes),
        "TOTAL_IO_READ_MB": float(read_mb),
        "TOTAL_IO_WRITE_MB": float(write_mb),
        IO_MB: float(read_mb + write_mb),
    }
