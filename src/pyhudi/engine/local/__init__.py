"""Writes from Arrow in this process: input by partition, tagging, threads.

Nothing here imports PySpark."""
