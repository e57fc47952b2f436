"""For all tests: hypothesis judges answers, not the clock of a machine that others share."""

from hypothesis import settings

settings.register_profile("pyhudi", deadline=None)
settings.load_profile("pyhudi")
