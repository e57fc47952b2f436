"""Writing the files of one file group: base files, logs, compactions.

These run in tasks. They hold no table, no session and no lock."""
