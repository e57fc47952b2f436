"""Version 6 to 5: the modes of change data are spelled in lower case, as 0.13.1 knows them.

Nothing is pending by then, so there are no plans of compactions to copy. Spec: format/versions.md section 3, "6→5".
"""

from pyhudi.services.upgrade.facts import CHANGE_MODE, Properties


def to_five(properties: Properties) -> dict[str, str]:
    return {**properties, **({CHANGE_MODE: properties[CHANGE_MODE].lower()} if CHANGE_MODE in properties else {})}
