"""What carries out the work of writes and reads: this process, or Spark.

Engines make no decisions: those are plans from the layers below."""
