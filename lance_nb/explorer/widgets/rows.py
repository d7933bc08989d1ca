"""The rows of a dataset in a grid that scrolls over any number of them.

Its ES module is ``rows.js``, its models are the parts named below (see ``session.screen``).
Requests beside those of the session (all with ``branch``, ``version``, ``filter``, ``system``):

============= =============================== =================================================
request       args                            result
============= =============================== =================================================
rows.look     (long work)                     num_rows, num_columns, code: see models.lens
rows.columns  text                            columns whose name holds the text: {at, name, type}
rows.profile  first, count, num_rows          profiles: see models.column_profile
rows.row      row                             nodes: see models.row_tree
============= =============================== =================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lance_nb.explorer.messages import Answer, Handler, Job, Progress, integer, words
from lance_nb.explorer.models import text
from lance_nb.explorer.models.column_profile import MAX_COLUMNS, column_profiles
from lance_nb.explorer.models.lens import lens_code, lens_of
from lance_nb.explorer.models.row_tree import row_tree
from lance_nb.explorer.models.schema_tree import type_label
from lance_nb.explorer.models.source import Source
from lance_nb.explorer.session import MAX_COUNT, Session, place_of
from lance_nb.explorer.widget import LanceWidget

MAX_FOUND = 20


class RowGrid(LanceWidget):
    """The rows of a dataset in a grid that scrolls over any number of them."""

    entry: ClassVar[str] = "widgets/rows.js"
    parts: ClassVar[tuple[str, ...]] = ("rows",)

    @classmethod
    def answers(cls, session: Session) -> dict[str, Handler]:
        """Return the requests about rows."""
        return _Answers(session).handlers()


class _Answers:
    def __init__(self, session: Session) -> None:
        self._session = session

    def handlers(self) -> dict[str, Handler]:
        return {
            "rows.look": self._on_look,
            "rows.columns": self._on_columns,
            "rows.profile": self._on_profile,
            "rows.row": self._on_row,
        }

    def _source(self, args: Mapping[str, Any]) -> Source:
        return self._session.open(place_of(args))

    def _on_look(self, args: Mapping[str, Any]) -> Job:
        source, lens = self._source(args), lens_of(args)

        def work(_progress: Progress) -> Answer:
            count = source.count_rows() if lens.filter is None else source.count_rows(lens.filter)
            result = {"num_rows": count, "num_columns": len(lens.names(source))}
            return Answer(result | {"code": lens_code(source, lens)})

        return Job(work)

    def _on_columns(self, args: Mapping[str, Any]) -> Answer:
        source = self._source(args)
        wanted = words(args, "text", 300).casefold()
        names = lens_of(args).names(source)
        found = [at for at, name in enumerate(names) if wanted in name.casefold()]
        found.sort(key=lambda at: (not names[at].casefold().startswith(wanted), at))
        kinds = [type_label(field.type) for field in source.schema]
        columns = [
            {"at": at, "name": text.name(names[at]), "type": kinds[at] if at < len(kinds) else ""}
            for at in found[:MAX_FOUND]
        ]
        return Answer({"columns": columns, "found": len(found)})

    def _on_profile(self, args: Mapping[str, Any]) -> Answer:
        profiles = column_profiles(
            self._source(args),
            integer(args, "first", low=0, high=MAX_COUNT),
            integer(args, "count", low=1, high=MAX_COLUMNS),
            lens_of(args),
            integer(args, "num_rows", low=0, high=MAX_COUNT),
        )
        return Answer({"profiles": [one.to_json() for one in profiles]})

    def _on_row(self, args: Mapping[str, Any]) -> Answer:
        source, lens = self._source(args), lens_of(args)
        row = integer(args, "row", low=0, high=MAX_COUNT)
        found = lens.rows(source, lens.names(source), row, 1)
        return Answer({"nodes": row_tree(found) if found.num_rows else []})
