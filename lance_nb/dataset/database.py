"""Databases: folders of tables, and catalogs that name tables (the Lance namespace).

Three forms are opened, all of them to look and to open their tables:

====================  ============================================================================
form                  where the tables are
====================  ============================================================================
a folder              ``NAME.lance`` in it, as LanceDB and the directory namespace write them
directory namespace   the same, and the table ``__manifest``: name and folder of each table, also
                      of those in namespaces, ``team$photos``
REST namespace        what the server says: ``GET /v1/namespace/{id}/table/list``, ``POST
                      /v1/table/{id}/describe``; nested namespaces are listed too
====================  ============================================================================

What a server says is not trusted: answers are bounded, redirects are not followed, and the
locations and options that it may name are few (storage/server_location.py). Pickles of a database
and of a place hold no credentials; with headers, which may be some, a database is not pickled.

Limits: ``TABLES_MAX`` tables, ``ANSWER_BYTES_MAX`` of one answer. Catalogs are not changed, and a
catalog that manages versions itself (``managed_versioning``) is read by the files of the table.
Source: the Lance namespace specification (directory and REST); layout as pylance 14.0.2 writes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from lance_nb.dataset import display
from lance_nb.errors import (
    ArgumentError,
    CorruptFileError,
    DatasetNotFoundError,
    InvalidInputError,
    LanceError,
    NotSupportedError,
    StorageError,
)
from lance_nb.format.layout import check_relative_path
from lance_nb.session.opening import open_version
from lance_nb.session.public_location import PublicLocation
from lance_nb.shown_text import without_url_secrets
from lance_nb.storage.base import Store, join_uri, list_folders
from lance_nb.storage.fsspec_options import longest_first, secrets_of
from lance_nb.storage.registry import StorageOptions, open_store
from lance_nb.storage.server_location import checked_location
from lance_nb.storage.threads import THREADS_MAX, run_side_by_side
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.table.refs import Ref

TABLES_MAX = 10_000
ANSWER_BYTES_MAX = 16 * 1024 * 1024
TIMEOUT_S = 30.0
DELIMITER = "$"
_ENDING = ".lance"
_MANIFEST = "__manifest"
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Where a table is, as its catalog says.

    ``uri`` is without passwords and signatures, which ``opening_uri`` has.
    """

    uri: str
    storage_options: StorageOptions | None = field(default=None, repr=False)
    opening_uri: str = field(default="", repr=False)

    @classmethod
    def of(cls, uri: str, storage_options: StorageOptions | None) -> TablePlace:
        """Return the place that is opened by a URI with options."""
        return cls(without_url_secrets(uri), storage_options, uri)

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened_place, (PublicLocation.of(self.uri, self.storage_options),)


def _reopened_place(location: PublicLocation) -> TablePlace:
    return TablePlace.of(*location.resolve())


@dataclass(frozen=True, slots=True)
class TableSummary:
    """What the manifest of a table's newest version says about it.

    ``health`` is "ok", a hint what maintenance would help, or the error with which the table cannot
    be opened; ``can_open`` tells these apart. ``num_bytes`` is None where files have no recorded
    size.

    Examples:
        >>> import pyarrow as pa
        >>> _ = lance_nb.write_dataset(pa.table({"id": [1, 2]}), f"{uri}_db/photos.lance")
        >>> found = lance_nb.database(f"{uri}_db").describe("photos")
        >>> found.num_rows, found.num_versions, found.health
        (2, 1, 'ok')
    """

    name: str
    uri: str
    can_open: bool
    health: str
    version: int | None = None
    num_versions: int | None = None
    num_rows: int | None = None
    num_deleted_rows: int | None = None
    num_columns: int | None = None
    num_fragments: int | None = None
    num_bytes: int | None = None
    committed: datetime | None = None


class Catalog(Protocol):
    """The names of tables and where they are."""

    def listed(self) -> tuple[list[str], Callable[[str], TablePlace]]:
        """List the names of all tables, and return where each is without listing them again.

        Raises LanceError; the function raises DatasetNotFoundError.
        """
        ...

    def place(self, name: str) -> TablePlace:
        """Look a table up. Raises DatasetNotFoundError."""
        ...


