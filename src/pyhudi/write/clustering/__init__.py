"""Writing the files of a clustering, or of a resizing of buckets: the rows of some file groups become those of others.

These run in tasks. Which file groups are taken, and how the action is carried out, is in `services/clustering/`."""
