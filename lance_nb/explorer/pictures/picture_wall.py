"""The pictures of a column as tiles, and rows in sections: groups, duplicates, doubts, changes.

============== =====================================================================
Tile           a row of the wall: its caption, what its value is, the picture if it is sent
Section        rows side by side in an order of rows: what they have in common
Sections       an order of rows that is divided into sections
============== =====================================================================

A tile has the bytes of its picture or film as they are stored; the browser makes a picture small,
and takes the first one of a film. Where those of a request are more than ``ANSWER_BYTES`` together,
the last ones are marked ``later`` and asked for again.

Limits: a picture or film of a tile has at most ``TILE_BYTES``; a request is for ``MAX_TILES`` rows;
of an order of rows ``MAX_GROUPED`` rows are divided into at most ``MAX_SECTIONS`` sections;
``MAX_STAGED`` rows are named in a condition. Whether a column holds pictures is read from its first
``HEAD_ROWS`` rows, of the first ``MAX_PROBED`` columns that could.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.errors import (
    ColumnNotFoundError,
    InvalidInputError,
    LanceError,
    NotSupportedError,
)
from lance_nb.explorer import cells, text
from lance_nb.explorer.arrow_buffers import heads_of
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.explorer.media import HEAD_BYTES, Media, media_of
from lance_nb.explorer.rows.row_order import SortedRows
from lance_nb.explorer.rows.row_query import RowQuery
from lance_nb.explorer.source import (
    Source,
    blob_columns,
    is_blob_column,
    scanned_source,
)
from lance_nb.table.diff import Diff
from lance_nb.value_classes import dataclass

TILE_BYTES = 4_000_000
ANSWER_BYTES = 8_000_000
MAX_TILES = 24
MAX_GROUPED = 100_000
MAX_SECTIONS = 2000
MAX_STAGED = 5000
HEAD_ROWS = 4
MAX_PROBED = 8
CAPTION_CHARS = 120
_ROW_ID = "_rowid"

Progress = Callable[[int, int], object]


def picture_columns(dataset: Source) -> list[str]:
    """Return the columns whose first values are pictures, sounds or films."""
    blobs = blob_columns(dataset)
    names = [
        field.name for field in dataset.schema if field.name in blobs or cells.is_binary(field.type)
    ]
    return [name for name in names[:MAX_PROBED] if _has_media(dataset, name)]


def _has_media(dataset: Source, name: str) -> bool:
    try:
        query = RowQuery()
        heads = _values(dataset, query, name, rows=range(HEAD_ROWS), limit=HEAD_BYTES)
    except LanceError:
        return False  # a damaged column is reported where its rows are read
    return any(head is not None and media_of(*head).kind != "bytes" for head in heads)


Value = tuple[bytes, int] | None


def _values(dataset: Source, query: RowQuery, name: str, rows: range, limit: int) -> list[Value]:
    """Read the first ``limit`` bytes and the size of some values, None for null."""
    if is_blob_column(dataset, name):
        ids = query.rows(dataset, [_ROW_ID], rows.start, len(rows))[_ROW_ID].to_numpy()
        if not ids.size:
            return []
        files = scanned_source(dataset).take_blobs(name, ids=ids)
        return [
            None if file is None else (file.read_range(0, min(limit, file.size())), file.size())
            for file in files
        ]
    column = cells.plain(query.rows(dataset, [name], rows.start, len(rows)).column(0))
    if not cells.is_binary(column.type):
        raise NotSupportedError(f"values of {name!r} are not binary")
    return list(heads_of(column, limit))


@dataclass(frozen=True, slots=True)
class Tile:
    """One row. ``picture`` tells whether its bytes are sent, ``later`` that they can be."""

    row: int
    caption: str
    media: Media | None
    picture: bool
    later: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        about = {} if self.media is None else self.media.to_json()
        return about | {
            "row": self.row,
            "caption": self.caption,
            "picture": self.picture,
            "later": self.later,
        }


def tiles(
    dataset: Source, query: RowQuery, column: str, caption: str | None, rows: range
) -> tuple[list[Tile], list[bytes]]:
    """Return some rows as tiles, and the pictures of those that have one.

    Raises NotSupportedError for a column that holds no bytes, and errors of reading.
    """
    values = _values(dataset, query, column, rows=rows, limit=TILE_BYTES + 1)
    captions = [""] * len(values)
    if caption is not None and values:
        caption_values = query.rows(dataset, [caption], rows.start, len(rows)).column(0)
        captions = ["" if cell_text is None else text.line(cell_text, CAPTION_CHARS)
                    for cell_text in cells.cell_texts(caption_values, CAPTION_CHARS)]  # fmt: skip
    return _sent(values, captions, rows.start)


def _sent(values: Sequence[Value], captions: Sequence[str], row: int) -> tuple[
    list[Tile], list[bytes]
]:  # fmt: skip
    sent_tiles: list[Tile] = []
    sent: list[bytes] = []
    spent = 0
    for position, (value, caption) in enumerate(zip(values, captions, strict=True)):
        media = None if value is None else media_of(*value)
        whole = value is not None and len(value[0]) == value[1]
        is_seen = media is not None and media.kind in ("image", "video")
        fits = media is not None and is_seen and not media.why and whole
        later = fits and value is not None and bool(sent) and spent + value[1] > ANSWER_BYTES
        if fits and not later and value is not None:
            sent.append(value[0])
            spent += value[1]
        sent_tiles.append(
            Tile(row + position, caption, media, picture=fits and not later, later=later)
        )
    return sent_tiles, sent


def changed_tiles(
    diff: Diff, column: str, rows: range
) -> tuple[list[tuple[Tile, Tile]], list[bytes]]:
    """Return the values of rows that changed, before and after, and their pictures in this order.

    Raises ColumnNotFoundError, and errors of reading.
    """
    table = diff.cells(columns=[column], limit=len(rows), offset=rows.start).read_all()
    pairs: list[tuple[Tile, Tile]] = []
    sent: list[bytes] = []
    changed = cells.plain(table[column])
    sides = []
    for side in ("old", "new"):
        values = cells.plain(changed.field(side)) if len(changed) else None
        if values is not None and not cells.is_binary(values.type):
            raise NotSupportedError(f"values of {column!r} are not binary")
        sides.append([] if values is None else list(heads_of(values, TILE_BYTES + 1)))
    for position, pair in enumerate(zip(*sides, strict=True)):
        (before, after), pictures = _sent(pair, ["", ""], 0)
        pairs.append(
            (_placed(before, rows.start + position), _placed(after, rows.start + position))
        )
        sent += pictures
    return pairs, sent


def _placed(tile: Tile, row: int) -> Tile:
    return Tile(row, tile.caption, tile.media, picture=tile.picture, later=tile.later)


@dataclass(frozen=True, slots=True)
class Section(JsonFields):
    """Rows ``first`` to ``first + count`` of an order; ``edit`` is what can be staged for them.

    Layout of ``edit``: ``{"keep": 1}`` to delete all but one, or ``{"column", "value", "label"}``,
    the SQL literal that they get, for a relabelling.
    """

    title: str
    first: int
    count: int
    edit: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sections:
    """Rows in an order, divided. ``more`` sections were left out."""

    order: SortedRows
    sections: tuple[Section, ...]
    words: str
    more: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values, without the order."""
        return {
            "sections": [section.to_json() for section in self.sections],
            "words": self.words,
            "more": self.more,
        }


