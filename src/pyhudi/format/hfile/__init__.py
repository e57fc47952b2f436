"""HFiles: the sorted key-value files of the metadata table."""
