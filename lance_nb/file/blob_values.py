"""Values of blob columns as callers have them, brought into one form, and looked at as bytes.

Layout of the one form: ``struct<data, uri, position, size>``; of a value that is not null exactly
one of data and uri is set. Plain binary columns and structs with fewer fields are taken, too.

Limits: payloads stay where they are; what is returned are ranges of the array's buffer.
Source: ``BlobType`` of pylance 14.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import nulls_of
from lance_nb.encodings.base import Bytes, Ints
from lance_nb.errors import InvalidInputError, SchemaMismatchError
from lance_nb.format.blob_fields import BLOB_INPUT

_NO_BYTES: Bytes = np.zeros(0, np.uint8)


def fit_blobs(array: pa.Array, path: str) -> pa.Array:
    """Return blobs in the one form. Raises SchemaMismatchError for a type that holds none."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    kind = array.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        fields = {"data": array.cast(pa.large_binary())}
    elif pa.types.is_struct(kind):
        names = [kind.field(at).name for at in range(kind.num_fields)]
        fields = {name: array.field(at) for at, name in enumerate(names)}
    else:
        raise SchemaMismatchError(f"column {path!r} has type {kind}, but it holds blobs")
    for name, found in fields.items():
        at = BLOB_INPUT.get_field_index(name)
        if at < 0 or found.type != BLOB_INPUT.field(at).type:
            raise SchemaMismatchError(
                f"column {path!r} holds blobs, which have no field {name!r} of type {found.type}"
            )
    children = [fields.get(one.name, pa.nulls(len(array), one.type)) for one in BLOB_INPUT]
    nulls = nulls_of(array)
    mask = None if nulls is None else pa.array(nulls)
    return pa.StructArray.from_arrays(children, fields=list(BLOB_INPUT), mask=mask)


@dataclass(frozen=True, slots=True)
class Payloads:
    """Bytes of some rows: range ``starts[i]``, ``sizes[i]`` of ``data``; null rows have size 0."""

    data: Bytes
    starts: Ints
    sizes: Ints

    @classmethod
    def of(cls, array: pa.Array) -> Payloads:
        """Look into a large_binary array."""
        count = len(array)
        _, offsets_buffer, data_buffer = array.buffers()
        if offsets_buffer is None or not count:
            none: Ints = np.zeros(count, np.int64)
            return cls(_NO_BYTES, none, none)
        offsets = np.frombuffer(offsets_buffer, np.int64, count + 1, array.offset * 8)
        data = _NO_BYTES if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
        sizes = np.diff(offsets)
        nulls = nulls_of(array)
        if nulls is not None:
            sizes[nulls] = 0
        return cls(data, offsets[:-1], sizes)

    def chosen(self, rows: Ints) -> Payloads:
        """Return those of some rows."""
        return Payloads(self.data, self.starts[rows], self.sizes[rows])

    def pieces(self) -> list[Bytes]:
        """Return views of the payloads, one by one."""
        pairs = zip(self.starts.tolist(), self.sizes.tolist(), strict=True)
        return [self.data[start : start + size] for start, size in pairs]


def check_one_form(has_data: np.ndarray, has_uri: np.ndarray, nulls: np.ndarray, path: str) -> None:
    """Refuse values with both data and uri, or neither. Raises InvalidInputError."""
    wrong = np.flatnonzero((has_data == has_uri) & ~nulls)
    if wrong.size:
        problem = "both data and uri" if has_data[wrong[0]] else "neither data nor uri"
        raise InvalidInputError(f"column {path!r}: a blob (value {int(wrong[0])}) has {problem}")
