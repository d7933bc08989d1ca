"""DynamoDB as manifest store, in Lance's own table: ``dynamodb://TABLE?region=...&endpoint=...``.

Layout: partition key ``base_uri`` (S), sort key ``version`` (N); ``path`` (S), ``committer`` (S),
``size`` (N), ``e_tag`` (S). So a table of ``s3+ddb://`` datasets of pylance is the same table.

Credentials, region and endpoint are those of the dataset's ``storage_options`` (either spelling,
``dynamodb_endpoint`` first), else what boto3 finds by itself. The table must exist.

Limits: versions of detached commits (bit 63 set), which pylance records too, are passed over.
Source: lance-table, ``io/commit/dynamodb.rs``; pylance 14.0.2.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote

from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    MissingPackageError,
    NotSupportedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from lance_nb.format.layout import DETACHED_BIT
from lance_nb.storage.fsspec_options import longest_first, secrets_of, translate
from lance_nb.transactions.external.base import COMMITTER, ManifestEntry, masked_url

_KEYS = {"base_uri": "HASH", "version": "RANGE"}
_REFUSED = "ConditionalCheckFailedException"
_SETTINGS = {
    "connect_timeout": 5,
    "read_timeout": 10,
    "retries": {"mode": "standard", "max_attempts": 3},
}
_clients: dict[tuple[Any, ...], Any] = {}


class DynamoManifestStore:
    """Entries in a DynamoDB table."""

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None = None) -> None:
        try:
            import boto3
            import botocore.config
            import botocore.exceptions
        except ImportError as error:
            raise MissingPackageError(
                "a DynamoDB manifest store", "boto3", "lance-nb[dynamodb]"
            ) from error
        place, _, query = url.partition("://")[2].partition("?")
        self._table = unquote(place.strip("/"))
        if not self._table or "/" in self._table:
            raise InvalidInputError(f"{masked_url(url)!r} is not dynamodb://TABLE")
        options = dict(storage_options or {})
        self._secrets = longest_first(secrets_of(translate("s3", options)))
        self._errors = botocore.exceptions
        self._place = masked_url(url)
        self._checked = False
        arguments = _client_arguments(options, parse_qs(query))
        # Making a client takes a quarter of a second; it may be shared by threads, not by forks.
        key = (os.getpid(), *sorted(arguments.items()))
        if key not in _clients:
            config = botocore.config.Config(**_SETTINGS)
            session = boto3.session.Session()
            _clients[key] = session.client("dynamodb", config=config, **arguments)
        self._client = _clients[key]

    def __repr__(self) -> str:
        return f"DynamoManifestStore({self.place!r})"

    def __reduce__(self) -> tuple[object, ...]:
        raise NotSupportedError("a manifest store is not pickled: open it by its URL")

    @property
    def place(self) -> str:
        """The URL without credentials."""
        return self._place

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        """Return the entry of a version."""
        key = {"base_uri": {"S": base_uri}, "version": {"N": str(version)}}
        with self._translated():
            reply = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        return self._entry(reply["Item"]) if "Item" in reply else None

    def latest(self, base_uri: str) -> ManifestEntry | None:
        """Return the entry of the highest version."""
        reply = self._query(base_uri, Limit=1, ScanIndexForward=False)
        return next(map(self._entry, reply["Items"]), None)

    def put_if_not_exists(self, base_uri: str, entry: ManifestEntry) -> None:
        """Add the entry of a version."""
        if not self._put("attribute_not_exists", base_uri, entry):
            raise ObjectExistsError(entry.path)

    def put_if_exists(self, base_uri: str, entry: ManifestEntry) -> None:
        """Change the entry of a version."""
        if not self._put("attribute_exists", base_uri, entry):
            raise ObjectNotFoundError(entry.path)

    def forget(self, base_uri: str) -> None:
        """Remove every entry of a dataset."""
        while items := self._query(base_uri)["Items"]:
            for item in items:
                key = {name: item[name] for name in _KEYS}
                with self._translated():
                    self._client.delete_item(TableName=self._table, Key=key)

    def _query(self, base_uri: str, **options: Any) -> Any:
        with self._translated():
            self._check_table()
            return self._client.query(
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="base_uri = :base_uri AND version < :detached",
                ExpressionAttributeValues={
                    ":base_uri": {"S": base_uri},
                    ":detached": {"N": str(DETACHED_BIT)},
                },
                **options,
            )

    def _put(self, condition: str, base_uri: str, entry: ManifestEntry) -> bool:
        item = {
            "base_uri": {"S": base_uri},
            "version": {"N": str(entry.version)},
            "path": {"S": entry.path},
            "committer": {"S": COMMITTER},
        }
        if entry.size_bytes is not None:
            item["size"] = {"N": str(entry.size_bytes)}
        if entry.e_tag is not None:
            item["e_tag"] = {"S": entry.e_tag}
        with self._translated():
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression=f"{condition}(base_uri) AND {condition}(version)",
                )
            except self._errors.ClientError as error:
                if error.response.get("Error", {}).get("Code") != _REFUSED:
                    raise
                return False
        return True

    def _check_table(self) -> None:
        """Refuse a table with other keys, once. Raises InvalidInputError."""
        if self._checked:
            return
        schema = self._client.describe_table(TableName=self._table)["Table"]["KeySchema"]
        keys = {key["AttributeName"]: key["KeyType"] for key in schema}
        if keys != _KEYS:
            raise InvalidInputError(
                f"{self.place} has the keys {keys}; the table of a manifest store has the "
                "partition key 'base_uri' (text) and the sort key 'version' (number)"
            )
        self._checked = True

    def _entry(self, item: Mapping[str, Any]) -> ManifestEntry:
        try:
            size = item.get("size", {}).get("N")
            return ManifestEntry(
                int(item["version"]["N"]),
                str(item["path"]["S"]),
                None if size is None else int(size),
                item.get("e_tag", {}).get("S"),
            )
        except (LookupError, ValueError) as error:
            shown = repr(dict(item))[:200]
            raise CorruptFileError(self.place, None, "version, path and size", shown) from error

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self._errors.ClientError as error:
            meta = error.response.get("ResponseMetadata", {})
            refused = 400 <= int(meta.get("HTTPStatusCode") or 500) < 500
            certain = refused and not meta.get("RetryAttempts")
            outcome = "failed" if certain else "unknown"
            raise StorageError(self.place, self._masked(str(error)), outcome) from error
        except self._errors.BotoCoreError as error:
            raise StorageError(self.place, self._masked(str(error)), "unknown") from error

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def _client_arguments(options: Mapping[str, Any], query: Mapping[str, list[str]]) -> dict[str, Any]:
    s3 = translate("s3", options)
    inner = s3.get("client_kwargs") or {}
    lowered = {name.lower(): value for name, value in options.items()}
    endpoint = query.get("endpoint", [None])[-1] or lowered.get("dynamodb_endpoint")
    arguments = {
        "aws_access_key_id": s3.get("key") or inner.get("aws_access_key_id"),
        "aws_secret_access_key": s3.get("secret") or inner.get("aws_secret_access_key"),
        "aws_session_token": s3.get("token") or inner.get("aws_session_token"),
        "region_name": query.get("region", [None])[-1] or inner.get("region_name"),
        "endpoint_url": endpoint,
    }
    return {name: value for name, value in arguments.items() if value is not None}
