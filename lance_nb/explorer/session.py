"""The open dataset behind one widget: the version shown, and the handlers of requests about it.

A session owns the dataset at the version shown and a few other opened versions. It does not know
about widgets: ``screen`` makes the first screen from the view models, ``handlers`` is the table of
requests for ``messages.handle``. ``RequestHandlers`` is the base of the handlers of one view.

``Selection`` is the selected rows and columns of the grid. ``RowOrderCache`` keeps the orders,
filter matches and query vectors of the grid between requests; the browser refers to them by a key:
``o3`` for an order, ``p4`` for the rows that pass a filter, ``s5`` for rows that a view chose,
``w6`` for an order that it divides, ``v7`` for a vector, ``c8`` for a choice of columns.
``RecentAnswers`` keeps what the browser got last, so that a picture of the screen reads nothing
again; what the browser says is on its screen is in ``Session.on_screen``.

Limits: ``MAX_OPEN`` opened versions are kept; numbers in requests are bounded by ``MAX_COUNT``. A
selection has ``MAX_SELECTED`` rows in at most ``MAX_RANGES`` ranges; columns without rows mean the
first ``MAX_SELECTED`` rows of these columns. The ``MAX_KEPT`` newest orders, matches and vectors
each are kept: an older order must be made again; a filter is evaluated from the start.
``MAX_PAGES`` pages of rows, ``MAX_PROFILED`` versions' profiles and ``MAX_BARS`` described versions
are kept for pictures.
"""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.code_lines import offered
from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.explorer import cells, text
from lance_nb.explorer import version_refs as refs
from lance_nb.explorer.cells import blob_texts
from lance_nb.explorer.error_card import ErrorCard, error_card
from lance_nb.explorer.history import versions
from lance_nb.explorer.history.history_outline import MAX_POINTS, history_outline
from lance_nb.explorer.history.versions import (
    DatasetCard,
    Timeline,
    VersionBar,
    VersionDetail,
    dataset_card,
    version_detail,
)
from lance_nb.explorer.map.placed_map import PlacedMap
from lance_nb.explorer.messages import Answer, Handler, integer, words
from lance_nb.explorer.pictures.picture_wall import picture_columns
from lance_nb.explorer.rows.column_choice import USUAL_COLUMNS, ColumnChoice
from lance_nb.explorer.rows.column_profile import ColumnProfile
from lance_nb.explorer.rows.full_text_search import utf16_places
from lance_nb.explorer.rows.nearest_rows import NearestQuery
from lance_nb.explorer.rows.row_order import FilteredRows, RowOrder, SortedRows
from lance_nb.explorer.rows.row_page import MAX_COLUMNS, MAX_ROWS, RowPage, Window, row_page
from lance_nb.explorer.rows.row_query import MAX_LISTED, RowQuery, query_of
from lance_nb.explorer.source import Source, is_blob_column
from lance_nb.explorer.storage.storage_report import SpaceUse
from lance_nb.merging.choices import CellChoice
from lance_nb.value_classes import dataclass

Target = str | os.PathLike[str] | Source
MAX_SELECTED = 100_000
MAX_RANGES = 1000
MAX_VALUE_CHARS = 100_000
MAX_COUNT = 2**53
MAX_KEPT = 4
MAX_KEY_CHARS = 24
MAX_OPEN = 8
FIRST_WINDOW = Window(limit=60, num_columns=40)
FIRST_PAGE_BYTES = 120_000
FIRST_QUERY = RowQuery(columns=USUAL_COLUMNS)
MAX_PAGES = 4
MAX_PROFILED = 4
MAX_BARS = 2000

Place = tuple[str | None, int]
Kind = TypeVar("Kind")


