"""Whether other writers have changed a dataset since it was looked at; from names alone.

Layout of ``to_json``: ``latest`` (newest version of the branch), ``added`` (how many versions are
newer than the one that was newest), ``gone`` (the version shown was cleaned up), ``mark`` (a text
that changes whenever a version, a tag or a branch appears or goes).

Limits: a tag that is moved keeps its name and is not noticed until something else changes.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from dataclasses import asdict, dataclass
from typing import Any

from lance_nb.explorer.models.ref_choices import RefNames


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What has changed since ``mark`` was last handed out."""

    latest: int
    added: int
    gone: bool
    mark: str

    def to_json(self) -> dict[str, Any]:
        """Return the arrivals as JSON-able values."""
        return asdict(self)


def arrivals(names: RefNames, version: int, known_latest: int) -> Arrivals:
    """Compare the names with what is shown: ``version``, and the newest one known then."""
    numbers = names.numbers
    return Arrivals(
        latest=numbers[-1] if numbers else 0,
        added=len(numbers) - bisect_right(numbers, known_latest),
        gone=version not in numbers[-1:] and version not in set(numbers),
        mark=mark_of(names),
    )


def mark_of(names: RefNames) -> str:
    """Return a short text that tells two states of the names apart."""
    said = repr((len(names.numbers), names.numbers[-1:], names.branches, names.tags))
    return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
