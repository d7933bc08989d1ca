"""Is a fragment whole: its data files, its deleted rows, its row ids, and every value in it.

Each check either returns or raises what is wrong. The cheap ones read footers, column metadata and
deletion files; the deep ones decode every page of every column of the schema and let Arrow validate
the result, without keeping it.

Limits: columns that have been dropped from the schema are not decoded; nor are the payloads of
blobs, whose descriptions are. Neither pages nor files have checksums in this format: a changed
value that is still a value cannot be told.
Source: ``LanceDataset.validate`` of pylance 14.0.2 (the cheap checks).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.table.deletions import read_deletions
from lance_nb.table.fragment_reader import (
    Column,
    columns_of,
    num_physical_rows,
    open_file,
    read_rows,
)
from lance_nb.table.projection import Projection, project
from lance_nb.table.row_ids import (
    created_at_versions,
    fragment_row_ids,
    last_updated_at_versions,
)
from lance_nb.table.scan import one_range, window_rows
from lance_nb.table.snapshot import Snapshot

DATA_FILE, DELETIONS, LINEAGE, FIELDS, VALUES = (
    "data file",
    "deletion file",
    "row ids",
    "fragment",
    "values",
)


@dataclass(frozen=True, slots=True)
class Check:
    """One check: of what, where, and what to call; the call returns rows decoded."""

    kind: str
    path: str
    run: Callable[[], int]


def cheap_checks(snapshot: Snapshot, fragment: Fragment) -> Iterator[Check]:
    """Yield the checks that decode no value."""
    where = f"fragment {fragment.id}"
    yield Check(FIELDS, where, partial(_check_fields, fragment))
    for file in fragment.files:
        yield Check(DATA_FILE, f"data/{file.path}", partial(_check_file, snapshot, fragment, file))
    if fragment.deletion_file is not None:
        path = fragment.deletion_file.location(fragment.id)
        yield Check(DELETIONS, path, partial(_check_deletions, snapshot, fragment))
    if fragment.row_ids is not None:
        yield Check(LINEAGE, where, partial(_check_lineage, snapshot, fragment))


def value_checks(snapshot: Snapshot, fragment: Fragment) -> Iterator[Check]:
    """Yield a check per column that decodes all of its values."""
    for field in snapshot.manifest.schema:
        projection = project(snapshot.manifest.schema, [field.name])
        for column in projection.columns:
            place = f"fragment {fragment.id}, column {field.name!r}"
            run = partial(_check_values, snapshot, fragment, column, projection)
            yield Check(VALUES, place, run)


def _check_fields(fragment: Fragment) -> int:
    where = f"fragment {fragment.id}"
    if not fragment.files:
        raise CorruptFileError(where, None, "at least one data file", "none")
    fields = [one for file in fragment.files for one in columns_of(fragment, file)]
    twice = sorted({one for one in fields if fields.count(one) > 1}) if _repeats(fields) else []
    if twice:
        found = (
            f"field {twice[0]} twice, as releases up to 0.10.5 left it: the first file is read, "
            "and the next version gives the column of the last one a new id"
        )
        raise CorruptFileError(where, None, "each field in one data file", found)
    return 0


def _repeats(fields: list[int]) -> bool:
    return len(set(fields)) < len(fields)


def _check_file(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> int:
    """Open a file: size, footer, columns, pages inside of the file, rows."""
    reader = open_file(snapshot, fragment, file)
    expected = fragment.physical_rows
    if expected not in (0, reader.num_rows):
        said = f"{expected} rows, as the manifest says"
        raise CorruptFileError(reader.path, None, said, f"{reader.num_rows} rows")
    known = set()
    for page in reader.list_pages():
        known.add(page.column)
        start, size = page.offset_bytes, page.size_bytes
        if start is not None and size is not None and not 0 <= start <= reader.size_bytes:
            found = f"one at {start}"
            raise CorruptFileError(reader.path, None, f"pages below {reader.size_bytes}", found)
    owners = columns_of(fragment, file)
    lost = [field for field, column in owners.items() if known and column > max(known)]
    if lost and not file.is_legacy and reader.num_rows:
        expected_columns = f"a column for field {lost[0]}"
        raise CorruptFileError(reader.path, None, expected_columns, f"{max(known) + 1} columns")
    return 0


def _check_deletions(snapshot: Snapshot, fragment: Fragment) -> int:
    num_rows = num_physical_rows(snapshot, fragment)
    read_deletions(snapshot.locations, snapshot.deletions, fragment, num_rows)
    return 0


def _check_lineage(snapshot: Snapshot, fragment: Fragment) -> int:
    where = f"fragment {fragment.id} of version {snapshot.version}"
    ids = fragment_row_ids(snapshot, fragment)
    limit = snapshot.manifest.next_row_id
    if ids is not None and ids.size and limit and int(ids.max()) >= limit:
        raise CorruptFileError(where, None, f"row ids below {limit}", str(int(ids.max())))
    if ids is not None and np.unique(ids).size < ids.size:
        raise CorruptFileError(where, None, "row ids that differ", "one that occurs twice")
    for what, read in (("created", created_at_versions), ("updated", last_updated_at_versions)):
        versions = read(snapshot, fragment)
        if versions.size and int(versions.max()) > snapshot.version:
            found = f"rows {what} at version {int(versions.max())}"
            raise CorruptFileError(where, None, f"versions up to {snapshot.version}", found)
    return 0


def _check_values(
    snapshot: Snapshot, fragment: Fragment, column: Column, projection: Projection
) -> int:
    num_rows = num_physical_rows(snapshot, fragment)
    step = max(window_rows(snapshot, projection, fragment), 1)
    for start in range(0, num_rows, step):
        rows = one_range(start, min(start + step, num_rows))
        for array in read_rows(snapshot, fragment, [column], rows):
            _validate(array, fragment, column)
    return num_rows


def _validate(array: pa.ChunkedArray, fragment: Fragment, column: Column) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        where = f"fragment {fragment.id}"
        place = f"column {column.field.name!r}"
        raise CorruptFileError(where, None, "values of its type", str(error), place) from error
