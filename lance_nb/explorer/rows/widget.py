"""The rows of a dataset in a grid that scrolls over any number of them.

Its ES module is ``rows.js``, its models are the parts named below (see ``session.screen``).
Requests beside those of the session (all with ``branch``, ``version``, and what the grid looks at:
``filter``, ``system``, ``arranged``, ``shown``, see ``models.row_query``):

============ ================================= =================================================
request      args                              result
============ ================================= =================================================
rows.look    order, near, within, choice,      num_rows, num_columns, pinned, arranged, shown,
             search (long work)                words, reads, code, filter (with the condition of a
                                               search), found_by: _distance or _score, search,
                                               index: the card of one that was missing
rows.hold    before, ranges, row (long work)   row, ranges: where these rows are now, words
rows.like    row, column                       like: the key of this vector, for ``near``
rows.words   row, column                       search: for words of this text, see ``search``
rows.columns text                              columns found by name: {at (null: hidden), raw, name,
                                               type, sql}
rows.names                                     all columns, groups: see models.column_choice
rows.profile first, count, num_rows (beside)   profiles: see models.column_profile
rows.cross   columns, conditions (beside)      profiles of a sample: see models.cross_filter
rows.exact   column, conditions (long work)    profile of every row: see models.column_profile
rows.range   column, low, high, closed, ms     where: the condition, see models.filter_conditions
             column, odd, place                where: the condition of values beside the bars
rows.value   row, column, without              where: the condition that picks this value, or all
                                               others and nulls
rows.row     row                               nodes: see models.row_detail
rows.media   row, column, offset               what the value is, size, + a piece of its bytes
rows.thumbs  row, count, column                thumbs: {at, mime, width, height}, + their bytes
rows.text    ranges, columns, form             text for the clipboard, rows
rows.export  what, name, order, ranges, a      path, rows, bytes, code: see models.row_export
             (long work)
============ ================================= =================================================

``order`` is a list of ``{column, ascending}``, ``near`` ``{like, k, metric}``, ``choice`` names
columns in ``{pinned, shown, hidden, order}``, ``search`` ``{text, columns, any}`` (see
``models.full_text_search``), ``within`` ``{rows, label}`` rows that a view chose, by the
key that ``RowOrderCache.keep_rows`` gave. ``keep`` is the key of an order that is still right.
``conditions`` is a list of ``[column or null, condition]``, which together are the filter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa

from lance_nb.code_lines import Python
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.explorer import cells, media, text
from lance_nb.explorer import version_refs as refs
from lance_nb.explorer.messages import Answer, Job, Progress, integer, words
from lance_nb.explorer.picture_view import View
from lance_nb.explorer.rows.column_choice import (
    USUAL_COLUMNS,
    column_choice_of,
    listed_columns,
)
from lance_nb.explorer.rows.column_profile import MAX_COLUMNS, column_profiles, exact_profile
from lance_nb.explorer.rows.cross_filter import (
    MAX_CONDITIONS,
    Condition,
    CrossFilter,
    crossed_profiles,
    exact_crossed_profile,
)
from lance_nb.explorer.rows.filter_conditions import (
    column_sql,
    nested_fields,
    odd_condition,
    other_values_condition,
    path_sql,
    range_condition,
    stored_time,
    value_condition,
)
from lance_nb.explorer.rows.full_text_search import MAX_CHARS as MAX_SEARCH_CHARS
from lance_nb.explorer.rows.full_text_search import MAX_COLUMNS as MAX_SEARCHED
from lance_nb.explorer.rows.full_text_search import SearchRequest, telling_words
from lance_nb.explorer.rows.grid_rows import GridRequest, grid_rows
from lance_nb.explorer.rows.held_rows import hold_rows, row_ids_at
from lance_nb.explorer.rows.nearest_rows import MAX_NEAR, NearestQuery, recall_words
from lance_nb.explorer.rows.picture import VIEW
from lance_nb.explorer.rows.row_detail import (
    MAX_ROWS,
    CellBytesCache,
    clipboard_markdown,
    clipboard_text,
    row_tree,
)
from lance_nb.explorer.rows.row_export import MAX_NAME_CHARS, ExportRequest, export_rows
from lance_nb.explorer.rows.row_order import SortOrder
from lance_nb.explorer.rows.row_query import MAX_FILTER_CHARS, query_of
from lance_nb.explorer.rows.row_sample import SampleCache
from lance_nb.explorer.schema_tree import type_label
from lance_nb.explorer.session import (
    MAX_COUNT,
    MAX_RANGES,
    RecentAnswers,
    RequestHandlers,
    RowOrderCache,
    place_of,
    selection_code,
    selection_of,
)
from lance_nb.explorer.source import (
    Source,
    blob_columns,
    scanned_source,
    writable_dataset,
)
from lance_nb.explorer.widget import LanceWidget

MAX_FOUND = 20
MAX_SORT_COLUMNS = 16
_NUMBER_MAX = 1e308


class RowHandlers(RequestHandlers):
    """Handlers about rows."""

    prefix: ClassVar[str] = "rows"

    def on_look(self, args: Mapping[str, Any]) -> Job:
        """Filter, sort, or search for words or for nearest neighbors."""
        source, request = self.source(args), grid_request_of(args, self.session.row_orders)
        place, order_key = place_of(args), args.get("keep")
        if order_key is not None:
            order = self.session.row_orders.order_of(place, order_key)
            request = replace(request, query=replace(request.query, order=order))

        def work(progress: Progress) -> Answer:
            result = grid_rows(source, request, progress)
            row_orders, query = self.session.row_orders, result.query
            key = None if query.order is None else row_orders.keep(place, query.order)
            columns = query.columns or USUAL_COLUMNS
            shown = None if columns == USUAL_COLUMNS else row_orders.keep_columns(columns)
            return Answer(result.to_json() | {"arranged": key, "shown": shown})

        return Job(work)

    def on_hold(self, args: Mapping[str, Any]) -> Job:
        """Find the selected rows, and the one of the keyboard, among those that are shown now."""
        before, row = args.get("before"), args.get("row")
        if not isinstance(before, Mapping):
            raise InvalidInputError("before must be an object {branch, version, filter, arranged}")
        source, query = self.source(before), self.session.query(before)
        target, shown = self.source(args), self.session.query(args)
        ranges = list(selection_of({"ranges": args.get("ranges")}, query).ranges)
        row = None if row is None else integer(args, "row", low=0, high=MAX_COUNT)

        def work(progress: Progress) -> Answer:
            held = hold_rows(
                source, row_ids_at(source, query, ranges), target, query=shown, progress=progress
            )
            words_shown, place = held.words, None
            if row is not None:
                ids = row_ids_at(source, query, [(row, row + 1)])
                held_here = hold_rows(source, ids, target, query=shown, progress=progress)
                place = int(held_here.positions[0]) if held_here.positions.size else None
                words_shown = words_shown or held_here.words
            return Answer(
                {"row": place, "ranges": held.ranges()[:MAX_RANGES], "words": words_shown}
            )

        return Job(work)

    def on_like(self, args: Mapping[str, Any]) -> Answer:
        """Keep the vector of a row, to search for its nearest neighbors."""
        name, scalar = self._cell(args)
        kind = scalar.type
        if not pa.types.is_fixed_size_list(kind):
            raise NotSupportedError(f"{name!r} has no vectors of a fixed length")
        if not scalar.is_valid:
            raise InvalidInputError("this row has no vector")
        source, query = self.source(args), self.session.query(args)
        row = integer(args, "row", low=0, high=MAX_COUNT)
        row_id = query.rows(source, ["_rowid"], row, 1)["_rowid"][0].as_py()
        taken = refs.opened(source).attribute("take_rows").call([row_id], [name])
        code = Python(f"{taken.code}[0][0].as_py()")
        return Answer({
            "like": self.session.row_orders.keep_vector(NearestQuery(name, scalar, code)),
            "row": text.count(row),
            "column": text.name(name),
            "dimension": kind.list_size,
        })  # fmt: skip

    def on_words(self, args: Mapping[str, Any]) -> Answer:
        """Choose words of a text, to search for texts like it."""
        name, scalar = self._cell(args)
        if not cells.is_text(scalar.type):
            raise NotSupportedError(f"values of {name!r} are not texts")
        written = cells.scalar_text(scalar) if scalar.is_valid else ""
        telling = telling_words(self.source(args), name, written)
        return Answer({"search": {"text": " ".join(telling), "columns": [name], "any": True}})

    def on_recall(self, args: Mapping[str, Any]) -> Job:
        """Compare the neighbors that an index finds with those of an exact search."""
        source = scanned_source(self.source(args))
        request = grid_request_of(args, self.session.row_orders)
        if request.nearest is None:
            raise InvalidInputError("near must be an object {like, k, metric, exact}")
        nearest = request.nearest

        def work(progress: Progress) -> Answer:
            words_shown = recall_words(source, nearest, request.query.filter, progress)
            return Answer({"words": words_shown})

        return Job(work)

    def _cell(self, args: Mapping[str, Any]) -> tuple[str, pa.Scalar]:
        """Read the value at a row and column of the grid."""
        source, query = self.source(args), self.session.query(args)
        name = self._name(args)
        row = integer(args, "row", low=0, high=MAX_COUNT)
        column = query.rows(source, [name], row, 1).column(0)
        if not len(column):
            raise InvalidInputError(f"row {row:,} does not exist")
        return name, cells.plain(column)[0]

    def _name(self, args: Mapping[str, Any]) -> str:
        names = self.session.query(args).names(self.source(args))
        return names[integer(args, "column", low=0, high=len(names) - 1)]

    def on_columns(self, args: Mapping[str, Any]) -> Answer:
        """Find columns by a part of their name."""
        source = self.source(args)
        needle = words(args, "text", 300).casefold()
        query = self.session.query(args)
        shown = {name: index for index, name in enumerate(query.names(source))}
        hidden = [name for name in query.known_names(source) if name not in shown]
        names = [name for name in (*shown, *hidden) if needle in name.casefold()]
        names.sort(key=lambda name: not name.casefold().startswith(needle))
        kinds = {field.name: type_label(field.type) for field in source.schema}
        columns = [
            {"at": shown.get(name), "raw": name, "name": text.name(name),
             "type": kinds.get(name, ""), "sql": column_sql(name)}
            for name in names[:MAX_FOUND]
        ]  # fmt: skip
        inner = nested_fields(source.schema, needle)
        columns += [
            {"at": shown.get(path[0]), "raw": path[0], "name": text.name(".".join(path)),
             "type": type_label(kind), "sql": path_sql(path)}
            for path, kind in inner[: MAX_FOUND - len(columns)]
        ]  # fmt: skip
        return Answer({"columns": columns, "found": len(names) + len(inner)})

    def on_names(self, args: Mapping[str, Any]) -> Answer:
        """List the columns that the grid can show, with their groups."""
        source = self.source(args)
        names = self.session.query(args).ordered_names(source)
        return Answer(listed_columns(source.schema, names))

    def on_profile(self, args: Mapping[str, Any]) -> Job:
        """Profile the columns in sight from a sample, beside what a person does meanwhile."""
        source, query = self.source(args), self.session.query(args)
        first, num_rows = (
            integer(args, key, low=0, high=MAX_COUNT) for key in ("first", "num_rows")
        )
        count = integer(args, "count", low=1, high=MAX_COLUMNS)

        if query.filter is None and query.order is None:
            num_rows = source.count_rows()
        sample = self.session.keep(SampleCache).of(source)

        def work(progress: Progress) -> Answer:
            profiles = column_profiles(
                source,
                first,
                count,
                query=query,
                num_rows=num_rows,
                progress=progress,
                sample=sample,
            )
            self.session.keep(RecentAnswers).add_profiles(args, profiles)
            return Answer({"profiles": [profile.to_json() for profile in profiles]})

        return Job(work)

    def on_cross(self, args: Mapping[str, Any]) -> Job:
        """Profile columns by the rows of the sample that pass conditions, beside other work."""
        source, cross = self.source(args), self._cross_filter(args)
        columns = args.get("columns")
        if not isinstance(columns, list) or len(columns) > MAX_COLUMNS:
            raise InvalidInputError(f"columns must be a list of up to {MAX_COLUMNS} positions")
        places = [
            integer({"column": column}, "column", low=0, high=MAX_COUNT) for column in columns
        ]

        def work(progress: Progress) -> Answer:
            profiles = crossed_profiles(source, cross, places, progress)
            self.session.keep(RecentAnswers).add_profiles(args, profiles.profiles)
            return Answer(profiles.to_json())

        return Job(work)

    def _cross_filter(self, args: Mapping[str, Any]) -> CrossFilter:
        shown = self.session.keep(RecentAnswers).profiles(
            {**args, "filter": None, "arranged": None}
        )
        sample = self.session.keep(SampleCache).of(self.source(args))
        return CrossFilter(sample, self.session.query(args), _conditions(args), shown)

    def on_exact(self, args: Mapping[str, Any]) -> Job:
        """Profile one column from every row."""
        source, query = scanned_source(self.source(args)), self.session.query(args)
        column = integer(args, "column", low=0, high=MAX_COUNT)
        cross = self._cross_filter(args) if "conditions" in args else None

        def work(progress: Progress) -> Answer:
            if cross is None:
                profile = exact_profile(source, column, query, progress)
            else:
                profile = exact_crossed_profile(source, cross, column, progress)
            self.session.keep(RecentAnswers).add_profiles(args, [profile])
            return Answer({"profile": profile.to_json()})

        return Job(work)

    def on_range(self, args: Mapping[str, Any]) -> Answer:
        """Return the condition of a range of a histogram."""
        name = self._name(args)
        names = self.source(args).schema.names
        if name not in names:
            raise NotSupportedError(f"{name} is not a column of the schema")
        field = self.source(args).schema.field(name)
        if "odd" in args:
            where = odd_condition(field, words(args, "odd", 20), _place(args, "place"))
            return Answer({"where": where})
        low, high = (_place(args, end) for end in ("low", "high"))
        if args.get("ms") is True:
            low, high = (stored_time(field.type, end) for end in (low, high))
        return Answer(
            {"where": range_condition(field, low, high, closed=args.get("closed") is True)}
        )

    def on_value(self, args: Mapping[str, Any]) -> Answer:
        """Write the condition that picks the value of a cell, or all others."""
        condition = other_values_condition if args.get("without") is True else value_condition
        where = condition(*self._cell(args))
        if not where:
            raise NotSupportedError("a value of this type or length cannot be used in a condition")
        return Answer({"where": where})

    def on_row(self, args: Mapping[str, Any]) -> Answer:
        """Read one row as a tree."""
        source, query = self.source(args), self.session.query(args)
        row = integer(args, "row", low=0, high=MAX_COUNT)
        table = query.rows(source, query.names(source), row, 1)
        nodes = row_tree(table) if table.num_rows else []
        blobs = blob_columns(source)
        for node, name in zip(nodes, query.names(source), strict=False):
            if name in blobs and node.get("look") != "null":
                node["look"] = "bytes"
        return Answer({"nodes": nodes})

    def on_media(self, args: Mapping[str, Any]) -> Answer:
        """Return the media type of a cell, and a piece of its bytes if they can be shown."""
        row, column, offset = (
            integer(args, key, low=0, high=MAX_COUNT) for key in ("row", "column", "offset")
        )
        cache = self.session.keep(CellBytesCache)
        media_file = cache.open(self.source(args), self.session.query(args), row, column)
        if media_file is None:
            return Answer({"null": True})
        shown = media_file.media.kind != "bytes" and not media_file.media.why
        pieces = (media_file.read(offset, media.PIECE_BYTES),) if shown else ()
        result = media_file.media.to_json() | {"null": False, "size": media_file.size_bytes}
        return Answer(result, pieces)

    def on_thumbs(self, args: Mapping[str, Any]) -> Answer:
        """Return the thumbnails of some rows of a column."""
        row = integer(args, "row", low=0, high=MAX_COUNT)
        rows = integer(args, "count", low=1, high=media.THUMBNAIL_ROWS)
        source, name = self.source(args), self._name(args)
        column = cells.plain(self.session.query(args).rows(source, [name], row, rows).column(0))
        if not cells.is_binary(column.type):
            raise NotSupportedError(f"values of {name!r} are not binary")
        images = media.thumbnails(column)
        about = [image.to_json(row) for image in images]
        return Answer({"thumbs": about}, tuple(image.data for image in images))

    def on_text(self, args: Mapping[str, Any]) -> Answer:
        """Write rows for the clipboard."""
        source: Source = self.source(args)
        selection = selection_of(args, self.session.query(args))
        form = args.get("form", "text")
        if form not in ("text", "markdown", "code"):
            raise InvalidInputError("form must be text, markdown or code")
        if form == "code":
            rows = selection.num_rows
            return Answer({"text": selection_code(source, selection), "rows": rows, "wanted": rows})
        first = sorted(selection.ranges)[:1]
        some = [(start, min(stop, start + MAX_ROWS)) for start, stop in first]
        table = replace(selection, ranges=tuple(some)).table(source)
        if len(selection.ranges) > 1:
            table = selection.table(source).slice(0, MAX_ROWS)
        clipboard = clipboard_text(table) if form == "text" else clipboard_markdown(table)
        return Answer(
            {"text": clipboard.text, "rows": clipboard.rows, "wanted": selection.num_rows}
        )

    def on_export(self, args: Mapping[str, Any]) -> Job:
        """Write rows to a file in the working folder of the kernel."""
        source, query = writable_dataset(self.source(args)), self.session.query(args)
        extent, name = words(args, "what", 20), words(args, "name", MAX_NAME_CHARS)
        if extent not in ("shown", "selected", "changes"):
            raise InvalidInputError("what must be shown, selected or changes")
        request = ExportRequest(name, query, _sort_orders(args.get("order")))
        if extent == "selected":
            request = replace(request, ranges=selection_of(args, query).ranges)
        if extent == "changes":
            before = args.get("a")
            if not isinstance(before, Mapping):
                raise InvalidInputError("a must be an object {branch, version}")
            request = replace(request, since=place_of(before))
        return Job(lambda progress: Answer(export_rows(source, request, progress).to_json()))


def grid_request_of(args: Mapping[str, Any], row_orders: RowOrderCache) -> GridRequest:
    """Take what is asked for from the arguments of a request. Raises InvalidInputError."""
    order, near, within = args.get("order"), args.get("near"), args.get("within")
    query = replace(query_of(args), columns=column_choice_of(args))
    request = GridRequest(query, search=_search_request(args))
    if within is not None:
        if not isinstance(within, Mapping):
            raise InvalidInputError("within must be an object {rows, label}")
        request = replace(
            request, within=row_orders.chosen_rows(place_of(args), within.get("rows"))
        )
    if near is not None:
        if not isinstance(near, Mapping):
            raise InvalidInputError("near must be an object {like, k, metric, exact}")
        k, metric = integer(near, "k", low=1, high=MAX_NEAR), words(near, "metric", 20)
        request = replace(request, allows_index=near.get("exact") is not True)
        return replace(
            request, nearest=replace(row_orders.vector(near.get("like")), k=k, metric=metric)
        )
    return replace(request, order=_sort_orders(order))


def _search_request(args: Mapping[str, Any]) -> SearchRequest | None:
    """Take a search from the arguments of a request. Raises InvalidInputError."""
    search = args.get("search")
    if search is None:
        return None
    if not isinstance(search, Mapping):
        raise InvalidInputError("search must be an object {text, columns, any}")
    columns, any_word = search.get("columns"), search.get("any", False)
    if not isinstance(any_word, bool):
        raise InvalidInputError("any must be true or false")
    if columns is not None:
        if not isinstance(columns, list) or len(columns) > MAX_SEARCHED:
            raise InvalidInputError(f"columns must be a list of up to {MAX_SEARCHED} names")
        columns = tuple(words({"column": column}, "column", 4000) for column in columns)
    return SearchRequest(words(search, "text", MAX_SEARCH_CHARS), columns, any_word)


def _sort_orders(value: object) -> tuple[SortOrder, ...]:
    if not isinstance(value, list | None):
        raise InvalidInputError("order must be a list of objects {column, ascending}")
    orders = []
    for order in value or []:
        if not isinstance(order, Mapping) or not isinstance(order.get("ascending"), bool):
            raise InvalidInputError("order must be a list of objects {column, ascending}")
        orders.append(SortOrder(words(order, "column", 4000), order["ascending"]))
    if len(orders) > MAX_SORT_COLUMNS:
        raise InvalidInputError(f"rows can be sorted by at most {MAX_SORT_COLUMNS} columns")
    if len({order.column for order in orders}) < len(orders):
        raise InvalidInputError("order names a column twice")
    return tuple(orders)


def _conditions(args: Mapping[str, Any]) -> list[Condition]:
    given_conditions = args.get("conditions")
    if not isinstance(given_conditions, list) or len(given_conditions) > MAX_CONDITIONS:
        raise InvalidInputError(f"conditions must be a list of up to {MAX_CONDITIONS} pairs")
    conditions = []
    for condition in given_conditions:
        if not isinstance(condition, list) or len(condition) != 2:
            raise InvalidInputError("a condition must be a pair [column or null, condition]")
        pair = dict(zip(("column", "where"), condition, strict=True))
        column = None if pair["column"] is None else words(pair, "column", 4000)
        conditions.append(Condition(column, words(pair, "where", MAX_FILTER_CHARS)))
    return conditions


def _place(args: Mapping[str, Any], key: str) -> float | None:
    value = args.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInputError(f"{key} must be a number")
    if not -_NUMBER_MAX <= value <= _NUMBER_MAX:
        raise InvalidInputError(f"{key} must be finite")
    return float(value)


class RowGrid(LanceWidget):
    """The rows of a dataset in a grid that scrolls over any number of them."""

    entry: ClassVar[str] = "rows/rows.js"
    parts: ClassVar[tuple[str, ...]] = ("rows",)
    handlers_type: ClassVar[type[RequestHandlers]] = RowHandlers
    view: ClassVar[View] = VIEW

    @property
    def selection(self) -> pa.Table:
        """The rows and columns selected in the grid, of the version shown."""
        return self._open_session().selection()
