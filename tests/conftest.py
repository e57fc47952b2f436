"""For all tests: hypothesis judges answers, not the clock of a machine that others share."""

from hypothesis import HealthCheck, settings

settings.register_profile("pyhudi", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pyhudi")