class TableListing:
    """The tables of a database as they were listed once, in the order of their names."""

    def __init__(self, names: Sequence[str], place: Callable[[str], TablePlace]) -> None:
        self.names = tuple(sorted(names))
        self.place = place

    def dataset(self, name: str, version: Ref | None = None) -> LanceDataset:
        """Open a table. Raises LanceError."""
        return _opened(self.place(name), version)

    def describe(self, name: str) -> TableSummary:
        """Read the manifest of a table; one that cannot be opened is described as such."""
        uri = ""
        try:
            uri = self.place(name).uri
            return summary_of(name, self.dataset(name))
        except LanceError as error:
            return TableSummary(name, uri, can_open=False, health=f"cannot be opened: {error}")


class Database:
    """Tables by name; made by ``lance_nb.database``.

    Examples:
        >>> import pyarrow as pa
        >>> _ = lance_nb.write_dataset(pa.table({"id": [1, 2]}), f"{uri}_db/photos.lance")
        >>> db = lance_nb.database(f"{uri}_db")
        >>> db.table_names()
        ['photos']
        >>> db.dataset("photos").count_rows()
        2
        >>> db.describe("photos").health
        'ok'
    """

    def __init__(
        self, uri: str, catalog: Catalog, storage_options: StorageOptions | None = None
    ) -> None:
        self._uri = uri
        self._catalog = catalog
        self._storage_options = storage_options

    def __reduce__(self) -> tuple[object, ...]:
        if isinstance(self._catalog, _RestCatalog) and self._catalog.has_headers:
            raise NotSupportedError(
                "a database with headers is not pickled, they may be credentials: "
                "open it by lance_nb.database where it is needed"
            )
        return _reopened_database, (PublicLocation.of(self._uri, self._storage_options),)

    @property
    def uri(self) -> str:
        """The folder, or the address of the server.

        Examples:
            >>> lance_nb.database("memory://shop").uri
            'memory://shop'
        """
        return self._uri

    @property
    def name(self) -> str:
        """The last part of the URI.

        Examples:
            >>> lance_nb.database("memory://shop").name
            'shop'
        """
        return self._uri.rstrip("/").rpartition("/")[2] or self._uri

    def __repr__(self) -> str:
        return f"Database({self._uri!r})"

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, Any] | None:
        return display.mime_bundle(self)

    def table_names(self) -> list[str]:
        """List the names of the tables, sorted. Raises StorageError, NotSupportedError."""
        return list(self.listing().names)

    def listing(self) -> TableListing:
        """List the tables once, to open or describe many of them.

        Raises StorageError, NotSupportedError.

        Examples:
            >>> lance_nb.database(f"{uri}_nothing").listing().names
            ()
        """
        return TableListing(*self._catalog.listed())

    def __len__(self) -> int:
        return len(self.table_names())

    def __iter__(self) -> Iterator[str]:
        return iter(self.table_names())

    def place(self, name: str) -> TablePlace:
        """Return where a table is.

        Args:
            name: of the table; those in namespaces are ``namespace$table``.

        Raises DatasetNotFoundError.

        Examples:
            >>> import pyarrow as pa
            >>> _ = lance_nb.write_dataset(pa.table({"id": [1]}), "memory://shop/photos.lance")
            >>> lance_nb.database("memory://shop").place("photos").uri
            'memory://shop/photos.lance'
        """
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"the name of a table is text, not {name!r}")
        return self._catalog.place(name)

    def dataset(self, name: str, version: Ref | None = None) -> LanceDataset:
        """Open a table.

        Args:
            name: of the table.
            version: as for ``lance_nb.dataset``; the newest by default.

        Raises DatasetNotFoundError and what ``lance_nb.dataset`` raises.

        Examples:
            >>> import pyarrow as pa
            >>> _ = lance_nb.write_dataset(pa.table({"id": [1, 2]}), f"{uri}_db/photos.lance")
            >>> lance_nb.database(f"{uri}_db").dataset("photos").count_rows()
            2
        """
        return _opened(self.place(name), version)

    __getitem__ = dataset

    def describe(self, name: str) -> TableSummary:
        """Read the manifest of a table; one that cannot be opened is described as such.

        Args:
            name: of the table.
        """
        return TableListing([name], self.place).describe(name)

    def summaries(self, names: Sequence[str] | None = None) -> list[TableSummary]:
        """Describe several tables, side by side.

        Args:
            names: of the tables; all by default.

        Examples:
            >>> lance_nb.database(f"{uri}_nothing").summaries()
            []
        """
        listing = self.listing()
        chosen = listing.names if names is None else names
        tasks = [partial(listing.describe, name) for name in chosen]
        return list(run_side_by_side(tasks, THREADS_MAX))

    def tables(self) -> pa.Table:
        """Return the summaries of all tables, one row each.

        Examples:
            >>> lance_nb.database(f"{uri}_nothing").tables().column_names[:3]
            ['name', 'version', 'num_versions']
        """
        summaries = self.summaries()
        return pa.table(
            {
                name: pa.array([getattr(summary, name) for summary in summaries], kind)
                for name, kind in _SUMMARY_TYPES.items()
            }
        )


