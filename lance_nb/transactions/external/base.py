"""What an external manifest store is: (base URI, version) -> path of the manifest, put if absent.

An entry first names the staged manifest (``_versions/2.manifest-<uuid>``), which commits version 2,
and later the final one (``_versions/2.manifest``), when it has been put in place. Stores are named
by URLs, whose credentials are masked in every text.

Limits: versions below 2**63. An entry is never removed, but for ``forget``.
Source: spec page "transactions", external manifest store; the table of lance's DynamoDB store.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from lance_nb.errors import CorruptFileError
from lance_nb.format.layout import VERSIONS, ManifestName, parse_manifest_name

COMMITTER = "lancedb"  # what every writer of Lance puts into this column

_STAGED = re.compile(r"(.+\.manifest)-[0-9A-Fa-f-]{32,36}")


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """Where the manifest of a version is. ``path`` begins with the base URI of the dataset."""

    version: int
    path: str
    size_bytes: int | None = None
    e_tag: str | None = None

    @property
    def object_path(self) -> str:
        """The path below the folder of the branch."""
        return f"{VERSIONS}/{self.path.rpartition('/')[2]}"

    @property
    def is_staged(self) -> bool:
        """Whether the manifest waits to be put in place."""
        return _STAGED.fullmatch(self.object_path) is not None

    def name(self, where: str) -> ManifestName:
        """Return the name that the manifest has or will have.

        ``where`` names the manifest store. Raises CorruptFileError when the path is not one of this
        version's manifest.
        """
        file_name = self.path.rpartition("/")[2]
        staged = _STAGED.fullmatch(file_name)
        found = parse_manifest_name(staged[1] if staged else file_name)
        folder = self.path.rpartition("/")[0].rpartition("/")[2]
        if found is None or found.version != self.version or folder != VERSIONS:
            raise CorruptFileError(
                where,
                None,
                f"the path of the manifest of version {self.version}",
                repr(self.path[:200]),
            )
        return found

    def finished(self, where: str) -> ManifestEntry:
        """Return the entry that names the final path."""
        folder = self.path.rpartition("/")[0]
        final = self.name(where).path.rpartition("/")[2]
        return replace(self, path=f"{folder}/{final}")


class ExternalManifestStore(Protocol):
    """A key-value store that can put if absent. Every method is safe to call from threads.

    Every failure raises StorageError; its ``outcome`` is ``"unknown"`` when the request may have
    been carried out all the same.
    """

    @property
    def place(self) -> str:
        """What messages call this store; free of secrets."""
        ...

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        """Return the entry of a version, None if there is none; sees every completed put."""
        ...

    def latest(self, base_uri: str) -> ManifestEntry | None:
        """Return the entry of the highest version, None if there is none."""
        ...

    def put_if_not_exists(self, base_uri: str, entry: ManifestEntry) -> None:
        """Add the entry of a version. Raises ObjectExistsError if the version has one."""
        ...

    def put_if_exists(self, base_uri: str, entry: ManifestEntry) -> None:
        """Change the entry of a version. Raises ObjectNotFoundError if the version has none."""
        ...

    def forget(self, base_uri: str) -> None:
        """Remove every entry of a dataset (or branch) that has been deleted."""
        ...


_USER = re.compile(r"//[^/@]*@")
_SHOWN = frozenset({"region", "endpoint", "dbname", "host", "port", "sslmode", "connect_timeout"})
_HARMLESS_LENGTH_MAX = 3


def masked_url(url: str) -> str:
    """Return a URL without its user, password and unknown parameters."""
    plain, _, query = url.partition("?")
    plain = _USER.sub("//***@", plain)
    shown = [f"{name}={value}" for name, value in parse_qsl(query) if name in _SHOWN]
    return f"{plain}?{'&'.join(shown)}" if shown else plain


def without_secrets(text: str, url: str) -> str:
    """Return a driver's text with the secrets of the URL replaced."""
    parts = urlsplit(url)
    hidden = [value for name, value in parse_qsl(parts.query) if name not in _SHOWN]
    hidden += [one for one in (parts.password, unquote(parts.password or "")) if one]
    for secret in sorted({url, *hidden}, key=len, reverse=True):
        if len(secret) > _HARMLESS_LENGTH_MAX:
            text = text.replace(secret, "***")
    return text
