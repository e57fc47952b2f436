"""What an action of the table changes in its indexes, worked out from the files that it wrote and removed.

Pure values come out. `write/metadata/` stores them."""
