"""A table's timeline, commits and files as values to look at: rows with named columns, for SQL, shells and pages.

Nothing here changes a table.
"""