def summary_of(name: str, opened: LanceDataset) -> TableSummary:
    """Describe a table that is open by the manifest of its version. Raises LanceError."""
    from lance_nb.dataset.advice import advice_on

    stats = opened.stats()
    return TableSummary(
        name,
        opened.uri,
        can_open=True,
        health="; ".join(advice.reason for advice in advice_on(opened.opened[1], stats)) or "ok",
        version=opened.version,
        num_versions=len(opened.version_numbers()),
        num_rows=stats.num_rows,
        num_deleted_rows=stats.num_deleted_rows,
        num_columns=len(opened.schema),
        num_fragments=stats.num_fragments,
        num_bytes=stats.size_bytes,
        committed=opened.version_info(opened.version, with_tags=False).timestamp,
    )


def _opened(place: TablePlace, version: Ref | None) -> LanceDataset:
    from lance_nb.dataset.dataset import LanceDataset

    opened = open_version(
        place.opening_uri or place.uri, version, storage_options=place.storage_options
    )
    return LanceDataset.from_opened(*opened)


_SUMMARY_TYPES = {
    "name": pa.string(),
    "version": pa.int64(),
    "num_versions": pa.int64(),
    "num_rows": pa.int64(),
    "num_deleted_rows": pa.int64(),
    "num_columns": pa.int64(),
    "num_fragments": pa.int64(),
    "num_bytes": pa.int64(),
    "committed": pa.timestamp("us", "UTC"),
    "health": pa.string(),
    "uri": pa.string(),
}
SUMMARY_FIELDS = tuple(_SUMMARY_TYPES)


def database(
    uri: str | os.PathLike[str],
    *,
    storage_options: StorageOptions | None = None,
    headers: Mapping[str, str] | None = None,
) -> Database:
    """Open a folder of tables, such as a LanceDB database, or a Lance namespace. Not in pylance.

    Args:
        uri: a folder, local or at any fsspec URL, or ``rest+http://HOST:PORT`` and
            ``rest+https://...`` for the REST form of the Lance namespace.
        storage_options: as for ``lance_nb.dataset``; of a REST namespace, they are added to those
            that the server gives for each table.
        headers: sent with each request to a REST namespace, for example ``{"x-api-key": "..."}``.

    Raises InvalidInputError, NotSupportedError; a folder that does not exist has no tables.

    Examples:
        >>> lance_nb.database(f"{uri}_nothing").table_names()
        []
    """
    text = os.fspath(uri)
    if isinstance(text, str) and text.startswith(("rest+http://", "rest+https://")):
        return Database(
            text,
            _RestCatalog(text.removeprefix("rest+"), storage_options, headers),
            storage_options,
        )
    if headers is not None:
        raise InvalidInputError("headers are for a REST namespace: rest+http://HOST:PORT")
    store = open_store(text, storage_options)
    return Database(store.uri, _FolderCatalog(text, store, storage_options), storage_options)


def _reopened_database(location: PublicLocation) -> Database:
    uri, options = location.resolve()
    return database(uri, storage_options=options)


def _refuse_pickling() -> NotSupportedError:
    return NotSupportedError(
        "a listing of tables is not pickled, it may hold credentials: pickle the database"
    )


