"""Which external manifest stores there are, by URL scheme, and opening a dataset that has one.

Which manifest store: the URL in ``storage_options["manifest_store"]``, or the DynamoDB table that
``s3+ddb://bucket/path?ddbTableName=T`` names. Both are taken out of what is handed to the store.

Base URI, the key of a dataset: for DynamoDB the path inside the bucket, as Lance has it, so two
buckets that share a table must not hold datasets of the same path; for the others the whole URI,
and for a local folder its real path.

Limits: a dataset has one manifest store for all its branches. A clone uses the one that its
options name, which are those of its source unless others are given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from lance_nb.errors import InvalidInputError
from lance_nb.storage.base import Store
from lance_nb.storage.registry import StorageOptions, open_store
from lance_nb.storage.system_calls import real_path
from lance_nb.transactions.external import OPTION
from lance_nb.transactions.external.base import ExternalManifestStore
from lance_nb.transactions.external.stores.dynamodb import DynamoManifestStore
from lance_nb.transactions.external.stores.postgres import PostgresManifestStore
from lance_nb.transactions.external.stores.redis import RedisManifestStore
from lance_nb.transactions.external.stores.sqlite import SqliteManifestStore
from lance_nb.transactions.external.synchronised_store import SynchronisedStore, synchronised

Factory = Callable[[str, Mapping[str, Any]], ExternalManifestStore]

STORES: dict[str, Factory] = {
    "sqlite": SqliteManifestStore,
    "redis": RedisManifestStore,
    "rediss": RedisManifestStore,
    "postgresql": PostgresManifestStore,
    "postgres": PostgresManifestStore,
    "dynamodb": DynamoManifestStore,
}


def open_external(url: str, storage_options: Mapping[str, Any]) -> ExternalManifestStore:
    """Return the manifest store at ``url`` (nothing is sent yet).

    ``storage_options`` are those of the dataset's store, for credentials that both need.
    Raises InvalidInputError, NotSupportedError (with the pip line).
    """
    scheme = url.partition(":")[0].lower()
    factory = STORES.get(scheme)
    if factory is None:
        schemes = ", ".join(f"{name}://" for name in STORES)
        raise InvalidInputError(
            f"no manifest store is known for {scheme[:40]}://; known: {schemes}"
        )
    return factory(url, storage_options)


_TABLE = "ddbTableName"
_SAME_SCHEME = {"s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az"}


def open_root(
    uri: str | os.PathLike[str],
    storage_options: StorageOptions | None = None,
    allowed: Sequence[str] = (),
) -> SynchronisedStore:
    """Return the store of a dataset whose URI or options name a manifest store.

    ``allowed`` as for ``open_store``. Raises InvalidInputError, NotSupportedError (with the pip
    line).
    """
    plain, options = plain_place(uri, storage_options)
    url = str(options[OPTION])
    other_options = {name: value for name, value in options.items() if name != OPTION}
    inner = open_store(plain, other_options, allowed)
    entries = open_external(url, other_options)
    return synchronised(inner, entries, base_uri(inner, url))


def plain_place(
    uri: str | os.PathLike[str], storage_options: StorageOptions | None
) -> tuple[str | os.PathLike[str], Mapping[str, Any]]:
    """Return the URI without the manifest store, and options that name it.

    Raises InvalidInputError.
    """
    options = dict(storage_options or {})
    if is_plain(uri) or not isinstance(uri, str):
        return uri, options
    scheme, _, place = uri.partition("://")
    plain = scheme.partition("+")[0].lower()
    path, _, query = place.partition("?")
    table = parse_qs(query).get(_TABLE, [""])[-1]
    if scheme.lower() != "s3+ddb" or not table:
        raise InvalidInputError(
            f"{uri!r} is not s3+ddb://bucket/path?{_TABLE}=TABLE; other manifest stores are named "
            f"by storage_options={{{OPTION!r}: URL}}"
        )
    if options.get(OPTION):
        raise InvalidInputError(f"{uri!r} and storage_options both name a manifest store")
    return f"{plain}://{path.rstrip('/')}", {**options, OPTION: f"dynamodb://{quote(table)}"}


def is_plain(uri: str | os.PathLike[str]) -> bool:
    """Return whether a URI names no manifest store."""
    scheme, separator, _ = os.fspath(uri).partition("://")
    return not separator or "+" not in scheme


def base_uri(store: Store, url: str) -> str:
    """Return the key of a dataset in the manifest store ``url``."""
    if store.scheme == "file":
        place = real_path(store.uri)
    else:
        scheme, _, path = store.uri.partition("://")
        place = f"{_SAME_SCHEME.get(scheme, scheme)}://{path}"
    if urlsplit(url).scheme != "dynamodb":
        return place
    inside = place.partition("://")[2].partition("/")[2] if "://" in place else place
    return inside.strip("/")


def forget(uri: str | os.PathLike[str], storage_options: StorageOptions | None = None) -> None:
    """Remove the entries of a dataset that has been deleted, so that its place can be used again.

    Entries of branches are removed by calling this with the folder of each.
    """
    open_root(uri, storage_options).forget_versions()
