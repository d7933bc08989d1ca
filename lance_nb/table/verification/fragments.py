"""Check fragments: their data files, deleted rows and row ids, and every value.

Each check either returns or raises what is wrong. The cheap ones read footers, column metadata and
deletion files; the deep ones decode every page of every column of the schema and let Arrow validate
the result, without keeping it.

Stable row ids must be as many as the rows and below the next id, and each must be of one live row.
An updated row keeps its id and moves, so an id may occur in several fragments if only one of these
rows is live. Ids are compared as they are stored, as ranges and lists, and never expanded: a
manifest of a few bytes may name 2**62 of them. Two ranges that overlap can only be right if
deletions explain every id that they share, so no more ids are compared than there are deletions.

Limits: columns that have been dropped from the schema are not decoded; nor are the payloads of
blobs, whose descriptions are. The format has no checksums: a changed value that still decodes is
found only by those of this library, where they are recorded (checksums.py). At most ``PAIRS_MAX``
overlapping pieces are compared; repeated ids beyond these are not found.
Source: ``LanceDataset.validate`` of pylance 14.0.2 (the cheap checks); messages RowIdSegments and
RowDatasetVersionSequence of lance.table.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.errors import CorruptFileError, LanceError, NotSupportedError, SchemaMismatchError
from lance_nb.file.fitting import check_nulls
from lance_nb.file.metadata import parse_descriptor
from lance_nb.file.reader import FileReader
from lance_nb.format.blob_fields import holds_blobs, is_blob
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.field import Field
from lance_nb.format.fragment import NO_FIELD, DataFile, Fragment, InlineSequence
from lance_nb.format.logical_types import is_nested, leaf_to_arrow
from lance_nb.format.row_sequences import (
    Range,
    RangeWithHoles,
    RowIdSegments,
    RowVersionSequence,
    Segment,
)
from lance_nb.format.schema import Schema
from lance_nb.table.deletions import read_deletions
from lance_nb.table.fragment_reader import (
    Column,
    columns_of,
    confirmed_rows,
    open_file,
    read_rows,
)
from lance_nb.table.live_rows import one_range
from lance_nb.table.projection import project, remembered
from lance_nb.table.row_ids import created_at_versions, fragment_row_ids, last_updated_at_versions
from lance_nb.table.scan import window_rows
from lance_nb.table.single_file import column_fields, is_whole
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

PAIRS_MAX = 1_000_000
READ_AS = {"string": ("binary",), "large_string": ("large_binary",)}  # also the bytes of texts
NO_COLUMN = -1  # of a field that has none of its own, where it is listed all the same
ALIKE_IN_2_0 = (  # both have 64-bit offsets
    {"string", "large_string"},
    {"binary", "large_binary"},
)
DICTIONARY = "dict:"  # begins the logical type of a dictionary
_ROWS_PER_HOLE = 64  # above, holes cut a range into ranges instead of being written out
U64s = npt.NDArray[np.uint64]


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
    yield Check("field-not-stored", "", partial(check_stored, snapshot, fragment))
    for file in fragment.files:
        path = f"data/{file.path}"
        if NO_FIELD in file.fields:
            yield Check("fields-unknown", path, partial(_no_field, fragment, file))
        for code, run in (
            ("data-file-size", _check_size),
            ("data-file-damaged", _check_open),
            ("data-file-rows", check_rows),
            ("data-file-columns", check_columns),
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
    """Yield a check per column that decodes all of its values: which of them are damaged."""
    for field in snapshot.manifest.schema:
        run = partial(check_values, snapshot, fragment, field.name)
        yield Check("values-damaged", f"column {field.name!r}", run)


def _no_files(fragment: Fragment) -> int:
    raise CorruptFileError(_name(fragment), None, "at least one data file", "none")


def _no_field(fragment: Fragment, file: DataFile) -> int:
    place = f"data file {file.path!r}"
    problem = f"{NO_FIELD}, which is none: nobody reads that column"
    raise CorruptFileError(_name(fragment), None, "field ids of the schema", problem, place)


def _name(fragment: Fragment) -> str:
    return f"fragment {fragment.id}"


def _check_fields(fragment: Fragment) -> int:
    field_ids = [field_id for file in fragment.files for field_id in columns_of(fragment, file)]
    twice = (
        sorted({field_id for field_id in field_ids if field_ids.count(field_id) > 1})
        if _repeats(field_ids)
        else []
    )
    if twice:
        problem = (
            f"field {twice[0]} twice, as releases up to 0.10.5 left it: the first file is read, "
            "and the next version gives the column of the last one a new id"
        )
        raise CorruptFileError(_name(fragment), None, "each field in one data file", problem)
    return 0


def _repeats(fields: list[int]) -> bool:
    return len(set(fields)) < len(fields)


def check_stored(snapshot: Snapshot, fragment: Fragment) -> int:
    """Check that a column that cannot be null is in one of the files."""
    stored = {field_id for file in fragment.files for field_id in columns_of(fragment, file)}
    for field in snapshot.manifest.schema:
        if field.nullable or any(
            descendant.id in stored or descendant.id < 0 for descendant in field.walk()
        ):
            continue
        expected = f"column {field.name!r} (field {field.id}), which cannot be null"
        raise CorruptFileError(_name(fragment), None, expected, "no data file that holds it")
    return 0


def _check_size(snapshot: Snapshot, _: Fragment, file: DataFile) -> int:
    store, path = snapshot.locations.locate(file.location(snapshot.manifest.path), file.base_id)
    size = store.size(path)
    # The sizes that releases 0.34 to 4.0 recorded of 0.1 files are wrong, and no reader uses them.
    if file.size_bytes not in (0, size) and not file.is_legacy:
        expected_size = f"{file.size_bytes} bytes, as the manifest says"
        raise CorruptFileError(f"{store.uri}/{path}", None, expected_size, f"{size} bytes")
    return 0


def _check_open(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> int:
    """Open a file: footer, columns, pages inside of the file."""
    reader = open_file(snapshot, fragment, file)
    for page in reader.list_pages():
        start, size = page.offset_bytes, page.size_bytes
        if start is not None and size is not None and not 0 <= start <= reader.size_bytes:
            problem = f"one at {start}"
            raise CorruptFileError(reader.path, None, f"pages below {reader.size_bytes}", problem)
    return 0


def check_rows(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> int:
    """Check that a file has the rows of its fragment, which 0 leaves to the file."""
    reader = open_file(snapshot, fragment, file)
    expected = fragment.physical_rows
    if expected not in (0, reader.num_rows):
        expected_text = f"{expected} rows, as the manifest says"
        raise CorruptFileError(reader.path, None, expected_text, f"{reader.num_rows} rows")
    return 0


def check_columns(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> int:
    """Check that a file has the columns that the manifest names, each of the type of its field."""
    reader = open_file(snapshot, fragment, file)
    if not isinstance(reader, FileReader):
        return 0  # a 0.1 file finds its pages by field id and does not describe itself
    stored = _described_columns(bytes(reader.global_buffer(0)), reader.file_version)
    if len(stored) != reader.num_columns:
        stored = ()  # the first 2.0 files have two columns for a text
    for field_id, column in columns_of(fragment, file).items():
        field = snapshot.manifest.schema.field_by_id(field_id)
        if field is None:
            continue
        place = f"column {field.name!r}"
        if file.file_version >= (2, 1) and not is_whole(field):
            if column != NO_COLUMN:
                expected = f"no column for field {field_id}, whose fields have their own"
                raise CorruptFileError(reader.path, None, expected, str(column), place)
        elif not 0 <= column < reader.num_columns:
            expected = f"a column number below {reader.num_columns} for field {field_id}"
            raise CorruptFileError(reader.path, None, expected, str(column), place)
        elif column < len(stored):
            described, depth = stored[column]
            if not is_described_as(field, described, reader.file_version):
                expected = f"{field.logical_type}, the type in the schema"
                stored_type = f"{described.logical_type} in column {column}"
                raise CorruptFileError(reader.path, None, expected, stored_type, place)
            if depth != _depth(snapshot.manifest.schema, field):
                expected = f"a field inside of {_depth(snapshot.manifest.schema, field)} others"
                raise CorruptFileError(reader.path, None, expected, str(depth), place)
    return 0


@lru_cache(maxsize=4)
def _described_columns(
    descriptor: bytes, file_version: tuple[int, int]
) -> Sequence[tuple[Field, int]]:
    """Return the fields of a file that own a column, and how many fields are around each.

    Files that were written together describe the same.
    """
    described, _ = parse_descriptor(memoryview(descriptor))
    schema = Schema.from_pb(described.fields, described.metadata)
    return [(field, _depth(schema, field)) for field in column_fields(schema, file_version)]


def _depth(schema: Schema, field: Field) -> int:
    """Return how many fields are around a field."""
    depth = 0
    parent = schema.field_by_id(field.parent_id)
    while parent is not None:
        depth += 1
        parent = schema.field_by_id(parent.parent_id)
    return depth


def is_described_as(field: Field, stored: Field, file_version: tuple[int, int]) -> bool:
    """Return whether types are stored alike, as far as the descriptor of a file tells."""
    if any(
        candidate.extension_name
        or candidate.logical_type.startswith(DICTIONARY)
        or is_blob(candidate)
        for candidate in (field, stored)
    ):
        return True
    if is_nested(field.logical_type):
        return is_nested(stored.logical_type)  # lists of structs have had two names
    try:
        leaf_to_arrow(field.logical_type)
    except NotSupportedError:
        return True  # a type of a newer writer
    return (
        field.logical_type == stored.logical_type
        or field.logical_type in READ_AS.get(stored.logical_type, ())
        or (file_version < (2, 1) and {field.logical_type, stored.logical_type} in ALIKE_IN_2_0)
    )


def _check_deletions(snapshot: Snapshot, fragment: Fragment) -> int:
    num_rows = confirmed_rows(snapshot, fragment)
    read_deletions(snapshot.locations, snapshot.deletions, fragment, num_rows)
    return 0


def check_values(snapshot: Snapshot, fragment: Fragment, name: str | None = None) -> int:
    """Decode every value of a column, or of all, and check it; returns the number of values."""
    schema = snapshot.manifest.schema
    projection = remembered(
        snapshot.projections,
        None if name is None else [name],
        ("verified",),
        lambda: project(schema, None if name is None else [name]),
    )
    num_rows = confirmed_rows(snapshot, fragment)
    step = window_rows(snapshot, projection, fragment)
    columns = projection.columns
    for start in range(0, num_rows, step):
        rows = one_range(start, min(start + step, num_rows))
        arrays = read_rows(snapshot, fragment, columns, rows)
        for column, array in zip(columns, arrays, strict=True):
            _validate(array, fragment, column)
            _check_required(array, fragment, column, start)
    return num_rows * len(columns)


def _validate(array: pa.ChunkedArray, fragment: Fragment, column: Column) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        where = f"fragment {fragment.id}"
        place = f"column {column.field.name!r}"
        raise CorruptFileError(where, None, "values of its type", str(error), place) from error


def _check_required(array: pa.ChunkedArray, fragment: Fragment, column: Column, row: int) -> None:
    """Check that a column has no null where its schema allows none: pylance cannot read it."""
    if holds_blobs(column.field):
        return  # their descriptions are values of another shape
    for chunk in array.chunks:
        try:
            check_nulls(chunk, column.field, row)
        except SchemaMismatchError as error:
            place = f"column {column.field.name!r}"
            expected = "values where the schema allows no null"
            raise CorruptFileError(_name(fragment), None, expected, str(error), place) from error
        row += len(chunk)


# --- stable row ids -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of a fragment: ids ``[low, high)``, all of them or the ascending ``ids``.

    ``offsets`` are those of ``ids``; of a range, row ``low`` is at ``start``.
    """

    fragment: int
    low: int
    high: int
    start: int
    ids: U64s | None = None
    offsets: npt.NDArray[np.int64] | None = None


