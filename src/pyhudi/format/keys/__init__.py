"""Record keys and partition paths, and the hashes, filters and rings that are made of keys.

Which index uses them is decided in `index/`."""
