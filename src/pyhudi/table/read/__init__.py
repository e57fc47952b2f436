"""Plans of queries, and carrying them out in this process.

The plan is pure. Spark carries out the same plan in `engine/spark/read/`."""
