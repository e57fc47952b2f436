"""A time before 1970 could move ahead as it loses its fraction, and a time could be taken in a wrong unit."""

import pyarrow as pa
import pytest

from pyhudi.format.time_units import are_same_times, in_micros, in_unit, refuse_far_times

UTC = pa.timestamp("us", "UTC")


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_coarser_unit_is_the_last_that_a_time_has_reached(zone: str | None) -> None:
    micros = [1_999, 2_000, -1, -1_000, -1_001, None, 0]
    times = pa.array(micros, pa.timestamp("us", zone))
    found = in_unit(times, pa.timestamp("ms", zone))
    assert found.type == pa.timestamp("ms", zone)
    assert found.cast(pa.int64()).to_pylist() == [None if one is None else one // 1_000 for one in micros]
    assert in_unit(found.slice(2), pa.timestamp("us", zone)).cast(pa.int64()).to_pylist() == [
        -1_000, -1_000, -2_000, None, 0,
    ]  # fmt: skip


def test_a_finer_unit_that_does_not_fit_is_an_error() -> None:
    far = pa.array([1 << 62], pa.timestamp("ms", "UTC"))
    with pytest.raises(pa.ArrowInvalid):
        in_unit(far, UTC)
    with pytest.raises(pa.ArrowInvalid):
        refuse_far_times(far)
    refuse_far_times(pa.array([None, 1], pa.timestamp("ms", "UTC")))
    refuse_far_times(pa.array([], pa.timestamp("ms")))


def test_times_are_too_far_at_any_depth() -> None:
    kind, far = pa.timestamp("ms"), 9_223_372_036_854_776
    nested = {
        pa.list_(kind): ([far - 1], [far]),
        pa.struct([("n", pa.int64()), ("at", kind)]): ({"n": far, "at": far - 1}, {"at": far}),
        pa.map_(pa.string(), kind): ([("k", -far + 1)], [("k", -far)]),
        pa.list_(pa.struct([("m", pa.map_(pa.string(), kind))])): ([{"m": []}, {"m": None}], [{"m": [("k", far)]}]),
    }
    for outer, (near, beyond) in nested.items():
        refuse_far_times(pa.array([None, near], outer))
        with pytest.raises(pa.ArrowInvalid):
            refuse_far_times(pa.array([None, near, beyond], outer))
        refuse_far_times(pa.array([beyond, near, beyond], outer).slice(1, 1))
    null = pa.StructArray.from_arrays([pa.array([far], kind)], ["at"], mask=pa.array([True]))
    refuse_far_times(null)
    refuse_far_times(pa.array([far], pa.int64()))


def test_times_with_a_zone_and_times_without_are_not_the_same() -> None:
    assert are_same_times(pa.timestamp("ms", "UTC"), UTC)
    assert are_same_times(pa.timestamp("ns"), pa.timestamp("us"))
    assert not are_same_times(pa.timestamp("us"), UTC)
    assert not are_same_times(pa.int64(), UTC)


def test_spark_gets_microseconds_at_any_depth() -> None:
    def columns(unit: str) -> pa.Schema:
        kind = pa.timestamp(unit, "UTC")
        inner = pa.struct([("at", kind), ("n", pa.int64())])
        return pa.schema([("t", kind), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), kind)), ("s", inner)])

    assert in_micros(columns("ms")) == columns("us")
    assert in_micros(columns("us")) == columns("us")
