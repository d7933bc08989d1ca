"""S3, Cloud Storage and Azure Blob through ``obstore``, the Python face of Rust's ``object_store``.

Requests run in Rust, so a first one costs milliseconds of processor, and byte ranges are read side
by side without threads of Python. What fsspec's drivers need two requests for takes one here: the
end of an object comes with its size, and a range with the size of the object.

``open_object_store`` chooses the driver: ``obstore``, unless it is not installed, an option needs
fsspec's driver (object_store_options.py), somebody has registered a file system of their own with
fsspec for the scheme, or ``storage_options={"driver": "fsspec"}`` asks for it.

Byte ranges that lie close together are coalesced as in fsspec_store.py; ``obstore`` reads up to ten
spans at a time. ``create`` sends small objects by one request and larger ones as a multipart
upload, which is cancelled when it is aborted.

Commits: ``write_if_absent`` is one conditional PUT, never a multipart upload. ``obstore`` repeats a
request whose reply was lost, and then reports the object that it created itself as existing;
the commit reads it back (conditional_put.py). The services' own addresses are known to keep
the condition; any other server is probed once.

Limits: no text of ``storage_options`` appears in ``repr``, ``uri`` or messages, and no query of an
address, which may hold a signature. After a fork the child cannot use ``obstore`` if its parent
did: it would wait for ever for threads that it does not have, so that is an error. Azure knows no
range that counts from the end: its size is asked for first. Not supported: paths with control
characters.
Source: obstore 0.12.1; measured in tests/benchmarks/object_store.py.
"""

from __future__ import annotations

import queue
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

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
    Store,
    check_path,
    check_range,
    join_uri,
)
from lance_nb.storage.conditional_put import (
    BUSY_WAITS_S,
    ObjectStorePut,
    ProbeFolder,
    object_store_text,
    require_exclusive,
)
from lance_nb.storage.driver_errors import DriverErrors
from lance_nb.storage.fsspec_options import longest_first, secrets_of, secrets_of_uri
from lance_nb.storage.object_store_options import Settings, translate
from lance_nb.storage.spans import coalesce, slice_spans
from lance_nb.storage.system_calls import call_in_forked_children

if TYPE_CHECKING:
    from collections.abc import Callable

DRIVERS = ("obstore", "fsspec")
PART_BYTES = 8 * 1024 * 1024  # of a multipart upload; objects up to this size are one request
_PARTS_AT_A_TIME = 4
# A request may take long as long as bytes flow: the link may be slow, and a server may not.
_CLIENT = {"timeout": "15m", "read_timeout": "30s"}
_RETRIES_MAX = 6
_RETRY_TIMEOUT = timedelta(seconds=120)

_FSSPEC_DRIVERS = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs"}
_USER_INFO = re.compile(r"//[^/@]*:[^/@]*@")
_PUT = ObjectStorePut()

# Whether obstore has been used here, and by the process that this one was forked from.
_state = {"used": False, "forked": False}


def _after_fork() -> None:
    _state["forked"] = _state["forked"] or _state["used"]


call_in_forked_children(_after_fork)


def open_object_store(
    uri: str, options: Mapping[str, Any], missing: MissingPackageError | None
) -> Store:
    """Open the store of a URI of S3, Cloud Storage or Azure with the driver that suits its options.

    Raises ``missing`` when no driver is installed, NotSupportedError for an option that needs
    another one, InvalidInputError for an option that is not known.
    """
    driver = options.get("driver")
    if driver not in (None, *DRIVERS):
        raise InvalidInputError(f"storage option 'driver' is one of {DRIVERS}, not {driver!r}")
    scheme = uri.partition("://")[0]
    if driver == "fsspec":
        return _fsspec_store(uri, options, missing)
    if driver is None and _is_registered(scheme):
        return _fsspec_store(uri, options, missing)
    settings = translate(scheme, options)
    needed = "a password in the URI" if _USER_INFO.search(uri) else settings.needs_fsspec
    obstacle = _obstacle(settings.service, needed)
    if obstacle is None:
        return ObjectStore(uri, settings, (*secrets_of(options), *secrets_of_uri(uri)))
    if driver == "obstore" or find_spec(_FSSPEC_DRIVERS[settings.service]) is None:
        if find_spec("obstore") is None and missing is not None:
            raise missing
        raise NotSupportedError(obstacle)
    return _fsspec_store(uri, options, missing)


