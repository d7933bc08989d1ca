"""What a session keeps of orders and searches between the requests of a grid.

The browser names them by a key: ``o3`` an order, ``p4`` where the rows that pass a filter are,
``v5`` a vector that neighbours are looked for.

Limits: the ``MAX_KEPT`` newest of each. An older order must be made again; a filter goes on
without.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models.row_query import FilteredRows, NearestQuery, RowOrder

MAX_KEPT = 4
MAX_KEY_CHARS = 24


class Arrangements:
    """Orders and vectors by key."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Any, Any]] = OrderedDict()
        self._made = 0

    def keep(self, place: object, arrangement: RowOrder) -> str:
        """Keep the rows of one version in an order of their own; returns the key."""
        return self._keep("p" if isinstance(arrangement, FilteredRows) else "o", place, arrangement)

    def keep_likeness(self, like: NearestQuery) -> str:
        """Keep what neighbours are looked for; returns the key."""
        return self._keep("v", None, like)

    def _keep(self, letter: str, where: object, what: object) -> str:
        self._made += 1
        key = f"{letter}{self._made}"
        self._kept[key] = (where, what)
        same = [one for one in self._kept if one.startswith(letter)]
        for old in same[:-MAX_KEPT]:
            del self._kept[old]
        return key

    def at(self, place: object, key: object) -> RowOrder | None:
        """Return the order of a version by its key. Raises InvalidInputError when it is gone."""
        known, found = self._known(key)
        if found is None and str(key).startswith("p"):
            return None
        if found is None or known != place:
            raise InvalidInputError("this order of the rows is no longer kept: sort them again")
        arrangement: RowOrder = found
        return arrangement

    def likeness(self, key: object) -> NearestQuery:
        """Return what neighbours are looked for. Raises InvalidInputError when it is gone."""
        found = self._known(key)[1]
        if not isinstance(found, NearestQuery):
            raise InvalidInputError("this vector is no longer kept: choose its row again")
        return found

    def _known(self, key: object) -> tuple[Any, Any]:
        if not isinstance(key, str) or len(key) > MAX_KEY_CHARS:
            raise InvalidInputError("the key of an order must be a short text")
        return self._kept.get(key, (None, None))