def check_row_ids(snapshot: Snapshot, fragment: Fragment) -> int:
    """Check that there is an id for each row and that they differ. Raises CorruptFileError."""
    where = f"fragment {fragment.id}"
    pieces = _pieces(snapshot, fragment)
    for number, *_ in _shared(pieces, {}):
        raise CorruptFileError(where, None, "row ids that differ", f"row id {number} twice")
    return 0


def check_next_row_id(snapshot: Snapshot, fragment: Fragment) -> int:
    """Check that ids are below the next one of the manifest. Raises CorruptFileError."""
    highest = max((piece.high for piece in _pieces(snapshot, fragment)), default=0) - 1
    limit = snapshot.manifest.next_row_id
    if limit and highest >= limit:
        expected = f"row ids below {limit}, the next one of the manifest"
        raise CorruptFileError(f"fragment {fragment.id}", None, expected, str(highest))
    return 0


def check_row_versions(snapshot: Snapshot, fragment: Fragment) -> int:
    """Check the versions that made and changed each row. Raises CorruptFileError."""
    for subject, source, read in (
        ("created", fragment.created_at_versions, created_at_versions),
        ("updated", fragment.last_updated_at_versions, last_updated_at_versions),
    ):
        rows = confirmed_rows(snapshot, fragment)
        if isinstance(source, InlineSequence):
            runs = RowVersionSequence.from_bytes(source.data, "", physical_rows=rows).runs
            newest = max((version for _, version in runs), default=0)
        elif source is None:
            continue
        else:
            newest = int(read(snapshot, fragment).max(initial=0))
        if newest > snapshot.version:
            stored = f"rows {subject} at version {newest}"
            expected = f"versions up to {snapshot.version}"
            raise CorruptFileError(f"fragment {fragment.id}", None, expected, stored)
    return 0


