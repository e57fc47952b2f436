"""Values that all layers share: instants, commit metadata, table versions, and what each of Hudi's options means here.

Nothing here reads the storage, holds rows or knows Spark.
"""
