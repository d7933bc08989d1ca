"""A place and its storage options without credentials, as they may be pickled.

Left out are: the user and password of a URI, options whose name or value holds a credential (keys,
tokens, passwords, signatures, a connection string, a URL with a password), and values that are not
plain data, such as session objects. What was left out is read from the environment when the place
is used again:

=====================================  ==========================================================
left out                               variable
=====================================  ==========================================================
S3 key, secret, session token          AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
Google credentials                     GOOGLE_SERVICE_ACCOUNT, GOOGLE_APPLICATION_CREDENTIALS
Azure key, SAS token, secret, ...      AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN, ...
URL of a manifest store                LANCE_NB_MANIFEST_STORE
``user:password`` of the URI           LANCE_NB_URI_USERINFO (as it stands in the URI)
any other option                       FSSPEC_<SCHEME>_<OPTION>, as fsspec itself names it
=====================================  ==========================================================

A variable that is set to an empty text says that the option is not needed there.

Limits: an unknown option is judged by its name. What looks like a credential is left out, also when
it is none; the environment can supply it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from lance_nb.errors import InvalidInputError
from lance_nb.shown_text import is_secret_name, without_url_secrets
from lance_nb.storage.fsspec_options import ONLY_GIVEN, TABLES
from lance_nb.storage.registry import StorageOptions
from lance_nb.transactions.external import OPTION as MANIFEST_STORE
from lance_nb.transactions.external.base import masked_url
from lance_nb.value_classes import dataclass

OptionPath = tuple[str, ...]

MANIFEST_STORE_VARIABLE = "LANCE_NB_MANIFEST_STORE"
USERINFO_VARIABLE = "LANCE_NB_URI_USERINFO"

_MASK = "***"
_USERINFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)([^/@]*)@")
# gcsfs: how to find credentials, not credentials.
_TOKEN_MODES = frozenset({"anon", "browser", "cache", "cloud", "google_default"})
# Argument of the fsspec driver -> variables that its cloud's own tools read.
_S3 = {
    "key": ("AWS_ACCESS_KEY_ID",),
    "secret": ("AWS_SECRET_ACCESS_KEY",),
    "token": ("AWS_SESSION_TOKEN",),
}
_GCS = {"token": ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS")}
_AZURE = {
    "account_key": ("AZURE_STORAGE_ACCOUNT_KEY",),
    "sas_token": ("AZURE_STORAGE_SAS_TOKEN",),
    "connection_string": ("AZURE_STORAGE_CONNECTION_STRING",),
    "client_secret": ("AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET"),
}
_VARIABLES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("s3", "s3a"), _S3),
    **dict.fromkeys(("gs", "gcs"), _GCS),
    **dict.fromkeys(("az", "abfs", "abfss"), _AZURE),
}
_CLOUD_PREFIXES = ("aws_", "azure_", "google_")


@dataclass(frozen=True, slots=True)
class PublicLocation:
    """A URI and storage options without credentials.

    ``uri`` has ``***`` in the place of a user and password; ``withheld`` are the paths of the
    options that were left out (a path of two names is an option inside of a dictionary).
    """

    uri: str
    options: StorageOptions | None = None
    withheld: tuple[OptionPath, ...] = field(default=())

    @classmethod
    def of(cls, uri: str, options: StorageOptions | None) -> PublicLocation:
        """Leave the credentials out of a URI and its options."""
        shown = without_url_secrets(uri)
        if options is None:
            return cls(shown)
        withheld: list[OptionPath] = []
        public_options = _public(options, _scheme(uri), (), withheld)
        return cls(shown, public_options, tuple(withheld))

    def resolve(
        self, given_options: StorageOptions | None = None
    ) -> tuple[str, StorageOptions | None]:
        """Return URI and options with the credentials of ``given_options`` and of the environment.

        Raises InvalidInputError, which names the variables, when one is missing.
        """
        uri = self._uri()
        if self.options is None:
            return uri, given_options
        options = {**_copied(self.options), **_plain_values(given_options)}
        for path in self.withheld:
            names = _variables(_scheme(self.uri), path)
            value = _value_at(given_options, path)
            if value is None:
                value = self._from_environment(names)
            if value is None:
                raise InvalidInputError(self._missing(f"storage option {'.'.join(path)!r}", names))
            if value:
                _put(options, path, value)
        return uri, options

    def missing(self, given_options: StorageOptions | None = None) -> dict[str, tuple[str, ...]]:
        """Return options that ``given_options`` and the environment lack, with their variables."""
        missing_names = {}
        for path in self.withheld:
            names = _variables(_scheme(self.uri), path)
            if _value_at(given_options, path) is None and self._from_environment(names) is None:
                missing_names[f"storage option {'.'.join(path)!r}"] = names
        userinfo = _USERINFO.match(self.uri)
        if userinfo and userinfo.group(2) == _MASK and _value_of((USERINFO_VARIABLE,)) is None:
            missing_names["the user and password of the URI"] = (USERINFO_VARIABLE,)
        return missing_names

    def _from_environment(self, names: tuple[str, ...]) -> str | None:
        """Return a credential of the environment; a server named the endpoint of some locations."""
        return None if (self.options or {}).get(ONLY_GIVEN) else _value_of(names)

    def _uri(self) -> str:
        userinfo = _USERINFO.match(self.uri)
        if userinfo is None or userinfo.group(2) != _MASK:
            return self.uri
        value = _value_of((USERINFO_VARIABLE,))
        if value is None:
            raise InvalidInputError(
                self._missing("the user and password of the URI", (USERINFO_VARIABLE,))
            )
        after = self.uri[userinfo.end() :]
        return f"{userinfo.group(1)}{value}@{after}" if value else f"{userinfo.group(1)}{after}"

    def _missing(self, subject: str, names: tuple[str, ...]) -> str:
        if (self.options or {}).get(ONLY_GIVEN):
            return (
                f"cannot open {self.uri!r} in this process: {subject} is a credential that a "
                "server gave and was left out when the object was pickled; the server named the "
                "endpoint too, so that none is taken from the environment; open the table by its "
                "database"
            )
        return (
            f"cannot open {self.uri!r} in this process: {subject} is a credential and was left out "
            f"when the object was pickled; set the environment variable {' or '.join(names)} here "
            "(to an empty text if it is not needed), or open the dataset by its URI with "
            "storage_options"
        )


def _scheme(uri: str) -> str:
    scheme, separator, _ = uri.partition("://")
    return scheme.partition("+")[0].lower() if separator else "file"


def _public(
    options: Mapping[str, Any], scheme: str, above: OptionPath, withheld: list[OptionPath]
) -> dict[str, Any]:
    public_options: dict[str, Any] = {}
    for name, value in options.items():
        path = (*above, str(name))
        if _is_secret(scheme, str(name), value):
            withheld.append(path)
        elif isinstance(value, Mapping):
            public_options[name] = _public(value, scheme, path, withheld)
        else:
            public_options[name] = value
    return public_options


def _is_secret(scheme: str, name: str, value: Any) -> bool:
    if name == ONLY_GIVEN or value is None or isinstance(value, bool):
        return False
    if name.lower() == MANIFEST_STORE:
        return bool(masked_url(str(value)) != value)
    if scheme in ("gs", "gcs") and isinstance(value, str) and value in _TOKEN_MODES:
        return False
    if not _is_plain(value) or is_secret_name(name):
        return True
    return any(without_url_secrets(text) != text for text in _texts(value))


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return not any(isinstance(item, Mapping) for item in value) and all(map(_is_plain, value))
    # The entries of a mapping are judged one by one.
    return value is None or isinstance(value, (str, int, float, bool, Mapping))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def _variables(scheme: str, path: OptionPath) -> tuple[str, ...]:
    name = path[-1].lower()
    if path == (MANIFEST_STORE,):
        return (MANIFEST_STORE_VARIABLE,)
    place = TABLES.get(scheme, {}).get(name, name)
    names = [*_VARIABLES.get(scheme, {}).get(place, ())]
    if name.startswith(_CLOUD_PREFIXES):
        names.append(name.upper())
    names.append(f"FSSPEC_{scheme.upper()}_{name.upper()}")
    return tuple(dict.fromkeys(names))


def _value_of(names: tuple[str, ...]) -> str | None:
    return next((os.environ[name] for name in names if name in os.environ), None)


def _copied(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _copied(value) if isinstance(value, Mapping) else value
        for name, value in options.items()
    }


def _value_at(options: StorageOptions | None, path: OptionPath) -> Any:
    """Return the option at a path, None if it is not given."""
    value: Any = options
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _plain_values(options: StorageOptions | None) -> dict[str, Any]:
    """Return the options that are no dictionaries, which replace those that were kept."""
    return {
        name: value
        for name, value in (options or {}).items()
        if value is not None and not isinstance(value, Mapping)
    }


def _put(options: dict[str, Any], path: OptionPath, value: Any) -> None:
    *above, last = path
    for name in above:
        options = options[name]
    options[last] = value
