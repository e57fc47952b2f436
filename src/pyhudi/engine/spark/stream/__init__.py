"""Streams of Spark: the hooks of PySpark's stream readers and writers, and a source that Spark asks for batches.

Which rows a batch has, and how it is stored, is said by whoever hands the hooks in.
"""
