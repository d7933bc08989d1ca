"""What the views of changes ask of a dataset beyond ``Source``: diffs and the lives of rows.

``ChangeDesk`` remembers the diffs of a session, so that what was compared once is not compared
again.

Limits: ``MAX_DIFFS`` diffs are kept; a key is at most ``MAX_KEY`` columns.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Protocol

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models.source import Source, compared_source
from lance_nb.table.diff import Diff

MAX_DIFFS = 4
MAX_KEY = 16
MAX_NAME_CHARS = 1000

Place = tuple[str | None, int]
Key = tuple[str, ...] | None


class Opener(Protocol):
    """What opens versions: the session."""

    def open(self, place: Place) -> Source: ...


class ChangeDesk:
    """The diffs that were looked at lately."""

    def __init__(self, session: Opener) -> None:
        self._session = session
        self._diffs: OrderedDict[tuple[Place, Place, Key], Diff] = OrderedDict()

    def diff(self, a: Place, b: Place, key: Key = None) -> Diff:
        """Compare two versions, or return what was found before.

        Raises VersionNotFoundError, InvalidInputError and ColumnNotFoundError for a bad key.
        """
        wanted = a, b, key
        found = self._diffs.get(wanted)
        if found is None:
            found = self._diffs[wanted] = self.passing(a, b, key)
            while len(self._diffs) > MAX_DIFFS:
                self._diffs.popitem(last=False)
        self._diffs.move_to_end(wanted)
        return found

    def passing(self, a: Place, b: Place, key: Key = None) -> Diff:
        """Compare as ``diff`` does, but do not remember it: others were looked at longer."""
        found = self._diffs.get((a, b, key))
        if found is not None:
            return found
        return compared_source(self._session.open(b)).diff(self._session.open(a), key=key)


def key_of(args: Mapping[str, Any]) -> Key:
    """Take the columns that tell rows apart from the arguments of a request, None if none given."""
    names = args.get("key")
    if names is None:
        return None
    fits = isinstance(names, list) and 0 < len(names) <= MAX_KEY
    if not fits or not all(isinstance(one, str) and len(one) <= MAX_NAME_CHARS for one in names):
        raise InvalidInputError(f"key must be a list of up to {MAX_KEY} names of columns")
    return tuple(names)
