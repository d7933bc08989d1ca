"""Leaves of a field tree to Arrow columns: which column holds what, how nesting is rebuilt.

Readers decode leaves as values of the *stored* type: JSON as large_binary (JSONB), extension types
as their storage. ``shown`` is the one place where stored values become those of the column's type;
the values of every leaf pass it, whatever the file version and the encoding of the page.

Since file version 2.1 only leaves own a column (structs, lists and maps are levels of their
leaves); a packed struct and an empty struct own one at their own field. Before, every field did. A
leaf's levels, outermost first, match the fields on the way down to it one to one.

Source: spec page "file format" (columns and field ids); verified against pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings import jsonb
from lance_nb.encodings.arrow_arrays import to_arrow, to_dictionary, validity_buffer
from lance_nb.encodings.arrow_parts import Mask, concatenated, fixed_size_items, without_null_items
from lance_nb.encodings.base import DecodedPage
from lance_nb.encodings.repdef import Level, concat_levels, unravel
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.format.logical_types import JSON, leaf_to_arrow
from lance_nb.format.schema import Field
from lance_nb.value_classes import dataclass

_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class PackedField:
    """A field of a packed struct, with its own fields where it is a struct itself."""

    field_id: int
    children: tuple[PackedField, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field that owns a column of values.

    ``type`` is that of the stored values (``stored_type``). ``depth`` counts the fields on the way
    down, itself included; ``ancestors`` are the ids and types of the others, outermost first.
    ``nullable`` is what the schema says of the field itself. ``encoded`` asks for plain values as a
    dictionary, which ``type`` then is. ``children`` are the fields of a packed struct, those that
    are wanted: its pages hold all fields of the struct that was written.
    """

    field_id: int
    name: str
    type: pa.DataType
    depth: int
    ancestors: tuple[tuple[int, pa.DataType], ...] = ()
    nullable: bool = True
    encoded: bool = False
    children: tuple[PackedField, ...] = ()

    @property
    def items_per_row(self) -> int:
        """Entries that one row has in a page: more than one inside fixed-size lists of structs.

        Such lists have no offsets: since 2.1 their pages count items where others count rows.
        Raises NotSupportedError for one inside another kind of list.
        """
        count = 1
        listed = False
        for _, type_ in self.ancestors:
            if pa.types.is_fixed_size_list(type_):
                if listed:
                    raise NotSupportedError(
                        f"column {self.name!r}: fixed-size lists of structs inside lists cannot be "
                        "read by this release"
                    )
                count *= type_.list_size
            listed = listed or _is_list(type_)
        return count


@dataclass(frozen=True, slots=True)
class LeafPart:
    """A run of rows of one leaf: its levels (outermost first) and its values."""

    levels: tuple[Level, ...]
    values: pa.Array

    @property
    def num_rows(self) -> int:
        """Top-level rows in this run."""
        return self.levels[0].length


def leaves_of(field: Field, type_: pa.DataType, owners: Mapping[int, int]) -> Iterator[Leaf]:
    """List the leaves of a top-level field. ``owners`` maps field ids to column numbers.

    A nested field that owns a column while none of its children does is one leaf (a packed or an
    empty struct). In files up to 2.0 lists and structs own columns besides those of their children.
    """
    stack: list[tuple[Field, pa.DataType, str, tuple[tuple[int, pa.DataType], ...]]]
    stack = [(field, type_, field.name, ())]
    while stack:
        node, node_type, name, above = stack.pop()
        owned = owners.get(node.id, -1) >= 0
        if owned and all(owners.get(child.id, -1) < 0 for child in node.children):
            children = []
        else:
            children = child_types(node, node_type)
        if not children:
            stored = stored_type(node, node_type)
            packed = _packed_fields(node, stored)
            yield Leaf(
                node.id,
                name,
                stored,
                depth=len(above) + 1,
                ancestors=above,
                nullable=node.nullable,
                children=packed,
            )
            continue
        below = (*above, (node.id, _without_extension(node_type)))
        stack.extend(
            (child, child_type, f"{name}.{child.name}", below)
            for child, child_type in reversed(children)
        )


