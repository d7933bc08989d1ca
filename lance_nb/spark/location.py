"""Location: a URI and the options of its store, as a value that is sent to workers.

Limits: workers get both unchanged, credentials included; the journal leaves credentials out
(journal_json.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from lance_nb.shown_text import without_url_secrets
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """Where a dataset or a file is, and how its store is opened.

    ``uri`` is shown: one with a password or signature is moved to ``secret_uri``, and masked.
    ``is_copy``: it is in the copy that a clone makes, whose credentials may be others.
    """

    uri: str
    # Options of fsspec may be dictionaries, so they are compared, not hashed.
    options: tuple[tuple[str, Any], ...] = field(default=(), repr=False, hash=False)
    is_copy: bool = False
    secret_uri: str = field(default="", repr=False)

    @classmethod
    def of(cls, uri: str, options: Mapping[str, Any] | None, *, is_copy: bool = False) -> Location:
        """Return the location of a URI and its options."""
        return cls(uri, tuple(sorted((options or {}).items())), is_copy)

    def __post_init__(self) -> None:
        shown = without_url_secrets(self.uri)
        if shown != self.uri:
            object.__setattr__(self, "secret_uri", self.uri)
            object.__setattr__(self, "uri", shown)

    @property
    def opening_uri(self) -> str:
        """The URI with its password or signature: to open it with, never to be shown."""
        return self.secret_uri or self.uri

    @property
    def storage_options(self) -> dict[str, Any] | None:
        """The options of the store, None if there are none."""
        return dict(self.options) or None