def _fsspec_store(
    uri: str, options: Mapping[str, Any], missing: MissingPackageError | None
) -> Store:
    from lance_nb.storage.fsspec_store import FsspecStore  # loads fsspec, which obstore does not

    return FsspecStore(uri, options, missing)


def _obstacle(service: str, needed: str) -> str | None:
    """Say why ``obstore`` cannot be used, None if it can.

    ``needed`` is the option that only fsspec's driver understands.
    """
    if find_spec("obstore") is None:
        return "the driver obstore is not installed"
    if needed:
        return (
            f"the storage option {needed!r} needs another package, the driver of fsspec: "
            f"pip install {_FSSPEC_DRIVERS[service]}"
        )
    if _state["forked"]:
        return _FORKED
    return None


def _is_registered(scheme: str) -> bool:
    """Tell whether somebody has registered a file system of their own with fsspec."""
    fsspec = sys.modules.get("fsspec")  # nobody can have, before it is loaded
    registered = None if fsspec is None else fsspec.registry.get(scheme)
    package = "" if registered is None else registered.__module__.partition(".")[0]
    return package not in ("", "obstore", *_FSSPEC_DRIVERS.values())


_FORKED = (
    "this process was forked from one that uses obstore, whose threads it does not have: start "
    "processes by 'spawn' or 'forkserver' (multiprocessing.set_start_method), or install fsspec's "
    "driver and open the dataset in the child with storage_options={'driver': 'fsspec'}"
)