class _FolderCatalog:
    """The folders ``NAME.lance`` of a store, and the tables that ``__manifest`` lists."""

    def __init__(self, uri: str, store: Store, options: StorageOptions | None) -> None:
        self._uri = uri
        self._store = store
        self._options = options

    def __reduce__(self) -> tuple[object, ...]:
        raise _refuse_pickling()

    def listed(self) -> tuple[list[str], Callable[[str], TablePlace]]:
        """List the names of all tables, and return where each is."""
        locations = self._locations()
        return list(locations), partial(self._place, locations)

    def place(self, name: str) -> TablePlace:
        """Look a table up. Raises DatasetNotFoundError."""
        return self._place(self._locations(), name)

    def _place(self, locations: Mapping[str, str], name: str) -> TablePlace:
        if name not in locations:
            raise DatasetNotFoundError(f"{self._store.uri}/{name}{_ENDING}", "no such table")
        return TablePlace.of(self._uri_of(locations[name]), self._options)

    def _uri_of(self, folder: str) -> str:
        """Return what opens a folder: with the user of the URI, which the store's is without."""
        if without_url_secrets(self._uri) == self._uri:
            return join_uri(self._store.uri, folder)
        place, mark, parameters = self._uri.partition("?")
        return f"{join_uri(place.rstrip('/'), folder)}{mark}{parameters}"

    def _locations(self) -> dict[str, str]:
        """Return the folder of each table by its name. Raises CorruptFileError."""
        folders = list_folders(self._store, "")
        locations = {folder[: -len(_ENDING)]: folder for folder in folders if _is_table(folder)}
        if _MANIFEST in folders:
            locations |= self._listed()
        if len(locations) > TABLES_MAX:
            raise NotSupportedError(f"{self._store.uri} has more than {TABLES_MAX:,} tables")
        return locations

    def _listed(self) -> dict[str, str]:
        """Read the table that a directory namespace keeps of its objects."""
        from lance_nb.dataset.dataset import LanceDataset

        uri = self._uri_of(_MANIFEST)
        listed = LanceDataset.from_opened(*open_version(uri, None, storage_options=self._options))
        missing = {"object_id", "object_type", "location"}.difference(listed.schema.names)
        if missing:
            raise CorruptFileError(uri, expected="a table of objects", found=f"no {min(missing)}")
        rows = listed.to_table(
            columns=["object_id", "location"],
            filter="object_type = 'table' AND location IS NOT NULL",
            limit=TABLES_MAX + 1,
        )
        places = zip(rows["object_id"].to_pylist(), rows["location"].to_pylist(), strict=True)
        return {name: check_relative_path(place, uri) for name, place in places}


def _is_table(folder: str) -> bool:
    return folder.endswith(_ENDING) and not folder.startswith(".") and folder != _ENDING


