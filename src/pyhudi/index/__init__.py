"""How the file groups that hold given record keys are found: by base files, Bloom filters, buckets or the record index.

Nothing here writes rows. The one thing that is written is the hashing ring of a partition with consistent buckets.
"""