def repeated_row_id(snapshot: Snapshot) -> tuple[int, int, int] | None:
    """Return (id, fragment, fragment) of an id that two live rows have, None if there is none.

    Fragments whose ids or deletions cannot be read are skipped: their own checks report them.
    """
    pieces: list[Piece] = []
    deletions: dict[int, DeletionVector | None] = {}
    fragments = snapshot.manifest.fragments
    for position, fragment in enumerate(fragments):
        try:
            rows = confirmed_rows(snapshot, fragment)
            deletions[position] = read_deletions(
                snapshot.locations, snapshot.deletions, fragment, rows
            )
            pieces += _pieces(snapshot, fragment, position)
        except LanceError:
            continue
    for number, first, other in _shared(pieces, deletions):
        return number, fragments[first].id, fragments[other].id
    return None


def _pieces(snapshot: Snapshot, fragment: Fragment, position: int = 0) -> list[Piece]:
    """Take the ids of a fragment apart. Raises CorruptFileError."""
    source = fragment.row_ids
    rows = confirmed_rows(snapshot, fragment)
    if isinstance(source, InlineSequence):
        where = f"{snapshot.manifest.path}, fragment {fragment.id}"
        segments = RowIdSegments.from_bytes(source.data, where, physical_rows=rows).segments
        pieces: list[Piece] = []
        start = 0
        for segment in segments:
            pieces += _pieces_of(segment, position, start)
            start += len(segment)
        return pieces
    ids = fragment_row_ids(snapshot, fragment)
    return [] if ids is None or not ids.size else [_listed(ids, position, 0)]


