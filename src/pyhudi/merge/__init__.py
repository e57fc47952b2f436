"""Which of several rows with the same key wins, by a table's merge rules, over Arrow columns.

Nothing here reads a file: the rows of logs and base files come from `table/`.
"""
