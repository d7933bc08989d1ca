"""Seeded changes to the fields of a manifest, fragments included: damage that parses."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from lance_nb._pb import table as pb
from tests.faults.damage.mutate import NUMBERS

TEXTS = ("", "x", "..", "../x", "\0", "é" * 50, "int32", "struct", "list",
         "fixed_size_list:float:9", "main", "side", "/etc", "s3://x")  # fmt: skip


def change_manifest(
    manifest: pb.Manifest, rng: random.Random, texts: Sequence[str] = TEXTS
) -> None:
    """Change one field of the manifest or of one of its fragments."""
    if manifest.fragments and rng.random() < 0.6:
        at = rng.randrange(len(manifest.fragments))
        fragment = pb.DataFragment.FromString(manifest.fragments[at])
        change_message(fragment, rng, texts)
        manifest.fragments[at] = fragment.SerializeToString()
    else:
        change_message(manifest, rng, texts)


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
        return rng.choice([value.number for value in field.enum_type.values])
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
