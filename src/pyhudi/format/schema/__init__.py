"""Avro schemas and Arrow schemas, one for the other, and which changes of a schema are allowed.

The schema of a particular table is found in `table/view/`."""
