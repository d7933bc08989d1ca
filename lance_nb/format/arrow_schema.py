"""Lance fields <-> Arrow fields.

``field_to_arrow`` returns two forms. The *public* one equals ``lance.dataset(...).schema``:
extension types that are registered in this process are resolved, JSON columns are ``arrow.json``
strings. The *storage* one is what data files hold: JSON as large_binary, extension types only as
field metadata.

``fields_from_arrow`` numbers fields depth first and writes the metadata that pylance writes. JSON
is what Arrow calls ``arrow.json``, by its type or by the name alone in the metadata of texts, and
large_binary with the name ``lance.json``; other types with these names are stored as they are.

Limits: trees are at most ``DEPTH_MAX`` deep (field.py), so recursion here is bounded.
Not supported: types without a logical type (logical_types.py). The names and metadata of a map's
``key`` and ``value`` are fixed by Arrow in the Arrow form, as in pylance. Items of a fixed-size
list of plain values are always called ``item`` and nullable.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa

from lance_nb.errors import CorruptFileError, InvalidInputError, LanceError
from lance_nb.format.field import DEPTH_MAX, TOP, Field, Keys
from lance_nb.format.logical_types import (
    BFLOAT16,
    EXTENSION_METADATA,
    EXTENSION_NAME,
    JSON,
    LARGE_LISTS,
    LISTS,
    MAP,
    STRUCT,
    arrow_to_logical,
    fixed_size_struct_dimension,
    leaf_to_arrow,
)

JSON_EXTENSION = "lance.json"
_ARROW_JSON = "arrow.json"
PRIMARY_KEY = "lance-schema:unenforced-primary-key"

_PLAIN, _VAR_BINARY, _DICTIONARY = 1, 2, 3


# --- Lance to Arrow -----------------------------------------------------------------------------


def field_to_arrow(field: Field, *, storage: bool = False) -> pa.Field:
    """Return the Arrow field of a Lance field (see the module for ``storage``).

    Raises NotSupportedError for an unknown logical type, CorruptFileError for a nested type with
    the wrong children.
    """
    built = _build(field, storage)
    if storage or not _has_extension(field):
        return built
    return resolve_extensions(built)


def _has_extension(field: Field) -> bool:
    if field.extension_name or EXTENSION_NAME in field.metadata:
        return True
    if f":{BFLOAT16}:" in field.logical_type:  # of the items of a fixed-size list
        return True
    return any(_has_extension(child) for child in field.children)


def resolve_extensions(field: pa.Field) -> pa.Field:
    """Let Arrow replace storage types by the extension types that are registered by name."""
    try:
        return pa.ipc.read_schema(pa.schema([field]).serialize()).field(0)
    except (pa.ArrowException, ValueError, TypeError, KeyError):
        return field  # parameters that the extension type refuses: show the storage type


def _build(field: Field, storage: bool) -> pa.Field:
    metadata = dict(field.metadata)
    if field.logical_type == JSON and not storage:
        for name in (EXTENSION_NAME, EXTENSION_METADATA):
            metadata.pop(name, None)
        return pa.field(field.name, pa.json_(), field.nullable, metadata or None)
    if field.extension_name and EXTENSION_NAME not in metadata:
        metadata[EXTENSION_NAME] = field.extension_name.encode()
    try:
        kind = _type_of(field, storage)
        if pa.types.is_null(kind) and not field.nullable:
            raise CorruptFileError("schema", None, "a column of nulls that may be null", "one not")
        return pa.field(field.name, kind, field.nullable, metadata or None)
    except LanceError as error:
        if not getattr(error, "__notes__", None):
            error.add_note(f"column {field.name[:80]!r} (field id {field.id})")
        raise


def _type_of(field: Field, storage: bool) -> pa.DataType:
    kind = field.logical_type
    if kind == STRUCT:
        return pa.struct([_build(child, storage) for child in field.children])
    if kind in LISTS:
        return pa.list_(_build(_only_child(field), storage))
    if kind in LARGE_LISTS:
        return pa.large_list(_build(_only_child(field), storage))
    if kind == MAP:
        return _map_type(field, storage)
    dimension = fixed_size_struct_dimension(kind)
    if dimension is not None:
        return pa.list_(_build(_only_child(field), storage), dimension)
    if field.children:
        raise CorruptFileError(
            "schema", None, f"no children below {kind!r}", f"{len(field.children)}"
        )
    return leaf_to_arrow(kind)


def _only_child(field: Field) -> Field:
    if len(field.children) != 1:
        raise CorruptFileError(
            "schema", None, f"one child below {field.logical_type!r}", f"{len(field.children)}"
        )
    return field.children[0]


def _map_type(field: Field, storage: bool) -> pa.DataType:
    entries = _only_child(field)
    if entries.logical_type != STRUCT or len(entries.children) != 2:
        actual = f"{entries.logical_type!r:.60} with {len(entries.children)} children"
        raise CorruptFileError("schema", None, "a struct of key and value in a map", actual)
    key, value = (_build(child, storage) for child in entries.children)
    return pa.map_(key.with_name("key").with_nullable(False), value.with_name("value"))


# --- Arrow to Lance -----------------------------------------------------------------------------


def fields_from_arrow(schema: pa.Schema, first_id: int = 0) -> tuple[Field, ...]:
    """Return Lance fields for an Arrow schema, numbered depth first from ``first_id``.

    Raises NotSupportedError for types the format cannot store, InvalidInputError for duplicate
    names, names with a dot at the top level, or a tree that is too deep.
    """
    numbering = _Numbering(first_id)
    _check_sibling_names(schema.names)
    for name in schema.names:
        if "." in name:
            raise InvalidInputError(
                f"top-level column {name!r} cannot contain '.': did you mean a struct column?"
            )
    return tuple(numbering.field(field, TOP, 1) for field in schema)


class _Numbering:
    def __init__(self, first_id: int) -> None:
        self.next_id = first_id

    def field(self, arrow: pa.Field, parent_id: int, depth: int) -> Field:
        if depth > DEPTH_MAX:
            raise InvalidInputError(f"the schema is more than {DEPTH_MAX} levels deep")
        type_ = arrow.type
        is_extension = isinstance(type_, pa.BaseExtensionType)  # these may have no hash
        plain = None if arrow.metadata or is_extension else _plain_leaf(type_)
        if plain is not None:
            self.next_id += 1
            return Field(
                self.next_id - 1,
                parent_id,
                name=arrow.name,
                logical_type=plain[0],
                nullable=arrow.nullable,
                encoding=plain[1],
            )
        storage, metadata = _storage_of(arrow)
        is_named = metadata.get(EXTENSION_NAME) == JSON_EXTENSION.encode()
        is_json = is_named and pa.types.is_large_binary(storage)
        logical = JSON if is_json else arrow_to_logical(storage)
        identity = self.next_id
        self.next_id += 1
        below = [] if is_json else _children_of(storage)
        _check_sibling_names([child.name for child in below])
        return Field(
            id=identity,
            parent_id=parent_id,
            name=arrow.name,
            logical_type=logical,
            nullable=arrow.nullable,
            children=tuple(self.field(child, identity, depth + 1) for child in below),
            metadata=metadata,
            extension_name=metadata.get(EXTENSION_NAME, b"").decode("utf-8", "replace"),
            encoding=_encoding_of(logical),
            dictionary=None,
            keys=_keys_of(metadata),
        )


@lru_cache(maxsize=256)
def _plain_leaf(type_: pa.DataType) -> tuple[str, int] | None:
    """Return logical type and encoding of a type without children, None for any other."""
    if pa.types.is_nested(type_):
        return None
    logical = arrow_to_logical(type_)
    return logical, _encoding_of(logical)


def _check_sibling_names(names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise InvalidInputError(f"column name {twice!r} occurs twice")


def metadata_from_arrow(metadata: Mapping[bytes, bytes] | None, owner: str) -> dict[str, bytes]:
    """Return Arrow metadata with keys as text. Raises InvalidInputError for a key that is none."""
    try:
        return {key.decode(): value for key, value in (metadata or {}).items()}
    except UnicodeDecodeError as exc:
        raise InvalidInputError(f"metadata key {exc.object!r} of {owner} is not UTF-8") from exc


def check_text_metadata(fields: Iterable[Field], metadata: Mapping[str, bytes]) -> None:
    """Raise InvalidInputError for metadata of a schema or its fields that is no UTF-8 text.

    The format stores bytes, but pylance reads them as text and would lose what is none.
    """
    for key, value in metadata.items():
        _check_text(key, value, "the schema")
    for field in fields:
        for key, value in field.metadata.items():
            _check_text(key, value, f"column {field.name!r}")


def _check_text(key: str, value: bytes, owner: str) -> None:
    try:
        value.decode()
    except UnicodeDecodeError as exc:
        raise InvalidInputError(
            f"metadata {key!r} of {owner} is not UTF-8 text: {value[:40]!r}; store bytes as text, "
            "for example by base64"
        ) from exc


def _storage_of(arrow: pa.Field) -> tuple[pa.DataType, Mapping[str, bytes]]:
    """Split an Arrow field into its storage type and metadata that names the extension."""
    metadata = metadata_from_arrow(arrow.metadata, f"column {arrow.name!r}")
    storage = arrow.type
    if isinstance(storage, pa.BaseExtensionType):
        name, parameters = storage.extension_name, extension_parameters(storage)
        storage = storage.storage_type
        metadata[EXTENSION_NAME] = name.encode()
        metadata[EXTENSION_METADATA] = parameters
    if metadata.get(EXTENSION_NAME) == _ARROW_JSON.encode() and _is_text(storage):
        storage = pa.large_binary()
        metadata[EXTENSION_NAME] = JSON_EXTENSION.encode()
    return storage, metadata


def _is_text(kind: pa.DataType) -> bool:
    kinds = pa.types
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def extension_parameters(extension: pa.BaseExtensionType) -> bytes:
    """Return the serialized parameters of an extension type.

    Arrow's own types do not show them in Python; the C data interface does, as field metadata.
    """
    serialize = getattr(extension, "__arrow_ext_serialize__", None)
    if serialize is not None:
        return bytes(serialize())
    capsule = pa.field("", extension).__arrow_c_schema__()
    # struct ArrowSchema {const char *format, *name, *metadata; ...}
    pointers = ctypes.cast(_capsule_pointer(capsule, b"arrow_schema"), _POINTERS)
    return _c_metadata(pointers[2] or 0).get(EXTENSION_METADATA.encode(), b"")


_POINTERS = ctypes.POINTER(ctypes.c_void_p)
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _c_metadata(address: int) -> dict[bytes, bytes]:
    """Read key-value metadata of the C data interface: count, then (length, bytes) twice each."""
    metadata: dict[bytes, bytes] = {}
    if not address:
        return metadata

    def read() -> bytes:
        nonlocal address
        size = ctypes.c_int32.from_address(address).value
        address += 4 + size
        return ctypes.string_at(address - size, size)

    count = ctypes.c_int32.from_address(address).value
    address += 4
    for _ in range(count):
        key = read()
        metadata[key] = read()
    return metadata


def _children_of(storage: pa.DataType) -> list[pa.Field]:
    kinds = pa.types
    if kinds.is_struct(storage):
        return [storage.field(index) for index in range(storage.num_fields)]
    if kinds.is_list(storage) or kinds.is_large_list(storage):
        return [storage.value_field]
    if kinds.is_map(storage):
        entries = pa.struct([storage.key_field, storage.item_field])
        return [pa.field("entries", entries, nullable=False)]
    if kinds.is_fixed_size_list(storage) and kinds.is_struct(storage.value_type):
        return [storage.value_field]
    return []


def _encoding_of(logical: str) -> int:
    if logical in ("string", "binary", "large_string", "large_binary", JSON):
        return _VAR_BINARY
    if logical.startswith("dict:"):
        return _DICTIONARY
    return 0 if logical in (STRUCT, "null") else _PLAIN


def _keys_of(metadata: Mapping[str, bytes]) -> Keys:
    # Clustering keys have no metadata form: pylance 14.0.2 ignores such a key.
    position = metadata.get(f"{PRIMARY_KEY}:position", b"")
    if position.isdigit() and len(position) < 10:
        return Keys(True, int(position))
    return Keys(metadata.get(PRIMARY_KEY, b"").lower() in (b"true", b"1", b"yes"))


def register_extension_type(extension: pa.ExtensionType) -> None:
    """Register an Arrow extension type unless one of its name is registered already."""
    try:
        pa.register_extension_type(extension)
    except pa.ArrowKeyError:
        return  # registered by pylance, or by a reloaded module
