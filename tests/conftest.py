"""For all tests: hypothesis judges answers, not the clock of a machine that others share. The collector of garbage does
not go through the tests' own objects again and again: a worker has some 700,000 of them once it knows all tests. It
goes through the others seldom: as often as Python begins with, it takes a fifth of the time of small writes.
"""

import gc

from hypothesis import HealthCheck, settings

settings.register_profile("pyhudi", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pyhudi")


def pytest_configure() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()
