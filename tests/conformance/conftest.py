"""The servers of object stores, for every test here that asks for one."""

import pytest

from tests.support.azure_server import az_server
from tests.support.gcs_server import gs_server
from tests.support.s3_server import s3_server
from tests.support.store_server import StoreServer

__all__ = ["az_server", "gs_server", "s3_server", "store_server"]


@pytest.fixture(
    params=["s3", pytest.param("gs", marks=pytest.mark.interop), pytest.param("az", marks=pytest.mark.interop)]
)
def store_server(request: pytest.FixtureRequest) -> StoreServer:
    """Each kind of object store in turn. Those that are programs of their own run with the interop tests."""
    server = request.getfixturevalue(f"{request.param}_server")
    assert isinstance(server, StoreServer)
    return server
