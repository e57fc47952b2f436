"""The S3 server, for every test here that asks for it."""

from tests.support.s3_server import s3_server

__all__ = ["s3_server"]
