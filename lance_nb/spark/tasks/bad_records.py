"""Read files of which some records do not parse or do not fit: drop them, or keep them as text.

===========  ==============  ====================================================================
bad_records  Spark's name    a bad record
===========  ==============  ====================================================================
raise        FAILFAST        is an error that names the file
drop         DROPMALFORMED   is left out, and counted
column       PERMISSIVE      becomes a row with its text in a column, null in the others; counted
===========  ==============  ====================================================================

A record is bad if it cannot be parsed (a line of CSV with another number of fields, a line that is
no JSON object, or has a field that the dataset does not have), if a value cannot be converted to
the type of its column without a change, or is null where the column must not be. The text is the
line; of CSV lines that parse, the fields joined again; of Parquet and Arrow rows, which are only
bad when they are cast, JSON.

Values are converted a column at a time, and JSON a group of lines at a time. What fails is searched
by halving, in JSON after a look at each line of the group, so a file without bad records costs one
pass, and one of only bad records a few microseconds for each.

Limits: a line is at most ``BLOCK_BYTES`` long. The types of a new dataset are guessed from the
first block, and from ``GUESSED_LINES`` of JSON if there are bad lines in it. A column of CSV there
that has both numbers and text is text, so no value of it is bad.
Source: options ``mode`` and ``columnNameOfCorruptRecord`` of Spark's CSV and JSON sources; Spark
keeps the values of a bad CSV record that it can convert, here all are null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import compress, islice
from operator import not_
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.arrow_casts import cast_array, cast_table
from lance_nb.errors import InvalidInputError, SchemaMismatchError
from lance_nb.value_classes import dataclass

BLOCK_BYTES = 8 * 1024**2  # of text; a line is at most so long
GUESSED_LINES = 1024
_GROUP_LINES = 1024  # that are parsed together once their block has a bad line
_ACTIONS = {
    "raise": "raise",
    "failfast": "raise",
    "drop": "drop",
    "dropmalformed": "drop",
    "column": "column",
    "permissive": "column",
}
_INTEGER = r"^[+-]?(\d+|0[xX][0-9a-fA-F]+)$"
_NUMBER = r"^[+-]?(\d|\.\d|inf|nan|Inf|NaN|INF)"
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BadRecordRule:
    """What is done with bad records: "drop", or "column" with the name of the column."""

    action: str
    column: str

    @classmethod
    def of(cls, action: str, column: str) -> BadRecordRule | None:
        """Return the rule, None to raise. Raises InvalidInputError for an unknown action."""
        known_action = _ACTIONS.get(action.lower()) if isinstance(action, str) else None
        if known_action is None:
            raise InvalidInputError(
                "bad_records is 'raise' (FAILFAST), 'drop' (DROPMALFORMED) or 'column' "
                f"(PERMISSIVE), not {action!r}"
            )
        return None if known_action == "raise" else cls(known_action, column)

    @property
    def field(self) -> pa.Field | None:
        """The column that holds the text of bad records; None if they are dropped."""
        return pa.field(self.column, pa.string()) if self.action == "column" else None

    def check(self, schema: pa.Schema) -> None:
        """Check that the columns of a dataset can hold bad records.

        Raises SchemaMismatchError without the column, or if it is no text; InvalidInputError if
        another column must not be null.
        """
        if self.action != "column":
            return
        position = schema.get_field_index(self.column)
        if position < 0:
            raise SchemaMismatchError(
                f"bad_records='column' keeps bad records as text in column {self.column!r}, which "
                "the dataset does not have: add it as a column of text, name another one by "
                "bad_record_column, or use bad_records='drop'"
            )
        kind = schema.field(position).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise SchemaMismatchError(
                f"column {self.column!r} is to hold the text of bad records, and has type {kind}: "
                "name another one by bad_record_column"
            )
        required = [field.name for field in schema if not field.nullable]
        if required:
            raise InvalidInputError(
                f"a bad record has null in all other columns, and {required[0]!r} must not be "
                "null: use bad_records='drop' or 'raise'"
            )


@dataclass(frozen=True, slots=True)
class BadRecordCount:
    """Bad records of a file: how many, and the text of the first."""

    path: str
    count: int = 0
    first: str = ""


class BadRecordCounter:
    """Counts the bad records of a file while it is read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.count = 0
        self.first = ""

    def add(self, texts: Sequence[str]) -> None:
        """Count bad records."""
        if texts and not self.count:
            self.first = texts[0][:200]
        self.count += len(texts)

    @property
    def total(self) -> BadRecordCount:
        """What was counted so far."""
        return BadRecordCount(self.path, self.count, self.first)


