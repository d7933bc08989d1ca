"""Handlers of the requests that every view may send: refs, updates, the write lock, row history.

================ ========================================== ====================================
request          args                                       result
================ ========================================== ====================================
refs             text                                       choices (see models.refs)
news             latest, mark                               see below; with a new mark also the
                                                            parts ``timeline`` and ``card``
lock             locked                                     locked
biography.find   branch, version, row, query                fragment, offset, row_id
biography.keys   branch, version, text                      columns that may be a key
biography.steps  branch, version, fragment, offset, key,    see models.row_history
                 upto (long work)
================ ========================================== ====================================

``news`` says, from listings alone, whether other writers have changed the dataset: ``latest``
(newest version of the branch), ``added`` (how many versions are newer than the one known to the
browser), ``gone`` (the version shown was cleaned up), ``mark`` (a text that changes whenever a
version, a tag or a branch is created or deleted, or a tag is written). If the branch shown, or the
whole dataset, no longer exists, ``lost`` says so, and ``way`` is a version to go to, if there is
one: ``{branch, version, label}``.

Limits: a changed note of a branch is not noticed, because its name stays the same.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lance_nb.errors import InvalidInputError, NotFoundError
from lance_nb.explorer.messages import Answer, Handler, Job, Progress, integer, words
from lance_nb.explorer.models import refs, text
from lance_nb.explorer.models.change_summary import key_of
from lance_nb.explorer.models.refs import RefNames, ref_choices, ref_names
from lance_nb.explorer.models.row_history import RowHistoryCache, RowPlace, place_of_row
from lance_nb.explorer.models.schema_tree import type_label
from lance_nb.explorer.models.source import Source, compared_source
from lance_nb.explorer.session import MAX_COUNT, Session, place_of

MAX_STEPS = 500
MAX_KEYS_SHOWN = 24
_MAX_U32 = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Updates:
    """What has changed since ``mark`` was sent."""

    latest: int
    added: int
    gone: bool
    mark: str

    def to_json(self) -> dict[str, Any]:
        """Return the arrivals as JSON-able values."""
        return asdict(self)


def updates_since(names: RefNames, version: int, known_latest: int) -> Updates:
    """Compare the names with what is shown: ``version``, and the newest one known then."""
    numbers = names.numbers
    return Updates(
        latest=numbers[-1] if numbers else 0,
        added=len(numbers) - bisect_right(numbers, known_latest),
        gone=version not in numbers[-1:] and version not in set(numbers),
        mark=mark_of(names),
    )


def lost_version(dataset: Source) -> dict[str, Any]:
    """Return, as JSON-able values, what no longer exists and which version to go to."""
    found = {"latest": dataset.version, "added": 0, "gone": True, "mark": "lost", "way": None}
    if dataset.branch is not None:
        try:
            main = dataset.checkout_version((None, None))
        except NotFoundError:
            pass  # the whole dataset was deleted
        else:
            label = text.ref_label(None, main.version)
            found["way"] = {"branch": None, "version": main.version, "label": label}
            return found | {"lost": f"branch {text.name(dataset.branch)} was deleted"}
    return found | {"lost": "the dataset no longer exists"}


def mark_of(names: RefNames) -> str:
    """Return a short text that tells two states of the names apart."""
    said = repr(
        (len(names.numbers), names.numbers[-1:], names.branches, sorted(names.tags.items()))
    )
    return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class HeaderHandlers:
    """Handlers of the header; keeps the names that refs are completed from."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._names: RefNames | None = None

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers of the header's requests."""
        return {"refs": self._on_refs, "news": self._on_news, "lock": self._on_lock}

    def _on_refs(self, args: Mapping[str, Any]) -> Answer:
        typed = words(args, "text", refs.MAX_CHARS)
        known = self._names
        if not typed or known is None or known.branch != self._session.dataset.branch:
            known = self._names = ref_names(self._session.dataset)
        choices = ref_choices(known, typed)
        return Answer({"choices": [choice.to_json() for choice in choices]})

    def _on_news(self, args: Mapping[str, Any]) -> Answer:
        session = self._session
        known_latest = integer(args, "latest", low=0, high=MAX_COUNT)
        try:
            names = self._names = ref_names(session.dataset)
        except NotFoundError:
            return Answer(lost_version(session.dataset))
        found = updates_since(names, session.dataset.version, known_latest)
        result = found.to_json()
        known_mark = words(args, "mark", 64)
        if found.mark != known_mark and (known_mark or found.added):
            result |= session.parts_json(("timeline", "card"))
        return Answer(result)

    def _on_lock(self, args: Mapping[str, Any]) -> Answer:
        locked = args.get("locked")
        if not isinstance(locked, bool):
            raise InvalidInputError("locked must be true or false")
        self._session.lock(locked=locked)
        return Answer({"locked": self._session.locked})


class RowHistoryHandlers:
    """Handlers of row histories; searches are kept between requests."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers of requests about row histories."""
        return {
            "biography.find": self._on_find,
            "biography.keys": self._on_keys,
            "biography.steps": self._on_steps,
        }

    def _on_keys(self, args: Mapping[str, Any]) -> Answer:
        wanted = words(args, "text", 300).casefold()
        schema = self._session.open(place_of(args)).schema
        found = [field for field in schema if wanted in field.name.casefold()]
        columns = [
            {"name": one.name, "label": text.name(one.name), "type": type_label(one.type)}
            for one in found[:MAX_KEYS_SHOWN]
        ]
        return Answer({"columns": columns, "found": len(found)})

    def _on_find(self, args: Mapping[str, Any]) -> Answer:
        source = self._session.open(place_of(args))
        row = integer(args, "row", low=0, high=MAX_COUNT)
        found = self._session.query(args).rows(source, ["_rowid", "_rowaddr"], row, 1)
        fragment, offset, row_id = place_of_row(found)
        return Answer({"fragment": fragment, "offset": offset, "row_id": row_id})

    def _on_steps(self, args: Mapping[str, Any]) -> Job:
        branch, version = place_of(args)
        source = compared_source(self._session.open((branch, version)))
        row = RowPlace(
            branch,
            version,
            integer(args, "fragment", low=0, high=_MAX_U32),
            integer(args, "offset", low=0, high=_MAX_U32),
            key_of(args),
        )
        upto = integer(args, "upto", low=1, high=MAX_STEPS)
        lives = self._session.keep(RowHistoryCache)

        def work(progress: Progress) -> Answer:
            return Answer(lives.steps(source, row, upto, progress))

        return Job(work)
