"""Object stores and web servers through fsspec: ``s3://``, ``gs://``, ``az://``, ``https://``...

Listings are never cached: a cached one would hide versions that others commit.

Byte ranges that lie close together are coalesced (spans.py). Asynchronous drivers get all spans in
one ``cat_ranges`` call, the others run on the shared thread pool.

``write_if_absent`` is one conditional request, after a probe of the store (conditional_put.py).
``create`` is a multipart upload: object stores show the object when the upload is completed. An
aborted upload is cancelled, and what a driver without uploads (memory, ftp) shows early is removed.

Limits: the driver of a scheme is an optional package; the error names the pip line. No text of
``storage_options`` appears in ``repr``, ``uri`` or messages, and a store refuses to be pickled,
because it holds them. Drivers that write in place show a partial object until the end, so names
must be unique, which those of data files are. Times without a zone are UTC; an unknown size in a
listing counts as 0.
Not supported: ``write_if_absent`` for schemes without a conditional put: fsspec has no portable
exclusive create (its local one lets several writers win), so commits there need an external
manifest store.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

import fsspec

from lance_nb.errors import (
    InternalError,
    InvalidInputError,
    MissingPackageError,
    NotSupportedError,
    ObjectNotFoundError,
    StorageError,
)
from lance_nb.shown_text import without_url_secrets
from lance_nb.storage import meter
from lance_nb.storage.base import (
    Buffer,
    ByteRange,
    Listing,
    Names,
    ObjectInfo,
    RemoteFolder,
    check_path,
    check_range,
    join_uri,
)
from lance_nb.storage.conditional_put import (
    BUSY_WAITS_S,
    CONDITIONAL_PUTS,
    ConditionalPut,
    ProbeFolder,
    outcome_by_class,
    require_exclusive,
)
from lance_nb.storage.driver_errors import DriverErrors
from lance_nb.storage.fsspec_options import (
    longest_first,
    secrets_of,
    secrets_of_uri,
    translate,
)
from lance_nb.storage.spans import coalesce, read_ranges, slice_spans

_MODIFIED_KEYS = ("LastModified", "last_modified", "mtime", "updated", "created")
_E_TAG_KEYS = ("ETag", "etag", "e_tag")


# scheme -> what `pip install` gets its driver by; those of ``registry.STORES`` are there.
DRIVERS = {
    "box": "boxfs",
    "dbfs": "requests",
    "dropbox": "dropboxdrivefs",
    "dvc": "dvc",
    "gdrive": "gdrive_fs",
    "git": "pygit2",
    "github": "requests",
    "lakefs": "lakefs-spec",
    "oci": "ocifs",
    "oss": "ossfs",
    "root": "fsspec-xrootd",
    "sftp": "paramiko",
    "smb": "smbprotocol",
    "ssh": "paramiko",
    "tos": "tosfs",
    "wandb": "wandbfs",
    "webdav": "webdav4",
    "webhdfs": "requests",
}


class FsspecStore(RemoteFolder):
    """A folder of any fsspec file system, for reading and plain writing."""

    def __init__(
        self,
        uri: str,
        storage_options: Mapping[str, Any] | None = None,
        missing: MissingPackageError | None = None,
    ) -> None:
        scheme = uri.partition("://")[0]
        options = translate(scheme, storage_options or {})
        self._secrets = longest_first((*secrets_of(options), *secrets_of_uri(uri)))
        self._uri = without_url_secrets(uri)
        with DriverErrors(self._uri, self._secrets):
            self._fs, self._root = _open(scheme, uri, options, missing)

    @classmethod
    def over(cls, filesystem: Any, root: str, uri: str) -> FsspecStore:
        """Wrap a file system that is open already."""
        store = cls.__new__(cls)
        store._fs, store._root = filesystem, root.rstrip("/")  # noqa: SLF001
        store._uri, store._secrets = uri, []  # noqa: SLF001
        return store

    def child(self, path: str) -> FsspecStore:
        """Return the store rooted at the folder ``path``, on the same connection."""
        store = self.over(self._fs, self._full(path), join_uri(self._uri, path))
        store._secrets = self._secrets  # noqa: SLF001
        return store

    def _full(self, path: str) -> str:
        return f"{self._root}/{check_path(path)}"

    def _guard(self, path: str) -> DriverErrors:
        return DriverErrors(join_uri(self._uri, path), self._secrets)

    def _changing(self, path: str) -> DriverErrors:
        conditional_put = CONDITIONAL_PUTS.get(self.scheme)
        judge = outcome_by_class if conditional_put is None else conditional_put.outcome
        return DriverErrors(join_uri(self._uri, path), self._secrets, changes=judge)

    # --- reading ------------------------------------------------------------------------------

    def size(self, path: str) -> int:
        """Return the size of an object in bytes."""
        full = self._full(path)
        meter.count()
        with self._guard(path):
            info = self._fs.info(full)
            size = info.get("size")
            if info.get("type") == "directory":
                raise ObjectNotFoundError(join_uri(self._uri, path))
            if size is None:
                raise StorageError(join_uri(self._uri, path), "the server does not tell its size")
        return int(size)

    def mark(self, path: str) -> tuple[int, str | None]:
        """Return the size of an object, and its entity tag if the driver reports one."""
        size, full = self.size(path), self._full(path)
        with self._guard(path):
            return size, object_info(self._fs.info(full), path).e_tag

    def exists(self, path: str) -> bool:
        """Return whether there is an object at ``path``."""
        full = self._full(path)
        with self._guard(path):
            self._fs.invalidate_cache(full)
            return bool(self._fs.isfile(full))

    def read(self, path: str) -> memoryview:
        """Return a whole object."""
        full = self._full(path)
        with self._guard(path):
            data = self._fs.cat_file(full)
        meter.count(len(data))
        return memoryview(data).toreadonly()

    def read_ranges(self, path: str, byte_ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return several byte ranges of one object, near ones by one request."""
        full, shown = self._full(path), join_uri(self._uri, path)
        with self._guard(path):
            if not getattr(self._fs, "async_impl", False):
                # A driver in this process allocates what is asked for before it reads.
                size = self.size(path)
                for range_ in byte_ranges:
                    check_range(shown, range_, size)
                meter.count(sum(range_.size_bytes for range_ in byte_ranges), len(byte_ranges))
                return read_ranges(
                    shown, byte_ranges, lambda span: self._fs.cat_file(full, span.start, span.stop)
                )
            plan = coalesce(byte_ranges)
            starts = [span.start for span in plan.spans]
            stops = [span.stop for span in plan.spans]
            meter.count(sum(span.size_bytes for span in plan.spans), len(plan.spans))
            try:
                data = self._fs.cat_ranges([full] * len(starts), starts, stops, on_error="raise")
            except OSError:
                size = self.size(path)  # servers refuse a range that begins after the end
                for range_ in byte_ranges:
                    check_range(shown, range_, size)
                raise
            return slice_spans(shown, byte_ranges, plan, data)

    def read_tail(self, path: str, size_bytes: int) -> tuple[memoryview, int]:
        """Return the last bytes of an object and its size."""
        size = self.size(path)
        byte_range = ByteRange(max(size - max(size_bytes, 0), 0), size)
        check_range(join_uri(self._uri, path), byte_range, size)
        return self.read_range(path, byte_range), size

    # --- listing ------------------------------------------------------------------------------

    def list(self, prefix: str) -> Listing:
        """Return the objects directly in a folder."""
        return [object_info(entry, _name(entry)) for entry in self._entries(prefix, "file")]

    def list_folders(self, prefix: str) -> Names:
        """Return the names of the folders directly in a folder."""
        return [_name(entry) for entry in self._entries(prefix, "directory")]

    def _entries(self, prefix: str, kind: str) -> Sequence[dict[str, Any]]:
        """Return what is directly in a folder and of one kind."""
        folder = self._folder(prefix)
        meter.count()
        with self._guard(prefix):
            self._fs.invalidate_cache(folder)
            try:
                entries = self._fs.ls(folder, detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return []
        return [entry for entry in entries if entry.get("type") == kind]

    def list_recursive(self, prefix: str) -> Listing:
        """Return all objects below a folder."""
        folder = self._folder(prefix)
        meter.count()
        with self._guard(prefix):
            self._fs.invalidate_cache(folder)
            try:
                entries = self._fs.find(folder, detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return []
        start = f"{folder.strip('/')}/"
        return [
            object_info(entry, name.strip("/").removeprefix(start))
            for name, entry in entries.items()
        ]

    # --- writing ------------------------------------------------------------------------------

    def write(self, path: str, data: Buffer) -> None:
        """Create or replace an object."""
        full = self._full(path)
        meter.count_write(memoryview(data).nbytes)
        with self._changing(path):
            self._fs.pipe_file(full, bytes(data))

    def write_if_absent(self, path: str, data: Buffer) -> None:
        """Create an object by one conditional request; see Store for the outcomes.

        Raises NotSupportedError if no such request is known for the scheme, or the store ignores
        the condition.
        """
        full = self._full(path)
        conditional_put = CONDITIONAL_PUTS.get(self.scheme)
        if conditional_put is None:
            raise NotSupportedError(
                f"cannot commit to {self.scheme}://: its fsspec driver has no exclusive create, "
                "and without one two writers could both believe they committed the same version; "
                "commit through an external manifest store instead: storage_options="
                "{'manifest_store': 'sqlite:////shared/manifests.db'}"
            )
        folder = path.rpartition("/")[0]
        target = ProbeFolder(
            lambda name, content: self._create(conditional_put, name, content),
            self.read,
            self.delete,
            folder,
        )
        require_exclusive(conditional_put.place(self._fs, full), target)
        self._create(conditional_put, path, bytes(data))

    def _create(self, conditional_put: ConditionalPut, path: str, data: bytes) -> None:
        meter.count_write(len(data))
        for wait_s in (*BUSY_WAITS_S, None):
            guard = DriverErrors(join_uri(self._uri, path), self._secrets, conditional_put)
            try:
                with guard:
                    conditional_put.put(self._fs, self._full(path), data)
                return
            except StorageError:
                if wait_s is None or not guard.busy:
                    raise
            time.sleep(wait_s)

    def create(self, path: str) -> FsspecObjectWriter:
        """Begin an object: a multipart upload that completes when it is finished."""
        return FsspecObjectWriter(self._fs, self._full(path), self._guard(path))

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""
        full = self._full(path)
        with self._changing(path):
            try:
                self._fs.rm_file(full)
            except FileNotFoundError:
                return


def _open(
    scheme: str, uri: str, options: dict[str, Any], missing: MissingPackageError | None
) -> tuple[Any, str]:
    try:
        filesystem, root = fsspec.core.url_to_fs(uri, **{"use_listings_cache": False, **options})
    except ImportError as error:
        if missing is None and scheme in DRIVERS:
            missing = MissingPackageError(f"opening {scheme}://", DRIVERS[scheme], DRIVERS[scheme])
        if missing is not None:
            raise missing from error
        raise NotSupportedError(
            f"opening {scheme}:// needs a driver of fsspec that is not installed: {error}"
        ) from error
    except ValueError as error:
        is_unknown = str(error).startswith("Protocol not known")
        if not is_unknown:
            raise
        raise InvalidInputError(f"no storage is known for {scheme}:// URIs") from error
    except TypeError as error:  # an argument that is missing, or that the driver does not have
        raise InvalidInputError(
            f"the driver of {scheme}:// does not open with these storage options: {error}"
        ) from error
    return filesystem, root.rstrip("/")


def _name(entry: Mapping[str, Any]) -> str:
    name: str = entry["name"]
    return name.rstrip("/").rpartition("/")[2]


def object_info(entry: Mapping[str, Any], name: str) -> ObjectInfo:
    """Return a driver's entry of a listing: each driver names times and tags in its own way."""
    modified = next((entry[key] for key in _MODIFIED_KEYS if entry.get(key)), None)
    if isinstance(modified, (int, float)):
        modified = datetime.fromtimestamp(modified, UTC)
    if not isinstance(modified, datetime):
        modified = None
    elif modified.tzinfo is None:
        modified = modified.replace(tzinfo=UTC)
    e_tag = next((entry[key] for key in _E_TAG_KEYS if isinstance(entry.get(key), str)), None)
    return ObjectInfo(name, int(entry.get("size") or 0), modified, e_tag)


class FsspecObjectWriter:
    """A multipart upload; see ObjectWriter in base.py. ``guard`` translates driver errors."""

    def __init__(self, filesystem: Any, full: str, guard: AbstractContextManager[None]) -> None:
        self._fs = filesystem
        self._full = full
        self._guard = guard
        with guard:
            self._upload: Any = filesystem.open(full, "wb")

    def write(self, pieces: Sequence[Buffer]) -> None:
        """Append pieces of bytes."""
        upload = self._open_upload()
        meter.count_write(sum(memoryview(piece).nbytes for piece in pieces))
        try:
            with self._guard:
                for piece in pieces:
                    upload.write(memoryview(piece).cast("B"))
        except StorageError:
            self.abort()
            raise

    def finish(self) -> None:
        """Complete the upload."""
        upload = self._open_upload()
        try:
            with self._guard:
                upload.close()
        except StorageError:
            self.abort()
            raise
        self._upload = None

    def abort(self) -> None:
        """Cancel the upload and remove what it left; a store that fails now keeps an orphan."""
        upload, self._upload = self._upload, None
        if upload is None:
            return
        for step in (lambda: _cancel(upload), lambda: self._fs.rm_file(self._full)):
            try:
                with self._guard:
                    step()
            except (StorageError, LookupError):
                continue

    def _open_upload(self) -> Any:
        if self._upload is None:
            raise InternalError(f"{self._full} is written to after its end")
        return self._upload


def _cancel(upload: Any) -> None:
    discard = getattr(upload, "discard", None)
    if discard is None:
        upload.close()
        return
    discard()
    if hasattr(upload, "forced"):  # a buffered file would upload the rest when it is collected
        upload.closed = True