class ObjectStore(RemoteFolder):
    """A folder of a bucket (or container)."""

    lists_marks = True
    is_far = True

    def __init__(self, uri: str, settings: Settings, secrets: Iterable[str] = ()) -> None:
        _, _, place = uri.partition("://")
        bucket, _, root = place.partition("/")
        self._secrets = longest_first(secrets)
        self._uri = without_url_secrets(uri)
        self._root = root.strip("/")
        with _OpeningErrors(self._uri, self._secrets):
            self._driver, endpoint = _made(bucket, settings)
        self._place = f"{settings.service} {endpoint or 'its own address'} {bucket}"
        self._is_probed = _is_known(settings.service, endpoint)
        self._has_suffixes = settings.service != "az"

    @classmethod
    def over(cls, driver: Any, root: str, uri: str) -> ObjectStore:
        """Wrap a store of obstore that is open already."""
        store = cls.__new__(cls)
        store._driver, store._root, store._uri = driver, root.strip("/"), uri  # noqa: SLF001
        store._secrets, store._place, store._is_probed = [], uri, False  # noqa: SLF001
        store._has_suffixes = True  # noqa: SLF001
        return store

    def child(self, path: str) -> ObjectStore:
        """Return the store rooted at the folder ``path``, on the same connections."""
        store = self.over(self._driver, self._full(path), join_uri(self._uri, path))
        store._secrets, store._place = self._secrets, self._place  # noqa: SLF001
        store._is_probed, store._has_suffixes = self._is_probed, self._has_suffixes  # noqa: SLF001
        return store

    def _guard(self, path: str) -> _Errors:
        return _Errors(join_uri(self._uri, path), self._secrets)

    def _changing(self, path: str) -> _Errors:
        return _Errors(join_uri(self._uri, path), self._secrets, changes=_PUT.outcome)

    # --- reading ------------------------------------------------------------------------------

    def size(self, path: str) -> int:
        """Return the size of an object in bytes."""
        return self.mark(path)[0]

    def mark(self, path: str) -> tuple[int, str | None]:
        """Return the size of an object, and its entity tag."""
        import obstore

        full = self._full(path)
        meter.count()
        with self._guard(path):
            entry = obstore.head(self._driver, full)
        return int(entry["size"]), entry["e_tag"]

    def exists(self, path: str) -> bool:
        """Return whether there is an object at ``path``."""
        try:
            self.mark(path)
        except ObjectNotFoundError:
            return False
        return True

    def read(self, path: str) -> memoryview:
        """Return a whole object."""
        import obstore

        full = self._full(path)
        with self._guard(path):
            data = memoryview(obstore.get(self._driver, full).bytes())
        meter.count(len(data))
        return data.toreadonly()

    def read_ranges(self, path: str, byte_ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return several byte ranges of one object, near ones by one request."""
        import obstore

        full, shown = self._full(path), join_uri(self._uri, path)
        plan = coalesce(byte_ranges)
        if not plan.spans:
            return [memoryview(b"") for _ in byte_ranges]
        starts = [span.start for span in plan.spans]
        stops = [span.stop for span in plan.spans]
        meter.count(sum(span.size_bytes for span in plan.spans), len(plan.spans))
        try:
            with self._guard(path):
                data = obstore.get_ranges(self._driver, full, starts=starts, ends=stops, coalesce=0)
        except StorageError:
            size = self.size(path)  # servers refuse a range that begins after the end
            for range_ in byte_ranges:
                check_range(shown, range_, size)
            raise
        return slice_spans(shown, byte_ranges, plan, [memoryview(piece) for piece in data])

    def read_tail(self, path: str, size_bytes: int) -> tuple[memoryview, int]:
        """Return the last bytes of an object and its size, by one request."""
        return self.read_marked_tail(path, size_bytes)[:2]

    def read_marked_tail(
        self, path: str, size_bytes: int, known_size_bytes: int = 0
    ) -> tuple[memoryview, int, str | None]:
        """Return the last bytes of an object, its size and its entity tag, by one request.

        ``known_size_bytes`` spares Azure, which has no range from the end, the request for it.
        """
        size, e_tag = known_size_bytes, None
        if size_bytes <= 0 or not (self._has_suffixes or size):
            size, e_tag = self.mark(path)
        if size_bytes <= 0 or not (self._has_suffixes or size):
            return memoryview(b""), size, e_tag
        try:
            return self._read_end(path, size_bytes, size)
        except StorageError:
            actual_size, e_tag = self.mark(path)
            if not actual_size:  # no range of it can be had
                return memoryview(b""), 0, e_tag
            if not self._has_suffixes and actual_size != size:
                return self._read_end(path, size_bytes, actual_size)
            raise

    def _read_end(
        self, path: str, size_bytes: int, known_size_bytes: int
    ) -> tuple[memoryview, int, str | None]:
        import obstore

        range_option: Any = {"suffix": size_bytes}
        if not self._has_suffixes:
            range_option = max(known_size_bytes - size_bytes, 0), known_size_bytes
        full = self._full(path)
        with self._guard(path):
            response = obstore.get(self._driver, full, options={"range": range_option})
            size, e_tag = int(response.meta["size"]), response.meta["e_tag"]
            data = memoryview(response.bytes())
        meter.count(len(data))
        if not self._has_suffixes and size != known_size_bytes:  # that was not the end
            return self._read_end(path, size_bytes, size)
        return data.toreadonly(), size, e_tag

    # --- listing ------------------------------------------------------------------------------

    def list(self, prefix: str) -> Listing:
        """Return the objects directly in a folder."""
        folder = self._folder(prefix)
        start = f"{folder}/" if folder else ""
        entries = self._listed(prefix)["objects"]
        return [_object_info(entry, start) for entry in entries if entry["path"] != folder]

    def list_folders(self, prefix: str) -> Names:
        """Return the names of the folders directly in a folder."""
        prefixes = self._listed(prefix)["common_prefixes"]
        return [folder.rstrip("/").rpartition("/")[2] for folder in prefixes]

    def _listed(self, prefix: str) -> Mapping[str, Any]:
        """Ask for a folder, with what is directly in it told apart from what is deeper."""
        import obstore

        meter.count()
        with self._guard(prefix):
            try:
                listed: Mapping[str, Any] = obstore.list_with_delimiter(
                    self._driver, self._folder(prefix) or None
                )
            except obstore.exceptions.BaseError as error:
                if _PUT.is_missing_bucket(error):
                    return {"objects": [], "common_prefixes": []}
                raise
        return listed

    def list_recursive(self, prefix: str) -> Listing:
        """Return all objects below a folder."""
        import obstore

        folder = self._folder(prefix)
        meter.count()
        with self._guard(prefix):
            try:
                entries = obstore.list(self._driver, folder or None).collect()
            except obstore.exceptions.BaseError as error:
                if _PUT.is_missing_bucket(error):
                    return []
                raise
        start = f"{folder}/" if folder else ""
        return [_object_info(entry, start) for entry in entries if entry["path"] != folder]

    # --- writing ------------------------------------------------------------------------------

    def write(self, path: str, data: Buffer) -> None:
        """Create or replace an object."""
        import obstore

        full = self._full(path)
        view = memoryview(data).cast("B")
        meter.count_write(view.nbytes)
        with self._changing(path):
            obstore.put(
                self._driver,
                full,
                bytes(view),
                use_multipart=view.nbytes > 2 * PART_BYTES,
                chunk_size=PART_BYTES,
                max_concurrency=_PARTS_AT_A_TIME,
            )

    def write_if_absent(self, path: str, data: Buffer) -> None:
        """Create an object by one conditional request; see Store for the outcomes.

        Raises NotSupportedError if the store ignores the condition.
        """
        check_path(path)
        if not self._is_probed:
            folder = path.rpartition("/")[0]
            target = ProbeFolder(self._create, self.read, self.delete, folder)
            require_exclusive(self._place, target)
        self._create(path, bytes(data))

    def _create(self, path: str, data: bytes) -> None:
        full = self._full(path)
        meter.count_write(len(data))
        for wait_s in (*BUSY_WAITS_S, None):
            guard = _Errors(join_uri(self._uri, path), self._secrets, _PUT)
            try:
                with guard:
                    _PUT.put(self._driver, full, data)
                return
            except StorageError:
                if wait_s is None or not guard.busy:
                    raise
            time.sleep(wait_s)

    def create(self, path: str) -> ObjectStoreWriter:
        """Begin an object, which appears when it is finished."""
        full = self._full(path)
        return ObjectStoreWriter(self._driver, full, lambda: self._changing(path))

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""
        import obstore

        full = self._full(path)
        with self._changing(path):
            try:
                obstore.delete(self._driver, full)
            except FileNotFoundError:
                return


def _object_info(entry: Mapping[str, Any], start: str) -> ObjectInfo:
    return ObjectInfo(
        entry["path"].removeprefix(start), entry["size"], entry["last_modified"], entry["e_tag"]
    )


# --- opening --------------------------------------------------------------------------------------


def _made(bucket: str, settings: Settings) -> tuple[Any, str]:
    """Make obstore's own store; return it with the address of the server ("": the service's)."""
    from obstore import store as stores

    config: dict[str, Any] = dict(settings.config)
    client = {**_CLIENT, **settings.client}
    retry = {"max_retries": _RETRIES_MAX, "retry_timeout": _RETRY_TIMEOUT, **settings.retry}
    more: dict[str, Any] = {}
    if settings.service == "s3":
        from lance_nb.storage.aws_profile import encryption_variables, find_profile

        if settings.only_given:
            names = ", ".join(encryption_variables())
            if names:
                raise NotSupportedError(
                    f"the environment has {names}, which would be sent to an endpoint that a "
                    "server named: remove it here, or open the table by its own URI"
                )
            more |= _only_given(config)
        else:
            profile = find_profile(settings.profile, config)
            config |= profile.config
            if profile.fetch is not None:
                more["credential_provider"] = profile.fetch
        # Servers that speak S3 do not all know the request that deletes several objects.
        config["disable_bulk_delete"] = True
        store_class: Callable[..., Any] = stores.S3Store
    elif settings.service == "gs":
        store_class = stores.GCSStore
    else:
        bucket, _, host = bucket.partition("@")  # container@account.dfs.core.windows.net
        if host:
            config.setdefault("account_name", host.partition(".")[0])
        store_class = stores.AzureStore
    endpoint = str(config.get("base_url" if settings.service == "gs" else "endpoint") or "")
    if endpoint.startswith("http://"):
        client["allow_http"] = True
    return store_class(
        bucket, config=config, client_options=client, retry_config=retry, **more
    ), endpoint


def _only_given(config: dict[str, Any]) -> dict[str, Any]:
    """Take the keys out of ``config`` into a provider, which obstore asks in place of its own.

    Left in ``config``, they would be joined by the session token of the environment.
    """
    names = {"access_key_id": "access_key_id", "secret_access_key": "secret_access_key",
             "session_token": "token"}  # fmt: skip
    credentials = {key: config.pop(name) for name, key in names.items() if name in config}
    if config.get("skip_signature"):
        return {}
    credentials = {"token": None, "expires_at": None, **credentials}
    return {"credential_provider": lambda: credentials}


_SERVICE_HOSTS = {
    "s3": (".amazonaws.com", ".amazonaws.com.cn"),
    "gs": (".googleapis.com",),
    "az": (".core.windows.net", ".fabric.microsoft.com"),
}


def _is_known(service: str, endpoint: str) -> bool:
    """Tell whether an address is the service's own, which keeps the condition of a PUT."""
    if not endpoint:
        return True
    host = urlsplit(endpoint).hostname or ""
    return endpoint.startswith("https://") and host.endswith(_SERVICE_HOSTS[service])


