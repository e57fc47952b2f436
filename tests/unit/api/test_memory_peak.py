"""A process could take more memory the larger its input is, or leave files behind when it is killed.

The peak of processes is looked at for two sizes of input; one is killed while it puts rows aside.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyhudi.write.memory_settings import MEMORY_MAX, SPILL_FOLDER

PEAK = """
import json, resource, sys
import pyarrow as pa
from pyhudi import HudiTable

path, operation, count, options = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
each = 4_000

def batches():
    for start in range(0, count, each):
        numbers = range(start, start + each)
        yield pa.record_batch({
            "id": pa.array([f"k{number:09d}" for number in numbers]),
            "part": pa.array([f"p{number % 3}" for number in numbers]),
            "text": pa.repeat(pa.scalar("x" * 900), each),
        })

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

schema = next(batches()).schema
table = HudiTable.create(path, name="t", record_key="id", partition_by="part")
table.upsert(next(batches()), options=options)
before = peak()
getattr(table, operation)(pa.RecordBatchReader.from_batches(schema, batches()), options=options)
print(json.dumps({"kb": peak() - before, "bytes": count * 930}))
"""
CONSTANT_BYTES = 96 * 1024 * 1024
"""What a process takes beside its bound: row groups on their way to Parquet, filters, keys that are looked up."""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is counted in kilobytes on Linux")
@pytest.mark.parametrize("operation", ["bulk_insert", "upsert"])
def test_the_peak_stays_below_the_bound_whatever_the_size(tmp_path: Path, operation: str) -> None:
    bound = 32 * 1024 * 1024
    (spill := tmp_path / "spill").mkdir()
    options = {MEMORY_MAX: bound, SPILL_FOLDER: str(spill), "hoodie.parquet.block.size": 4 * 1024 * 1024}
    for count in (60_000, 300_000):
        found = subprocess.run(
            [sys.executable, "-c", PEAK, str(tmp_path / f"t{count}"), operation, str(count), json.dumps(options)],
            capture_output=True, text=True, check=True, env=os.environ,
        )  # fmt: skip
        seen = json.loads(found.stdout)
        assert seen["kb"] * 1024 <= bound + CONSTANT_BYTES
        assert list(spill.iterdir()) == []
    assert seen["bytes"] > 2 * (bound + CONSTANT_BYTES)


KILLED = """
import os, sys
import pyarrow as pa
from pyhudi import HudiTable

def batches():
    for start in range(0, 100_000, 1_000):
        yield pa.record_batch({"id": pa.array([f"k{n:09d}" for n in range(start, start + 1_000)])})
    print("spilled", flush=True)
    sys.stdin.read()

table = HudiTable.create(sys.argv[1], name="t", record_key="id")
reader = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.string())]), batches())
options = {"pyhudi.memory.max.bytes": 1_048_576, "pyhudi.memory.spill.folder": sys.argv[2]}
table.bulk_insert(reader, options=options)
"""


def test_what_a_killed_process_put_aside_is_swept_by_the_next_write(tmp_path: Path) -> None:
    (spill := tmp_path / "spill").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "t"), str(spill)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "spilled\n"
    (folder,) = spill.iterdir()

    def next_process(name: str) -> None:
        program = (
            "import sys, pyarrow as pa\nfrom pyhudi import HudiTable\n"
            "HudiTable.create(sys.argv[1], name='t', record_key='id').upsert(pa.table({'id': ['a']}), "
            "options={'pyhudi.memory.spill.folder': sys.argv[2]})"
        )
        subprocess.run([sys.executable, "-c", program, str(tmp_path / name), str(spill)], check=True)

    next_process("one")
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "rows.arrow"]
    process.kill()
    process.communicate()
    next_process("two")
    assert list(spill.iterdir()) == []