@dataclass(frozen=True, slots=True)
class Fitting:
    """Bring batches of a file to the columns of a dataset, record by record.

    ``schema`` are the columns of the dataset; ``casts`` says whether values are converted
    (always, for text).
    """

    schema: pa.Schema
    rule: BadRecordRule
    casts: bool
    count: BadRecordCounter = field(compare=False)

    def batch(self, unchecked: pa.RecordBatch, unparsed: Sequence[str]) -> pa.RecordBatch:
        """Return the rows of a batch, and those that could not be parsed at its end.

        Raises InvalidInputError if the file has the column of bad records itself.
        """
        if self.rule.action == "column" and self.rule.column in unchecked.schema.names:
            raise InvalidInputError(
                f"{self.count.path} has a column {self.rule.column!r} of its own: name another one "
                "for bad records by bad_record_column"
            )
        is_good = np.ones(unchecked.num_rows, np.bool_)
        columns, fields = [], []
        for schema_field, values in zip(unchecked.schema, unchecked.columns, strict=True):
            position = self.schema.get_field_index(schema_field.name)
            target_field = None if position < 0 else self.schema.field(position)
            array, fits = self._column(values, target_field)
            is_good &= fits
            columns.append(array)
            fields.append(pa.field(schema_field.name, array.type))
        bad = [] if is_good.all() else _texts(unchecked.filter(pa.array(~is_good)))
        self.count.add([*bad, *unparsed])
        if self.rule.action == "drop":
            rows = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
            return rows if is_good.all() else rows.filter(pa.array(is_good))
        num_all = unchecked.num_rows + len(unparsed)
        is_row = np.concatenate([is_good, np.zeros(len(unparsed), np.bool_)])
        # A bad record takes the place of its row: null by a null index.
        places = pa.array(np.arange(num_all), mask=~is_row)
        if not is_row.all():
            columns = [column.take(places) for column in columns]
        is_bad = ~is_row
        order = pa.array(np.cumsum(is_bad) - 1, mask=~is_bad)
        texts = pa.array([*bad, *unparsed], pa.string()).take(order)
        schema = pa.schema([*fields, pa.field(self.rule.column, pa.string())])
        return pa.RecordBatch.from_arrays([*columns, texts], schema=schema)

    def _column(self, values: pa.Array, target_field: pa.Field | None) -> tuple[pa.Array, Mask]:
        """Convert a column; tell which of its values fit."""
        if target_field is None:  # the writer says which column the dataset lacks
            return _as_text(values) if pa.types.is_binary(values.type) else (values, _all(values))
        if pa.types.is_binary(values.type) and not _is_binary(target_field.type):
            array, fits = converted_text(values, target_field)
        elif self.casts and not isinstance(target_field.type, pa.BaseExtensionType):
            array, fits = try_cast(values, target_field.type, target_field.name)
        else:
            array, fits = values, _all(values)
        if not target_field.nullable:
            fits &= array.is_valid().to_numpy(zero_copy_only=False)
        return array, fits


def _all(values: pa.Array) -> Mask:
    return np.ones(len(values), np.bool_)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def try_cast(values: pa.Array, kind: pa.DataType, name: str) -> tuple[pa.Array, Mask]:
    """Cast values where none changes; tell which could be cast, the others are null.

    Raises SchemaMismatchError if no value of the type can be cast.
    """
    try:
        return cast_array(values, kind), _all(values)
    except pa.ArrowNotImplementedError as error:
        raise SchemaMismatchError(f"column {name!r} cannot be cast to {kind}: {error}") from error
    except pa.ArrowInvalid:
        if len(values) == 1:
            return pa.nulls(1, kind), np.zeros(1, np.bool_)
    half = len(values) // 2
    (first_half, fits), (other, fits_after) = (
        try_cast(part, kind, name) for part in (values[:half], values[half:])
    )
    return pa.concat_arrays([first_half, other]), np.concatenate([fits, fits_after])


def _as_text(values: pa.Array) -> tuple[pa.Array, Mask]:
    """Return bytes as text; tell which are valid UTF-8, the others are null."""
    return try_cast(values, pa.string(), "text")


