"""The parts of an ORC file that PyArrow does not read or write: protobuf messages around the stripes."""
