"""Is a fragment whole: its data files, its deleted rows, its row ids, and every value in it.

Each check either returns or raises what is wrong. The cheap ones read footers, column metadata and
deletion files; the deep ones decode every page of every column of the schema and let Arrow validate
the result, without keeping it.

Limits: columns that have been dropped from the schema are not decoded; nor are the payloads of
blobs, whose descriptions are. The format has no checksums: of a changed value that is still a
value only ours tell, where they are recorded (checksum_checks.py).
Source: ``LanceDataset.validate`` of pylance 14.0.2 (the cheap checks).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.table.deletions import read_deletions
from lance_nb.table.fragment_reader import (
    Column,
    columns_of,
    confirmed_rows,
    open_file,
    read_rows,
)
from lance_nb.table.projection import Projection, project
from lance_nb.table.row_id_checks import check_next_row_id, check_row_ids, check_row_versions
from lance_nb.table.scan import one_range, window_rows
from lance_nb.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Check:
    """One check: the code of what it finds, where, and what to call.

    The call returns rows decoded. ``subject``: a check is left out when one of the same subject has
    failed.
    """

    code: str
    path: str
    run: Callable[[], int]
    subject: str = ""


def cheap_checks(snapshot: Snapshot, fragment: Fragment) -> Iterator[Check]:
    """Yield the checks that decode no value."""
    if not fragment.files:
        yield Check("fragment-without-files", "", partial(_no_files, fragment))
        return
    yield Check("fields-repeated", "", partial(_check_fields, fragment))
    yield Check("field-not-stored", "", partial(_check_stored, snapshot, fragment))
    for file in fragment.files:
        path = f"data/{file.path}"
        for code, run in (
            ("data-file-size", _check_size),
            ("data-file-damaged", _check_open),
            ("data-file-rows", _check_rows),
            ("data-file-columns", _check_columns),
        ):
            yield Check(code, path, partial(run, snapshot, fragment, file), file.path)
    if fragment.deletion_file is not None:
        path = fragment.deletion_file.location(fragment.id)
        subject = fragment.files[0].path
        yield Check(
            "deletion-file-damaged", path, partial(_check_deletions, snapshot, fragment), subject
        )
    if fragment.row_ids is not None:
        subject = fragment.files[0].path
        for code, check in (
            ("row-ids-damaged", check_row_ids),
            ("next-row-id", check_next_row_id),
            ("row-versions-damaged", check_row_versions),
        ):
            yield Check(code, "", partial(check, snapshot, fragment), subject)


def value_checks(snapshot: Snapshot, fragment: Fragment) -> Iterator[Check]:
    """Yield a check per column that decodes all of its values."""
    for field in snapshot.manifest.schema:
        run = partial(_check_column, snapshot, fragment, field.name)
        yield Check("values-damaged", f"column {field.name!r}", run)


def _no_files(fragment: Fragment) -> int:
    raise CorruptFileError(_name(fragment), None, "at least one data file", "none")


def _name(fragment: Fragment) -> str:
    return f"fragment {fragment.id}"


def _check_fields(fragment: Fragment) -> int:
    fields = [one for file in fragment.files for one in columns_of(fragment, file)]
    twice = sorted({one for one in fields if fields.count(one) > 1}) if _repeats(fields) else []
    if twice:
        found = (
            f"field {twice[0]} twice, as releases up to 0.10.5 left it: the first file is read, "
            "and the next version gives the column of the last one a new id"
        )
        raise CorruptFileError(_name(fragment), None, "each field in one data file", found)
    return 0


def _repeats(fields: list[int]) -> bool:
    return len(set(fields)) < len(fields)


def _check_stored(snapshot: Snapshot, fragment: Fragment) -> int:
    """Check that a column that cannot be null is in one of the files."""
    stored = {one for file in fragment.files for one in columns_of(fragment, file)}
    for field in snapshot.manifest.schema:
        if field.nullable or any(one.id in stored or one.id < 0 for one in field.walk()):
            continue
        expected = f"column {field.name!r} (field {field.id}), which cannot be null"
        raise CorruptFileError(_name(fragment), None, expected, "no data file that holds it")
    return 0


def _check_size(snapshot: Snapshot, _: Fragment, file: DataFile) -> int:
    store, path = snapshot.locations.locate(file.location(snapshot.manifest.path), file.base_id)
    found = store.size(path)
    # The sizes that releases 0.34 to 4.0 recorded of 0.1 files are wrong, and nobody uses them.
    if file.size_bytes not in (0, found) and not file.is_legacy:
        said = f"{file.size_bytes} bytes, as the manifest says"
        raise CorruptFileError(f"{store.uri}/{path}", None, said, f"{found} bytes")
    return 0


def _check_open(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> int:
    """Open a file: footer, columns, pages inside of the file."""
    reader = open_file(snapshot, fragment, file)
    for page in reader.list_pages():
        start, size = page.offset_bytes, page.size_bytes
        if start is not None and size is not None and not 0 <= start <= reader.size_bytes:
            found = f"one at {start}"
            raise CorruptFileError(reader.path, None, f"pages below {reader.size_bytes}", found)
    return 0


def _check_rows(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> int:
    reader = open_file(snapshot, fragment, file)
    expected = fragment.physical_rows
    if expected not in (0, reader.num_rows):
        said = f"{expected} rows, as the manifest says"
        raise CorruptFileError(reader.path, None, said, f"{reader.num_rows} rows")
    return 0


def _check_columns(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> int:
    """Check that the columns that the manifest names are in the file."""
    reader = open_file(snapshot, fragment, file)
    known = {page.column for page in reader.list_pages()}
    owners = columns_of(fragment, file)
    lost = [field for field, column in owners.items() if known and column > max(known)]
    if lost and not file.is_legacy and reader.num_rows:
        expected_columns = f"a column for field {lost[0]}"
        raise CorruptFileError(reader.path, None, expected_columns, f"{max(known) + 1} columns")
    return 0


def _check_deletions(snapshot: Snapshot, fragment: Fragment) -> int:
    num_rows = confirmed_rows(snapshot, fragment)
    read_deletions(snapshot.locations, snapshot.deletions, fragment, num_rows)
    return 0


def _check_column(snapshot: Snapshot, fragment: Fragment, name: str) -> int:
    projection = project(snapshot.manifest.schema, [name])
    return sum(
        _check_values(snapshot, fragment, column, projection) for column in projection.columns
    )


def _check_values(
    snapshot: Snapshot, fragment: Fragment, column: Column, projection: Projection
) -> int:
    num_rows = confirmed_rows(snapshot, fragment)
    step = window_rows(snapshot, projection, fragment)
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
