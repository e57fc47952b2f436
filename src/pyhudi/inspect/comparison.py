"""How far the commits of two tables are apart, as one sentence."""

from pyhudi.api.table import HudiTable


def compare_commits(source: HudiTable, target: HudiTable) -> str:
    """Which commits one of the tables has after the newest commit of the other, in the words of Apache Hudi.

    Only times count: a table and its copy have commits of the same times.
    """
    ours, theirs = _requested(source), _requested(target)
    newest_of_ours, newest_of_theirs = (times[-1] if times else "0" for times in (ours, theirs))
    is_behind = newest_of_theirs > newest_of_ours
    ahead, since = (theirs, newest_of_ours) if is_behind else (ours, newest_of_theirs)
    missing = [time for time in ahead if time > since]
    return (
        f"Source {source.name} is {'behind' if is_behind else 'ahead'} by {len(missing)} commits. "
        f"Commits to catch up - [{', '.join(missing)}]"
    )


def _requested(table: HudiTable) -> list[str]:
    return [instant.requested for instant in table._access.snapshot().timeline.completed_writes]