def converted_text(values: pa.Array, target_field: pa.Field) -> tuple[pa.Array, Mask]:
    """Convert fields of CSV as pyarrow's reader does; tell which fit, the others are null."""
    from pyarrow import csv

    kind = target_field.type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    text, fits = _as_text(values)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or _stays_text(kind):
        return (text if _stays_text(kind) else text.cast(kind)), fits
    defaults = csv.ConvertOptions()
    text = pc.utf8_trim_whitespace(text)
    is_null = pc.is_in(text, pa.array(defaults.null_values)).to_numpy(zero_copy_only=False)
    text = pc.if_else(pa.array(~is_null), text, None)
    if pa.types.is_boolean(kind):
        is_true = pc.is_in(text, pa.array(defaults.true_values))
        is_known = pc.or_(is_true, pc.is_in(text, pa.array(defaults.false_values)))
        is_known = is_known.to_numpy(zero_copy_only=False)
        array = pc.if_else(pa.array(is_known), is_true, None)
        return array, fits & (is_null | is_known)
    pattern = _INTEGER if pa.types.is_integer(kind) else _NUMBER
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):  # finds most bad values at once
        looks_so = pc.fill_null(pc.match_substring_regex(text, pattern), True)
        looks_so = looks_so.to_numpy(zero_copy_only=False)
        text, fits = pc.if_else(pa.array(looks_so), text, None), fits & looks_so
    if pa.types.is_time(kind):  # no text is cast to a time, but to a time of a day
        text = pc.binary_join_element_wise("1970-01-01", text, " ")
        moments, converts = try_cast(text, pa.timestamp(kind.unit), target_field.name)
        return moments.cast(kind), fits & converts
    array, converts = try_cast(text, kind, target_field.name)
    return array, fits & converts


def _stays_text(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) or bool(pa.types.is_nested(kind))


def _texts(rows: pa.RecordBatch) -> list[str]:
    """Return bad rows as text: fields of CSV joined again, other rows as JSON."""
    if not all(pa.types.is_binary(field.type) for field in rows.schema):
        return [json.dumps(row, default=str, ensure_ascii=False) for row in rows.to_pylist()]
    columns = []
    for values in rows.columns:
        text, fits = _as_text(values)
        if not fits.all():
            decoded = [(value or b"").decode("utf-8", "replace") for value in values.to_pylist()]
            text = pa.array(decoded, pa.string())
        is_quoted = pc.match_substring_regex(text, '[",\n\r]')
        doubled = pc.replace_substring(text, '"', '""')
        quoted = pc.binary_join_element_wise('"', doubled, '"', "")
        columns.append(pc.if_else(is_quoted, quoted, text))
    joined: list[str] = pc.binary_join_element_wise(
        *columns, ",", null_handling="replace", null_replacement=""
    ).to_pylist()
    return joined


# --- parsing --------------------------------------------------------------------------------------

Parsed = tuple[pa.RecordBatch, list[str]]


def csv_schema(stream: IO[bytes]) -> pa.Schema:
    """Return the columns of a CSV file, in the types that its first block seems to have."""
    from pyarrow import csv

    read = csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False)
    parse_options = csv.ParseOptions(invalid_row_handler=lambda _: "skip")
    return csv.open_csv(stream, read, parse_options).schema


def parsed_csv(stream: IO[bytes], names: Sequence[str]) -> Iterator[Parsed]:
    """Yield the fields of a CSV file as bytes, and the lines with another number of fields."""
    from pyarrow import csv

    lines: list[str] = []

    def skipped(row: Any) -> str:
        lines.append(row.text)
        return "skip"

    def taken() -> list[str]:
        taken_lines, lines[:] = list(lines), []
        return taken_lines

    opened = csv.open_csv(
        stream,
        csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False),
        csv.ParseOptions(invalid_row_handler=skipped),
        csv.ConvertOptions(column_types=dict.fromkeys(names, pa.binary())),
    )
    for batch in opened:
        yield batch, taken()
    if lines:
        empty = pa.RecordBatch.from_pylist([], opened.schema)
        yield empty, taken()


def json_schema(stream: IO[bytes], path: str) -> pa.Schema:
    """Return the columns of the first block of JSON lines; in conflicts the first line is right.

    Raises InvalidInputError if no line is an object.
    """
    lines = _lines(next(_blocks(stream, path), b""))
    try:
        return _read_lines(lines, None).schema
    except pa.ArrowInvalid:
        objects = (line for line in lines if _is_plausible(line, None))
        schema = _schema_of(list(islice(objects, GUESSED_LINES)))
    if schema is None:
        raise InvalidInputError(f"{path}: no line is a JSON object")
    return schema


def _schema_of(lines: list[bytes]) -> pa.Schema | None:
    try:
        return _read_lines(lines, None).schema if lines else None
    except pa.ArrowInvalid:
        if len(lines) == 1:
            return None
    half = len(lines) // 2
    schema, other = _schema_of(lines[:half]), _schema_of(lines[half:])
    if schema is None or other is None:
        return schema or other
    try:
        return pa.unify_schemas([schema, other], promote_options="permissive")
    except pa.ArrowException:
        return pa.schema([*schema, *(field for field in other if field.name not in schema.names)])


