"""Version 5 to 6: the modes of change data are spelled in upper case. The copies of compaction plans go afterwards.

Spec: format/versions.md section 3, "5→6". Seen: 0.13.1 knows the modes in lower case alone, 0.15.0 in any.
"""

from pyhudi.services.upgrade.facts import CHANGE_MODE, Properties


def to_six_from_five(properties: Properties) -> dict[str, str]:
    return {**properties, **({CHANGE_MODE: properties[CHANGE_MODE].upper()} if CHANGE_MODE in properties else {})}
