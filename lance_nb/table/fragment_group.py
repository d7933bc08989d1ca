"""Read small fragments together: consecutive ones of the same layout, as if they were one.

Appends leave many small fragments. What a scan costs for each of them, besides its bytes, is paid
once for a group here: their pages are decoded together (``file.whole_files``), and filters, row
columns and results are made for all rows of the group at once.

A fragment can be in a group if it is small, has the same data files as the others (fields and
columns, not names), no overlay, and a number of rows in the manifest. Its deleted rows are read
with the others.

Limits: local files; a group has at most ``GROUP_ROWS`` rows and ``GROUP_BYTES`` bytes, in files
or decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

import pyarrow as pa

from lance_nb.errors import CorruptFileError, LanceError
from lance_nb.file.whole_files import FILE_VERSIONS, ColumnOfFiles, WholeFile, read_files
from lance_nb.format.fragment import Fragment
from lance_nb.storage.threads import run_reads
from lance_nb.table.fragment_reader import Column, ReadPlan, assembled, columns_layout, read_plan
from lance_nb.table.scan_tasks import num_live_rows
from lance_nb.table.snapshot import Snapshot

GROUP_ROWS = 1 << 20
GROUP_BYTES = 1 << 25
FRAGMENT_ROWS_MAX = 1 << 16
FRAGMENT_BYTES_MAX = 1 << 23
SMALL_FILE_BYTES = 1 << 16  # reading it at once costs less than a mapping
_STORES = ("file", "memory")


class LiveRange(Protocol):
    """Live rows ``[start, stop)`` of a fragment: a task or a window of a scan."""

    @property
    def fragment(self) -> Fragment: ...

    @property
    def start(self) -> int: ...

    @property
    def stop(self) -> int: ...


R = TypeVar("R", bound=LiveRange)


def grouped(
    snapshot: Snapshot,
    tasks: Iterable[R],
    row_bytes: int,
    first_rows: int = GROUP_ROWS,
    most_bytes: int = GROUP_BYTES,
) -> Iterator[list[R]]:
    """Put consecutive ranges that may be read together into lists; order is kept.

    ``row_bytes`` estimates the decoded size of a row. The first group has one fragment, or at most
    ``first_rows`` rows, and each later one up to twice as many as the one before, for callers that
    may stop early. ``most_bytes``: of the files of a group, or of its decoded rows.
    """
    group: list[R] = []
    layout: object = None
    rows = size_bytes = 0
    most = min(first_rows, GROUP_ROWS)
    for task in tasks:
        fragment = task.fragment
        mine = _layout(snapshot, fragment) if _is_whole(snapshot, task) else None
        decoded = fragment.physical_rows * row_bytes
        more = max(sum(file.size_bytes for file in fragment.files), decoded)
        fits = mine is not None and mine == layout
        if group and not (
            fits and rows + fragment.physical_rows <= most and size_bytes + more <= most_bytes
        ):
            yield group
            most = min(2 * max(most, rows), GROUP_ROWS)
            group, rows, size_bytes = [], 0, 0
        group.append(task)
        layout = mine
        rows += fragment.physical_rows
        size_bytes += more
        if rows >= most:  # without looking at the next one, whose files may have to be opened
            yield group
            most = min(2 * max(most, rows), GROUP_ROWS)
            group, rows, size_bytes = [], 0, 0
    if group:
        yield group


def _is_whole(snapshot: Snapshot, task: LiveRange) -> bool:
    """Tell whether a task reads all live rows of its fragment."""
    return task.start == 0 and task.stop == num_live_rows(snapshot, task.fragment)


def _layout(snapshot: Snapshot, fragment: Fragment) -> object:
    """Return what fragments of a group must share; None for one that is read alone."""
    rows, files = fragment.physical_rows, fragment.files
    if not 0 < rows <= FRAGMENT_ROWS_MAX or fragment.overlays or not files:
        return None
    for file in files:
        if file.file_version not in FILE_VERSIONS or file.size_bytes > FRAGMENT_BYTES_MAX:
            return None
        store, _ = snapshot.locations.locate("", file.base_id)
        if store.scheme not in _STORES:
            return None
    return columns_layout(fragment)


def read_group(
    snapshot: Snapshot,
    fragments: Sequence[Fragment],
    columns: Sequence[Column],
    once: bool = False,
) -> list[pa.ChunkedArray] | None:
    """Read all physical rows of some columns of the fragments of a group, one after the other.

    ``once``: most bytes of the files are needed, and not again; then no mapping of them is kept.
    None if they have to be read one by one, also to tell what is wrong with one of them.
    """
    first = fragments[0]
    plan = read_plan(snapshot, first, columns)
    file_of_leaf = {
        leaf.field_id: number for number, leaves in plan.leaves_by_file.items() for leaf in leaves
    }
    by_file: dict[int, list[int]] = {}
    for place, leaves in enumerate(plan.leaves):
        file_numbers = {file_of_leaf.get(leaf.field_id) for leaf in leaves}
        number = file_numbers.pop() if len(file_numbers) == 1 else None
        if number is None:  # a column that no file has, or several
            return None
        by_file.setdefault(number, []).append(place)
    arrays: dict[int, pa.ChunkedArray] = {}
    for number, places in by_file.items():
        files = _files(snapshot, fragments, number, once)
        requested = [plan.leaves[place] for place in places]
        read = None if files is None else read_files(files, requested, plan.owners[number])
        if read is None:
            return None
        try:
            for place, column in zip(places, read, strict=True):
                arrays[place] = _in_order(first, plan, place, column)
        except LanceError:
            return None
    return [arrays[place] for place in range(len(columns))]


def _in_order(
    first: Fragment, plan: ReadPlan, place: int, column: ColumnOfFiles
) -> pa.ChunkedArray:
    """Build a column from its parts, with the rows in the order of the fragments."""
    parts = [
        assembled(first, plan, place, parts_by_leaf=part.leaves, num_rows=part.num_rows)
        for part in column.parts
    ]
    if len(parts) == 1:
        return parts[0]
    chunks = [
        chunk
        for number, start, count in column.places
        for chunk in parts[number].slice(start, count).chunks
    ]
    return pa.chunked_array(chunks, parts[0].type)


def _files(
    snapshot: Snapshot, fragments: Sequence[Fragment], number: int, once: bool
) -> list[WholeFile] | None:
    """Return data file ``number`` of each fragment; None if one cannot be read."""
    try:
        return run_reads(
            [partial(_whole_file, snapshot, fragment, number, once=once) for fragment in fragments]
        )
    except LanceError:
        return None


def _whole_file(snapshot: Snapshot, fragment: Fragment, number: int, once: bool) -> WholeFile:
    """Read data file ``number`` of a fragment. Raises LanceError, also for another size."""
    file = fragment.files[number]
    store, path = snapshot.locations.locate(file.location(snapshot.manifest.path), file.base_id)
    data = None
    if once and file.size_bytes:
        data, size_bytes = store.read_tail(path, file.size_bytes)
    else:
        if file.size_bytes > SMALL_FILE_BYTES:
            data = store.map(path)
        data = store.read(path) if data is None else data
        size_bytes = len(data)
    if file.size_bytes not in (0, size_bytes):
        expected = f"{file.size_bytes} bytes, as the manifest says"
        raise CorruptFileError(path, None, expected, f"{size_bytes} bytes")
    return WholeFile(data, fragment.physical_rows)