def group_rows(
    dataset: Source, query: RowQuery, column: str, num_rows: int, progress: Progress
) -> Sections:
    """Group rows by the values of a column: the largest group first.

    Rows of a group stay in their order. Raises InvalidInputError for too many rows or values.
    """
    if column not in dataset.schema.names:
        raise ColumnNotFoundError(column, tuple(dataset.schema.names))
    if num_rows > MAX_GROUPED:
        raise InvalidInputError(
            f"{num_rows:,} rows are shown, and at most {MAX_GROUPED:,} are grouped: filter them"
        )
    progress(0, num_rows)
    rows = query.rows(dataset, [column, _ROW_ID], 0, num_rows)
    values = cells.plain(rows.column(0))
    if cells.is_nested(values.type) or cells.is_binary(values.type):
        raise NotSupportedError(f"rows cannot be grouped by {column!r}, which is {values.type}")
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    titles = ["null" if cell_text is None else text.line(cell_text, CAPTION_CHARS)
              for cell_text in cells.cell_texts(coded.dictionary, CAPTION_CHARS)]  # fmt: skip
    if len(titles) > MAX_SECTIONS:
        raise InvalidInputError(
            f"{column!r} has {len(titles):,} values in these rows, and at most "
            f"{MAX_SECTIONS:,} groups are shown: choose another column"
        )
    codes = coded.indices.cast(pa.int64()).fill_null(len(titles)).to_numpy(zero_copy_only=False)
    counts = np.bincount(codes, minlength=len(titles) + 1)
    rank = np.empty(counts.size, np.int64)
    by_size = np.argsort(-counts, kind="stable")
    rank[by_size] = np.arange(counts.size)
    places = np.argsort(rank[codes], kind="stable")
    progress(num_rows, num_rows)
    sections = _sections([*titles, "null"], by_size, counts)
    ids = cells.plain(rows.column(1)).to_numpy()[places]
    words = f"{text.plural(len(sections), 'group')} by {text.name(column)}"
    return Sections(SortedRows(ids, num_rows), sections, words)


