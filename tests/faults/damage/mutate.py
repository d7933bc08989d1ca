"""Seeded ways to damage a data file: blind ones on the bytes, aimed ones on its messages."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.message import Message

from lance_nb._pb import encodings, encodings21, file2
from lance_nb.file.footer import FOOTER_BYTES, parse_footer, parse_table

NUMBERS = (0, 1, 2, 7, 8, 63, 255, 256, 1023, 1025, 4096, 65_535, 2**31 - 1, 2**31, 2**32 - 1,
           2**40, 2**48, 2**62, 2**63 - 1, 2**63, 2**64 - 1)  # fmt: skip
TEXTS = ("", "x", "..", "../x", "\0", "é" * 50, "int32", "struct", "list",
         "fixed_size_list:float:9", "main", "side", "/etc", "s3://x",
         "/lance.encodings.ArrayEncoding")  # fmt: skip


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Damage the file once, in one of the ways below."""
    ways: list[Callable[[bytes, random.Random], bytes]] = [
        flip_bits, flip_bits, edit_number, edit_number, edit_page_number, edit_page_number,
        overwrite, truncate, edit_message, edit_message, edit_message, edit_table,
    ]  # fmt: skip
    return rng.choice(ways)(data, rng)


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def edit_number(data: bytes, rng: random.Random) -> bytes:
    """Replace a little-endian number anywhere."""
    return _set_number(data, rng.randrange(len(data)), rng)


def edit_page_number(data: bytes, rng: random.Random) -> bytes:
    """Replace a number at the start of a page buffer: chunk tables, headers, indices, offsets."""
    buffers = [
        (offset, size)
        for message in column_messages(data)
        for page in message.pages
        for offset, size in zip(page.buffer_offsets, page.buffer_sizes, strict=True)
        if size
    ]
    offset, size = rng.choice(buffers)
    return _set_number(data, offset + rng.randrange(min(size, rng.choice((4, 16, 64, size)))), rng)


def overwrite(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data))
    stop = min(len(data), start + rng.choice((1, 4, 16, 100)))
    filler = rng.choice((b"\0", b"\xff", None))
    piece = rng.randbytes(stop - start) if filler is None else filler * (stop - start)
    return data[:start] + piece + data[stop:]


def truncate(data: bytes, rng: random.Random) -> bytes:
    """Cut the end off, or a piece out of the middle."""
    start = rng.randrange(len(data))
    if rng.random() < 0.5:
        return data[:start]
    return data[:start] + data[start + rng.choice((1, 8, 64)) :]


def edit_message(data: bytes, rng: random.Random) -> bytes:
    """Change one field of one column's metadata, page layouts included."""
    messages = column_messages(data)
    chosen = rng.choice(messages)
    page = rng.choice(list(chosen.pages))
    if rng.random() < 0.3:
        change_message(page, rng)
    else:
        wrapped = encodings.Any.FromString(page.encoding.direct.encoding)
        old = wrapped.type_url.endswith("ArrayEncoding")
        kind = encodings.ArrayEncoding if old else encodings21.PageLayout
        layout = kind.FromString(wrapped.value)
        for _ in range(rng.choice((1, 1, 2))):
            change_message(layout, rng)
        wrapped.value = layout.SerializeToString()
        page.encoding.direct.encoding = wrapped.SerializeToString()
    if rng.random() < 0.1:
        chosen.pages.append(rng.choice(list(chosen.pages)))
    return with_column_messages(data, messages)


def edit_table(data: bytes, rng: random.Random) -> bytes:
    """Replace a number in the offset tables or the footer."""
    start = parse_footer(memoryview(data), len(data), "").column_table_start
    return _set_number(data, rng.randrange(start, len(data)), rng)


def column_messages(data: bytes) -> list[file2.ColumnMetadata]:
    """Parse the metadata of every column of an undamaged file."""
    footer = parse_footer(memoryview(data), len(data), "")
    table = parse_table(memoryview(data)[footer.column_table_start :], footer.num_columns)
    return [file2.ColumnMetadata.FromString(data[start : start + size]) for start, size in table]


