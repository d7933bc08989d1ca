"""The fragments of a version: all as bins, one in detail, its deleted rows as pixels, its pages.

Layout of a map: ``to_json`` holds ``num_fragments``, ``first`` and ``stop`` (positions in the
manifest that the bins span), ``num_bins`` and totals; each column is one little-endian float64
buffer, in this order: ``id`` of the first fragment of a bin, ``count`` of fragments in it, ``rows``
stored, ``deleted``, ``bytes``, ``files``, ``covered`` (stored rows that every index covers; all if
there is no index). Up to ``MAX_BINS`` fragments have a bin each; of more, neighbors share one, and
the browser requests a narrower span to show them separately. All of it comes from the manifest.

Layout of a deletion bitmap: ``to_json`` holds ``num_rows`` (stored), ``num_deleted``, ``first`` and
``stop`` (the rows that the pixels span) and ``rows_per_pixel``; the buffer holds one byte per pixel
in row order, 0 (no row deleted) to 255 (all deleted). A pixel with any deleted row is at least 1.

Layout of ``FragmentDetail.to_json``: ``id``, ``rows``, ``deleted``, ``bytes``, ``files`` ``[{path,
bytes, file_version, columns, tombstoned, dropped, written}]``, ``deletion_file`` ``{path, kind,
version}`` or null, ``indices`` ``[{name, covered}]``. ``written`` is the first version that refers
to the file, found by binary search over the versions of the branch: a few manifests per file.
``tombstoned`` counts columns whose values were replaced by a later file, ``dropped`` those that are
no longer in the schema.

Layout of ``FilePages.to_json``: ``path``, ``bytes`` of all pages, ``columns`` ``[{name, pages,
rows, bytes, plain, encodings: [{encoding, pages}]}]`` in file order, ``hidden`` (columns left out).
``plain`` is the size of the values without any compression, null if the type does not determine it.

Limits: ``MAX_BINS`` bins and ``MAX_PIXELS`` pixels, whatever the number of fragments and rows: the
rows are counted in the kernel. ``MAX_LISTED`` fragments are listed. ``MAX_FILES`` files with
``MAX_COLUMNS`` names of columns each; ``MAX_PAGE_COLUMNS`` columns of a file with ``MAX_ENCODINGS``
encodings each. Reads metadata only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.errors import LanceError
from lance_nb.explorer import text
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.explorer.source import StoredSource, fragment_at, stored_source
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.fragment_list import FragmentCounts
from lance_nb.table.deletions import read_deletions
from lance_nb.table.fragment_reader import num_physical_rows
from lance_nb.table.scan_tasks import counts_of, num_live_rows
from lance_nb.value_classes import dataclass

MAX_BINS = 4096

Values = npt.NDArray[np.float64]
MAX_PIXELS = 262_144
MAX_LISTED = 200
_FEW = 4_000_000


@dataclass(frozen=True, slots=True)
class FragmentMap:
    """A span of fragments, as bins."""

    num_fragments: int
    first: int
    stop: int
    totals: dict[str, int | None]
    columns: tuple[Values, ...]

    @property
    def buffers(self) -> tuple[bytes, ...]:
        """One buffer per column."""
        return tuple(column.astype("<f8").tobytes() for column in self.columns)

    def to_json(self) -> dict[str, Any]:
        """Return the map without its columns."""
        return {
            "num_fragments": self.num_fragments,
            "first": self.first,
            "stop": self.stop,
            "num_bins": len(self.columns[0]),
            "totals": self.totals,
        }


def fragment_map(dataset: StoredSource, first: int = 0, stop: int | None = None) -> FragmentMap:
    """Bin the fragments at positions ``[first, stop)`` of the manifest."""
    counts = counts_of(dataset.opened[1])
    total = len(counts.ids)
    stop = total if stop is None else min(stop, total)
    first = max(0, min(first, stop))
    indices = covered_ids(dataset)
    covered = np.where(covered_mask(indices, counts.ids), counts.physical_rows, 0)
    edges = _edges(first, stop)
    sums = [
        _sum(column, edges)
        for column in (
            counts.physical_rows,
            counts.num_deleted_rows,
            counts.size_bytes,
            counts.num_data_files,
            covered,
        )
    ]
    columns = (counts.ids[edges[:-1]].astype(np.float64), np.diff(edges).astype(np.float64), *sums)
    return FragmentMap(
        total,
        first,
        stop,
        totals=_totals(counts, covered) | {"indices": len(indices)},
        columns=columns,
    )


def _edges(first: int, stop: int) -> npt.NDArray[np.int64]:
    bins = min(stop - first, MAX_BINS)
    return np.linspace(first, stop, bins + 1).astype(np.int64)


def _sum(column: npt.NDArray[np.int64], edges: npt.NDArray[np.int64]) -> Values:
    before = np.concatenate(([0], np.cumsum(column)))
    return np.diff(before[edges]).astype(np.float64)


def _totals(counts: FragmentCounts, covered: npt.NDArray[np.int64]) -> dict[str, int | None]:
    is_unsized = (counts.size_bytes == 0) & (counts.num_data_files > 0)
    return {
        "rows": int(counts.physical_rows.sum()),
        "deleted": int(counts.num_deleted_rows.sum()),
        "bytes": None if is_unsized.any() else int(counts.size_bytes.sum()),
        "files": int(counts.num_data_files.sum()),
        "covered": int(covered.sum()),
    }


def covered_mask(
    indices: Mapping[str, set[int]], ids: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Tell for each fragment whether every index covers it; True where there is no index."""
    mask = np.ones(len(ids), np.bool_)
    for covered in indices.values():
        mask &= np.isin(ids, np.fromiter(covered, np.int64, len(covered)))
    return mask


