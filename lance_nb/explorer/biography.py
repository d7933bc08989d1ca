"""Requests about the life of one row, which every view with rows answers.

================ ========================================== ====================================
request          args                                       result
================ ========================================== ====================================
biography.find   branch, version, row, lens                 fragment, offset, row_id
biography.keys   branch, version, text                      columns that may be a key
biography.steps  branch, version, fragment, offset, key,    see models.row_history
                 upto (long work)
================ ========================================== ====================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_nb.explorer.messages import Answer, Handler, Job, Progress, integer, words
from lance_nb.explorer.models import text
from lance_nb.explorer.models.change_summary import key_of
from lance_nb.explorer.models.row_history import RowHistoryCache, RowPlace, place_of_row
from lance_nb.explorer.models.schema_tree import type_label
from lance_nb.explorer.models.source import compared_source
from lance_nb.explorer.session import MAX_COUNT, Session, place_of

MAX_STEPS = 500
MAX_KEYS_SHOWN = 24
_MAX_U32 = 2**32 - 1


class Biography:
    """The answers of one session; what was found of a life is kept."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def handlers(self) -> dict[str, Handler]:
        """Return the requests about the lives of rows."""
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
        found = self._session.lens(args).rows(source, ["_rowid", "_rowaddr"], row, 1)
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
