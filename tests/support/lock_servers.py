"""Real servers of locks, from the jars that PySpark ships: ZooKeeper, and a Hive metastore on Derby."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.reference.environment import maven_jar, reference_java_home
from tests.support.server_process import ServerProcess, free_port

_STARTER = Path(__file__).parent / "reference" / "StartMetastore.java"
_METASTORE = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    "datanucleus.connectionPoolingType": "hikaricp",
    "hive.metastore.schema.verification": "false",
    "hive.txn.timeout": "4s",
}


def _java(*jars: str) -> list[str]:
    import pyspark

    shipped = Path(pyspark.__file__).parent / "jars"
    path = os.pathsep.join((*jars, f"{shipped}/*"))
    return [f"{reference_java_home()}/bin/java", "-Xmx512m", "-cp", path]


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of a ZooKeeper whose sessions end within 4 seconds of their last sign of life."""
    folder, port = tmp_path_factory.mktemp("zookeeper"), free_port()
    config = folder / "zoo.cfg"
    config.write_text(
        f"tickTime=500\ndataDir={folder / 'data'}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        "admin.enableServer=false\nminSessionTimeout=1000\nmaxSessionTimeout=4000\n"
    )
    command = [*_java(), "org.apache.zookeeper.server.ZooKeeperServerMain", str(config)]
    server = ServerProcess(command, port=port, folder=folder)
    yield f"127.0.0.1:{port}"
    server.close()


@pytest.fixture(scope="session")
def hive_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`thrift://host:port` of a metastore that ends a lock 4 seconds after its last sign of life."""
    folder, port = tmp_path_factory.mktemp("metastore"), free_port()
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in _METASTORE.items()
    )
    (folder / "hive-site.xml").write_text(f"<configuration>{properties}</configuration>")
    command = [
        *_java(str(folder), str(maven_jar("com.lmax", "disruptor", "3.4.4"))),
        str(_STARTER), "-p", str(port),
    ]  # fmt: skip
    server = ServerProcess(command, port=port, folder=folder)
    yield f"thrift://127.0.0.1:{port}"
    server.close()
