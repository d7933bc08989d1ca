"""Requests that the frame of the explorer answers whatever tab is open: refs, news, the lock.

======== ============================================ ====================================
request  args                                         result
======== ============================================ ====================================
refs     text                                         choices (see models.refs)
news     latest, mark                                 see models.arrivals; with a new mark also
                                                      the parts ``timeline`` and ``card``
lock     locked                                       locked
======== ============================================ ====================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_nb.errors import InvalidInputError, NotFoundError
from lance_nb.explorer.messages import Answer, Handler, integer, words
from lance_nb.explorer.models import refs
from lance_nb.explorer.models.arrivals import arrivals, lost
from lance_nb.explorer.models.refs import RefNames, ref_choices, ref_names
from lance_nb.explorer.session import MAX_COUNT, Session


class Frame:
    """What the frame remembers: the names that the box chooses from."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._names: RefNames | None = None

    def handlers(self) -> dict[str, Handler]:
        """Return the requests that the frame answers."""
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
            return Answer(lost(session.dataset))
        found = arrivals(names, session.dataset.version, known_latest)
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
