"""Writing the metadata table: partitions that are made, a deltacommit for each action, and undoing one."""
