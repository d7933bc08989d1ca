"""Which external manifest stores there are: one line per URL scheme."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lance_nb.errors import InvalidInputError
from lance_nb.transactions.external.base import ExternalManifestStore
from lance_nb.transactions.external.stores.dynamodb import DynamoManifestStore
from lance_nb.transactions.external.stores.postgres import PostgresManifestStore
from lance_nb.transactions.external.stores.redis import RedisManifestStore
from lance_nb.transactions.external.stores.sqlite import SqliteManifestStore

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
        known = ", ".join(f"{name}://" for name in STORES)
        raise InvalidInputError(f"no manifest store is known for {scheme[:40]}://; known: {known}")
    return factory(url, storage_options)
