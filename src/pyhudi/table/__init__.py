"""A table as one call sees it: facts, a view of its files, the rows of its file slices, and plans of reads.

Nothing here writes data or commits."""
