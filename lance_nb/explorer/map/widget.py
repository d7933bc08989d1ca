"""The rows of a version as points on a plane, by one of their vector columns.

Its ES module is ``embedding_map.js``, its model ``models.embedding_map``. Requests:

============= ===================================== ===============================================
request       args                                  result
============= ===================================== ===============================================
map.columns   branch, version                       vectors, colours, sizes, keys: {raw, label},
                                                    stable, stored: columns of coordinates,
                                                    vector: whose they are or null
map.place     branch, version, column, colour,      key, pieces, layout, and what the points are,
              size, layout (long work)              see ``PlacedMap.to_json``
map.stage     key, name, branch (long work)         card: the coordinates as a new column, staged
                                                    on the branch, which is created if it is new
map.piece     key, piece                            + buffers: coordinates, codes of colours,
                                                    codes of sizes if they have some
map.colour    key, colour (long work)               colouring, + buffer: codes
map.size      key, size (long work)                 sizing, null for one size; + buffer: codes
map.compare   key, branch, version, match (long     counts, groups: counts by code, words,
              work)                                 + buffers: states, coordinates of removed
                                                    points, ends of moves
map.lasso     key, polygon                          see ``_chosen``, + buffer: a bit for each point
map.group     key, kind, code                       see ``_chosen``
map.point     key, index                            row_id, cells: {name, text}, mime, + picture
============= ===================================== ===============================================

``layout`` is ``components``, ``neighbours`` or ``column:`` and the name of a column of coordinates;
progress of ``neighbours`` is in steps, not in rows.
``key`` names the points of one version: ``m3``. ``pieces``: points travel in so many parts, of
which part ``p`` has the points ``p``, ``p + pieces``, ...: each is a sample of all. The version of
``map.compare`` is the earlier one; ``match`` is a key column, null for row ids. ``kind`` is
``code`` (of the colours), ``arrived``, ``moved``, ``relabelled`` or ``removed``.

Limits: the points of ``MAX_KEPT`` versions are kept; a piece has ``PIECE_POINTS`` points; a polygon
has at most ``MAX_CORNERS`` corners; ``MAX_MOVES`` moves are drawn; ``MAX_CELLS`` cells of a point
are shown.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    InvalidInputError,
    LanceError,
    NotFoundError,
    NotSupportedError,
)
from lance_nb.explorer import cells, media, text
from lance_nb.explorer.map.embedding_map import (
    Plane,
    PointSet,
    divisor_of,
    fit_projection,
    place_rows,
)
from lance_nb.explorer.map.neighbour_layout import (
    STEPS,
    NeighbourLayout,
    fit_layout,
    share_of,
)
from lance_nb.explorer.map.picture import VIEW
from lance_nb.explorer.map.placed_map import (
    ARRIVED,
    MOVED,
    RELABELLED,
    PlacedMap,
    PointChanges,
    changes_by_code,
    compare_points,
    point_keys,
)
from lance_nb.explorer.map.point_styles import (
    Colouring,
    Sizing,
    colour_columns,
    colour_points,
    plain_colouring,
    size_columns,
    size_points,
)
from lance_nb.explorer.map.stored_layout import (
    coordinate_batches,
    coordinate_columns,
    coordinate_field,
    read_stored_layout,
)
from lance_nb.explorer.messages import Answer, Handler, Job, Progress, integer, words
from lance_nb.explorer.picture_view import View
from lance_nb.explorer.session import (
    MAX_COUNT,
    Place,
    RecentAnswers,
    RequestHandlers,
    Session,
    place_of,
)
from lance_nb.explorer.source import ScannedSource, scanned_source
from lance_nb.explorer.stage.edit_forms import COORDINATES, EditForm
from lance_nb.explorer.stage.staging_area import staging_area_of
from lance_nb.explorer.widget import LanceWidget

NEIGHBOURS = "neighbours"
LAYOUTS = ("components", NEIGHBOURS)
STORED = "column:"
FITTED = STEPS * 2 // 3  # what computing a layout takes of the steps; placing has the rest
MAX_KEPT = 3
MAX_CORNERS = 256
MAX_MOVES = 2000
MAX_CELLS = 12
MAX_NAME = 4000
CELL_BYTES = 160
_BITS = {"arrived": ARRIVED, "moved": MOVED, "relabelled": RELABELLED}


class MapHandlers(RequestHandlers):
    """Handlers about the map; keep the projections and the points of some versions."""

    prefix: ClassVar[str] = "map"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._planes: dict[tuple[str, str], tuple[Plane, int]] = {}
        self._maps: OrderedDict[str, PlacedMap] = OrderedDict()
        self._num_placed = 0

    def on_columns(self, args: Mapping[str, Any]) -> Answer:
        """Return the columns that a map can be made of."""
        source = self.source(args)
        schema = source.schema
        keys = [field.name for field in schema
                if pa.types.is_integer(field.type) or cells.is_text(field.type)]  # fmt: skip
        stored = coordinate_columns(schema)
        vectors = [name for name in cells.vector_columns(schema) if stored.get(name) is None]
        return Answer(
            {
                "vectors": _named(vectors),
                "colours": _named(colour_columns(schema)),
                "sizes": _named(size_columns(schema)),
                "keys": _named(keys),
                "stable": bool(getattr(source, "has_stable_row_ids", False)),
                "stored": [
                    {**_named([name])[0], "vector": vector} for name, vector in stored.items()
                ],
            }
        )

    def on_place(self, args: Mapping[str, Any]) -> Job:
        """Place the rows of a version, and colour them."""
        place, source = place_of(args), scanned_source(self.source(args))
        column, colour = words(args, "column", MAX_NAME), _optional(args, "colour")
        size = _optional(args, "size")
        layout = words(args, "layout", len(STORED) + MAX_NAME)
        if layout not in LAYOUTS and not layout.startswith(STORED):
            raise InvalidInputError(f"layout must be {', '.join(LAYOUTS)} or {STORED}NAME")

        def work(progress: Progress) -> Answer:
            placed = self._placed(place, source, (column, layout), progress)
            categories = self._coloured_categories(column, colour)
            placed.colouring = _coloured(
                source, placed, colour, known_values=categories, progress=progress
            )
            placed.sizing = _sized(source, placed, size, progress)
            self._num_placed += 1
            key = f"m{self._num_placed}"
            self._maps[key] = placed
            self.session.keep(RecentAnswers).placed_map = placed
            while len(self._maps) > MAX_KEPT:
                self._maps.popitem(last=False)
            return Answer({"key": key, "layout": layout, **placed.to_json()})

        return Job(work)

    def _placed(
        self,
        place: Place,
        source: ScannedSource,
        column_and_layout: tuple[str, str],
        progress: Progress,
    ) -> PlacedMap:
        """Place the rows of a version by a column and a layout."""
        plane: Plane
        if column_and_layout in self._planes:
            plane, divisor = self._planes[column_and_layout]
            for held in self._maps.values():
                if held.place == place and held.points.plane is plane:
                    return PlacedMap(place, held.points, held.colouring)
        else:
            column, layout = column_and_layout
            if layout.startswith(STORED):
                plane = read_stored_layout(source, column, layout.removeprefix(STORED), progress)
            elif layout == NEIGHBOURS:
                plane = fit_layout(source, column, share_of(progress, 0, FITTED))
            else:
                plane = fit_projection(source, column, progress)
            divisor = divisor_of(source.stats().num_rows)
            self._planes[column_and_layout] = plane, divisor
        divisor = max(divisor, divisor_of(source.stats().num_rows))
        if isinstance(plane, NeighbourLayout):
            progress = share_of(progress, FITTED, STEPS)
        points = place_rows(source, plane, divisor, progress)
        return PlacedMap(place, points, plain_colouring(points))

    def on_stage(self, args: Mapping[str, Any]) -> Job:
        """Stage the coordinates of a map as a new column."""
        self.session.check_unlocked()
        held, branch = self._placed_map(args), _optional(args, "branch")
        source, plane = self.session.open(held.place), held.points.plane
        if not isinstance(source, LanceDataset):
            raise NotSupportedError(f"{type(source).__name__} cannot be written")
        coordinates = coordinate_field(words(args, "name", MAX_NAME).strip(), plane.column)
        if coordinates.name in source.schema.names:
            raise InvalidInputError(
                f"there is a column {coordinates.name!r} already: choose another name"
            )
        is_new = branch is not None and branch != source.branch
        if not is_new and source.version != source.latest_version:
            raise InvalidInputError(
                "a column is added to the newest version of a branch: go there first, or name a "
                "new branch"
            )

        def work(progress: Progress) -> Answer:
            dataset = source.create_branch(branch) if is_new and branch else source
            try:
                rows = coordinate_batches(scanned_source(source), plane, coordinates, progress)
                reader = pa.RecordBatchReader.from_batches(pa.schema([coordinates]), rows)
                stage = dataset.stage().add_columns(reader)
                form = EditForm(COORDINATES, {"name": coordinates.name, "column": plane.column})
                card = staging_area_of(dataset).adopt(stage, form)
            except LanceError:
                if is_new:
                    source.branches.delete(str(branch))
                raise
            return Answer({"card": card.id})

        return Job(work)

    def _coloured_categories(self, column: str, colour: str | None) -> list[str]:
        """Return the categories that have colours, so that they keep them in other versions."""
        for held in reversed(self._maps.values()):
            if held.colouring.column == colour and held.points.plane.column == column:
                return [entry.label for entry in held.colouring.legend if entry.code < len(
                    held.colouring.values)]  # fmt: skip
        return []

    def _plane_key(self, held: PlacedMap) -> tuple[str, str]:
        """Return the column and the layout of a map."""
        return next(key for key, (plane, _) in self._planes.items()
                    if plane is held.points.plane)  # fmt: skip

    def _placed_map(self, args: Mapping[str, Any]) -> PlacedMap:
        held = self._maps.get(words(args, "key", 24))
        if held is None:
            raise InvalidInputError("this map is no longer cached: open its version again")
        return held

    def on_piece(self, args: Mapping[str, Any]) -> Answer:
        """Return a part of the points."""
        held = self._placed_map(args)
        piece = integer(args, "piece", low=0, high=held.pieces - 1)
        some = slice(piece, None, held.pieces)
        parts: list[npt.NDArray[Any]] = [held.points.xy, held.colouring.codes]
        if held.sizing is not None:
            parts.append(held.sizing.codes)
        return Answer({"piece": piece}, tuple(part[some].tobytes() for part in parts))

    def on_colour(self, args: Mapping[str, Any]) -> Job:
        """Colour points by another column."""
        held, colour = self._placed_map(args), _optional(args, "colour")
        source = scanned_source(self.session.open(held.place))

        def work(progress: Progress) -> Answer:
            held.colouring = _coloured(source, held, colour, known_values=[], progress=progress)
            return Answer(
                {"colouring": held.colouring.to_json()}, (held.colouring.codes.tobytes(),)
            )

        return Job(work)

    def on_size(self, args: Mapping[str, Any]) -> Job:
        """Give points the sizes of another column, or one size."""
        held, size = self._placed_map(args), _optional(args, "size")
        source = scanned_source(self.session.open(held.place))

        def work(progress: Progress) -> Answer:
            held.sizing = _sized(source, held, size, progress)
            if held.sizing is None:
                return Answer({"sizing": None})
            return Answer({"sizing": held.sizing.to_json()}, (held.sizing.codes.tobytes(),))

        return Job(work)

    def on_compare(self, args: Mapping[str, Any]) -> Job:
        """Compare the points with those of an earlier version."""
        held, place, match = self._placed_map(args), place_of(args), _optional(args, "match")
        before = scanned_source(self.session.open(place))
        after = scanned_source(self.session.open(held.place))
        key, colour = self._plane_key(held), held.colouring

        def work(progress: Progress) -> Answer:
            earlier = self._placed(place, before, key, progress)
            if match is not None and max(earlier.points.divisor, held.points.divisor) > 1:
                raise NotSupportedError("a key column is compared where every row is placed")
            if earlier.points.divisor != held.points.divisor:
                raise NotSupportedError("the two versions are sampled differently: too many rows")
            if colour.kind == "category":
                earlier.colouring = _coloured(
                    before, earlier, colour.column, known_values=[], progress=progress
                )
            keys = (
                point_keys(before, earlier.points, match, progress),
                point_keys(after, held.points, match, progress),
            )
            colourings = (earlier.colouring, colour) if colour.kind == "category" else None
            changes = compare_points(earlier.points, held.points, keys, colourings)
            held.changes, held.earlier = changes, earlier
            result = {
                "counts": changes.to_json(),
                "groups": changes_by_code(changes, *colourings) if colourings else {},
                "words": _matching(after, match),
                "a": text.ref_label(*place),
                "b": text.ref_label(*held.place),
            }
            return Answer(
                result,
                (
                    changes.states.tobytes(),
                    earlier.points.xy[changes.removed].tobytes(),
                    _moves(earlier.points, held.points, changes).tobytes(),
                ),
            )

        return Job(work)

    def on_lasso(self, args: Mapping[str, Any]) -> Answer:
        """Choose the points in a polygon."""
        held, polygon = self._placed_map(args), _polygon(args.get("polygon"))
        places = held.points.inside(polygon)
        bits = np.zeros(held.points.num_points, np.bool_)
        bits[places] = True
        words_shown = f"{text.plural(places.size, 'row')} in the outline on the map"
        return self._chosen(held, held.points.ids[places], words_shown, np.packbits(
            bits, bitorder="little").tobytes())  # fmt: skip

    def on_group(self, args: Mapping[str, Any]) -> Answer:
        """Choose the points of a colour, or those that differ from the earlier version."""
        held, kind = self._placed_map(args), words(args, "kind", 20)
        if kind == "code":
            code = integer(args, "code", low=0, high=255)
            chosen = held.colouring.codes == code
            labels = [entry.label for entry in held.colouring.legend if entry.code == code]
            words_shown = f"{text.plural(int(chosen.sum()), 'row')} with {', '.join(labels)}"
            return self._chosen(held, held.points.ids[chosen], words_shown)
        if held.changes is None or held.earlier is None:
            raise InvalidInputError("this map is not compared with another version")
        if kind == "removed":
            ids = held.earlier.points.ids[held.changes.removed]
            words_shown = f"{text.plural(ids.size, 'row')} removed later"
            return self._chosen(held.earlier, ids, words_shown)
        if kind not in _BITS:
            raise InvalidInputError("kind must be code, arrived, moved, relabelled or removed")
        ids = held.points.ids[held.changes.states & _BITS[kind] > 0]
        return self._chosen(held, ids, f"{text.plural(ids.size, 'row')} {kind}")

    def _chosen(
        self, held: PlacedMap, ids: npt.NDArray[np.uint64], words_shown: str, *buffers: bytes
    ) -> Answer:
        """Keep rows for the grid and return their key, and what they are in words."""
        branch, version = held.place
        return Answer(
            {
                "branch": branch,
                "version": version,
                "rows": self.session.row_orders.keep_rows(held.place, ids),
                "num_rows": int(ids.size),
                "label": words_shown,
            },
            buffers,
        )

    def on_point(self, args: Mapping[str, Any]) -> Answer:
        """Read the row of a point."""
        held = self._placed_map(args)
        index = integer(args, "index", low=0, high=MAX_COUNT)
        if index >= held.points.num_points:
            raise NotFoundError(f"the map has no point {index:,}")
        source = scanned_source(self.session.open(held.place))
        row_id = int(held.points.ids[index])
        names = [field.name for field in source.schema
                 if not pa.types.is_fixed_size_list(field.type)][:MAX_CELLS]  # fmt: skip
        row = source.take_rows([row_id], columns=names)
        if not row.num_rows:
            raise NotFoundError(f"row {row_id} no longer exists")
        shown, picture = [], None
        for name, column in zip(names, row.columns, strict=True):
            values = cells.plain(column)
            if picture is None and cells.is_binary(values.type):
                picture = next(iter(media.thumbnails(values)), None)
            value_text = cells.scalar_text(values[0], CELL_BYTES)
            shown.append({"name": text.name(name), "text": text.line(value_text, CELL_BYTES)})
        result = {"index": index, "row_id": row_id, "cells": shown}
        if picture is None:
            return Answer(result)
        return Answer(result | {"mime": picture.media.mime}, (picture.data,))


def _named(names: list[str]) -> list[dict[str, str]]:
    return [{"raw": name, "label": text.name(name)} for name in names]


def _optional(args: Mapping[str, Any], key: str) -> str | None:
    return None if args.get(key) is None else words(args, key, MAX_NAME)


def _coloured(
    source: ScannedSource,
    held: PlacedMap,
    colour: str | None,
    known_values: list[str],
    progress: Progress,
) -> Colouring:
    if colour is None:
        return plain_colouring(held.points)
    return colour_points(source, held.points, colour, progress=progress, known_values=known_values)


def _sized(
    source: ScannedSource, held: PlacedMap, size: str | None, progress: Progress
) -> Sizing | None:
    return None if size is None else size_points(source, held.points, size, progress)


def _matching(source: ScannedSource, match: str | None) -> str:
    """Return how the rows of two versions were matched, in words."""
    if match is not None:
        return f"rows matched by {text.name(match)}"
    if getattr(source, "has_stable_row_ids", False):
        return "rows matched by their stable row ids"
    return (
        "rows matched by their addresses: rows that were updated or compacted count as removed and "
        "arrived; choose a key column to match them"
    )


def _moves(a: PointSet, b: PointSet, changes: PointChanges) -> npt.NDArray[np.uint16]:
    """Return where the points that moved come from and where they are, spread over all."""
    moved = np.flatnonzero(changes.states & MOVED)
    moved = moved[:: max(1, -(-moved.size // MAX_MOVES))]
    return np.hstack([a.xy[changes.origin[moved]], b.xy[moved]])


def _polygon(value: object) -> npt.NDArray[np.float64]:
    """Take a polygon from the arguments of a request. Raises InvalidInputError."""
    if not isinstance(value, list) or not 3 <= len(value) <= MAX_CORNERS:
        raise InvalidInputError(f"polygon must be a list of 3 to {MAX_CORNERS} points [x, y]")
    for corner in value:
        if (
            not isinstance(corner, list)
            or len(corner) != 2
            or not all(
                isinstance(number, (int, float)) and abs(number) < MAX_COUNT for number in corner
            )
        ):
            raise InvalidInputError("a point of the polygon must be a pair of numbers [x, y]")
    return np.array(value, np.float64)


class EmbeddingMap(LanceWidget):
    """The rows as points on a plane, by a vector column; what moved between two versions."""

    entry: ClassVar[str] = "map/embedding_map.js"
    parts: ClassVar[tuple[str, ...]] = ("card", "timeline")
    handlers_type: ClassVar[type[RequestHandlers]] = MapHandlers
    view: ClassVar[View] = VIEW

    @classmethod
    def request_handlers(cls, session: Session) -> dict[str, Handler]:
        """Return the requests about the map."""
        return session.keep(MapHandlers).handlers()
