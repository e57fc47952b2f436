"""Key generators that users register, by the name that a table's `hoodie.table.keygenerator.class` has."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.options.registered import KEY_GENERATOR_CLASSES, OwnKind, Registered, checked_name

Generated: TypeAlias = tuple[pa.Array, pa.Array | None]


class KeyGenerator(Protocol):
    """Makes record keys and partition paths of columns, for a batch of rows at a time. Is pickled to be sent to tasks.

    It must be a pure function of its rows: the same values always give the same key and path.
    """

    def __call__(self, rows: pa.RecordBatch, /) -> Generated:
        """The record key and the partition path of each row, both as texts.

        `rows`: the table's record key columns and partition columns, each once. Of a table without partition columns
        the paths are None. A path is the whole path, as the partition is named: `hive_style_partitioning` and
        `urlencode` have no effect.
        """
        ...


_generators: Registered[KeyGenerator] = Registered(OwnKind.KEY_GENERATOR, lambda generator: generator)


def register_key_generator(name: str, generator: KeyGenerator) -> None:
    """Let a function make the record keys and partition paths of tables with the key generator `name`.

    `name`: as `hoodie.datasource.write.keygenerator.class` states it, be it a name of your own or a Java class that the
    function stands for. Call it in every process that writes such a table, before opening it. Registering the same
    definition again replaces the earlier one. Reading such tables needs no generator.
    Raises: Invalid for a name that is none, is Apache Hudi's own, or is taken by another definition.
    """
    if not callable(generator):
        raise Invalid(
            f"key generator '{name}': expected a function of a record batch, found {type(generator).__name__}"
        )
    _generators.add(checked_name(OwnKind.KEY_GENERATOR, name, KEY_GENERATOR_CLASSES), generator)


def find_key_generator(name: str) -> KeyGenerator | None:
    """The generator of this name. None if none is registered."""
    return _generators.find(name.strip())


def run_generator(
    generator: KeyGenerator, rows: pa.Table, columns: Sequence[str], *, has_paths: bool
) -> tuple[pa.ChunkedArray, pa.ChunkedArray | None]:
    """The generator's keys and paths, as texts. Keys may be null or empty: the caller refuses them.

    Memory: the keys and paths. Raises: Invalid for an answer of other types or lengths, for a path that is null, and
    for whatever the generator raises.
    """
    keys, paths = [], []
    for batch in rows.select(list(columns)).to_batches():
        own_keys, own_paths = _run(generator, batch, has_paths=has_paths)
        keys.append(own_keys)
        paths += [] if own_paths is None else [own_paths]
    return pa.chunked_array(keys, pa.string()), pa.chunked_array(paths, pa.string()) if has_paths else None


def _run(generator: KeyGenerator, batch: pa.RecordBatch, *, has_paths: bool) -> Generated:
    who = f"key generator {getattr(generator, '__qualname__', type(generator).__name__)}"
    try:
        found = generator(batch)
    except Exception as error:
        raise Invalid(f"{who}: raised {type(error).__name__}: {error}") from error

    if not isinstance(found, tuple) or len(found) != 2:
        raise Invalid(f"{who}: expected the record keys and the partition paths, found {type(found).__name__}")
    keys = _texts(found[0], len(batch), f"{who}: record keys")
    if (found[1] is None) == has_paths:
        expected = "partition paths, for the table has partition columns" if has_paths else "None as paths"
        raise Invalid(f"{who}: expected {expected}, found {'None' if has_paths else 'some'}")
    if not has_paths:
        return keys, None

    paths = _texts(found[1], len(batch), f"{who}: partition paths")
    if paths.null_count:
        at = pc.index(paths.is_null(), True).as_py()
        shown = {name: batch.column(name)[at].as_py() for name in batch.schema.names}
        raise Invalid(f"{who}: expected a partition path for each row, found null for {shown}")
    return keys, paths


def _texts(found: object, count: int, what: str) -> pa.Array:
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    if not isinstance(found, pa.Array):
        raise Invalid(f"{what}: expected an Arrow array of texts, found {type(found).__name__}")
    if len(found) != count:
        raise Invalid(f"{what}: expected {count:,}, one for each row, found {len(found):,}")
    kind = found.type.value_type if pa.types.is_dictionary(found.type) else found.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise Invalid(f"{what}: expected texts, found {found.type}")
    return found.cast(pa.string())
