"""Log files: blocks appended to a file slice."""
