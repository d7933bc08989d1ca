"""Redis as manifest store: ``redis://[:password@]host:6379/0`` (``rediss://`` with TLS).

Layout: one hash per dataset, key ``lance:manifests:{base URI}``; field = version, value = JSON
``{"path", "committer", "size", "e_tag"}``; field ``latest`` = the highest version. Each change is
one script, which Redis runs as one step.

Limits: versions below 2**53 (numbers of the scripts). A commit that was reported is as durable as
Redis is told to be: use ``appendfsync always`` (or ``everysec`` and lose at most a second at a
power failure), no eviction, and no failover that loses writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    MissingPackageError,
    NotSupportedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from lance_nb.transactions.external.base import (
    COMMITTER,
    ManifestEntry,
    masked_url,
    without_secrets,
)

_TIMEOUT_S = 10.0
_PUT_IF_NOT_EXISTS = """
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
local latest = tonumber(redis.call('HGET', KEYS[1], 'latest') or '-1')
if tonumber(ARGV[1]) > latest then redis.call('HSET', KEYS[1], 'latest', ARGV[1]) end
return 1
"""
_PUT_IF_EXISTS = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
"""
_LATEST = """
local latest = redis.call('HGET', KEYS[1], 'latest')
if not latest then return false end
return {latest, redis.call('HGET', KEYS[1], latest)}
"""


class RedisManifestStore:
    """Entries in hashes of a Redis server."""

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None = None) -> None:
        try:
            import redis
        except ImportError as error:
            raise MissingPackageError(
                "a Redis manifest store", "redis", "lance-nb[redis]"
            ) from error
        self._place = masked_url(url)
        self._url = url
        self._errors = redis.exceptions
        try:
            self._client: Any = redis.Redis.from_url(
                url,
                socket_timeout=_TIMEOUT_S,
                socket_connect_timeout=_TIMEOUT_S,
                decode_responses=True,
            )
        except ValueError as error:
            raise InvalidInputError(f"{self._place!r} is not a Redis URL") from error

    def __repr__(self) -> str:
        return f"RedisManifestStore({self.place!r})"

    def __reduce__(self) -> tuple[object, ...]:
        raise NotSupportedError("a manifest store is not pickled: open it by its URL")

    @property
    def place(self) -> str:
        """The URL without credentials."""
        return self._place

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        """Return the entry of a version."""
        with self._translated():
            value = self._client.hget(_key(base_uri), str(version))
        return None if value is None else self._entry(version, value)

    def latest(self, base_uri: str) -> ManifestEntry | None:
        """Return the entry of the highest version."""
        with self._translated():
            reply = self._client.eval(_LATEST, 1, _key(base_uri))
        return None if not reply else self._entry(int(reply[0]), reply[1])

    def put_if_not_exists(self, base_uri: str, entry: ManifestEntry) -> None:
        """Add the entry of a version."""
        if not self._run(_PUT_IF_NOT_EXISTS, base_uri, entry):
            raise ObjectExistsError(entry.path)

    def put_if_exists(self, base_uri: str, entry: ManifestEntry) -> None:
        """Change the entry of a version."""
        if not self._run(_PUT_IF_EXISTS, base_uri, entry):
            raise ObjectNotFoundError(entry.path)

    def forget(self, base_uri: str) -> None:
        """Remove every entry of a dataset."""
        with self._translated():
            self._client.delete(_key(base_uri))

    def _run(self, script: str, base_uri: str, entry: ManifestEntry) -> bool:
        value = {
            "path": entry.path,
            "committer": COMMITTER,
            "size": entry.size_bytes,
            "e_tag": entry.e_tag,
        }
        with self._translated():
            done = self._client.eval(
                script, 1, _key(base_uri), str(entry.version), json.dumps(value)
            )
        return bool(done)

    def _entry(self, version: int, value: Any) -> ManifestEntry:
        try:
            fields = json.loads(value)
            return ManifestEntry(version, str(fields["path"]), fields["size"], fields["e_tag"])
        except (TypeError, ValueError, LookupError) as error:
            shown = repr(value)[:200]
            raise CorruptFileError(self.place, None, "a path, a size and a tag", shown) from error

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (self._errors.ResponseError, self._errors.AuthenticationError) as error:
            # The server looked at the request and refused it.
            raise StorageError(self.place, without_secrets(str(error), self._url)) from error
        except (self._errors.RedisError, OSError) as error:
            text = without_secrets(str(error), self._url)
            raise StorageError(self.place, text, "unknown") from error


def _key(base_uri: str) -> str:
    return f"lance:manifests:{{{base_uri}}}"
