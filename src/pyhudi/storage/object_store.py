"""A table's bytes in an object store: S3 and compatible stores, Google Cloud Storage, Azure.

To create a file only if it is absent, a conditional put is sent, and the store decides.

Hadoop marks folders by empty objects whose names end in `/`. obstore shows such an object as an empty file with the
folder's name. Listings here leave these objects out, and deletions leave them behind, as empty folders do not matter
to a table.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from typing import Any, BinaryIO, Self, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, NotSupportedError, PreconditionError

from pyhudi.errors import Invalid, NotFound, Unavailable, hide_secrets
from pyhudi.storage.object_client import Clients, first_line, make_clients, store_errors
from pyhudi.storage.object_files import TAIL_BYTES, ObjectInput, ObjectOutput
from pyhudi.storage.paths import check_file_path, check_folder_path, check_range
from pyhudi.storage.protocol import FileInfo, FileVersion, StorageLocation
from pyhudi.storage.uris import ObjectUri

PART_BYTES = 8 * 1024 * 1024
"""The bytes of a part of an upload. Stores take 10,000 parts at most, so files up to 80 GB. S3 wants 5 MiB at least."""
_PARTS_AT_ONCE = 4
_DELETED_AT_ONCE = 1_000  # what S3 takes in one request

_MARK = "pyhudiput"
"""The name of a metadata entry that tells our creation of an object from another writer's. The name must be an
identifier for Azure, and some proxies drop names with `_`."""

_PAUSES_S = (0.1, 0.4, 1.6)
"""The pauses before a creation is tried again. Four requests of at most 30 s each decide within about two minutes."""


class ObjectStorage:
    """The storage of `s3://BUCKET/PREFIX` and similar URIs. Threads may share it; a forked child may not.

    Times are in whole seconds. Seen: S3's listings, and the headers of every store, have no fractions.
    Memory: five parts of 8 MiB for a stream; the whole listing for a listing.
    """

    def __init__(self, clients: Clients, location: StorageLocation, prefix: str) -> None:
        """`prefix`: the prefix in the bucket, without slashes around it; empty for the bucket itself."""
        self._store, self._once = clients.retrying, clients.once
        self._location = location
        self._is_azure = location.uri.startswith(("az:", "abfss:"))
        self._prefix = prefix
        self._base = f"{prefix}/" if prefix else ""

    @classmethod
    def open(cls, parsed: ObjectUri, location: StorageLocation) -> Self:
        """The storage of a URI. Makes no request. Raises: Invalid for an option that the store does not have."""
        return cls(make_clients(parsed, dict(location.options)), location, parsed.prefix)

    def __repr__(self) -> str:
        return f"ObjectStorage({hide_secrets(self._location.uri)!r})"

    @property
    def location(self) -> StorageLocation:
        return self._location

    def get(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        check_range(start, end)
        key, shown = self._key(path), self._shown(path)

        if start == 0 and end is None:
            with store_errors(shown, "read"):
                return bytes(obstore.get(self._store, key).bytes())

        # Stores refuse an empty range, so only the file's existence is asked for.
        if end is not None and end == start:
            if self.head(path) is None:
                raise NotFound(f"{shown}: expected a file, found none")
            return b""

        wanted: Any = {"range": (start, end)} if end is not None else {"range": {"offset": start}}
        with store_errors(shown, "read"):
            try:
                return bytes(obstore.get(self._store, key, options=wanted).bytes())
            except (GenericError, ValueError):  # each store says in its own way that the file ends before `start`
                if obstore.head(self._store, key)["size"] <= start:
                    return b""
                raise

    def open_input(self, path: str) -> BinaryIO:
        """Open a file to read. One request, which also fetches the file's end; two if the store cannot give an end."""
        key, shown = self._key(path), self._shown(path)
        with store_errors(shown, "open"):
            try:
                found = obstore.get(self._store, key, options={"range": {"suffix": TAIL_BYTES}})
                info, tail = found.meta, bytes(found.bytes())
            except (GenericError, NotSupportedError, ValueError):  # Azure; S3, for an empty file
                info, tail = obstore.head(self._store, key), b""
        same = {"if_match": info["e_tag"]} if info["e_tag"] else {}

        def fetch(start: int, end: int) -> bytes:
            try:
                with store_errors(shown, "read"):
                    wanted: Any = {"range": (start, end), **same}
                    return bytes(obstore.get(self._store, key, options=wanted).bytes())
            except PreconditionError as error:
                raise Unavailable(f"{shown}: it was replaced while it was being read; read it again") from error

        return cast(BinaryIO, ObjectInput(fetch, info["size"], tail))

    def head(self, path: str) -> FileInfo | None:
        with suppress(NotFound), store_errors(self._shown(path), "look at"):
            return self._info(obstore.head(self._store, self._key(path)))
        return None

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        check_folder_path(prefix)
        found = self._list_below(prefix) if recursive else self._list_within(prefix)[0]
        return iter(sorted(found, key=lambda file: file.path))

    def list_folders(self, prefix: str) -> Iterator[str]:
        return iter(sorted(self._list_within(check_folder_path(prefix))[1]))

    def make_folder(self, path: str) -> None:
        check_folder_path(path)

    def put_new(self, path: str, content: bytes) -> bool:
        """Create a file by a conditional put. After a failure the put is sent again.

        If the file then exists, the first attempt may have created it and its answer got lost. The mark in the file's
        metadata tells: our mark, and this call has created the file; another mark, and another writer has.
        """
        key, shown = self._key(path), self._shown(path)
        mark = os.urandom(16).hex()
        is_doubtful = False

        for pause_s in (*_PAUSES_S, None):
            try:
                with store_errors(shown, "create"):
                    obstore.put(
                        self._once, key, content, mode="create", attributes={_MARK: mark}, use_multipart=False
                    )  # fmt: skip
                return True
            except AlreadyExistsError as error:
                created = self._find_creation(key, shown, content) if is_doubtful else self._find_any(key, shown)
                if created is not None:
                    return created == mark
                if pause_s is None:  # S3 also raises this while another creation is under way
                    raise Unavailable(f"{shown}: cannot create it: {first_line(error)}; call again") from error
            except Unavailable:
                if pause_s is None:
                    raise
                is_doubtful = True

            time.sleep(pause_s)

        raise AssertionError("the last try returns or raises")

    def put(self, path: str, content: bytes) -> None:
        key = self._key(path)
        with store_errors(self._shown(path), "write"):
            obstore.put(self._store, key, content, chunk_size=PART_BYTES, max_concurrency=_PARTS_AT_ONCE)

    @contextmanager
    def put_stream(self, path: str) -> Iterator[BinaryIO]:
        key, shown = self._key(path), self._shown(path)
        with store_errors(shown, "write"):
            writer = obstore.open_writer(self._store, key, buffer_size=PART_BYTES, max_concurrency=_PARTS_AT_ONCE)

        try:
            yield cast(BinaryIO, ObjectOutput(writer, shown))
        except BaseException as error:
            with suppress(BaseError, OSError):  # parts that stay are invisible; rules of the bucket delete them
                writer.__exit__(type(error), error, error.__traceback__)  # aborts the upload
            raise

        try:
            with store_errors(shown, "write"):
                writer.close()
        except NotFound as error:  # obstore aborts after a failed completion; the upload is gone if that had landed
            raise Unavailable(
                f"{shown}: the store did not say whether it is written; look before calling again"
            ) from error

    def delete(self, path: str) -> bool:
        """Delete a file. Two requests, as stores do not say whether there was anything to delete."""
        if self.head(path) is None:
            return False
        with suppress(NotFound), store_errors(self._shown(path), "delete"):
            obstore.delete(self._store, self._key(path))
            return True
        return False

    def delete_prefix(self, prefix: str) -> None:
        shown = self._shown(check_folder_path(prefix))
        with store_errors(shown, "list"):
            found = obstore.list(self._store, self._folder(prefix), chunk_size=_DELETED_AT_ONCE)
            for files in found:
                self._delete_keys([file["path"] for file in files], shown)

    def delete_many(self, paths: Iterable[str]) -> None:
        keys = [self._key(path) for path in paths]
        for start in range(0, len(keys), _DELETED_AT_ONCE):
            self._delete_keys(keys[start : start + _DELETED_AT_ONCE], self._shown(""))

    def get_versioned(self, path: str) -> tuple[bytes, FileVersion] | None:
        with suppress(NotFound), store_errors(self._shown(path), "read"):
            found = obstore.get(self._store, self._key(path))
            return bytes(found.bytes()), FileVersion(found.meta["e_tag"], found.meta["version"])
        return None

    def put_if(self, path: str, content: bytes, expected: FileVersion | None) -> FileVersion | None:
        mode: Any = "create"
        if expected is not None:
            known = {"e_tag": expected.tag, "version": expected.generation}
            mode = {name: value for name, value in known.items() if value is not None}
        try:
            with store_errors(self._shown(path), "replace"):
                put = obstore.put(self._once, self._key(path), content, mode=mode, use_multipart=False)
        except (AlreadyExistsError, PreconditionError, NotFound):
            return None
        return FileVersion(put["e_tag"], put["version"])

    def _find_any(self, key: str, shown: str) -> str | None:
        """An empty text if the object exists, whoever created it; None if it does not exist."""
        with suppress(NotFound), store_errors(shown, "look at"):
            obstore.head(self._store, key)
            return ""
        return None

    def _find_creation(self, key: str, shown: str, content: bytes) -> str | None:
        """The mark that an object's creator left, empty if the creator was not pyhudi; None if there is no such object.

        Raises: Unavailable for an object with our content and no mark: the store may have lost our mark.
        """
        with suppress(NotFound), store_errors(shown, "look at"):
            found = obstore.get(self._store, key)
            mark = cast("Mapping[str, str]", found.attributes).get(_MARK)
            if mark is not None:
                return mark
            if bytes(found.bytes()) != content:
                return ""
            raise Unavailable(f"{shown}: somebody created it with this content; read it back to find out who")
        return None

    def _list_within(self, prefix: str) -> tuple[Sequence[FileInfo], Sequence[str]]:
        folder = self._folder(prefix)
        with store_errors(self._shown(prefix), "list"):
            found = obstore.list_with_delimiter(self._store, folder)
        marker = folder or ""  # Hadoop's marker of the folder itself
        files = [self._info(file) for file in found["objects"] if file["path"] != marker]
        return files, [name[len(self._base) :] for name in found["common_prefixes"]]

    def _list_below(self, prefix: str) -> Sequence[FileInfo]:
        """All files below a folder.

        An empty object may be a file, or Hadoop's marker of an empty folder. To tell, one more request is sent for each
        folder that has an empty object.
        """
        with store_errors(self._shown(prefix), "list"):
            found = obstore.list(self._store, self._folder(prefix)).collect()
        files = [self._info(file) for file in found if len(file["path"]) >= len(self._base)]
        folders = _folders_above(file.path for file in files)
        empty = {file.path for file in files if not file.size_bytes and file.path not in folders}
        for folder in {path.rpartition("/")[0] for path in empty if path != prefix}:
            empty -= {file.path for file in self._list_within(folder)[0]}
        return [file for file in files if file.path not in empty and (file.size_bytes or file.path not in folders)]

    def _delete_keys(self, keys: Sequence[str], shown: str) -> None:
        try:
            with store_errors(shown, "delete"):
                obstore.delete(self._store, list(keys))
        except NotFound:  # Google stops at a missing file, and may have left the others
            for key in keys:
                with suppress(NotFound), store_errors(shown, "delete"):
                    obstore.delete(self._store, key)

    def _info(self, found: Any) -> FileInfo:
        return FileInfo(found["path"][len(self._base) :], found["size"], int(found["last_modified"].timestamp()) * 1000)

    def _key(self, path: str) -> str:
        return self._base + self._kept(check_file_path(path))

    def _folder(self, prefix: str) -> str | None:
        return self._base + self._kept(prefix) if prefix else self._prefix or None

    def _kept(self, path: str) -> str:
        """The same path, if the store keeps it unchanged.

        Seen: Azure, and Azurite 3.35, put `/` for `\\`; Azure's rules for names also forbid parts that end in a dot.
        Raises: Invalid for a path that the store would change.
        """
        if self._is_azure and ("\\" in path or path.endswith(".") or "./" in path):
            raise Invalid(
                f"{self._shown(path)}: Azure changes names with '\\', and parts of names that end in a dot; choose "
                "others, or encode partition values (hoodie.datasource.write.partitionpath.urlencode)"
            )
        return path

    def _shown(self, path: str) -> str:
        return f"{self._location.uri}/{path}" if path else self._location.uri


def _folders_above(paths: Iterable[str]) -> set[str]:
    """Every folder that has at least one of these files below it."""
    folders: set[str] = set()
    for path in paths:
        folders.update(accumulate(path.split("/")[:-1], lambda above, name: f"{above}/{name}"))
    return folders