def _sections(
    titles: Sequence[str], order: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> tuple[Section, ...]:
    firsts = np.cumsum(counts[order]) - counts[order]
    return tuple(
        Section(titles[index], int(first), int(counts[index]))
        for index, first in zip(order.tolist(), firsts.tolist(), strict=True) if counts[index]
    )  # fmt: skip


def duplicate_sections(duplicates: pa.Table, column: str) -> Sections:
    """Divide near duplicates, as ``near_duplicates`` finds them, into their groups."""
    groups = duplicates["group"].to_numpy()
    counts = np.bincount(groups) if groups.size else np.zeros(0, np.int64)
    shown = min(counts.size, MAX_SECTIONS)
    rows = int(counts[:shown].sum())
    order = SortedRows(duplicates[_ROW_ID].to_numpy()[:rows], rows,
                       cells.plain(duplicates["_distance"].slice(0, rows)))  # fmt: skip
    firsts = (np.cumsum(counts) - counts).tolist()
    sections = tuple(
        Section(
            f"{text.plural(int(counts[group]), 'near duplicate')}",
            firsts[group],
            int(counts[group]),
            {"keep": 1},
        )
        for group in range(shown)
    )
    words = (
        f"{text.plural(len(groups), 'row')} in {text.plural(counts.size, 'group')} of near "
        f"duplicates by {text.name(column)}"
    )
    return Sections(order, sections, words, counts.size - shown)


def doubt_sections(doubts: pa.Table, label: str) -> Sections:
    """Divide doubtful labels, as ``label_doubts`` finds them, by label and suggestion."""
    doubts = doubts.slice(0, MAX_GROUPED)
    own, suggested = (cells.plain(doubts[name]) for name in ("label", "suggested"))
    pairs = list(zip(own.to_pylist(), suggested.to_pylist(), strict=True))
    code_by_pair = {pair: code for code, pair in enumerate(dict.fromkeys(pairs))}
    codes = np.array([code_by_pair[pair] for pair in pairs], np.int64)
    places = np.argsort(codes, kind="stable")
    counts = np.bincount(codes, minlength=len(code_by_pair))
    ids = doubts[_ROW_ID].to_numpy()[places]
    order = SortedRows(ids, doubts.num_rows)
    first = 0
    sections: list[Section] = []
    for (before, after), count in zip(code_by_pair, counts.tolist(), strict=True):
        label_text = text.line(str(after), CAPTION_CHARS)
        edit = {"column": label, "value": _sql(after), "label": label_text}
        title = f"{text.line(str(before), CAPTION_CHARS)} → {label_text}"
        if len(sections) < MAX_SECTIONS:
            sections.append(Section(title, first, count, edit))
        first += count
    words = (
        f"{text.plural(doubts.num_rows, 'row')} whose neighbours mostly have another "
        f"{text.name(label)}"
    )
    return Sections(order, tuple(sections), words, len(code_by_pair) - len(sections))


def _sql(value: object) -> str:
    """Write a label as a literal of SQL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def row_condition(ids: npt.NDArray[np.uint64]) -> str:
    """Write the condition that picks rows by their ids. Raises InvalidInputError for many."""
    if not ids.size:
        raise InvalidInputError("no row is chosen")
    if ids.size > MAX_STAGED:
        raise InvalidInputError(
            f"{ids.size:,} rows are chosen, and a card names at most {MAX_STAGED:,}: "
            "stage fewer groups at a time"
        )
    return f"{_ROW_ID} IN ({', '.join(map(str, ids.tolist()))})"


@dataclass(frozen=True, slots=True)
class PictureChanges:
    """Pictures that differ between two versions: orders of rows, and how many changed."""

    arrived: SortedRows
    removed: SortedRows
    num_changed: int
    is_cut: bool


def picture_changes(diff: Diff, column: str) -> PictureChanges:
    """Compare the pictures of two versions. Raises ColumnNotFoundError and errors of reading."""
    ids_by_kind = {}
    is_cut = False
    for kind in ("added", "removed", "changed"):
        stream = diff.rows([column], MAX_GROUPED + 1, kinds=[kind], show=[])
        ids_by_kind[kind] = stream.read_all()[_ROW_ID].to_numpy().astype(np.uint64)
        is_cut = is_cut or ids_by_kind[kind].size > MAX_GROUPED
    added, removed = (ids_by_kind[kind][:MAX_GROUPED] for kind in ("added", "removed"))
    return PictureChanges(
        SortedRows(added, added.size),
        SortedRows(removed, removed.size),
        min(ids_by_kind["changed"].size, MAX_GROUPED),
        is_cut,
    )