def _packed_fields(field: Field, stored: pa.DataType) -> tuple[PackedField, ...]:
    """Return the fields of a struct that is stored as one column; none of blob descriptions."""
    if not pa.types.is_struct(stored) or stored.num_fields != len(field.children):
        return ()
    return tuple(
        PackedField(child.id, _packed_fields(child, part.type))
        for child, part in zip(field.children, stored, strict=True)
    )


def child_types(field: Field, type_: pa.DataType) -> list[tuple[Field, pa.DataType]]:
    """Pair the child fields with their Arrow types; nothing for a leaf."""
    if not field.children:
        return []
    type_ = _without_extension(type_)
    if pa.types.is_struct(type_):
        types = [type_.field(position).type for position in range(type_.num_fields)]
    elif pa.types.is_map(type_):
        types = [pa.struct([type_.key_field, type_.item_field])]
    else:
        types = [type_.value_type]
    if len(types) != len(field.children):
        return []  # blob descriptions: a column of its own shape at the field itself
    return list(zip(field.children, types, strict=True))


def _without_extension(type_: pa.DataType) -> pa.DataType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def stored_type(field: Field, type_: pa.DataType) -> pa.DataType:
    """Return the type of a leaf's values in data files, given the type that callers see."""
    if isinstance(type_, pa.BaseExtensionType):
        if field.logical_type == JSON:
            return leaf_to_arrow(JSON)
        return stored_type(field, type_.storage_type)
    if pa.types.is_fixed_size_list(type_):
        item = type_.value_field
        return pa.list_(item.with_type(stored_type(field, item.type)), type_.list_size)
    if pa.types.is_struct(type_) and len(field.children) == type_.num_fields:
        return pa.struct(
            [
                shown_field.with_type(stored_type(child, shown_field.type))
                for child, shown_field in zip(field.children, type_, strict=True)
            ]
        )
    return type_


def as_written(leaf: Leaf, field: Field | None, type_: pa.DataType) -> Leaf:
    """Return a packed struct with all fields that the file's own ``field`` has of it."""
    if field is None:
        return leaf
    stored = stored_type(field, type_)
    children = _packed_fields(field, stored)
    if not children or children == leaf.children:
        return leaf
    return replace(leaf, type=stored, children=children)


def narrowed(values: pa.Array, written: Leaf, leaf: Leaf) -> pa.Array:
    """Return the wanted fields of a packed struct; null those that were not written."""
    if written is leaf:
        return values
    return _chosen_fields(values, written.children, leaf.children, leaf.type)


def _chosen_fields(
    values: pa.Array,
    written: tuple[PackedField, ...],
    fields_wanted: tuple[PackedField, ...],
    type_: pa.DataType,
) -> pa.Array:
    if written == fields_wanted:
        return values
    places = {child.field_id: place for place, child in enumerate(written)}
    children = []
    for child, field in zip(fields_wanted, type_, strict=True):
        place = places.get(child.field_id)
        if place is None:
            children.append(pa.nulls(len(values), field.type))
            continue
        stored = values.field(place)
        parts = written[place].children
        children.append(_chosen_fields(stored, parts, child.children, field.type))
    mask = None if not values.null_count else pc.is_null(values)
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)


def shown(stored: pa.Array, field: Field, type_: pa.DataType) -> pa.Array:
    """Return a leaf's values, which have the stored type, as values of ``type_``.

    Nulls of a dictionary are null keys, never null items: Arrow cannot join dictionaries with
    those. Raises CorruptFileError for bytes that are no such values, NotSupportedError.
    """
    if stored.type == type_:
        return without_null_items(stored) if pa.types.is_dictionary(type_) else stored
    if isinstance(type_, pa.BaseExtensionType):
        if field.logical_type == JSON:
            values = _json_texts(stored, type_.storage_type)
        else:
            values = shown(stored, field, type_.storage_type)
        return pa.ExtensionArray.from_storage(type_, values)
    if pa.types.is_fixed_size_list(type_):
        items = shown(fixed_size_items(stored), field, type_.value_type)
        mask = None if not stored.null_count else pc.is_null(stored)
        return pa.FixedSizeListArray.from_arrays(items, type=type_, mask=mask)
    if not pa.types.is_struct(type_) or len(field.children) != type_.num_fields:
        raise CorruptFileError("", None, f"values of type {type_}", str(stored.type))
    children = [
        shown(stored.field(position), child, type_.field(position).type)
        for position, child in enumerate(field.children)
    ]
    mask = None if not stored.null_count else pc.is_null(stored)
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)


