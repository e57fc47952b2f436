"""The timeline as a value: active, archived, and the clock that makes instants.

Bytes of its files are in `format/timeline/`."""
