"""Check whether data fits the dataset, by the schemas, before any file is begun.

Columns may come in another order, and those that may be null may be missing, at every level of
nesting; nullability may differ as long as there is no null. Everything else must be the same: names
to the letter, and logical types (text views are text). Types are never converted.

Source: what ``lance.write_dataset(mode="append")`` of pylance 14.0.2 accepts and refuses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lance_nb.errors import SchemaMismatchError
from lance_nb.format.blob_fields import is_blob_v1, is_blob_v2, with_blobs
from lance_nb.format.schema import Field, Schema, check_primary_key
from lance_nb.transactions.schema_change import check_not_reserved
from lance_nb.value_classes import dataclass

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class _Fitting:
    """Data of one schema was found to fill a part of another."""

    source: pa.Schema
    target: Schema
    part: Schema


_fitting: deque[_Fitting] = deque(maxlen=8)  # who appends does it again and again


def writable_part(given_schema: pa.Schema, schema: Schema) -> Schema:
    """Return the columns of ``schema`` that data of schema ``given_schema`` fills.

    Raises SchemaMismatchError that lists every difference.
    """
    for cached in tuple(_fitting):
        if cached.target is schema and cached.source.equals(given_schema, check_metadata=True):
            return cached.part
    part = _part(given_schema, schema)
    _fitting.append(_Fitting(given_schema, schema, part))
    return part


def _part(given_schema: pa.Schema, schema: Schema) -> Schema:
    given_fields = Schema.from_arrow(given_schema)
    problems = list(_differences(schema.fields, given_fields.fields, ""))
    if problems:
        more = f" (and {len(problems) - _SHOWN} more)" if len(problems) > _SHOWN else ""
        listed = "; ".join(problems[:_SHOWN])
        raise SchemaMismatchError(f"the data does not have the dataset's schema: {listed}{more}")
    names = set(given_fields.names)
    return Schema(tuple(field for field in schema if field.name in names), schema.metadata)


def _differences(
    fields: Sequence[Field], given_fields: Sequence[Field], above: str
) -> Iterator[str]:
    by_name = {field.name: field for field in given_fields}
    for field in fields:
        path = above + field.name
        other = by_name.pop(field.name, None)
        if other is None:
            if not field.nullable:
                yield f"column {path!r} is missing, and it must not be null"
        elif is_blob_v2(field):
            if not is_blob_v2(other) and not _is_marked(other):
                yield f"column {path!r} holds blobs, and the data has {other.logical_type} there"
        elif _kind(other) != _kind(field):
            yield f"column {path!r} must have type {field.logical_type}, not {other.logical_type}"
        else:
            yield from _differences(field.children, other.children, f"{path}.")
    for name in by_name:
        yield f"column {above + name!r} is not in the dataset"


def _kind(field: Field) -> str:
    """Return the logical type; of lists whatever their items are, which are looked at next."""
    return field.logical_type.removesuffix(".struct") if field.children else field.logical_type


def _is_marked(field: Field) -> bool:
    """Return whether plain binary is meant to become blobs."""
    return is_blob_v1(field) and field.logical_type in ("binary", "large_binary")


def new_schema(given_schema: pa.Schema, file_version: tuple[int, int]) -> Schema:
    """Return the schema of a new dataset for data of this schema, with field ids.

    In 2.2, binary columns that are marked as blobs become blobs of the second generation. Raises
    NotSupportedError, InvalidInputError.
    """
    check_not_reserved(given_schema.names)
    schema = Schema.from_arrow(with_blobs(given_schema, file_version))
    schema.check_text_metadata()
    check_primary_key(schema)
    return schema