def parsed_json(stream: IO[bytes], schema: pa.Schema, path: str) -> Iterator[Parsed]:
    """Yield the objects of JSON lines with the columns of ``schema``, and the bad lines."""
    for block in _blocks(stream, path):
        unparsed: list[str] = []
        tables = list(_parsed_block(_lines(block), schema, unparsed))
        table = pa.concat_tables(tables) if tables else schema.empty_table()
        yield (
            table.combine_chunks().to_batches()[0]
            if table.num_rows
            else (pa.RecordBatch.from_pylist([], schema)),
            unparsed,
        )


def _blocks(stream: IO[bytes], path: str) -> Iterator[bytes]:
    """Yield blocks of whole lines. Raises InvalidInputError for a line that is too long."""
    unread, block = b"", stream.read(BLOCK_BYTES)
    while block:
        following = stream.read(BLOCK_BYTES)
        data = unread + block
        end = data.rfind(b"\n") + 1 if following else len(data)
        if not end and len(data) > BLOCK_BYTES:
            raise InvalidInputError(f"{path}: a line is longer than {BLOCK_BYTES:,} bytes")
        unread, block = data[end:], following
        if end:
            yield data[:end]


def _lines(block: bytes) -> list[bytes]:
    return [line for line in block.split(b"\n") if line.strip()]


def _parsed_block(lines: list[bytes], schema: pa.Schema, unparsed: list[str]) -> Iterator[pa.Table]:
    """Parse a block; if that fails group by group, first without the lines that cannot be right."""
    with suppress(pa.ArrowInvalid):
        if lines:
            yield cast_table(_read_lines(lines, schema).select(schema.names), schema)
        return
    kinds = {field.name: _python_types(field.type) for field in schema}
    for start in range(0, len(lines), _GROUP_LINES):
        group = lines[start : start + _GROUP_LINES]
        plausible = [_is_plausible(line, kinds) for line in group]
        unparsed.extend(_line_text(line) for line in compress(group, map(not_, plausible)))
        yield from _objects(list(compress(group, plausible)), schema, unparsed)


_PythonTypes = tuple[type, ...] | None


def _python_types(kind: pa.DataType) -> _PythonTypes:
    """Return the types that values have as JSON; None if that is not for sure."""
    if pa.types.is_integer(kind):
        return (int,)
    if pa.types.is_floating(kind):
        return (int, float)
    if pa.types.is_boolean(kind):
        return (bool,)
    return (str,) if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None


def _is_plausible(line: bytes, kinds: Mapping[str, _PythonTypes] | None) -> bool:
    """Whether a line is a JSON object, and if ``kinds`` are given has values of these types."""
    try:
        parsed = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    if not isinstance(parsed, dict) or kinds is None:
        return isinstance(parsed, dict)
    for name, value in parsed.items():
        if name not in kinds:
            return False
        kind = kinds[name]
        if value is not None and kind is not None and type(value) not in kind:
            return False
    return True


def _line_text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


def _objects(lines: list[bytes], schema: pa.Schema, unparsed: list[str]) -> Iterator[pa.Table]:
    """Parse lines; halve what does not parse until single lines are left."""
    if not lines:
        return
    try:
        objects = _read_lines(lines, schema)
    except pa.ArrowInvalid:
        objects = None
    if objects is not None:
        yield cast_table(objects.select(schema.names), schema)
    elif len(lines) == 1:
        unparsed.append(_line_text(lines[0]))
    else:
        half = len(lines) // 2
        yield from _objects(lines[:half], schema, unparsed)
        yield from _objects(lines[half:], schema, unparsed)


def _read_lines(lines: list[bytes], schema: pa.Schema | None) -> pa.Table:
    from pyarrow import json as arrow_json

    data = b"\n".join(lines)
    return arrow_json.read_json(
        pa.BufferReader(data),
        arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        arrow_json.ParseOptions(
            explicit_schema=schema,
            unexpected_field_behavior="infer" if schema is None else "error",
        ),
    )


def json_types(schema: pa.Schema, other_columns: Sequence[str]) -> pa.Schema:
    """Return types that JSON is parsed to for a dataset, without some columns."""
    return pa.schema(
        [
            pa.field(field.name, _json_type(field.type))
            for field in schema
            if field.name not in other_columns
        ]
    )


def _json_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _json_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.list_(kind.value_type) if pa.types.is_fixed_size_list(kind) else kind
