"""Random column types and field metadata, and their text as Python source."""

from __future__ import annotations

import random
from collections.abc import Mapping

import lance
import pyarrow as pa
from lance.arrow import BFloat16Type
from lance.blob import BlobType

MAX_DEPTH = 4
PREFIX = "lance-encoding:"
BLOB_KEY = f"{PREFIX}blob"

INTEGERS = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
TEXTS = [pa.string(), pa.large_string()]
BYTES = [pa.binary(), pa.large_binary()]
FIXED_BYTES = [pa.binary(width) for width in (1, 3, 16, 40)]
TEMPORAL = [
    pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")),
    pa.timestamp("us", "Europe/Zurich"), pa.timestamp("ms", "+05:30"),
    *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
]  # fmt: skip
DECIMALS = [pa.decimal128(9, 2), pa.decimal128(38, 10), pa.decimal128(5, -2), pa.decimal256(60, 5)]
EXTENSIONS = [
    pa.json_(), pa.json_(), pa.uuid(), BFloat16Type(), pa.fixed_shape_tensor(pa.float32(), [2, 3]),
]  # fmt: skip
VIEWS = [pa.string_view(), pa.binary_view()]
KEYS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32()]

# Each group of leaf types is as likely as its weight, whatever the number of types in it.
_GROUPS: list[tuple[list[pa.DataType], float]] = [
    (INTEGERS, 5), (FLOATS, 3), ([pa.bool_()], 2), (TEXTS, 5), (BYTES, 2), (FIXED_BYTES, 1),
    (TEMPORAL, 3), (DECIMALS, 1.5), (EXTENSIONS, 3), ([pa.null()], 0.5),
]  # fmt: skip
_DICTIONARY_VALUES = [*TEXTS, *BYTES, pa.int32(), pa.int64(), pa.float64(), pa.binary(3),
                      pa.date32(), pa.timestamp("us"), pa.decimal128(9, 2)]  # fmt: skip
# What fixed-size lists take as items.
_ITEMS = [*INTEGERS, *FLOATS, pa.bool_()]
_NAMES = ("value", "Mixed Case", "select", "ünï", "x-y")


def random_leaf(chance: random.Random) -> pa.DataType:
    """Choose a type without children."""
    if chance.random() < 0.12:
        return pa.dictionary(chance.choice(KEYS), chance.choice(_DICTIONARY_VALUES))
    group = chance.choices([one for one, _ in _GROUPS], [weight for _, weight in _GROUPS])[0]
    return chance.choice(group)


def random_type(chance: random.Random, file_version: str, depth: int = 0) -> pa.DataType:
    """Choose a type nested up to ``MAX_DEPTH`` deep, mostly one that the file version can hold."""
    if depth >= MAX_DEPTH or chance.random() < (0.6, 0.4, 0.45, 0.6)[depth]:
        return random_leaf(chance)

    def child() -> pa.DataType:
        return random_type(chance, file_version, depth + 1)

    def item(kind: pa.DataType, name: str = "item") -> pa.Field:
        return pa.field(name, kind, kind == pa.null() or chance.random() < 0.9)

    def struct() -> pa.DataType:
        names = chance.sample(("a", "b", "c", *_NAMES[:2]), chance.choice((1, 1, 2, 3)))
        return pa.struct([item(child(), name) for name in names])

    kinds = ["list", "list", "large_list", "struct", "struct", "fixed", "fixed"]
    if file_version == "2.2" or chance.random() < 0.05:
        kinds += ["map", "fixed struct"]
    match chance.choice(kinds):
        case "list":
            return pa.list_(item(child()))
        case "large_list":
            return pa.large_list(item(child()))
        case "fixed":
            size = chance.choice((1, 2, 3, 8, 64, 100))
            return pa.list_(item(chance.choice(_ITEMS)), size)
        case "fixed struct":
            return pa.list_(item(struct()), chance.choice((1, 2, 3)))
        case "map":
            key = chance.choice((pa.string(), pa.int32(), pa.large_string(), pa.binary()))
            return pa.map_(key, item(child(), "value"))
        case _:
            return struct()


