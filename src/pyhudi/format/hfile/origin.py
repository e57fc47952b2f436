"""The file and offset where bytes were read, so that an error can name it."""

from dataclasses import dataclass

from pyhudi.errors import CorruptFile


@dataclass(frozen=True, slots=True)
class Origin:
    """A file and the offset of the block, or of the part of it, that is being decoded."""

    path: str
    offset: int

    def corrupt(self, expected: str, found: str) -> CorruptFile:
        return CorruptFile(self.path, self.offset, expected=expected, found=found)