# --- piecewise writing ----------------------------------------------------------------------------


class _AbortedError(Exception):
    """Ends an upload from inside, which makes obstore cancel it."""


class ObjectStoreWriter:
    """An object under construction; see ObjectWriter in base.py.

    Pieces are collected up to ``PART_BYTES``. What is no larger is one request; of more, parts are
    sent by a thread while the next are made.
    """

    def __init__(self, driver: Any, full: str, guard: Callable[[], DriverErrors]) -> None:
        self._driver = driver
        self._full = full
        self._guard = guard
        self._part = bytearray()
        self._is_open = True
        self._parts: queue.Queue[bytes | None] = queue.Queue(_PARTS_AT_A_TIME)
        self._thread: threading.Thread | None = None
        self._problem: BaseException | None = None
        self._is_aborted = False

    def write(self, pieces: Sequence[Buffer]) -> None:
        """Append pieces of bytes."""
        self._check_open()
        views = [memoryview(piece).cast("B") for piece in pieces]
        meter.count_write(sum(view.nbytes for view in views))
        for view in views:
            for start in range(0, view.nbytes, PART_BYTES):
                self._part += view[start : start + PART_BYTES]
                if len(self._part) > PART_BYTES:
                    part = bytes(self._part[:PART_BYTES])
                    del self._part[:PART_BYTES]
                    self._send(part)

    def finish(self) -> None:
        """Make the object appear."""
        import obstore

        self._check_open()
        if self._thread is None:
            self._is_open = False
            with self._guard():
                obstore.put(self._driver, self._full, bytes(self._part), use_multipart=False)
            return
        self._send(bytes(self._part))
        self._send(None)
        self._is_open = False
        self._thread.join()
        self._raise_problem()

    def abort(self) -> None:
        """Cancel the upload; a store that fails now keeps parts that nobody sees."""
        if not self._is_open:
            return
        self._is_open = False
        if self._thread is not None:
            self._is_aborted = True
            while self._thread.is_alive():  # it may wait for a part, or have left some
                try:
                    self._parts.put(None, timeout=0.05)
                except queue.Full:
                    continue
                break
            self._thread.join()

    def _check_open(self) -> None:
        if not self._is_open:
            raise InternalError(f"{self._full} is written to after its end")

    def _send(self, part: bytes | None) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._upload, daemon=True)
            self._thread.start()
        while True:
            if self._problem is not None:
                self.abort()
                self._raise_problem()
            try:
                return self._parts.put(part, timeout=0.2)
            except queue.Full:
                continue

    def _upload(self) -> None:
        import obstore

        try:
            obstore.put(
                self._driver,
                self._full,
                self._taken(),
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=_PARTS_AT_A_TIME,
            )
        except _AbortedError:
            return
        except (OSError, ValueError, RuntimeError, obstore.exceptions.BaseError) as error:
            self._problem = error

    def _taken(self) -> Iterator[bytes]:
        while (part := self._parts.get()) is not None:
            if part:
                yield part
        if self._is_aborted:
            raise _AbortedError

    def _raise_problem(self) -> None:
        if self._problem is not None:
            with self._guard():
                raise self._problem


# --- errors ---------------------------------------------------------------------------------------


class _OpeningErrors(DriverErrors):
    """Turns errors of obstore into ours: one line of their many, without queries and secrets."""

    def _text_and_cause(self, error: Exception) -> tuple[str, BaseException | None]:
        # The whole error, as a cause, may quote the address with its signature.
        return self._masked(object_store_text(error)), None


class _Errors(_OpeningErrors):
    """The same around a request."""

    def __enter__(self) -> None:
        if _state["forked"]:
            raise NotSupportedError(_FORKED)
        _state["used"] = True