def _pieces_of(segment: Segment, position: int, start: int) -> Iterator[Piece]:
    if not len(segment):
        return
    if isinstance(segment, Range):
        yield Piece(position, segment.start, segment.end, start)
    elif isinstance(segment, RangeWithHoles) and len(segment) > _ROWS_PER_HOLE * len(segment.holes):
        low = segment.start
        for hole in (*segment.holes.tolist(), segment.end):
            if low < hole:
                yield Piece(position, low, hole, start)
                start += hole - low
            low = hole + 1
    else:
        yield _listed(segment.to_numpy(), position, start)


def _listed(ids: U64s, position: int, start: int) -> Piece:
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    return Piece(
        position,
        int(ordered[0]),
        int(ordered[-1]) + 1,
        start=start,
        ids=ordered,
        offsets=order + start,
    )


def _shared(
    pieces: list[Piece], deletions: dict[int, DeletionVector | None]
) -> Iterator[tuple[int, int, int]]:
    """Yield (id, owner, owner) for ids that two live rows have; of each pair of pieces one."""
    for piece in pieces:
        twice = _twice_in(piece, deletions)
        if twice is not None:
            yield twice, piece.fragment, piece.fragment
    active: list[tuple[int, int, Piece]] = []
    looked_at = 0
    for order, piece in enumerate(sorted(pieces, key=lambda piece: piece.low)):
        while active and active[0][0] <= piece.low:
            heapq.heappop(active)
        for _, _, other in active:
            looked_at += 1
            if looked_at > PAIRS_MAX:
                return
            number = _common(piece, other, deletions)
            if number is not None:
                yield number, other.fragment, piece.fragment
        heapq.heappush(active, (piece.high, order, piece))


