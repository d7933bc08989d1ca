"""Whether other writers have changed a dataset since it was looked at; from listings alone.

Layout of ``to_json``: ``latest`` (newest version of the branch), ``added`` (how many versions are
newer than the one that was newest), ``gone`` (the version shown was cleaned up), ``mark`` (a text
that changes whenever a version, a tag or a branch appears or goes, or a tag is written again). When
the branch shown, or the whole dataset, is not there any more: ``lost`` says so in words, and
``way`` is where to go on, if there is a place: ``{branch, version, label}``.

Limits: a branch whose note is changed keeps its name, and that is not noticed.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from dataclasses import asdict, dataclass
from typing import Any

from lance_nb.errors import NotFoundError
from lance_nb.explorer.models import text
from lance_nb.explorer.models.refs import RefNames
from lance_nb.explorer.models.source import Source


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


def lost(dataset: Source) -> dict[str, Any]:
    """Say, as JSON-able values, that what is shown is not there any more, and where to go on."""
    found = {"latest": dataset.version, "added": 0, "gone": True, "mark": "lost", "way": None}
    if dataset.branch is not None:
        try:
            main = dataset.checkout_version((None, None))
        except NotFoundError:
            pass  # all of it went
        else:
            label = text.ref_label(None, main.version)
            found["way"] = {"branch": None, "version": main.version, "label": label}
            return found | {"lost": f"branch {text.name(dataset.branch)} was deleted"}
    return found | {"lost": "the dataset is not there any more"}


def mark_of(names: RefNames) -> str:
    """Return a short text that tells two states of the names apart."""
    said = repr(
        (len(names.numbers), names.numbers[-1:], names.branches, sorted(names.tags.items()))
    )
    return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