def check_target(target: object) -> None:
    """Refuse what cannot be a dataset, before anything is opened."""
    is_dataset = hasattr(target, "checkout_version") and hasattr(target, "version_numbers")
    is_dataset = is_dataset or refs.is_of_other_library(target)
    if not is_dataset and not isinstance(target, (str, os.PathLike)):
        type_name = type(target).__name__
        raise InvalidInputError(
            "expected a path, a URI, a dataset of lance_nb or pylance, or a table of LanceDB, "
            f"got {type_name}"
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """Ranges of positions in the grid that ``query`` shows, and places of columns (none: all)."""

    ranges: tuple[tuple[int, int], ...] = ()
    columns: tuple[int, ...] = ()
    query: RowQuery = field(default_factory=RowQuery)

    @property
    def num_rows(self) -> int:
        """Rows selected."""
        return sum(stop - first for first, stop in self.ranges)

    def table(self, dataset: Source) -> pa.Table:
        """Read the selection, in row order; columns that were chosen in the order of the grid."""
        column_names = self.query.names(dataset)
        names = [
            column_names[column] for column in self.columns if column < len(column_names)
        ] or self.query.read_names(dataset)
        ranges = sorted(self.ranges) or ([(0, MAX_SELECTED)] if self.columns else [(0, 0)])
        if self.query.filter is None and self.query.order is None and self.ranges:
            rows = [row for first, stop in ranges for row in range(first, stop)]
            return dataset.take(rows, names)
        return pa.concat_tables(
            self.query.rows(dataset, names, first, stop - first) for first, stop in ranges
        )


def selection_code(dataset: Source, selection: Selection) -> str:
    """Return the line of Python that reads the selected rows.

    Raises InvalidInputError for many rows that are no one range, or are sorted.
    """
    query, column_names = selection.query, selection.query.names(dataset)
    names = [column_names[column] for column in selection.columns if column < len(column_names)]
    shown = names or query.read_names(dataset)
    stored = [name for name in shown if name != query.found_by]
    columns = None if stored == dataset.schema.names else stored
    opened = refs.opened(dataset)
    ranges = sorted(selection.ranges)
    if len(ranges) == 1 and not isinstance(query.order, SortedRows):
        [(first, stop)] = ranges
        whole = query.order is not None and (first, stop) == (0, query.order.num_rows)
        arguments: dict[str, Any] = {"filter": query.filter, "columns": columns}
        if not whole:
            arguments |= {"offset": first or None, "limit": stop - first}
        arguments = {name: value for name, value in arguments.items() if value is not None}
        return opened.attribute("to_table").call(**arguments).line()
    if selection.num_rows > MAX_LISTED:
        raise InvalidInputError(
            f"code names at most {MAX_LISTED:,} rows that are sorted or not side by side, "
            f"{selection.num_rows:,} are selected"
        )
    more = [] if columns is None else [columns]
    if query.filter is None and query.order is None:
        rows = [row for first, stop in ranges for row in range(first, stop)]
        return opened.attribute("take").call(rows, *more).line()
    ids = [
        row_id for first, stop in ranges
        for row_id in query.rows(dataset, ["_rowid"], first, stop - first)["_rowid"].to_pylist()
    ]  # fmt: skip
    return opened.attribute("take_rows").call(ids, *more).line()


def selection_of(args: Mapping[str, Any], query: RowQuery) -> Selection:
    """Take a selection from the arguments of a request. Raises InvalidInputError."""
    ranges, columns = args.get("ranges"), args.get("columns", [])
    if not isinstance(ranges, list) or len(ranges) > MAX_RANGES:
        raise InvalidInputError(
            f"ranges must be a list of at most {MAX_RANGES} pairs (first row, row after the last)"
        )
    if not isinstance(columns, list) or len(columns) > MAX_RANGES:
        raise InvalidInputError(f"columns must be a list of at most {MAX_RANGES} column positions")
    places = sorted(
        {integer({"column": column}, "column", low=0, high=MAX_COUNT) for column in columns}
    )
    selection = Selection(tuple(map(_range, ranges)), tuple(places), query)
    if selection.num_rows > MAX_SELECTED:
        raise InvalidInputError(f"at most {MAX_SELECTED:,} rows can be selected")
    return selection


def _range(pair: object) -> tuple[int, int]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise InvalidInputError("a range must be a pair [first, stop]")
    first, stop = (integer({"row": n}, "row", low=0, high=MAX_COUNT) for n in pair)
    return first, max(first, stop)


class RowOrderCache:
    """Orders and vectors by key."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, tuple[Any, Any]] = OrderedDict()
        self._num_entries = 0

    def keep(self, place: object, arrangement: RowOrder) -> str:
        """Keep an order of the rows of one version and return its key."""
        return self._keep("p" if isinstance(arrangement, FilteredRows) else "o", place, arrangement)

    def keep_rows(self, place: object, row_ids: npt.NDArray[np.uint64]) -> str:
        """Keep rows of one version that a view chose, by row id; returns their key."""
        is_ascending = bool((row_ids[1:] > row_ids[:-1]).all())
        return self._keep("s", place, row_ids if is_ascending else np.unique(row_ids))

    def keep_sections(self, place: object, arrangement: RowOrder) -> str:
        """Keep an order that a view divides into sections, beside those of the grid."""
        return self._keep("w", place, arrangement)

    def chosen_rows(self, place: object, key: object) -> npt.NDArray[np.uint64]:
        """Return the row ids, ascending, that were chosen. Raises InvalidInputError."""
        known_place, ids = self._entry(key)
        if ids is None or not str(key).startswith("s"):
            raise InvalidInputError("these rows are no longer cached: choose them again")
        if known_place != place:
            raise InvalidInputError("these rows were chosen in another version: choose them again")
        chosen: npt.NDArray[np.uint64] = ids
        return chosen

    def keep_columns(self, choice: ColumnChoice) -> str:
        """Keep a choice of columns, of any version, and return its key."""
        return self._keep("c", None, choice)

    def columns(self, key: object) -> ColumnChoice:
        """Return a choice of columns by its key. Raises InvalidInputError if it was evicted."""
        choice = self._entry(key)[1]
        if not isinstance(choice, ColumnChoice):
            raise InvalidInputError("this choice of columns is no longer cached: choose them again")
        return choice

    def keep_vector(self, query: NearestQuery) -> str:
        """Keep a query vector and return its key."""
        return self._keep("v", None, query)

    def _keep(self, letter: str, where: object, value: object) -> str:
        self._num_entries += 1
        key = f"{letter}{self._num_entries}"
        self._entries[key] = (where, value)
        same = [kept_key for kept_key in self._entries if kept_key.startswith(letter)]
        for old in same[:-MAX_KEPT]:
            del self._entries[old]
        return key

    def order_of(self, place: object, key: object) -> RowOrder | None:
        """Return the order of a version by its key. Raises InvalidInputError if it was evicted."""
        known_place, entry = self._entry(key)
        if entry is None and str(key).startswith("p"):
            return None
        if entry is None or known_place != place:
            raise InvalidInputError("this row order is no longer cached: sort the rows again")
        arrangement: RowOrder = entry
        return arrangement

    def vector(self, key: object) -> NearestQuery:
        """Return a query vector by its key. Raises InvalidInputError if it was evicted."""
        vector = self._entry(key)[1]
        if not isinstance(vector, NearestQuery):
            raise InvalidInputError("this vector is no longer cached: choose its row again")
        return vector

    def _entry(self, key: object) -> tuple[Any, Any]:
        if not isinstance(key, str) or len(key) > MAX_KEY_CHARS:
            raise InvalidInputError("the key of an order must be a short text")
        return self._entries.get(key, (None, None))


class RecentAnswers:
    """Pages of rows, profiles, descriptions of versions and the space of the folder, as sent."""

    def __init__(self, _session: object) -> None:
        self._pages: deque[tuple[object, RowPage]] = deque(maxlen=MAX_PAGES)
        self._profiles: OrderedDict[object, dict[int, ColumnProfile]] = OrderedDict()
        self._bars: OrderedDict[Place, VersionBar] = OrderedDict()
        self.space: SpaceUse | None = None
        self.placed_map: PlacedMap | None = None

    def add_page(self, args: Mapping[str, Any], page: RowPage) -> None:
        """Keep a page; ``args`` name the version and the query that it is of."""
        self._pages.append((_lens(args), page))

    def page(self, args: Mapping[str, Any], row: int) -> RowPage | None:
        """Return the page last sent for these ``args`` that holds a row."""
        for key, page in reversed(self._pages):
            if key == _lens(args) and page.offset <= row < page.offset + max(1, page.num_rows):
                return page
        return None

    def add_profiles(self, args: Mapping[str, Any], profiles: Sequence[ColumnProfile]) -> None:
        """Keep the profiles of some columns."""
        stored = self._profiles.setdefault(_lens(args), {})
        stored.update((profile.column, profile) for profile in profiles)
        while len(self._profiles) > MAX_PROFILED:
            self._profiles.popitem(last=False)

    def profiles(self, args: Mapping[str, Any]) -> Mapping[int, ColumnProfile]:
        """Return the profiles sent for these ``args`` by the place of their column."""
        return self._profiles.get(_lens(args), {})

    def add_bars(self, branch: str | None, bars: Sequence[VersionBar]) -> None:
        """Keep descriptions of versions."""
        self._bars.update(((branch, bar.version), bar) for bar in bars)
        while len(self._bars) > MAX_BARS:
            self._bars.popitem(last=False)

    def described(self, model: Timeline) -> Timeline:
        """Return a timeline with the versions that were described since."""
        lanes = []
        for lane in model.lanes:
            bars = {detail.version: detail for detail in lane.details}
            bars |= {place[1]: bar for place, bar in self._bars.items() if place[0] == lane.branch}
            lanes.append(replace(lane, details=tuple(bars.values())))
        return replace(model, lanes=tuple(lanes))


def _lens(args: Mapping[str, Any]) -> object:
    return tuple(args.get(name) or None for name in ("branch", "version", "filter", "system",
                                                     "arranged", "shown"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The rows part of the first screen: one page, and how much there is beside it."""

    page: RowPage
    num_rows: int
    num_columns: int
    num_pinned: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the part as JSON-able values and binary buffers."""
        return {
            "num_rows": self.num_rows,
            "num_columns": self.num_columns,
            "pinned": self.num_pinned,
            "page": self.page.to_json(),
            "num_buffers": len(self.page.buffers),
            "buffers": list(self.page.buffers),
        }


Part = DatasetCard | Timeline | FirstRows | VersionDetail | ErrorCard


class Session:
    """A dataset being looked at; every method reads only.

    ``locked``: views may not write until a person has opened the lock; ``read_only`` keeps it shut.
    """

    def __init__(self, dataset: Source, *, read_only: bool = False) -> None:
        self.dataset = dataset
        self.read_only = read_only
        self.locked = True
        self._view_states: dict[Callable[[Session], Any], Any] = {}
        self.selected = Selection()
        self.row_orders = RowOrderCache()
        self.parts: dict[str, Part] = {}
        self.on_screen: Mapping[str, Any] = {}
        self.reads_for_pictures = False  # also from a store on the network
        self._opened: OrderedDict[Place, Source] = OrderedDict()
        self._numbers: dict[str | None, Sequence[int]] = {}
        self._keep(dataset)

    def keep(self, kind: Callable[[Session], Kind]) -> Kind:
        """Return the one ``kind(session)`` of this session, the state of a view between requests.

        Made when it is first asked for.
        """
        if kind not in self._view_states:
            self._view_states[kind] = kind(self)
        instance: Kind = self._view_states[kind]
        return instance

    def lock(self, *, locked: bool) -> None:
        """Close or open the write lock. Raises InvalidInputError if the session is read-only."""
        if self.read_only and not locked:
            raise InvalidInputError("this explorer was opened with read_only=True")
        self.locked = locked

    def check_unlocked(self) -> None:
        """Check that the write lock is open. Raises InvalidInputError."""
        if self.locked:
            raise InvalidInputError(
                "this explorer is locked: unlock it in the header before you write"
            )

    def _keep(self, dataset: Source) -> Source:
        self._opened[dataset.branch, dataset.version] = dataset
        self._opened.move_to_end((dataset.branch, dataset.version))
        while len(self._opened) > MAX_OPEN:
            self._opened.popitem(last=False)
        return dataset

    def open(self, place: Place) -> Source:
        """Return the dataset at a branch and version, opened or already open."""
        if place in self._opened:
            return self._keep(self._opened[place])
        return self._keep(self.dataset.checkout_version(place))

    def forget(self, branch: str) -> None:
        """Forget a branch that was deleted: a new branch may get its name."""
        for place in [opened_place for opened_place in self._opened if opened_place[0] == branch]:
            del self._opened[place]
        self._numbers.pop(branch, None)

    def travel(self, ref: str) -> None:
        """Go to the version that ``ref`` names; the version shown is unchanged if that fails."""
        self.dataset = self._keep(self.dataset.checkout_version(ref))
        self.selected = Selection()

    def stand(self, place: Place) -> None:
        """Go to a branch and version; the version shown is unchanged if that fails."""
        self.dataset = self.open(place)
        self.selected = Selection()

    def selection(self) -> pa.Table:
        """Return what is selected of the version shown, in row order."""
        return self.selected.table(self.dataset)

    def query(self, args: Mapping[str, Any], place: Place | None = None) -> RowQuery:
        """Take the query of a grid from the arguments of a request, its order included.

        Raises InvalidInputError, also when the order is no longer kept.
        """
        shown, key = args.get("shown"), args.get("arranged")
        columns = USUAL_COLUMNS if shown is None else self.row_orders.columns(shown)
        query = replace(query_of(args), columns=columns)
        if key is None:
            return query
        return replace(query, order=self.row_orders.order_of(place or place_of(args), key))

    def screen(self, parts: Sequence[str], window: Window = FIRST_WINDOW) -> dict[str, Any]:
        """Return the named parts of the first screen; a part that fails is ``{"error": card}``.

        The binary buffers of the rows are under ``rows.buffers``; the models stay in ``parts``.
        """
        self.parts = {}
        parts_sent = self.parts_json(parts, window)
        self.parts = {part: self.parts[part] for part in parts}
        return {
            "error": None,
            "branch": self.dataset.branch,
            "version": self.dataset.version,
            "label": text.ref_label(self.dataset.branch, self.dataset.version),
            "code": offered(refs.python_line(self.dataset), refs.magic_line(self.dataset)),
            "locked": None if self.read_only else self.locked,
            "offers": self._offers(),
            **{name: parts_sent[name] for name in parts},
        }

    def _offers(self) -> list[str]:
        """Return the tabs and tools that this version has and others may not have."""
        schema = self.dataset.schema
        offers = {
            "pictures": picture_columns(self.dataset),
            "map": cells.vector_columns(schema),
            "search": cells.text_columns(schema),
        }
        return [name for name, columns in offers.items() if columns]

    def parts_json(self, names: Sequence[str], window: Window = FIRST_WINDOW) -> dict[str, Any]:
        """Make the named parts of the screen anew, as ``screen`` does."""
        makers: dict[str, Callable[[], Part]] = {
            "card": lambda: dataset_card(self.dataset, self._latest()),
            "timeline": lambda: versions.timeline(self.dataset),
            "rows": lambda: self._first_rows(window),
            "detail": lambda: version_detail(self.dataset),
        }
        # The timeline first: it lists the versions, and the card need not list them again.
        for name in sorted(names, key=lambda name: name != "timeline"):
            self.parts[name] = _attempt(makers[name])
        return {name: _part_json(self.parts[name]) for name in names}

    def _latest(self) -> int | None:
        """Return the newest version of the branch in view, if the timeline knows it already."""
        timeline = self.parts.get("timeline")
        lanes = timeline.lanes if isinstance(timeline, Timeline) else ()
        runs = [lane.runs[-1] for lane in lanes if lane.branch == self.dataset.branch and lane.runs]
        return sum(runs[0]) - 1 if runs else None

    def _first_rows(self, window: Window) -> FirstRows:
        page = row_page(self.dataset, window, FIRST_PAGE_BYTES, query=FIRST_QUERY)
        num_rows, num_columns = self.dataset.count_rows(), len(self.dataset.schema)
        return FirstRows(page, num_rows, num_columns, FIRST_QUERY.num_pinned(self.dataset))

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers of the session's own requests."""
        return {
            "ready": lambda _args: Answer(),
            "shown": self._on_shown,
            "rows": self._on_rows,
            "versions": self._on_versions,
            "versions.outline": self._on_outline,
            "detail": self._on_detail,
            "cell": self._on_cell,
            "select": self._on_select,
        }

    def _on_shown(self, args: Mapping[str, Any]) -> Answer:
        self.on_screen = args
        return Answer()

    def _on_rows(self, args: Mapping[str, Any]) -> Answer:
        page = row_page(self.open(place_of(args)), window_of(args), query=self.query(args))
        self.keep(RecentAnswers).add_page(args, page)
        return Answer(page.to_json(), page.buffers)

    def _on_versions(self, args: Mapping[str, Any]) -> Answer:
        branch, newest = place_of(args)
        numbers = args.get("numbers")
        if not isinstance(numbers, list) or len(numbers) > versions.MAX_DETAILS:
            raise InvalidInputError(
                f"numbers must be a list of up to {versions.MAX_DETAILS} versions"
            )
        wanted_numbers = sorted({_number(number) for number in numbers})
        source = self.open((branch, newest))
        known_numbers = self._numbers.get(branch, ())
        if not known_numbers or not set(wanted_numbers) <= set(known_numbers):
            known_numbers = self._numbers[branch] = source.version_numbers()
        bars = versions.version_bars(source, wanted_numbers, known_numbers)
        self.keep(RecentAnswers).add_bars(branch, bars)
        return Answer({"branch": branch, "details": [bar.to_json() for bar in bars]})

    def _on_outline(self, args: Mapping[str, Any]) -> Answer:
        numbers = args.get("numbers")
        if not isinstance(numbers, list) or len(numbers) > MAX_POINTS:
            raise InvalidInputError(f"numbers must be a list of up to {MAX_POINTS} versions")
        source = self.open(place_of(args))
        return Answer(history_outline(source, [*map(_number, numbers)]).to_json())

    def _on_detail(self, args: Mapping[str, Any]) -> Answer:
        return Answer(version_detail(self.open(place_of(args))).to_json())

    def _on_cell(self, args: Mapping[str, Any]) -> Answer:
        source = self.open(place_of(args))
        row = integer(args, "row", low=0, high=MAX_COUNT)
        query = self.query(args)
        names = query.names(source)
        index = integer(args, "column", low=0, high=len(names) - 1)
        column = query.rows(source, [names[index]], row, 1).column(0)
        if not len(column):
            raise InvalidInputError(f"row {row:,} does not exist")
        is_blob = is_blob_column(source, names[index])
        shown = cells.scalar_text(column[0], text.CELL_BYTES)
        if is_blob and pa.types.is_struct(column.type):
            shown = blob_texts(column)[0] or "null"
        binary = cells.is_binary(column.type) or is_blob
        result = {"text": shown, "null": not column[0].is_valid, "bytes": binary}
        if query.search is not None and cells.is_text(column.type) and column[0].is_valid:
            result["marks"] = utf16_places(shown, query.search.places(names[index], shown))
        return Answer(result)

    def _on_select(self, args: Mapping[str, Any]) -> Answer:
        place = (self.dataset.branch, self.dataset.version)
        selected = selection_of(args, self.query(args, place))
        if any(stop > self.dataset.count_rows() for _, stop in selected.ranges):
            raise InvalidInputError("a range of rows ends after the last row")
        self.selected = selected
        return Answer({"num_rows": selected.num_rows})


def _number(value: object) -> int:
    return integer({"n": value}, "n", low=0, high=MAX_COUNT)


def _attempt(make: Callable[[], Part]) -> Part:
    """Make one part; a dataset that is damaged in one place still shows the others."""
    try:
        return make()
    except LanceError as error:
        return error_card(error)


def _part_json(part: Part) -> dict[str, Any]:
    return {"error": part.to_json()} if isinstance(part, ErrorCard) else part.to_json()


def read_choice(request: object, read_row: Callable[[object], object]) -> CellChoice:
    """Read a choice, {row, column, take, value}, from a request. Raises InvalidInputError."""
    if not isinstance(request, Mapping):
        raise InvalidInputError("a choice must be {row, column, take, value}")
    row = None if request.get("row") is None else read_row(request["row"])
    column, value = (
        None if request.get(key) is None else words(request, key, MAX_VALUE_CHARS)
        for key in ("column", "value")
    )
    return CellChoice(words(request, "take", 20), row, column, value)


def place_of(args: Mapping[str, Any]) -> Place:
    """Branch and version from the arguments of a request."""
    branch = None if args.get("branch") is None else words(args, "branch", refs.MAX_CHARS)
    return branch, integer(args, "version", low=0, high=MAX_COUNT)


def window_of(args: Mapping[str, Any]) -> Window:
    """Return the window of rows and columns that a request asks for."""
    return Window(
        offset=integer(args, "offset", low=0, high=MAX_COUNT),
        limit=integer(args, "limit", low=1, high=MAX_ROWS),
        first_column=integer(args, "first_column", low=0, high=MAX_COUNT),
        num_columns=integer(args, "num_columns", low=1, high=MAX_COLUMNS),
    )


class RequestHandlers:
    """The request handlers of one view: the method ``on_name`` answers ``prefix.name``."""

    prefix: ClassVar[str] = ""  # without one the request is the name alone

    def __init__(self, session: Session) -> None:
        self.session = session

    def handlers(self) -> dict[str, Handler]:
        """Return the methods by the requests that they answer."""
        dot = "." if self.prefix else ""
        return {
            f"{self.prefix}{dot}{name.removeprefix('on_')}": getattr(self, name)
            for name in dir(type(self))
            if name.startswith("on_")
        }

    def source(self, args: Mapping[str, Any]) -> Source:
        """Return the dataset at the branch and version that a request names."""
        return self.session.open(place_of(args))