def with_column_messages(data: bytes, messages: list[file2.ColumnMetadata]) -> bytes:
    """Return the file with other column metadata, tables and footer rebuilt around it."""
    footer = parse_footer(memoryview(data), len(data), "")
    body = bytearray(data[: footer.column_metadata_start])
    places = []
    for message in messages:
        raw = message.SerializeToString()
        places.append((len(body), len(raw)))
        body += raw
    column_table = len(body)
    body += b"".join(struct.pack("<QQ", *place) for place in places)
    global_table = len(body)
    size = footer.num_global_buffers * 16
    body += data[footer.global_table_start : footer.global_table_start + size]
    tail = data[-FOOTER_BYTES:]
    return (
        bytes(body)
        + struct.pack("<Q", footer.column_metadata_start)
        + struct.pack("<QQ", column_table, global_table)
        + tail[24:]
    )


def _set_number(data: bytes, at: int, rng: random.Random) -> bytes:
    width = rng.choice((1, 2, 4, 8))
    at = at // width * width if rng.random() < 0.8 else at
    old = int.from_bytes(data[at : at + width], "little")
    new = rng.choice(
        (rng.choice(NUMBERS), old + 1, old - 1, old * 2, old // 2, rng.getrandbits(64))
    )
    piece = (new % (1 << 8 * width)).to_bytes(width, "little")
    return data[:at] + piece[: len(data) - at] + data[at + width :]


def change_message(message: Message, rng: random.Random, texts: Sequence[str] = TEXTS) -> None:
    """Change a field of the message, or one somewhere inside it; strings become ``texts``."""
    present = [field for field, _ in message.ListFields()]
    every = list(message.DESCRIPTOR.fields)
    if not every:
        return
    field = rng.choice(present) if present and rng.random() < 0.8 else rng.choice(every)
    value: Any = getattr(message, field.name)
    if (
        field.message_type is not None and field.message_type.GetOptions().map_entry
    ) or rng.random() < 0.08:
        message.ClearField(field.name)
    elif not field.is_repeated:
        if field.message_type is None:
            setattr(message, field.name, other_value(field, value, rng, texts))
        else:
            value.SetInParent()
            change_message(value, rng, texts)
    elif field.message_type is None:
        change_items(field, value, rng, texts)
    elif not value or rng.random() < 0.1:
        value.add()
    elif rng.random() < 0.2:
        del value[rng.randrange(len(value))]
    elif rng.random() < 0.2:
        value.add().CopyFrom(rng.choice(list(value)))
    else:
        change_message(rng.choice(list(value)), rng, texts)


def change_items(field: Any, items: Any, rng: random.Random, texts: Sequence[str] = TEXTS) -> None:
    """Change, drop, repeat or add an item of a list of plain values."""
    found = list(items)
    way = rng.randrange(4)
    if not found or way == 0:
        found.append(other_value(field, found[-1] if found else None, rng, texts))
    elif way == 1:
        found.pop(rng.randrange(len(found)))
    elif way == 2:
        found.append(rng.choice(found))
    else:
        at = rng.randrange(len(found))
        found[at] = other_value(field, found[at], rng, texts)
    del items[:]
    items.extend(found)


def other_value(field: Any, old: Any, rng: random.Random, texts: Sequence[str] = TEXTS) -> Any:
    """Return another value that the field can hold."""
    if field.enum_type is not None:
        return rng.choice([*(value.number for value in field.enum_type.values), 99])
    if field.type == field.TYPE_BOOL:
        return not old
    if field.type == field.TYPE_STRING:
        return rng.choice(texts)
    if field.type == field.TYPE_BYTES:
        old = old or b""
        return rng.choice((b"", old[:-1], old + b"\0", rng.randbytes(len(old) or 4), old[::-1]))
    signed = field.type in (field.TYPE_INT32, field.TYPE_INT64)
    bits = 32 if field.type in (field.TYPE_INT32, field.TYPE_UINT32) else 64
    number = rng.choice((rng.choice(NUMBERS), (old or 0) + 1, (old or 0) - 1, (old or 0) * 2))
    number %= 1 << bits
    return number - (1 << bits) if signed and number >> (bits - 1) else number
