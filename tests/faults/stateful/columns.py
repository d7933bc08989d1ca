"""The columns that random tables are made of: types, values, expressions over them.

Every table has ``uid`` (different in every row, never changed: by it the model knows a row again)
and ``key`` (a small number, sometimes null: by it rows are chosen).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa

Values = dict[str, Any]
UID, KEY = "uid", "key"

WORDS = ("", "a", "bb", "ccc ccc", "ddd'ddd", "Ünïcode", "e" * 40)
NESTED = pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())]))
POINT = pa.struct([("x", pa.float64()), ("y", pa.string())])


def _maybe(chance: random.Random, make: Callable[[], Any]) -> Any:
    return None if chance.random() < 0.2 else make()


def _word(chance: random.Random) -> str | None:
    return _maybe(chance, lambda: chance.choice(WORDS))


def _point(chance: random.Random) -> Values:
    return {"x": _maybe(chance, lambda: chance.randint(-8, 8) / 4), "y": _word(chance)}


def _pair(chance: random.Random) -> Values:
    return {"a": _maybe(chance, lambda: chance.randint(-5, 5)), "b": _word(chance)}


def _list(chance: random.Random, make: Callable[[random.Random], Any]) -> Any:
    return _maybe(chance, lambda: [make(chance) for _ in range(chance.randint(0, 3))])


# Columns beside uid and key. Version 2.0 files cannot store that a struct is null.
KINDS: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "name": (pa.string(), _word),
    "flag": (pa.bool_(), lambda c: _maybe(c, lambda: c.random() < 0.5)),
    "tags": (pa.list_(pa.int32()), lambda c: _list(c, lambda d: d.choice((None, 1, 2, 300)))),
    "vector": (pa.list_(pa.float32(), 2), lambda c: [c.randint(0, 9) / 2, 1.5]),
    "raw": (pa.binary(), lambda c: _maybe(c, lambda: c.randbytes(c.randint(0, 5)))),
    "day": (pa.date32(), lambda c: _maybe(c, lambda: date(2024, 1, c.randint(1, 28)))),
    "point": (POINT, lambda c: _maybe(c, lambda: _point(c))),
    "pairs": (NESTED, lambda c: _list(c, _pair)),
}
PLAIN_POINT = (POINT, _point)
OF_2_0 = [name for name in KINDS if name != "pairs"]


@dataclass(frozen=True)
class Condition:
    """SQL text and what it means. ``holds`` is None where SQL says null."""

    text: str
    holds: Callable[[Values], bool | None]


def schema_for(chance: random.Random, file_version: str) -> pa.Schema:
    """Choose columns for a new table."""
    names = OF_2_0 if file_version == "2.0" else list(KINDS)
    chosen = chance.sample(names, chance.randint(1, 2))
    fields = [(UID, pa.int64()), (KEY, pa.int64())]
    return pa.schema([*fields, *((name, KINDS[name][0]) for name in sorted(chosen))])


def value_for(chance: random.Random, field: pa.Field, file_version: str) -> Any:
    """Make up a value for a column, also one that was added later."""
    if field.name == "point" and file_version == "2.0":
        return _point(chance)
    if not field.nullable:
        return _plain(chance, field.type)
    if field.name in KINDS and KINDS[field.name][0] == field.type:
        return KINDS[field.name][1](chance)
    if pa.types.is_struct(field.type) and file_version == "2.0":
        return {one.name: None for one in field.type}
    return _maybe(chance, lambda: _plain(chance, field.type))


def _plain(chance: random.Random, kind: pa.DataType) -> Any:
    if pa.types.is_integer(kind):
        return chance.randint(0, 6)
    if pa.types.is_floating(kind):
        return float(chance.randint(0, 6))
    if pa.types.is_boolean(kind):
        return True
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return chance.choice(WORDS)
    if pa.types.is_binary(kind):
        return b"bytes"
    if pa.types.is_date(kind):
        return date(2024, 2, 29)
    return None


def condition_for(chance: random.Random, schema: pa.Schema, uids: list[int]) -> Condition:
    """Choose a filter that some of the rows pass."""
    number, other = chance.randint(0, 6), chance.randint(0, 6)
    word = chance.choice(WORDS)
    some = sorted(chance.sample(uids, min(len(uids), 3))) or [0]
    choices = [
        Condition(f"key = {number}", lambda row: _compared(row[KEY], lambda v: v == number)),
        Condition(f"key > {number}", lambda row: _compared(row[KEY], lambda v: v > number)),
        Condition("key IS NULL", lambda row: row[KEY] is None),
        Condition(
            f"key % 3 = {number % 3} OR uid = {some[0]}",
            lambda row: row[UID] == some[0] or _compared(row[KEY], lambda v: v % 3 == number % 3),
        ),
        Condition(
            f"uid IN ({', '.join(map(str, some))})", lambda row: row[UID] in some
        ),
        Condition(
            f"NOT (key = {number} OR key = {other})",
            lambda row: _compared(row[KEY], lambda v: v not in (number, other)),
        ),
        Condition(f"uid < {some[-1]}", lambda row: row[UID] < some[-1]),
    ]  # fmt: skip
    names = set(schema.names)
    if "name" in names:
        text = word.replace("'", "''")
        choices += [
            Condition(f"name = '{text}'", lambda row: _compared(row["name"], lambda v: v == word)),
            Condition("name IS NOT NULL AND key < 5", _both_name),
        ]
    if "flag" in names:
        choices.append(Condition("flag", lambda row: row["flag"]))
    if "point" in names and [one.name for one in schema.field("point").type][:1] == ["x"]:
        choices.append(
            Condition(
                "point.x > 0", lambda row: _compared((row["point"] or {}).get("x"), _positive)
            )
        )
    return chance.choice(choices)


def _positive(value: float) -> bool:
    return value > 0


def _both_name(row: Values) -> bool | None:
    if row["name"] is None:
        return False
    return _compared(row[KEY], lambda value: value < 5)


def _compared(value: Any, test: Callable[[Any], bool]) -> bool | None:
    return None if value is None else test(value)


def update_for(
    chance: random.Random, schema: pa.Schema
) -> tuple[dict[str, str], Callable[[Values], Values]]:
    """Choose new values for one or two columns: SQL text, and what it makes of a row."""
    number, word = chance.randint(0, 6), chance.choice(("new", "Ümlaut", ""))
    choices: dict[str, tuple[str, Callable[[Values], Any]]] = {
        "key": chance.choice([
            ("key + 1", lambda row: None if row[KEY] is None else row[KEY] + 1),
            (str(number), lambda _: number),
            ("uid % 5", lambda row: row[UID] % 5),
        ]),
        "name": chance.choice([
            (f"'{word}'", lambda _: word),
            ("null", lambda _: None),
            ("upper(name)", lambda row: None if row["name"] is None else row["name"].upper()),
        ]),
        "flag": ("NOT flag", lambda row: None if row["flag"] is None else not row["flag"]),
        "day": ("null", lambda _: None),
    }  # fmt: skip
    usable = [
        one for one in choices if one in schema.names and _takes(choices[one][0], schema.field(one))
    ]
    chosen = chance.sample(usable, min(len(usable), chance.randint(1, 2)))
    made = {name: choices[name] for name in sorted(chosen)}
    return {name: one[0] for name, one in made.items()}, lambda row: {
        name: one[1](row) for name, one in made.items()
    }


def _takes(text: str, field: pa.Field) -> bool:
    expected = {"key": pa.int64(), "name": pa.string(), "flag": pa.bool_(), "day": pa.date32()}
    return field.type == expected[field.name] and (field.nullable or text.isdigit())