def covered_ids(dataset: StoredSource) -> dict[str, set[int]]:
    """Return the ids of the fragments that each index covers, its segments taken together."""
    ids_by_index: dict[str, set[int]] = {}
    for index in dataset.list_indices():
        if index["fragment_ids"] is not None:
            ids_by_index.setdefault(index["name"], set()).update(index["fragment_ids"])
    return ids_by_index


@dataclass(frozen=True, slots=True)
class DeletionBitmap:
    """A span of the rows of one fragment, as pixels."""

    num_rows: int
    num_deleted: int
    first: int
    stop: int
    rows_per_pixel: int
    pixels: bytes

    def to_json(self) -> dict[str, Any]:
        """Return the bitmap without its pixels."""
        return {
            "num_rows": self.num_rows,
            "num_deleted": self.num_deleted,
            "first": self.first,
            "stop": self.stop,
            "rows_per_pixel": self.rows_per_pixel,
            "num_pixels": len(self.pixels),
        }


def deletion_bitmap(
    dataset: StoredSource, fragment_id: int, first: int, num_rows: int, max_pixels: int
) -> DeletionBitmap:
    """Picture the rows ``[first, first + num_rows)`` of a fragment in at most ``max_pixels``."""
    snapshot = dataset.opened[1]
    fragment = fragment_at(dataset, fragment_id)
    total = num_physical_rows(snapshot, fragment)
    vector = read_deletions(snapshot.locations, snapshot.deletions, fragment, total)
    first = min(max(first, 0), total)
    stop = min(first + num_rows, total)
    pixels_max = max(1, min(max_pixels, MAX_PIXELS))
    rows_per_pixel = max(1, -(-(stop - first) // pixels_max))
    pixels = b""
    if stop > first:
        edges = np.append(np.arange(first, stop, rows_per_pixel, dtype=np.int64), stop)
        pixels = _shades(_deleted_between(vector, edges, total), np.diff(edges)).tobytes()
    deleted = 0 if vector is None else len(vector)
    return DeletionBitmap(
        total, deleted, first, stop=stop, rows_per_pixel=rows_per_pixel, pixels=pixels
    )


def _deleted_between(
    vector: DeletionVector | None, edges: npt.NDArray[np.int64], total: int
) -> npt.NDArray[np.int64]:
    """Count the deleted rows between neighbouring edges."""
    if vector is None:
        return np.zeros(len(edges) - 1, np.int64)
    if len(vector) <= _FEW:
        return np.diff(np.searchsorted(vector.offsets(), edges))
    mask = vector.to_mask(total)[edges[0] : edges[-1]]
    return np.add.reduceat(mask, edges[:-1] - edges[0], dtype=np.int64)


def _shades(deleted: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    shades = (deleted * 255 // np.maximum(rows, 1)).astype(np.uint8)
    shades[(shades == 0) & (deleted > 0)] = 1
    return shades


@dataclass(frozen=True, slots=True)
class DeletedRows(JsonFields):
    """How many rows of a fragment are deleted."""

    id: int
    rows: int
    deleted: int


def most_deleted(dataset: StoredSource) -> list[DeletedRows]:
    """List the fragments with most deleted rows, at most ``MAX_LISTED``; none without any."""
    counts = counts_of(dataset.opened[1])
    deleted = counts.num_deleted_rows
    order = np.argsort(-deleted, kind="stable")[:MAX_LISTED]
    return [
        DeletedRows(int(counts.ids[index]), int(counts.physical_rows[index]), int(deleted[index]))
        for index in order.tolist()
        if deleted[index]
    ]


MAX_FILES = 24
MAX_COLUMNS = 40
MAX_INDICES = 40
_TOMBSTONE = -2
MAX_PAGE_COLUMNS = 200
MAX_ENCODINGS = 4


@dataclass(frozen=True, slots=True)
class FileLine:
    """One data file; ``path`` is what ``inspect.pages`` takes, ``name`` is fit to show."""

    path: str
    name: str
    bytes: int | None
    file_version: str
    columns: tuple[str, ...]
    num_columns: int
    tombstoned: int
    dropped: int
    written: str


@dataclass(frozen=True, slots=True)
class FragmentDetail(JsonFields):
    """Everything the detail pane shows of one fragment."""

    id: int
    rows: int
    deleted: int
    bytes: int | None
    files: tuple[FileLine, ...]
    hidden_files: int
    deletion_file: dict[str, Any] | None
    indices: tuple[dict[str, Any], ...]


def fragment_detail(dataset: StoredSource, fragment_id: int) -> FragmentDetail:
    """Describe a fragment of the version that ``dataset`` is at."""
    fragment = fragment_at(dataset, fragment_id)
    rows = num_physical_rows(dataset.opened[1], fragment)
    writers = _Writers(dataset, fragment_id)
    covered = list(covered_ids(dataset).items())[:MAX_INDICES]
    return FragmentDetail(
        id=fragment.id,
        rows=rows,
        deleted=rows - num_live_rows(dataset.opened[1], fragment),
        bytes=sum(file.size_bytes for file in fragment.files) or None,
        files=tuple(_file(dataset, file, writers) for file in fragment.files[:MAX_FILES]),
        hidden_files=max(0, len(fragment.files) - MAX_FILES),
        deletion_file=_deletion_file(fragment),
        indices=tuple(
            {"name": text.name(name), "covered": fragment_id in ids} for name, ids in covered
        ),
    )


def _deletion_file(fragment: Fragment) -> dict[str, Any] | None:
    file = fragment.deletion_file
    if file is None:
        return None
    path = text.line(file.location(fragment.id))
    return {"path": path, "kind": file.file_type.name.lower(), "version": file.read_version}


def _file(dataset: StoredSource, file: DataFile, writers: _Writers) -> FileLine:
    schema = dataset.opened[1].manifest.schema
    names = [schema.path_of(field) for field in file.fields if field >= 0]
    known_names = [name for name in names if name is not None]
    return FileLine(
        path=file.path,
        name=text.name(file.path),
        bytes=file.size_bytes or None,
        file_version=f"{file.file_version[0]}.{file.file_version[1]}",
        columns=tuple(text.name(name) for name in known_names[:MAX_COLUMNS]),
        num_columns=len(known_names),
        tombstoned=sum(field == _TOMBSTONE for field in file.fields),
        dropped=len(names) - len(known_names),
        written=writers.of(file.path),
    )


class _Writers:
    """Finds the first version whose manifest names a file; manifests are read once each."""

    def __init__(self, dataset: StoredSource, fragment_id: int) -> None:
        self._dataset = dataset
        self._fragment_id = fragment_id
        self._numbers = [n for n in dataset.version_numbers() if n <= dataset.version]
        self._files: dict[int, frozenset[str]] = {}

    def of(self, path: str) -> str:
        """Name the version that wrote the file, as far as the versions that are left tell."""
        try:
            position = bisect_left(
                self._numbers, True, key=lambda number: path in self._named(number)
            )
        except LanceError:
            return "a version that cannot be read"
        if position >= len(self._numbers):
            return "unknown"
        label = text.ref_label(self._dataset.branch, self._numbers[position])
        return label if position or self._numbers[0] == 1 else f"{label} or earlier"

    def _named(self, number: int) -> frozenset[str]:
        if number not in self._files:
            source = stored_source(self._dataset.checkout_version((self._dataset.branch, number)))
            fragments = source.opened[1].manifest.fragments
            positions = (fragments.counts().ids == self._fragment_id).nonzero()[0].tolist()
            self._files[number] = frozenset(
                file.path for position in positions for file in fragments[position].files
            )
        return self._files[number]


@dataclass(frozen=True, slots=True)
class PagesOfColumn:
    """The pages of one column of a file."""

    name: str
    pages: int
    rows: int
    bytes: int
    plain: int | None
    encodings: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class FilePages(JsonFields):
    """The pages of one data file."""

    path: str
    bytes: int
    columns: tuple[PagesOfColumn, ...]
    hidden: int


def file_pages(dataset: StoredSource, path: str) -> FilePages:
    """List the pages of a data file. Raises NotFoundError, CorruptFileError."""
    rows = dataset.inspect.pages(path).to_pylist()
    columns: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        columns.setdefault(row["column"], []).append(row)
    widths = _widths(dataset.schema)
    shown = tuple(
        _column_pages(pages, widths) for pages in list(columns.values())[:MAX_PAGE_COLUMNS]
    )
    return FilePages(
        path=text.name(path),
        bytes=sum(row["size_bytes"] or 0 for row in rows),
        columns=shown,
        hidden=max(0, len(columns) - MAX_PAGE_COLUMNS),
    )


def _column_pages(pages: list[dict[str, Any]], widths: dict[str, int]) -> PagesOfColumn:
    name = pages[0]["name"]
    counts: dict[str, int] = {}
    for page in pages:
        counts[page["encoding"]] = counts.get(page["encoding"], 0) + 1
    num_rows = sum(page["num_rows"] or 0 for page in pages)  # a damaged page has none
    bits = widths.get(name) if name is not None else None
    return PagesOfColumn(
        name="(not in the schema)" if name is None else text.name(name),
        pages=len(pages),
        rows=num_rows,
        bytes=sum(page["size_bytes"] or 0 for page in pages),
        plain=None if bits is None else (num_rows * bits + 7) // 8,
        encodings=tuple(
            {"encoding": text.line(encoding), "pages": count}
            for encoding, count in list(counts.items())[:MAX_ENCODINGS]
        ),
    )


def _widths(schema: pa.Schema) -> dict[str, int]:
    """Bits per value of the columns at the top level whose type tells."""
    widths = {}
    for field in schema:
        bits = _bits(field.type)
        if bits:
            widths[field.name] = bits
    return widths


def _bits(kind: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _bits(kind.value_type)
    try:
        return int(kind.bit_width)
    except ValueError:
        return 0
