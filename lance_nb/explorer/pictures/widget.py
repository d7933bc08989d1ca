"""The pictures of a column on a wall: by group, near duplicates, doubtful labels, changes.

Its ES module is ``picture_wall.js``, its model ``models.picture_wall``. Requests; ``query`` is that
of the grid (filter, system, arranged, shown), ``place`` branch and version:

================ ============================= ==================================================
request          args                          result
================ ============================= ==================================================
wall.columns     place                         pictures, captions, groups, vectors, labels:
                                               {raw, label}, pictures and vectors with their
                                               place (at), vectors with a metric
wall.tiles       place, query, column, caption, tiles, at (of the column), + the pictures
                 row, count
wall.changed     a, b, key, column, row, count pairs: [before, after] tiles, + the pictures
wall.groups      place, query, column (long     arranged, code, and see ``Sections.to_json``
                 work)
wall.duplicates  place, filter, vectors,       the same
                 threshold (long work)
wall.doubts      place, filter, vectors, label the same
                 (long work)
wall.changes     a, b, key, column (long work) arrived, removed: {arranged, count, place};
                                               changed: {count}; words
wall.condition   place, query, ranges          where: the condition that picks these rows; rows
================ ============================= ==================================================

Limits: those of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa

from lance_nb.code_lines import magic, offered
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.explorer import cells, text
from lance_nb.explorer import version_refs as refs
from lance_nb.explorer.changes.change_summary import DiffCache, key_of
from lance_nb.explorer.messages import Answer, Handler, Job, Progress, integer, words
from lance_nb.explorer.picture_view import View
from lance_nb.explorer.pictures.picture import VIEW
from lance_nb.explorer.pictures.picture_wall import (
    MAX_TILES,
    Sections,
    changed_tiles,
    doubt_sections,
    duplicate_sections,
    group_rows,
    picture_changes,
    picture_columns,
    row_condition,
    tiles,
)
from lance_nb.explorer.rows.column_choice import USUAL_COLUMNS
from lance_nb.explorer.rows.held_rows import row_ids_at
from lance_nb.explorer.rows.row_query import query_of
from lance_nb.explorer.session import (
    MAX_COUNT,
    RequestHandlers,
    Session,
    place_of,
    selection_of,
)
from lance_nb.explorer.source import Source
from lance_nb.explorer.widget import LanceWidget
from lance_nb.table.diff import Diff

MAX_NAME = 4000


class WallHandlers(RequestHandlers):
    """Handlers about the wall of pictures."""

    prefix: ClassVar[str] = "wall"

    def on_columns(self, args: Mapping[str, Any]) -> Answer:
        """Return the columns that a wall can be made of."""
        source = self.source(args)
        flat = [field for field in source.schema
                if not cells.is_nested(field.type) and not cells.is_binary(field.type)]  # fmt: skip
        labels = [field for field in flat if _is_label(field.type)]
        vectors = [field for field in source.schema if _is_vector(field.type)]
        return Answer(
            {
                "pictures": [_placed(source, name) for name in picture_columns(source)],
                "captions": [_named(field.name) for field in flat],
                "groups": [_named(field.name) for field in flat],
                "vectors": [
                    _placed(source, field.name) | {"metric": _metric(field.type)}
                    for field in vectors
                ],
                "labels": [_named(field.name) for field in labels],
            }
        )

    def on_tiles(self, args: Mapping[str, Any]) -> Answer:
        """Return some rows as tiles, with their pictures."""
        source, query = self.source(args), self.session.query(args)
        column, caption = words(args, "column", MAX_NAME), _optional(args, "caption")
        row = integer(args, "row", low=0, high=MAX_COUNT)
        rows = integer(args, "count", low=1, high=MAX_TILES)
        found_tiles, sent = tiles(source, query, column, caption, range(row, row + rows))
        names = query.names(source)
        column_index = names.index(column) if column in names else None
        return Answer(
            {"tiles": [tile.to_json() for tile in found_tiles], "at": column_index}, tuple(sent)
        )

    def on_changed(self, args: Mapping[str, Any]) -> Answer:
        """Return rows that changed, before and after."""
        row = integer(args, "row", low=0, high=MAX_COUNT)
        rows = integer(args, "count", low=1, high=MAX_TILES)
        column = words(args, "column", MAX_NAME)
        pairs, sent = changed_tiles(self._diff(args), column, range(row, row + rows))
        shown = [[tile.to_json() for tile in pair] for pair in pairs]
        return Answer({"pairs": shown}, tuple(sent))

    def _diff(self, args: Mapping[str, Any]) -> Diff:
        ends = args.get("a"), args.get("b")
        if not all(isinstance(end, Mapping) for end in ends):
            raise InvalidInputError("a and b must be objects {branch, version}")
        a, b = (place_of(place) for place in ends if isinstance(place, Mapping))
        return self.session.keep(DiffCache).diff(a, b, key_of(args))

    def on_groups(self, args: Mapping[str, Any]) -> Job:
        """Group the rows that are shown by a column."""
        source, query = self.source(args), self.session.query(args)
        column = words(args, "column", MAX_NAME)

        def work(progress: Progress) -> Answer:
            shown = source.count_rows() if query.order is None else query.order.num_rows
            return self._sections_answer(
                args, group_rows(source, query, column, num_rows=shown, progress=progress)
            )

        return Job(work)

    def on_duplicates(self, args: Mapping[str, Any]) -> Job:
        """Find near duplicates among the rows that pass the filter."""
        source, query = _writable(self.source(args)), query_of(args)
        vectors, threshold = words(args, "vectors", MAX_NAME), args.get("threshold")
        if threshold is not None and not isinstance(threshold, (int, float)):
            raise InvalidInputError("threshold must be a number")

        def work(progress: Progress) -> Answer:
            duplicates = source.near_duplicates(
                vectors, threshold=threshold, filter=query.filter, progress=progress
            )
            arguments = {"threshold": threshold, "filter": query.filter}
            arguments = {name: value for name, value in arguments.items() if value is not None}
            python = refs.opened(source).attribute("near_duplicates").call(vectors, **arguments)
            flags = {"--by": vectors, "--where": query.filter}
            if threshold is not None:
                flags["--threshold"] = str(threshold)
            code = offered(python, magic("duplicates", options=flags))
            return self._sections_answer(args, duplicate_sections(duplicates, vectors), code)

        return Job(work)

    def on_doubts(self, args: Mapping[str, Any]) -> Job:
        """Find rows whose neighbours mostly have another label."""
        source, query = _writable(self.source(args)), query_of(args)
        vectors, label = words(args, "vectors", MAX_NAME), words(args, "label", MAX_NAME)

        def work(progress: Progress) -> Answer:
            doubts = source.label_doubts(vectors, label, filter=query.filter, progress=progress)
            arguments = {} if query.filter is None else {"filter": query.filter}
            python = refs.opened(source).attribute("label_doubts").call(vectors, label, **arguments)
            flags = {"--by": vectors, "--where": query.filter}
            code = offered(python, magic("doubts", label, options=flags))
            return self._sections_answer(args, doubt_sections(doubts, label), code)

        return Job(work)

    def _sections_answer(
        self, args: Mapping[str, Any], sections: Sections, code: dict[str, str] | None = None
    ) -> Answer:
        key = self.session.row_orders.keep_sections(place_of(args), sections.order)
        return Answer(sections.to_json() | {"arranged": key, "code": code})

    def on_changes(self, args: Mapping[str, Any]) -> Job:
        """Find pictures that arrived, were removed or changed between two versions."""
        diff, column = self._diff(args), words(args, "column", MAX_NAME)
        a, b = (place_of(args[end]) for end in "ab")

        def work(progress: Progress) -> Answer:
            progress(0, 0)
            changes = picture_changes(diff, column)
            row_orders = self.session.row_orders
            arrived, removed = changes.arrived.num_rows, changes.removed.num_rows
            words_shown = (
                f"{arrived:,} arrived, {removed:,} removed, {changes.num_changed:,} changed"
            )
            cut = "; the first of each are shown" if changes.is_cut else ""
            return Answer(
                {
                    "arrived": {
                        "arranged": row_orders.keep_sections(b, changes.arrived),
                        "count": arrived,
                    },
                    "removed": {
                        "arranged": row_orders.keep_sections(a, changes.removed),
                        "count": removed,
                    },
                    "changed": {"count": changes.num_changed},
                    "words": f"{text.ref_label(*a)} → {text.ref_label(*b)}: {words_shown}{cut}",
                }
            )

        return Job(work)

    def on_condition(self, args: Mapping[str, Any]) -> Answer:
        """Write the condition that picks rows of the newest version."""
        source, query = self.source(args), self.session.query(args)
        if source.version != source.latest_version:
            raise InvalidInputError(
                "rows are changed in the newest version of a branch: go there first"
            )
        ranges = list(selection_of({"ranges": args.get("ranges")}, query).ranges)
        ids = row_ids_at(source, query, ranges)
        return Answer({"where": row_condition(ids), "rows": int(ids.size)})


def _writable(source: Source) -> LanceDataset:
    if not isinstance(source, LanceDataset):
        raise NotSupportedError(f"rows of {type(source).__name__} cannot be compared by vectors")
    return source


def _is_vector(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_fixed_size_list(kind)
        and (pa.types.is_floating(kind.value_type) or pa.types.is_uint8(kind.value_type))
    )


def _is_label(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(cells.is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _named(name: str) -> dict[str, str]:
    return {"raw": name, "label": text.name(name)}


def _placed(source: Source, name: str) -> dict[str, Any]:
    """Name a column, with its place in the usual order of the grid, as ``rows.like`` counts."""
    columns = USUAL_COLUMNS.names(source.schema.names, source.schema)
    return _named(name) | {"at": columns.index(name)}


def _metric(kind: pa.DataType) -> str:
    return "hamming" if pa.types.is_uint8(kind.value_type) else "cosine"


def _optional(args: Mapping[str, Any], key: str) -> str | None:
    return None if args.get(key) is None else words(args, key, MAX_NAME)


class PictureWall(LanceWidget):
    """The pictures of a dataset side by side: groups, near duplicates, doubtful labels, changes."""

    entry: ClassVar[str] = "pictures/picture_wall.js"
    parts: ClassVar[tuple[str, ...]] = ("card", "timeline", "rows")
    handlers_type: ClassVar[type[RequestHandlers]] = WallHandlers
    view: ClassVar[View] = VIEW

    @classmethod
    def request_handlers(cls, session: Session) -> dict[str, Handler]:
        """Return the requests about the wall."""
        return WallHandlers(session).handlers()
