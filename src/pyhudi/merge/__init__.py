"""Which row counts where several have one key: merge modes, payload classes, mergers, over Arrow columns.

Nothing here reads files."""