class _RestCatalog:
    """A server of the Lance namespace."""

    def __init__(
        self, address: str, options: StorageOptions | None, headers: Mapping[str, str] | None
    ) -> None:
        from urllib.parse import urlsplit

        parts = urlsplit(address)
        if not parts.hostname or parts.username or parts.query or parts.fragment:
            raise InvalidInputError(
                "expected rest+http://HOST:PORT[/PATH] without user, query or fragment; "
                "credentials are headers"
            )
        self._address = address.rstrip("/")
        self._options = options
        self._headers = _checked_headers(headers or {})

    def __reduce__(self) -> tuple[object, ...]:
        raise _refuse_pickling()

    @property
    def has_headers(self) -> bool:
        """Whether requests carry headers of the caller."""
        return bool(self._headers)

    def listed(self) -> tuple[list[str], Callable[[str], TablePlace]]:
        """List the names of all tables, those of nested namespaces too, and say how to ask."""
        names: list[str] = []
        waiting: list[list[str]] = [[]]
        seen = 0
        while waiting:
            namespace = waiting.pop()
            seen += 1
            if seen + len(names) > TABLES_MAX:
                raise NotSupportedError(f"{self._address} has more than {TABLES_MAX:,} tables")
            listed = self._pages(_path("namespace", namespace, "table/list"), "tables")
            names += [DELIMITER.join([*namespace, name]) for name in listed]
            inside = self._pages(_path("namespace", namespace, "list"), "namespaces")
            waiting += [[*namespace, name] for name in inside]
        return names, self.place

    def place(self, name: str) -> TablePlace:
        """Ask where a table is. Raises DatasetNotFoundError."""
        identifier = name.split(DELIMITER)
        path = _path("table", identifier, "describe")
        try:
            answer = self._ask(path, {"id": identifier})
        except DatasetNotFoundError:
            raise DatasetNotFoundError(f"{self._address}/{name}", "no such table") from None
        uri = answer.get("table_uri") or answer.get("location")
        options = answer.get("storage_options") or {}
        if not isinstance(uri, str) or not uri or not isinstance(options, dict):
            actual = f"a location of {type(uri).__name__}, options of {type(options).__name__}"
            expected = "a location of str, options of dict"
            raise CorruptFileError(self._address + path, expected=expected, found=actual)
        return TablePlace.of(*checked_location(uri, options, self._options, self._address))

    def _pages(self, path: str, key: str) -> list[str]:
        """Return the names of all pages of a list."""
        from urllib.parse import quote

        all_names: list[str] = []
        token = ""
        while True:
            more = f"&page_token={quote(token, safe='')}" if token else ""
            answer = self._ask(f"{path}?delimiter={quote(DELIMITER)}&limit={_PAGE}{more}")
            names = answer.get(key)
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                kinds = names if isinstance(names, list) else [names]
                found_kinds = ", ".join(sorted({type(name).__name__ for name in kinds}))
                place, expected = f"{self._address}{path}", f"a list of str as {key!r}"
                raise CorruptFileError(place, expected=expected, found=found_kinds)
            all_names += names
            following = answer.get("page_token")
            if not isinstance(following, str) or following in ("", token) or not names:
                return all_names
            if len(all_names) > TABLES_MAX:
                raise NotSupportedError(f"{self._address} has more than {TABLES_MAX:,} {key}")
            token = following

    def _ask(self, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Send one request and return the object in the answer."""
        import json
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import HTTPRedirectHandler, Request, build_opener

        class NoRedirects(HTTPRedirectHandler):
            """Headers hold credentials, which no other server is to get."""

            def redirect_request(self, *_: object, **__: object) -> None:
                return None

        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        request = Request(self._address + path, data, {**headers, **self._headers})  # noqa: S310
        place = f"{self._address}{path}"
        try:
            with build_opener(NoRedirects).open(request, timeout=TIMEOUT_S) as reply:
                text = reply.read(ANSWER_BYTES_MAX + 1)
        except HTTPError as error:
            with error:
                if error.code == 404:
                    raise DatasetNotFoundError(
                        place, "the server has no object of this name"
                    ) from None
                reason = self._without_secrets(f"{error.code} {error.reason}")
                raise StorageError(place, f"the server answered {reason}") from None
        except (OSError, HTTPException) as error:
            # Without the cause: it and its own causes quote the server, which may repeat a header.
            reason = self._without_secrets(str(error))
            raise StorageError(place, f"the server cannot be reached: {reason}") from None
        if len(text) > ANSWER_BYTES_MAX:
            raise CorruptFileError(
                place,
                expected=f"at most {ANSWER_BYTES_MAX:,} bytes",
                found=f"at least {len(text):,}",
            )
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CorruptFileError(place, expected="JSON", found=str(error)) from None
        if not isinstance(answer, dict):
            raise CorruptFileError(place, expected="an object of JSON", found=type(answer).__name__)
        return answer

    def _without_secrets(self, text: str) -> str:
        """Mask what headers hold in a text of the server."""
        for secret in longest_first(secrets_of(self._headers)):
            text = text.replace(secret, "***")
        return text


_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers that can be sent; messages of the HTTP client would show their values.

    Raises InvalidInputError.
    """
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise InvalidInputError(
                f"{name!r} is not the name of a header: letters, digits and '-', such as x-api-key"
            )
        if not isinstance(value, str):
            raise InvalidInputError(f"header {name!r} takes a str, not {type(value).__name__}")
        if not value.isprintable() or not value.isascii():
            raise InvalidInputError(
                f"header {name!r} has a line break or another character that cannot be sent; "
                "a token that was read from a file is often followed by one: strip() it"
            )
    return dict(headers)


def _path(kind: str, identifier: Sequence[str], call: str) -> str:
    from urllib.parse import quote

    name = DELIMITER.join(identifier) or DELIMITER  # the delimiter alone is the root
    return f"/v1/{kind}/{quote(name, safe='')}/{call}"
