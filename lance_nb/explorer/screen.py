"""Draw what a view shows of a session: what is in sight, as far as the browser has said it.

Each function draws one view. ``shown`` is what the view says of itself (see ``on_screen`` in
``js/view.js``), empty before it has said anything; it comes from the browser, so it is checked.

===================== ======================================================================
``shown`` of          holds
===================== ======================================================================
rows                  filter, system, arranged, as in a request for rows; row: the one on top
changes               a, b, key, level
storage               fragment: the one that is open
pictures              filter, arranged and so on, as in a request for rows; column, caption, row
map                   box: the left, bottom, right and top of the part in sight
deletions             fragment
===================== ======================================================================

What the browser got is not read again. More is read only from a dataset on this machine, within the
limits below: of another one the picture has what was sent.

A report, which nobody has looked at, has a map by the first column of vectors.

Limits: rows of ``MAX_COMPARED`` rows or fewer are compared for a picture that nobody has looked at;
the space of at most ``MAX_COUNTED`` versions is counted; ``MAX_PLACED`` rows are placed on a map
for a report; thumbnails of ``MAX_IMAGE_COLUMNS``
columns are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, LanceError, NotSupportedError
from lance_nb.explorer import cells, media, text
from lance_nb.explorer import table_drawing as tables
from lance_nb.explorer.changes import picture as changes
from lance_nb.explorer.changes.change_page import change_level, change_page, changed_rows
from lance_nb.explorer.changes.change_summary import (
    DiffCache,
    Place,
    change_counts,
    change_drift,
    key_of,
)
from lance_nb.explorer.drawing import Panel
from lance_nb.explorer.error_card import ErrorCard, error_card
from lance_nb.explorer.history import picture as history
from lance_nb.explorer.history.versions import DatasetCard, Timeline, VersionDetail
from lance_nb.explorer.log.operations_log import operations_log_of
from lance_nb.explorer.map import picture as maps
from lance_nb.explorer.map.embedding_map import (
    SCALE,
    divisor_of,
    fit_projection,
    place_rows,
    vector_columns,
)
from lance_nb.explorer.map.placed_map import PlacedMap
from lance_nb.explorer.map.point_styles import plain_colouring
from lance_nb.explorer.messages import integer, words
from lance_nb.explorer.pictures.picture_wall import MAX_TILES, picture_columns, tiles
from lance_nb.explorer.refs.ref_list import ref_book
from lance_nb.explorer.rows.column_profile import column_profiles
from lance_nb.explorer.rows.row_page import RowPage, Window, row_page
from lance_nb.explorer.rows.row_query import RowQuery
from lance_nb.explorer.session import MAX_COUNT, FirstRows, RecentAnswers, Session, place_of
from lance_nb.explorer.source import is_on_this_machine, scanned_source, stored_source
from lance_nb.explorer.stage import picture as staging
from lance_nb.explorer.stage.card_view import card_json
from lance_nb.explorer.stage.staging_area import staging_area_of
from lance_nb.explorer.storage import picture as storage
from lance_nb.explorer.storage.fragments import (
    deletion_bitmap,
    fragment_detail,
    fragment_map,
    most_deleted,
)
from lance_nb.explorer.storage.storage_report import space_use, storage_health

MAX_COMPARED = 200_000
MAX_COUNTED = 200
MAX_PLACED = 200_000
MAX_IMAGE_COLUMNS = 2
PIXELS = 24_000
_LEVELS = ("rows", "drift", "schema", "transactions", "fragments", "deletions", "indices", "config")

Shown = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """A view by the name under which the browser says what it shows, and how it is drawn."""

    name: str
    draw: Callable[[Session, Shown], list[Panel]]

    def panels(self, session: Session, on_screen: Shown) -> list[Panel]:
        """Draw the view; if that is not possible, why."""
        shown = on_screen.get(self.name) if self.name else on_screen
        try:
            return self.draw(session, shown if isinstance(shown, Mapping) else {})
        except LanceError as error:
            return [history.draw_error(error_card(error))]


def is_near(session: Session) -> bool:
    """Whether a picture may read a little more: the dataset lies here, or that was asked for."""
    return session.reads_for_pictures or is_on_this_machine(session.dataset.uri)


def draw_header(session: Session, _shown: Shown) -> list[Panel]:
    """Draw name, version and figures."""
    card = session.parts.get("card")
    if isinstance(card, ErrorCard):
        return [history.draw_error(card)]
    return [history.draw_card(card)] if isinstance(card, DatasetCard) else []


def draw_versions(session: Session, shown: Shown) -> list[Panel]:
    """Draw the timeline; ``a`` and ``b`` of a comparison are marked on it."""
    model = session.parts.get("timeline")
    if isinstance(model, ErrorCard):
        return [history.draw_error(model, "Versions")]
    if not isinstance(model, Timeline):
        return []
    marks = {end.upper(): place_of(shown[end]) for end in "ab" if isinstance(shown.get(end), dict)}
    return [history.draw_timeline(session.keep(RecentAnswers).described(model), marks)]


def draw_detail(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the version shown in detail."""
    detail = session.parts.get("detail")
    return [history.draw_version(detail)] if isinstance(detail, VersionDetail) else []


