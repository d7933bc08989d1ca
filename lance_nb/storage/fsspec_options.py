"""Translate ``storage_options`` from the names of pylance users to those of fsspec drivers.

The names that the ``object_store`` library uses (``aws_access_key_id``, ``AWS_REGION``,
``allow_http``...) are translated, so that options written for pylance work here; all other options
go to the driver unchanged.

Limits: names are compared without regard to case. ``allow_http`` needs no translation: the scheme
of the endpoint says whether TLS is used. Nor does ``aws_conditional_put``: commits always use
conditional puts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from lance_nb.shown_text import is_secret_name, without_url_secrets

Options = dict[str, Any]

# option of object_store -> place in the driver's arguments (a dot goes into a nested dictionary)
S3 = {
    "aws_access_key_id": "key",
    "access_key_id": "key",
    "aws_secret_access_key": "secret",
    "secret_access_key": "secret",
    "aws_session_token": "token",
    "aws_token": "token",
    "session_token": "token",
    "aws_region": "client_kwargs.region_name",
    "aws_default_region": "client_kwargs.region_name",
    "region": "client_kwargs.region_name",
    "default_region": "client_kwargs.region_name",
    "aws_endpoint": "endpoint_url",
    "aws_endpoint_url": "endpoint_url",
    "endpoint": "endpoint_url",
    "endpoint_url": "endpoint_url",
    "aws_skip_signature": "anon",
    "skip_signature": "anon",
    "aws_virtual_hosted_style_request": "config_kwargs.s3.addressing_style",
    "virtual_hosted_style_request": "config_kwargs.s3.addressing_style",
    "aws_request_payer": "requester_pays",
    "request_payer": "requester_pays",
    # No translation needed: see the module.
    "aws_allow_http": "",
    "allow_http": "",
    "aws_conditional_put": "",
    "conditional_put": "",
}
GCS = {
    "google_service_account": "token",
    "google_service_account_path": "token",
    "service_account": "token",
    "google_application_credentials": "token",
}
AZURE = {
    "azure_storage_account_name": "account_name",
    "azure_storage_account_key": "account_key",
    "azure_storage_sas_key": "sas_token",
    "azure_storage_sas_token": "sas_token",
    "azure_storage_connection_string": "connection_string",
    "azure_client_id": "client_id",
    "azure_client_secret": "client_secret",
    "azure_tenant_id": "tenant_id",
}
TABLES = {
    **dict.fromkeys(("s3", "s3a"), S3),
    **dict.fromkeys(("gs", "gcs"), GCS),
    **dict.fromkeys(("az", "abfs", "abfss"), AZURE),
}
_FLAGS = {"anon", "requester_pays"}
_ADDRESSING = "config_kwargs.s3.addressing_style"
# Settings of object_store's own HTTP client, which s3fs has no counterpart for and would refuse.
_CLIENT_TUNING = frozenset({
    "client_max_retries", "client_retry_timeout", "connect_timeout", "download_retry_count",
    "http1_only", "http2_only", "pool_idle_timeout", "pool_max_idle_per_host", "timeout",
    "user_agent",
})  # fmt: skip
# Read by lance_nb itself: the driver to use, and the manifest store.
# ONLY_GIVEN: credentials of the environment stay out (server_location.py).
ONLY_GIVEN = "only_given_credentials"
NOT_FOR_DRIVERS = frozenset({"driver", "manifest_store", "dynamodb_endpoint", ONLY_GIVEN})
_SEPARATORS = re.compile(r"[?&;#]")
_KEY_LENGTH_MIN = 12  # of a user with a password: shorter ones are names, which are not masked
_HARMLESS_LENGTH_MAX = 3  # masking shorter values would blank out ordinary text


def translate(scheme: str, options: Mapping[str, Any]) -> Options:
    """Return the arguments of the fsspec driver for ``scheme``; ``options`` is left as it is.

    An option given in fsspec's own spelling wins over the other one.
    """
    table = TABLES.get(scheme, {})
    translated: Options = {}
    own: Options = {}
    for name, value in options.items():
        place = table.get(name.lower())
        if place is None:
            if not _is_of_others(name.lower(), table):
                own[name] = value
        elif place:
            _put(translated, place, _value(place, value))
    for name, value in own.items():
        if isinstance(value, Mapping) and isinstance(translated.get(name), dict):
            translated[name] = {**translated[name], **value}
        else:
            translated[name] = value
    return translated


def _is_of_others(name: str, table: Mapping[str, str]) -> bool:
    return name in NOT_FOR_DRIVERS or (table is S3 and name in _CLIENT_TUNING)


def _put(target: Options, place: str, value: Any) -> None:
    *folders, last = place.split(".")
    for folder in folders:
        target = target.setdefault(folder, {})
    target[last] = value


def _value(place: str, value: Any) -> Any:
    if place == _ADDRESSING:
        return "virtual" if is_true(value) else "path"
    return is_true(value) if place in _FLAGS else value


def is_true(value: Any) -> bool:
    """Return whether the value of an option, often text, says yes."""
    return value if isinstance(value, bool) else str(value).lower() in ("true", "1", "yes")


def secrets_of(options: Any) -> Iterator[str]:
    """Yield every text inside options: none of it may appear in a message.

    What messages quote of a text alone is yielded too: the token of a header, the password of a
    URL, the values of a connection string; each also as it stands in a URL.
    """
    if isinstance(options, Mapping):
        for value in options.values():
            yield from secrets_of(value)
    elif isinstance(options, (list, tuple)):
        for value in options:
            yield from secrets_of(value)
    elif isinstance(options, (str, bytes)):
        text = options.decode("utf-8", "replace") if isinstance(options, bytes) else options
        texts = dict.fromkeys((text, *_secret_parts(text)))
        for part in dict.fromkeys((*texts, *(quote(part, safe="") for part in texts))):
            if len(part) > _HARMLESS_LENGTH_MAX:
                yield part


def secrets_of_uri(uri: str) -> Iterator[str]:
    """Yield the password, or the user that is a token, and the credentials of the parameters."""
    if without_url_secrets(uri) != uri:
        yield from secrets_of(list(_secret_parts(uri)))


def longest_first(secrets: Iterable[str]) -> list[str]:
    """Return secrets in the order in which a text loses them: none is a part of a later one."""
    return sorted(dict.fromkeys(secrets), key=len, reverse=True)


def _secret_parts(text: str) -> Iterator[str]:
    word, _, token = text.partition(" ")
    if token and word.isalpha():  # "Bearer TOKEN"
        yield token.strip()
    before, separator, after = text.partition("://")
    place, _, parameters = after.partition("?") if separator else ("", "", before)
    user = place.rpartition("@")[0]
    name, colon, password = user.partition(":")
    if not colon:
        user = name = user.partition("/")[0]
    for part in (user, password, name if len(name) >= _KEY_LENGTH_MIN else ""):
        yield from (part, unquote(part))
    for parameter in _SEPARATORS.split(parameters):
        name, _, value = parameter.partition("=")
        if value and is_secret_name(name):
            yield from (value, unquote(value))
