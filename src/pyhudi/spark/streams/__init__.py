"""Streams into and out of Hudi tables: what a batch stores, what a batch reads.

How Spark is brought to ask for that is in `engine/spark/stream/`.
"""
