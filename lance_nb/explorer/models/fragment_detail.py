"""Describe one fragment (its files, deletions, index coverage) and the pages of a data file.

Layout of ``FragmentDetail.to_json``: ``id``, ``rows``, ``deleted``, ``bytes``, ``files`` ``[{path,
bytes, file_version, columns, tombstoned, dropped, written}]``, ``deletion_file`` ``{path, kind,
version}`` or null, ``indices`` ``[{name, covered}]``. ``written`` is the first version that refers
to the file, found by binary search over the versions of the branch: a few manifests per file.
``tombstoned`` counts columns whose values were replaced by a later file, ``dropped`` those that are
no longer in the schema.

Layout of ``FilePages.to_json``: ``path``, ``bytes`` of all pages, ``columns`` ``[{name, pages,
rows, bytes, plain, encodings: [{encoding, pages}]}]`` in file order, ``hidden`` (columns left out).
``plain`` is the size of the values without any compression, null if the type does not determine it.

Limits: ``MAX_FILES`` files with ``MAX_COLUMNS`` names of columns each; ``MAX_PAGE_COLUMNS`` columns
of a file with ``MAX_ENCODINGS`` encodings each. Reads metadata only.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from lance_nb.errors import LanceError
from lance_nb.explorer.models import text
from lance_nb.explorer.models.fragment_map import covered_ids
from lance_nb.explorer.models.source import StoredSource, fragment_at, stored_source
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.table.fragment_reader import num_physical_rows
from lance_nb.table.scan_tasks import num_live_rows

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
class FragmentDetail:
    """Everything the detail pane shows of one fragment."""

    id: int
    rows: int
    deleted: int
    bytes: int | None
    files: tuple[FileLine, ...]
    hidden_files: int
    deletion_file: dict[str, Any] | None
    indices: tuple[dict[str, Any], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the detail as JSON-able values."""
        return asdict(self)


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
    known = [name for name in names if name is not None]
    return FileLine(
        path=file.path,
        name=text.name(file.path),
        bytes=file.size_bytes or None,
        file_version=f"{file.file_version[0]}.{file.file_version[1]}",
        columns=tuple(text.name(name) for name in known[:MAX_COLUMNS]),
        num_columns=len(known),
        tombstoned=sum(field == _TOMBSTONE for field in file.fields),
        dropped=len(names) - len(known),
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
            at = bisect_left(self._numbers, True, key=lambda number: path in self._named(number))
        except LanceError:
            return "a version that cannot be read"
        if at >= len(self._numbers):
            return "unknown"
        label = text.ref_label(self._dataset.branch, self._numbers[at])
        return label if at or self._numbers[0] == 1 else f"{label} or earlier"

    def _named(self, number: int) -> frozenset[str]:
        if number not in self._files:
            source = stored_source(self._dataset.checkout_version((self._dataset.branch, number)))
            fragments = source.opened[1].manifest.fragments
            here = (fragments.counts().ids == self._fragment_id).nonzero()[0].tolist()
            self._files[number] = frozenset(
                file.path for position in here for file in fragments[position].files
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
class FilePages:
    """The pages of one data file."""

    path: str
    bytes: int
    columns: tuple[PagesOfColumn, ...]
    hidden: int

    def to_json(self) -> dict[str, Any]:
        """Return the pages as JSON-able values."""
        return asdict(self)


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
    found = {}
    for field in schema:
        bits = _bits(field.type)
        if bits:
            found[field.name] = bits
    return found


def _bits(kind: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _bits(kind.value_type)
    try:
        return int(kind.bit_width)
    except ValueError:
        return 0
