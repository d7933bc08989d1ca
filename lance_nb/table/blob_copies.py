"""Copy rows with blobs: descriptions become references that a file writer copies.

A column of descriptions is given the form ``BLOB_VALUES``: each payload is named by the object that
holds it and its range there, so that it goes from file to file without being part of a batch.
External blobs stay references.

Limits: blobs inside structs and lists, not inside maps or fixed-size lists. Objects are looked up
when a row refers to them, to check the range.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.arrow_parts import nulls_of
from lance_nb.encodings.base import Ints
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.blob_values import StoredPayloads, blob_values
from lance_nb.format.arrow_schema import field_to_arrow
from lance_nb.format.blob_fields import holds_blobs, input_type, is_blob
from lance_nb.format.schema import Field
from lance_nb.table.blob_columns import EXTERNAL, INLINE, SIDECARS, is_list, sidecar_path
from lance_nb.table.blobs import blob_file
from lance_nb.table.snapshot import Snapshot

_ADDRESS_SHIFT = np.uint64(32)
_LARGEST = np.iinfo(np.int64).max


class BlobCopies:
    """Turns the descriptions of one version's blobs into references; ``payloads`` resolves them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._fields = {
            field.name: field for field in snapshot.manifest.schema if holds_blobs(field)
        }
        self._sizes: dict[int, int] = {}
        self.payloads = StoredPayloads()

    def __bool__(self) -> bool:
        """Whether the dataset has any column with blobs."""
        return bool(self._fields)

    def table(
        self, rows: pa.Table, addresses: np.ndarray, without: Collection[str] = ()
    ) -> pa.Table:
        """Return rows whose columns of descriptions name payloads; ``addresses`` are the rows'.

        ``without``: columns that are left alone. Raises CorruptFileError, NotSupportedError.
        """
        for name in rows.schema.names:
            field = self._fields.get(name)
            if field is None or name in without:
                continue
            place = rows.schema.get_field_index(name)
            column = rows.column(place)
            array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            type_ = input_type(field, field_to_arrow(field, storage=True).type)
            values = self._values(field, type_, array, addresses.astype(np.uint64))
            rows = rows.set_column(place, pa.field(name, type_, field.nullable), values)
        return rows

    def batch(self, rows: pa.RecordBatch, addresses: np.ndarray) -> pa.RecordBatch:
        """Do for a batch what ``table`` does for a table."""
        if not self._fields:
            return rows
        (batch,) = self.table(pa.Table.from_batches([rows]), addresses).to_batches() or [rows]
        return batch

    def _values(
        self, field: Field, type_: pa.DataType, array: pa.Array, addresses: np.ndarray
    ) -> pa.Array:
        if is_blob(field):
            return self._references(field, array, addresses)
        if not holds_blobs(field):
            return array
        nulls = nulls_of(array)
        mask = None if nulls is None else pa.array(nulls)
        if pa.types.is_struct(type_):
            children = [
                self._values(child, type_.field(child_index).type, part, addresses)
                for child_index, (child, part) in enumerate(
                    zip(field.children, array.flatten(), strict=True)
                )
            ]
            return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)
        if not is_list(type_):
            raise NotSupportedError(
                f"column {field.name!r} is {field.logical_type} with blobs inside: its rows cannot "
                "be written again"
            )
        lengths = pc.fill_null(array.value_lengths(), 0).to_numpy(zero_copy_only=False)
        owners = np.repeat(addresses, lengths)
        items = self._values(field.children[0], type_.value_type, array.flatten(), owners)
        is_large = pa.types.is_large_list(type_)
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(
            np.int64 if is_large else np.int32
        )
        kind = pa.LargeListArray if is_large else pa.ListArray
        return kind.from_arrays(pa.array(offsets), items, type_, mask=mask)

    def _references(self, field: Field, array: pa.Array, addresses: np.ndarray) -> pa.Array:
        """Return blobs as references to stored payloads, or to what lies outside."""
        nulls = np.asarray(array.is_null())
        positions, sizes = (_numbers(array, name) for name in ("position", "size"))
        kinds = np.zeros(len(array), np.int64)
        ids = np.zeros(len(array), np.int64)
        if array.type.get_field_index("kind") < 0:
            nulls = nulls | ((sizes == 0) & (positions != 0))  # a null blob keeps its levels there
        else:
            kinds, ids = _numbers(array, "kind"), _numbers(array, "blob_id")
        kinds = np.where(nulls, INLINE, kinds)
        outside = kinds == EXTERNAL
        inside = ~nulls & ~outside
        objects = self._objects(field, (addresses >> _ADDRESS_SHIFT).astype(np.int64),
                                (inside, kinds, ids), (positions, sizes))  # fmt: skip
        fields = {
            "position": pa.array(positions.astype(np.uint64)),
            "size": pa.array(np.where(nulls, 0, sizes).astype(np.uint64)),
            "object": pa.array(objects.astype(np.uint32), mask=~inside),
        }
        if outside.any():
            whole = outside & (sizes == 0)
            fields["size"] = pa.array(sizes.astype(np.uint64), mask=whole | nulls)
            blank = pa.scalar(None, pa.string())
            fields["uri"] = pa.compute.if_else(pa.array(outside), array.field("blob_uri"), blank)
            fields["base"] = pa.array(ids.astype(np.uint32), mask=~outside)
        return blob_values(fields, nulls if nulls.any() else None, len(array))

    def _objects(
        self,
        field: Field,
        owners: Ints,
        kinds: tuple[np.ndarray, Ints, Ints],
        ranges: tuple[Ints, Ints],
    ) -> Ints:
        """Return the number of the object that each payload lies in, once it is checked."""
        inside, kind, ids = kinds
        objects: Ints = np.zeros(owners.size, np.int64)
        rows = np.flatnonzero(inside)
        if not rows.size:
            return objects
        keys = np.stack((owners[rows], kind[rows], np.where(kind[rows] == INLINE, 0, ids[rows])))
        order = np.lexsort(keys)
        keys = keys[:, order]
        edges = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
        for part in np.split(np.arange(order.size), edges):
            owner, blob_kind, blob_id = keys[:, part[0]].tolist()
            mine = rows[order[part]]
            objects[mine] = self._object(field, (owner, blob_kind, blob_id), (mine, ranges))
        return objects

    def _object(
        self, field: Field, place: tuple[int, int, int], rows: tuple[Ints, tuple[Ints, Ints]]
    ) -> int:
        owner, kind, blob_id = place
        file = blob_file(self._snapshot, owner, field.id)
        path = file.location(self._snapshot.manifest.path)
        if kind in SIDECARS:
            path = sidecar_path(path, blob_id)
        elif kind != INLINE:
            raise NotSupportedError(
                f"a blob of kind {kind} in {path} cannot be read by this release"
            )
        store, name = self._snapshot.locations.locate(path, file.base_id)
        number = self.payloads.add(store, name)
        if number not in self._sizes:
            self._sizes[number] = store.size(name)
        mine, (positions, sizes) = rows
        room = self._sizes[number] - positions[mine]
        wrong = np.flatnonzero((room < sizes[mine]) | (positions[mine] < 0) | (sizes[mine] < 0))
        if wrong.size:
            row = mine[wrong[0]]
            raise CorruptFileError(
                f"{store.uri}/{name}",
                int(positions[row]),
                f"a blob of {int(sizes[row])} bytes",
                f"{self._sizes[number]} bytes",
            )
        return number


def _numbers(array: pa.StructArray, name: str) -> Ints:
    """Return a field of descriptions; numbers too large for a position become negative ones."""
    values = pc.fill_null(array.field(name), 0).to_numpy(zero_copy_only=False)
    return np.where(values > _LARGEST, np.int64(-1), values.astype(np.int64))