def is_in_0_1(kind: pa.DataType) -> bool:
    """Tell whether files of version 0.1 hold a type; what pylance refuses ends a case at once."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType) or types.is_null(kind) or types.is_map(kind):
        return False
    if types.is_fixed_size_list(kind):
        return types.is_primitive(kind.value_type) and not types.is_boolean(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind):
        return not types.is_fixed_size_list(kind.value_type) and is_in_0_1(kind.value_type)
    if types.is_struct(kind):
        return all(is_in_0_1(one.type) for one in kind)
    if types.is_dictionary(kind):
        return types.is_string(kind.value_type)
    return not types.is_decimal256(kind)


def random_field(chance: random.Random, name: str, file_version: str) -> pa.Field:
    """Choose a column: its type, whether it may be null, and what it asks of its encoding."""
    if file_version == "0.1":
        kind = random_type(chance, file_version)
        while not is_in_0_1(kind):
            kind = random_type(chance, file_version)
        return pa.field(name, kind, chance.random() < 0.9)
    if chance.random() < 0.05:
        return blob_field(chance, name, file_version)
    # Arrow cannot take rows of views inside other types.
    kind = chance.choice(VIEWS) if chance.random() < 0.02 else random_type(chance, file_version)
    nullable = kind == pa.null() or chance.random() < 0.9
    return pa.field(name, kind, nullable, encoding_metadata(chance, kind))


def random_name(chance: random.Random, number: int) -> str:
    """Choose the name of a column; now and then one that SQL has to quote."""
    if chance.random() < 0.1:
        return f"{chance.choice(_NAMES)}{number}"
    return f"c{number}"


def blob_field(chance: random.Random, name: str, file_version: str) -> pa.Field:
    """Choose a blob column of either kind."""
    if file_version == "2.2" and chance.random() < 0.7:
        sizes = {}
        if chance.random() < 0.4:
            sizes["blob-inline-size-threshold"] = chance.choice(("0", "10", "300"))
        if chance.random() < 0.4:
            sizes["blob-dedicated-size-threshold"] = chance.choice(("20", "1000"))
        metadata = {f"{PREFIX}{key}": value for key, value in sizes.items()}
        return pa.field(name, BlobType(), chance.random() < 0.9, metadata or None)
    return pa.field(name, pa.large_binary(), True, {BLOB_KEY: "true"})


def encoding_metadata(chance: random.Random, kind: pa.DataType) -> dict[str, str] | None:
    """Choose ``lance-encoding:*`` keys for a column; mostly none."""
    if chance.random() < 0.6:
        return None
    keys: dict[str, tuple[str, ...]] = {
        "compression": ("none", "lz4", "zstd", "fsst"),
        "compression-level": ("1", "9"),
        "structural-encoding": ("miniblock", "fullzip"),
        "rle-threshold": ("0.0", "0.3", "1.0"),
        "bss": ("off", "on", "auto"),
        "dict-divisor": ("1", "2", "100"),
        "dict-size-ratio": ("0.1", "0.8", "1.0"),
        "dict-values-compression": ("none", "lz4", "zstd"),
        "minichunk-size": ("64", "512", "20000"),
    }
    if pa.types.is_struct(kind) and chance.random() < 0.4:
        return {f"{PREFIX}packed": "true"}
    chosen = chance.sample(sorted(keys), chance.choice((1, 1, 2, 3)))
    return {f"{PREFIX}{key}": chance.choice(keys[key]) for key in chosen}


def leaf_paths(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Return the path, quoted for SQL, and the type of every column and field of a struct."""
    paths: dict[str, pa.DataType] = {}

    def walk(field: pa.Field, prefix: str) -> None:
        path = f"{prefix}`{field.name}`"
        paths[path] = field.type
        if pa.types.is_struct(field.type):
            for child in field.type:
                walk(child, f"{path}.")

    for field in schema:
        walk(field, "")
    return paths


def is_blob(field: pa.Field) -> bool:
    """Tell whether a column holds blobs of either kind."""
    return isinstance(field.type, BlobType) or BLOB_KEY in plain_metadata(field)


# --- source ------------------------------------------------------------------------------------

_SHORT = {"halffloat": "float16", "float": "float32", "double": "float64", "bool": "bool_",
          "date32[day]": "date32", "date64[ms]": "date64"}  # fmt: skip


def type_source(kind: pa.DataType) -> str:
    """Write a type as a Python expression over ``pa``."""
    types = pa.types
    if isinstance(kind, BlobType):
        return "BlobType()"
    if isinstance(kind, BFloat16Type):
        return "BFloat16Type()"
    if isinstance(kind, pa.JsonType):
        return "pa.json_()"
    if isinstance(kind, pa.UuidType):
        return "pa.uuid()"
    if isinstance(kind, pa.FixedShapeTensorType):
        return f"pa.fixed_shape_tensor({type_source(kind.value_type)}, {kind.shape})"
    if types.is_struct(kind):
        return f"pa.struct([{', '.join(field_source(one) for one in kind)}])"
    if types.is_map(kind):
        return f"pa.map_({type_source(kind.key_type)}, {field_source(kind.item_field)})"
    if types.is_fixed_size_list(kind):
        return f"pa.list_({field_source(kind.value_field)}, {kind.list_size})"
    if types.is_list(kind) or types.is_large_list(kind):
        maker = "list_" if types.is_list(kind) else "large_list"
        return f"pa.{maker}({field_source(kind.value_field)})"
    if types.is_dictionary(kind):
        return f"pa.dictionary({type_source(kind.index_type)}, {type_source(kind.value_type)})"
    if types.is_decimal(kind):
        return f"pa.decimal{kind.bit_width}({kind.precision}, {kind.scale})"
    if types.is_timestamp(kind):
        return f"pa.timestamp({kind.unit!r}, {kind.tz!r})"
    if types.is_time(kind):
        return f"pa.time{kind.bit_width}({kind.unit!r})"
    if types.is_duration(kind):
        return f"pa.duration({kind.unit!r})"
    if types.is_fixed_size_binary(kind):
        return f"pa.binary({kind.byte_width})"
    return f"pa.{_SHORT.get(str(kind), str(kind))}()"


def field_source(field: pa.Field, name: str | None = None) -> str:
    """Write a field as a Python expression over ``pa``."""
    parts = [repr(name or field.name), type_source(field.type)]
    if not field.nullable:
        parts.append("nullable=False")
    metadata = plain_metadata(field)
    if metadata:
        parts.append(f"metadata={metadata}")
    return f"pa.field({', '.join(parts)})"


def plain_metadata(field: pa.Field) -> dict[str, str]:
    """Return the metadata of a field as text, without what Arrow keeps there for extensions."""
    found: Mapping[bytes, bytes] = field.metadata or {}
    texts = {key.decode(): value.decode() for key, value in found.items()}
    return {key: value for key, value in texts.items() if not key.startswith("ARROW:")}


__all__ = [
    "BFloat16Type", "BlobType", "blob_field", "encoding_metadata", "field_source", "is_blob",
    "is_in_0_1", "lance", "leaf_paths", "plain_metadata", "random_field", "random_leaf",
    "random_name", "random_type", "type_source",
]  # fmt: skip