def draw_columns(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the schema."""
    detail = session.parts.get("detail")
    return [history.draw_schema(detail)] if isinstance(detail, VersionDetail) else []


def draw_rows_view(session: Session, shown: Shown) -> list[Panel]:
    """Draw the rows that the grid shows."""
    first, dataset = session.parts.get("rows"), session.dataset
    args = {"branch": dataset.branch, "version": dataset.version, **shown}
    row = integer({"row": shown.get("row", 0)}, "row", low=0, high=MAX_COUNT)
    query = session.query(args, (dataset.branch, dataset.version))
    recent, near = session.keep(RecentAnswers), is_near(session)
    page = recent.page(args, row)
    if page is None and isinstance(first, FirstRows) and query == RowQuery():
        holds = first.page.offset <= row < first.page.offset + max(1, first.page.num_rows)
        page = first.page if holds else None
    if page is None and not near:
        raise NotSupportedError("these rows are read when a browser asks for them")
    if page is None:
        page = row_page(dataset, Window(row, tables.MAX_ROWS), query=query)
    num_rows = dataset.count_rows()
    if query.order is not None:
        num_rows = query.order.num_rows
    elif query.filter is not None:
        num_rows = page.offset + page.num_rows  # as far as is known
    profiles = recent.profiles(args) or recent.profiles({**args, "arranged": None})
    if not profiles and near and num_rows:
        drawn_profiles = column_profiles(
            dataset, page.first_column, len(page.columns), query, num_rows
        )
        recent.add_profiles(args, drawn_profiles)
        profiles = recent.profiles(args)
    images = _images(session, page, query, row) if near else {}
    columns = len(query.names(dataset))
    drawn = tables.draw_rows(
        page,
        num_rows=num_rows,
        num_columns=columns,
        first=row,
        filter=query.filter or "",
        search=text.line(query.search.request.text) if query.search else "",
        profiles=profiles,
        images=images,
    )
    return [drawn]


def _images(session: Session, page: RowPage, query: RowQuery, row: int) -> tables.Images:
    """Read the thumbnails of the rows that are drawn, of the first columns that have any."""
    found_images: dict[tuple[int, int], tuple[media.Media, bytes]] = {}
    names = query.names(session.dataset)
    places = [
        position
        for position in tables.drawn_columns(page)
        if "pictures" in page.columns[position].extra
    ]
    for position in places[:MAX_IMAGE_COLUMNS]:
        place = page.first_column + position
        table = query.rows(session.dataset, [names[place]], row, tables.MAX_ROWS)
        column = cells.plain(table.column(0))
        if cells.is_binary(column.type):
            images = media.thumbnails(column)
            found_images |= {(row + image.at, place): (image.media, image.data) for image in images}
    return found_images


def draw_changes_view(session: Session, shown: Shown) -> list[Panel]:
    """Draw the counts of a comparison and the level that is open."""
    b = _end(shown, "b") or (session.dataset.branch, session.dataset.version)
    a = _end(shown, "a") or _before(session, b)
    if a is None:
        panel = Panel("Changes")
        panel.heading()
        panel.paragraph("This is the first version: there is nothing before it to compare with.")
        return [panel]
    diff = session.keep(DiffCache).diff(a, b, key_of(shown))
    counts = change_counts(diff, session.dataset.uri)
    panels = [changes.draw_changes(counts)]
    if diff.a == diff.b or diff.counts.is_empty:
        return panels
    level = words({"level": shown.get("level") or _first_level(counts.chips)}, "level", 40)
    if level not in _LEVELS:
        raise InvalidInputError(f"level must be one of {', '.join(_LEVELS)}")
    is_large = diff.counts.rows_before + diff.counts.rows_after > MAX_COMPARED
    is_known = level == "rows" and diff.found().is_finished
    if level in ("rows", "drift") and not is_known and (is_large or not is_near(session)):
        level = "transactions"
    if level == "rows":
        rows = changed_rows(diff, Window(limit=tables.MAX_ROWS))
        known_counts = rows.found
        total = sum(known_counts[kind] for kind in ("changed", "added", "removed")) if known_counts[
            "is_finished"] else None  # fmt: skip
        return [*panels, changes.draw_level("Rows that differ", rows.page, total)]
    if level == "drift":
        drift = change_drift(diff, 0, 12)
        labels = counts.to_json()
        return [*panels, changes.draw_drift(drift["columns"], (labels["a"], labels["b"]))]
    level_page = change_level(diff, level, 0, tables.MAX_ROWS)
    titles = {chip.id: chip.label for chip in counts.chips}
    page = change_page(level_page.window, 0)
    return [*panels, changes.draw_level(titles[level], page, level_page.num_rows)]


def _first_level(chips: Sequence[Any]) -> str:
    """Return the first level in which something differs, as the tab opens it."""
    for chip in chips:
        if chip.id != "transactions" and (chip.added or chip.removed or chip.changed or chip.note):
            return str(chip.id)
    return "transactions"


def _end(shown: Shown, name: str) -> Place | None:
    place = shown.get(name)
    return place_of(place) if isinstance(place, Mapping) else None


def _before(session: Session, place: Place) -> Place | None:
    """Return the version before one on its branch, or where the branch started."""
    source = session.open(place)
    earlier = [number for number in source.version_numbers() if number < place[1]]
    if earlier:
        return place[0], earlier[-1]
    if place[0] is None:
        return None
    record = source.branches.list().get(place[0])
    return None if record is None else (record.get("parent_branch"), int(record["parent_version"]))


def draw_map_view(session: Session, shown: Shown) -> list[Panel]:
    """Draw the points of the map that was opened last, in the part that is in sight."""
    placed, dataset = session.keep(RecentAnswers).placed_map, session.dataset
    if placed is None and session.reads_for_pictures:
        placed = _placed(session)
    if placed is None or placed.place != (dataset.branch, dataset.version):
        panel = Panel("Map")
        panel.heading()
        panel.paragraph("The rows are placed when the tab of the map is opened with a kernel.")
        return [panel]
    box = shown.get("box")
    sides = box if isinstance(box, list) and len(box) == 4 else [0, 0, SCALE, SCALE]
    inside = [integer({"side": side}, "side", low=0, high=SCALE) for side in sides]
    return [maps.draw_map(placed, inside)]


def _placed(session: Session) -> PlacedMap | None:
    """Place the rows of a dataset that is not large by its first column of vectors."""
    source = scanned_source(session.dataset)
    num_rows, columns = source.stats().num_rows, vector_columns(source.schema)
    if not columns or num_rows > MAX_PLACED:
        return None

    def progress(_done: int, _total: int) -> None:
        """Nobody waits for it."""

    plane = fit_projection(source, columns[0], progress)
    points = place_rows(source, plane, divisor_of(num_rows), progress)
    place = session.dataset.branch, session.dataset.version
    return PlacedMap(place, points, plain_colouring(points))


def draw_wall_view(session: Session, shown: Shown) -> list[Panel]:
    """Draw the pictures that are in sight on the wall."""
    dataset = session.dataset
    panel = Panel("Pictures")
    columns = picture_columns(dataset) if is_near(session) else []
    column = shown.get("column") or (columns[0] if columns else None)
    if column is None or not is_near(session):
        panel.heading()
        panel.paragraph("The pictures are read when their tab is opened with a kernel.")
        return [panel]
    dataset_place = {"branch": dataset.branch, "version": dataset.version}
    place = shown.get("place")
    args = {**dataset_place, **shown, **(place if isinstance(place, Mapping) else {})}
    source, query = session.open(place_of(args)), session.query(args)
    row = integer({"row": shown.get("row", 0)}, "row", low=0, high=MAX_COUNT)
    caption = None if shown.get("caption") is None else words(shown, "caption", 4000)
    name = words({"column": column}, "column", 4000)
    found_tiles, sent = tiles(source, query, name, caption, range(row, row + MAX_TILES))
    title = words(shown, "words", 400) if shown.get("words") else text.name(name)
    return [maps.draw_tiles(panel, title, found_tiles, sent)]


def draw_storage_view(session: Session, shown: Shown) -> list[Panel]:
    """Draw fragments, the one that is open, deleted rows, advice, and the space once counted."""
    source = stored_source(session.dataset)
    panels = draw_fragments_view(session, shown)
    if shown.get("fragment") is not None:
        fragment = integer(shown, "fragment", low=0, high=MAX_COUNT)
        panels.append(storage.draw_fragment(fragment_detail(source, fragment)))
    if most_deleted(source):
        panels += DELETIONS.panels(session, {"deletions": shown})
    panels.append(storage.draw_advice(storage_health(source)))
    return [*panels, *SPACE.panels(session, {})]


def draw_fragments_view(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the map of the fragments."""
    return [storage.draw_fragments(fragment_map(stored_source(session.dataset)))]


def draw_deletions_view(session: Session, shown: Shown) -> list[Panel]:
    """Draw the deleted rows of a fragment: the one that is open, or the one with most."""
    source = stored_source(session.dataset)
    most = most_deleted(source)
    fragment = shown.get("fragment")
    if fragment is None:
        if not most:
            panel = Panel("Deleted rows")
            panel.heading("no row of this version is deleted")
            return [panel]
        fragment = most[0].id
    chosen = integer({"fragment": fragment}, "fragment", low=0, high=MAX_COUNT)
    bitmap = deletion_bitmap(source, chosen, 0, MAX_COUNT, PIXELS)
    return [storage.draw_deletions(bitmap, chosen, most)]


def draw_space_view(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the bytes of the folder: as they were counted, or counted now if that is little work."""
    recent, source = session.keep(RecentAnswers), stored_source(session.dataset)
    if recent.space is None:
        if not is_near(session) or len(source.version_numbers()) > MAX_COUNTED:
            return []
        recent.space = space_use(source.space())
    return [storage.draw_space(recent.space)]


def draw_refs_view(session: Session, _shown: Shown) -> list[Panel]:
    """Draw branches and tags."""
    return [history.draw_refs(ref_book(session.dataset))]


def draw_stage_view(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the cards of the dataset's staging area."""
    dataset = session.dataset
    area = staging_area_of(dataset) if isinstance(dataset, LanceDataset) else None
    return [staging.draw_stage([card_json(card) for card in area.cards] if area else [])]


def draw_checks_view(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the expectations of the version shown."""
    dataset, panel = session.dataset, Panel("Checks")
    expectations = dataset.expectations if isinstance(dataset, LanceDataset) else None
    rows = (
        [(name, expectation.statement) for name, expectation in expectations.list().items()]
        if expectations
        else []
    )
    gate = "the gate is closed" if expectations and expectations.gate else "the gate is open"
    panel.heading(f"{text.plural(len(rows), 'expectation')} · {gate}")
    tables.draw_table(panel, ("name", "expectation"), rows)
    return [panel]


def draw_log_view(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the log of operations."""
    dataset = session.dataset
    if not isinstance(dataset, LanceDataset):
        return [staging.draw_log([])]
    return [staging.draw_log(operations_log_of(dataset.uri).to_json(dataset)["entries"])]


HEADER = View("", draw_header)
VERSIONS = View("changes", draw_versions)
DETAIL = View("", draw_detail)
COLUMNS = View("", draw_columns)
FRAGMENTS = View("", draw_fragments_view)
DELETIONS = View("deletions", draw_deletions_view)
SPACE = View("", draw_space_view)
ROWS = View("rows", draw_rows_view)
CHANGES = View("changes", draw_changes_view)
STORAGE = View("storage", draw_storage_view)
REFS = View("", draw_refs_view)
STAGE = View("", draw_stage_view)
CHECKS = View("", draw_checks_view)
LOG = View("", draw_log_view)
MAP = View("map", draw_map_view)
WALL = View("pictures", draw_wall_view)
# What stands in the tabs of the explorer, by the id that the browser has for a tab.
TABS: Mapping[str, View] = {
    "rows": ROWS,
    "changes": CHANGES,
    "pictures": WALL,
    "map": MAP,
    "storage": STORAGE,
    "refs": REFS,
    "checks": CHECKS,
    "stage": STAGE,
    "log": LOG,
}


def draw_explorer(session: Session, shown: Shown) -> list[Panel]:
    """Draw the explorer: header, timeline, and the tab that is open."""
    tab = words({"tab": shown.get("tab", "rows")}, "tab", 20)
    if tab not in TABS:
        raise InvalidInputError(f"tab must be one of {', '.join(TABS)}")
    marks = shown if tab == "changes" else {}
    return [
        *HEADER.panels(session, {}),
        *VERSIONS.panels(session, marks),
        *TABS[tab].panels(session, shown),
    ]


EXPLORER = View("", draw_explorer)
