"""The columnar Avro codec: rows of Avro binary <-> Arrow record batches."""
