"""The real clock, time zone and randomness: the only module that asks the machine for them."""

import time
import uuid
from datetime import datetime, timedelta, tzinfo


class SystemClock:
    """The wall clock of this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep_ms(self, wait_ms: int) -> None:
        time.sleep(wait_ms / 1000)


SYSTEM_CLOCK = SystemClock()


class ProcessZone(tzinfo):
    """The time zone of this process, daylight saving included."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        if moment is None:
            return timedelta(seconds=time.localtime().tm_gmtoff)
        return timedelta(seconds=time.localtime(moment.replace(tzinfo=None).timestamp()).tm_gmtoff)

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str:
        return "LOCAL"

    def fromutc(self, moment: datetime) -> datetime:
        seconds = (moment.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds()
        return moment.replace(tzinfo=self) + timedelta(seconds=time.localtime(seconds).tm_gmtoff)


def process_zone() -> tzinfo:
    return ProcessZone()


def random_uuid() -> str:
    return str(uuid.uuid4())
