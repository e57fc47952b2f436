"""Whole log blocks, one function a kind that this release writes."""

from pyhudi.format.log.block import ROLLBACK_COMMAND, BlockType, HeaderKey, encode_block


def encode_hfile_block(hfile: bytes | memoryview, *, instant_time: str, schema_text: str) -> bytes:
    """A data block of a whole HFile. `schema_text`: the Avro schema of its values, the same as inside."""
    header = {HeaderKey.INSTANT_TIME: instant_time, HeaderKey.SCHEMA: schema_text}
    return encode_block(BlockType.HFILE_DATA, header, hfile)


def encode_delete_block(content: bytes, *, instant_time: str, schema_text: str | None = None) -> bytes:
    """A delete block of content from `encode_delete_content`."""
    header = {HeaderKey.INSTANT_TIME: instant_time}
    if schema_text is not None:
        header[HeaderKey.SCHEMA] = schema_text
    return encode_block(BlockType.DELETE, header, content)


def encode_rollback_block(*, instant_time: str, target_instant_time: str) -> bytes:
    """A command block: drop the blocks of the target instant that stand before this one."""
    header = {
        HeaderKey.INSTANT_TIME: instant_time,
        HeaderKey.TARGET_INSTANT_TIME: target_instant_time,
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
    }
    return encode_block(BlockType.COMMAND, header, b"")