def _json_texts(documents: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return pc.cast(jsonb.texts(documents), type_)
    except pa.ArrowInvalid as exc:  # the offsets of one array have 32 bits
        raise NotSupportedError(
            f"the JSON texts of {len(documents)} rows take more than the 2 GiB of one Arrow array; "
            "read fewer rows at a time"
        ) from exc


def leaf_part(leaf: Leaf, page: DecodedPage, num_rows: int) -> LeafPart:
    """Turn a decoded page of ``num_rows`` into levels and an array. Raises CorruptFileError."""
    levels = unravel(page)
    if len(levels) == 1 and _has_no_fields(leaf.type):
        levels *= leaf.depth  # writers tell the rows of an empty struct and nothing around it
    if len(levels) != leaf.depth:
        raise CorruptFileError("", None, f"{leaf.depth} nesting layers", str(len(levels)))
    if levels[0].length != num_rows:
        raise CorruptFileError("", None, f"{num_rows} rows", str(levels[0].length))
    build = to_dictionary if leaf.encoded else to_arrow
    values = build(page.values, leaf.type, levels[-1].validity)
    return LeafPart(_fold_fixed_size_lists(leaf, levels), values)


def _has_no_fields(type_: pa.DataType) -> bool:
    return pa.types.is_struct(type_) and not type_.num_fields


def _fold_fixed_size_lists(leaf: Leaf, levels: tuple[Level, ...]) -> tuple[Level, ...]:
    """Turn levels that count the items of fixed-size lists of structs into levels of their own."""
    stride = leaf.items_per_row
    if stride == 1:
        return levels
    folded = []
    for (_, type_), level in zip(leaf.ancestors, levels, strict=False):
        validity = None if level.validity is None else level.validity[::stride]
        folded.append(Level(level.length // stride, validity, level.offsets))
        if pa.types.is_fixed_size_list(type_):
            stride //= type_.list_size
    return (*folded, levels[-1])


def concat_parts(parts: Sequence[LeafPart]) -> LeafPart:
    """Join consecutive runs of rows of one leaf."""
    if len(parts) == 1:
        return parts[0]
    levels = tuple(
        concat_levels([part.levels[depth] for part in parts])
        for depth in range(len(parts[0].levels))
    )
    return LeafPart(levels, concatenated([part.values for part in parts]))


def assemble(
    field: Field, type_: pa.DataType, parts_by_leaf: Mapping[int, Sequence[LeafPart]], num_rows: int
) -> pa.ChunkedArray:
    """Build the Arrow column of a top-level field from the parts of its leaves.

    ``parts_by_leaf`` maps the ids of leaves to their parts, in row order; missing leaves
    read as null. One chunk per part where the field has a single leaf.
    """
    if not any(parts_by_leaf.values()):
        return pa.chunked_array([pa.nulls(num_rows, type_)], type_)
    if len(parts_by_leaf) == 1:
        (field_id, parts), *_ = parts_by_leaf.items()
        chunks = [_build(field, type_, {field_id: part}, depth=0, guide=part) for part in parts]
    else:
        joined = {
            field_id: concat_parts(parts) for field_id, parts in parts_by_leaf.items() if parts
        }
        guide = next(iter(joined.values()))
        for part in joined.values():
            if part.num_rows != guide.num_rows:
                expected = f"{guide.num_rows} rows in every leaf"
                raise CorruptFileError("", None, expected, f"a leaf of {part.num_rows} rows")
        chunks = [_build(field, type_, joined, depth=0, guide=guide)]
    return pa.chunked_array(chunks, type_)


def _build(
    field: Field,
    type_: pa.DataType,
    parts_by_leaf: Mapping[int, LeafPart],
    depth: int,
    guide: LeafPart,
) -> pa.Array:
    """Build one node of the tree. ``guide`` is a leaf below it, whose levels shape the node."""
    if field.id in parts_by_leaf:
        return shown(parts_by_leaf[field.id].values, field, type_)
    if isinstance(type_, pa.BaseExtensionType):
        storage = _build(field, type_.storage_type, parts_by_leaf, depth=depth, guide=guide)
        return pa.ExtensionArray.from_storage(type_, storage)
    children = child_types(field, type_)
    level = guide.levels[depth]
    if not children:
        return pa.nulls(level.length, type_)
    _check_nesting(level, type_)
    below = level.length if level.offsets is None else int(level.offsets[-1])
    if pa.types.is_fixed_size_list(type_):
        below = level.length * type_.list_size
    arrays = []
    validity = level.validity
    own: list[Mask | None] = []
    for child, child_type in children:
        part = _first_leaf(child, parts_by_leaf)
        own.append(None if part is None else part.levels[depth].validity)
        if part is None:
            arrays.append(pa.nulls(below, child_type))
        else:
            if pa.types.is_struct(type_):
                validity = _either(validity, own[-1])
            arrays.append(_build(child, child_type, parts_by_leaf, depth=depth + 1, guide=part))
            if len(arrays[-1]) != below:
                where = f"{below} values of field {child.name!r}"
                raise CorruptFileError("", None, where, str(len(arrays[-1])))
    if pa.types.is_struct(type_):
        arrays = [
            _null_outside(array, mask, validity) for array, mask in zip(arrays, own, strict=True)
        ]
    buffers = [validity_buffer(validity)]
    if level.offsets is not None:
        buffers.append(_offsets_buffer(level, type_))
    return pa.Array.from_buffers(type_, level.length, buffers, children=arrays)


def _either(mask: Mask | None, other: Mask | None) -> Mask | None:
    """Return where one of two leaves says that there is a value: they may be of two files."""
    if mask is None or other is None:
        return None
    if other is mask:
        return mask
    if len(other) != len(mask):
        raise CorruptFileError("", None, f"{len(mask)} values in every leaf", str(len(other)))
    return mask | other


def _null_outside(values: pa.Array, own: Mask | None, validity: Mask | None) -> pa.Array:
    """Make values null where only another file says that their struct is there."""
    if own is None or own is validity or (validity is not None and np.array_equal(own, validity)):
        return values
    place = np.arange(len(values), dtype=np.int64)
    return pc.take(values, pa.array(place, mask=~own))


def _check_nesting(level: Level, type_: pa.DataType) -> None:
    """Refuse levels of another kind of nesting than the schema says."""
    listed = _is_list(type_)
    if listed != (level.offsets is not None):
        actual = "structs" if listed else "lists"
        raise CorruptFileError("", None, f"the levels of type {type_}", f"those of {actual}")


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_map(type_))


def _first_leaf(field: Field, parts_by_leaf: Mapping[int, LeafPart]) -> LeafPart | None:
    stack = [field]
    while stack:
        node = stack.pop()
        if node.id in parts_by_leaf:
            return parts_by_leaf[node.id]
        stack.extend(reversed(node.children))
    return None


def _offsets_buffer(level: Level, type_: pa.DataType) -> pa.Buffer:
    offsets = level.offsets if level.offsets is not None else np.zeros(1, np.int64)
    if pa.types.is_large_list(type_):
        return pa.py_buffer(offsets)
    if int(offsets[-1]) > _INT32_MAX:
        actual = str(int(offsets[-1]))
        raise CorruptFileError("", None, f"at most {_INT32_MAX} list items in one read", actual)
    return pa.py_buffer(offsets.astype(np.int32))