def _twice_in(piece: Piece, deletions: dict[int, DeletionVector | None]) -> int | None:
    if piece.ids is None or piece.offsets is None:
        return None
    same = np.flatnonzero(piece.ids[1:] == piece.ids[:-1])
    if not same.size:
        return None
    live = _live(piece, piece.offsets, deletions)
    again = np.flatnonzero(np.diff(piece.ids[live]) == 0)
    return int(piece.ids[live][again[0]]) if again.size else None


def _common(first: Piece, other: Piece, deletions: dict[int, DeletionVector | None]) -> int | None:
    """Return an id that is live in both pieces, None if there is none."""
    low, high = max(first.low, other.low), min(first.high, other.high)
    ids: U64s
    listed = other.ids if first.ids is None else first.ids
    if listed is None:
        explained = sum(len(deletions.get(each.fragment) or ()) for each in (first, other))
        if high - low > explained:
            return low
        ids = np.arange(high - low, dtype=np.uint64) + np.uint64(low)
    else:
        start, stop = np.searchsorted(listed, np.array([low, high - 1], np.uint64))
        ids = listed[int(start) : int(stop) + 1]
        ids = ids[(ids >= low) & (ids <= high - 1)]
    for piece in (first, other):
        if not ids.size:
            return None
        offsets, present = _offsets(piece, ids)
        ids, offsets = ids[present], offsets[present]
        ids = ids[_live(piece, offsets, deletions)]
    return int(ids[0]) if ids.size else None


def _offsets(piece: Piece, ids: U64s) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the offsets of ids in a piece, and which of them it has."""
    if piece.ids is None or piece.offsets is None:
        return (ids - np.uint64(piece.low)).astype(np.int64) + piece.start, np.ones(
            len(ids), np.bool_
        )
    place = np.minimum(np.searchsorted(piece.ids, ids), len(piece.ids) - 1)
    return piece.offsets[place], piece.ids[place] == ids


def _live(
    piece: Piece,
    offsets: npt.NDArray[np.int64],
    deletions: dict[int, DeletionVector | None],
) -> npt.NDArray[np.bool_]:
    vector = deletions.get(piece.fragment)
    if vector is None:
        return np.ones(len(offsets), np.bool_)
    return ~vector.contains(offsets)
