"""Parse protobuf messages with one kind of error, and preserve unknown fields.

Newer writers add fields. They are preserved as the serialized bytes of the unknown fields of one
message, which protobuf's wire format allows to append to any later serialization of it.

Limits: a message nests at most 100 deep (protobuf's own limit); a file has at most
``FILE_BYTES_MAX`` bytes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lance_nb.errors import CorruptFileError, describe_bytes

FILE_BYTES_MAX = 512 * 1024 * 1024
U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1

M = TypeVar("M", bound=Message)


def parse(kind: type[M], data: bytes | memoryview, path: str, offset_bytes: int | None = None) -> M:
    """Parse one message. Raises CorruptFileError with ``path`` and the message's offset."""
    message = kind()
    try:
        message.ParseFromString(data)  # type: ignore[arg-type]
    except DecodeError as error:
        name = kind.DESCRIPTOR.name
        raise CorruptFileError(
            path, offset_bytes, f"a {name} message", describe_bytes(data)
        ) from error
    return message


def are_unknown_fields(message: Message, numbers: Collection[int]) -> bool:
    """Return whether all unknown fields of a message (its own level only) have these numbers."""
    fields = UnknownFieldSet(message)
    return all(fields[i].field_number in numbers for i in range(len(fields)))


def unknown_bytes(message: Message) -> bytes:
    """Return the serialized unknown fields of a message (its own level only), usually empty."""
    if len(UnknownFieldSet(message)) == 0:
        return b""
    remainder: Any = type(message)()
    remainder.CopyFrom(message)
    for field, _ in message.ListFields():
        remainder.ClearField(field.name)
    return bytes(remainder.SerializeToString())
