"""Verbs that change columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.faults.stateful.columns import KEY, UID, Values, value_for
from tests.faults.stateful.model import Row
from tests.faults.stateful.world import PYLANCE, World

ADDED = "c"  # the names of columns that come later begin so
MOST = 4


def _name(world: World) -> str:
    return f"{ADDED}{world.number}"


def _full(world: World) -> bool:
    return len(world.head.schema) > MOST


def _doubled(row: Values) -> int | None:
    return None if row[KEY] is None else row[KEY] * 2


def _stumbles(world: World, name: str) -> bool:
    """Whether pylance may fail over a null in a deleted row of a column that has none any more."""
    return world.actor == PYLANCE and not world.head.schema.field(name).nullable


def add_computed(world: World) -> bool:
    """Add a column from an SQL expression, or from a function of batches."""
    if _full(world):
        return False
    head, name = world.head, _name(world)
    if _stumbles(world, KEY):
        return False
    nullable = True
    if world.chance.random() < 0.6 or not head.rows:  # pylance calls no function without rows
        nullable = head.schema.field(KEY).nullable
        world.says(f"add_columns {name} = key * 2")
        world.dataset().add_columns({name: "key * 2"})
    else:
        world.says(f"add_columns {name} = a function of key")

        def double(batch: pa.RecordBatch) -> pa.RecordBatch:
            values = [None if one is None else one * 2 for one in batch["key"].to_pylist()]
            return pa.record_batch({name: pa.array(values, pa.int64())})

        world.dataset().add_columns(double, read_columns=["key"])
    schema = head.schema.append(pa.field(name, pa.int64(), nullable))
    world.landed(
        head.with_columns(
            schema, lambda row: {**row.values, name: _doubled(row.values)}, written=True
        )
    )
    return True


def add_nulls(world: World) -> bool:
    """Add a column of nulls; no data is written."""
    if _full(world):
        return False
    head, name = world.head, _name(world)
    choices = [pa.int32(), pa.string(), pa.list_(pa.int8())]
    if head.file_version != "2.0":
        choices.append(pa.struct([("p", pa.int16())]))
    field = pa.field(name, world.chance.choice(choices))
    world.says(f"add_columns {field} of nulls")
    world.dataset().add_columns(field)
    world.landed(
        head.with_columns(head.schema.append(field), lambda row: {**row.values, name: None})
    )
    return True


def add_stream(world: World) -> bool:
    """Add a column of values, one per row in order."""
    head, name = world.head, _name(world)
    if _full(world) or not head.rows:
        return False
    field = pa.field(name, world.chance.choice([pa.string(), pa.float64(), pa.int32()]))
    values = [value_for(world.chance, field, head.file_version) for _ in head.rows]
    table = pa.table({name: pa.array(values, field.type)})
    world.says(f"add_columns {field} from a table")
    world.dataset().add_columns(table.to_reader())
    by_uid = dict(zip(head.uids, values, strict=True))
    world.landed(
        head.with_columns(
            head.schema.append(field),
            lambda row: {**row.values, name: by_uid[row.uid]},
            written=True,
        )
    )
    return True


def join(world: World) -> bool:
    """Add a column by a join on uid; some rows have no partner."""
    head, name = world.head, _name(world)
    if _full(world) or not head.rows:
        return False
    field = pa.field(name, pa.string())
    some = world.chance.sample(head.uids, max(1, len(head.rows) // 2))
    right = {uid: value_for(world.chance, field, head.file_version) for uid in some}
    table = pa.table(
        {"its": pa.array(right, pa.int64()), name: pa.array(right.values(), pa.string())}
    )
    world.says(f"merge {name} for uids {some}")
    world.dataset().merge(table, "uid", "its")
    world.landed(
        head.with_columns(
            head.schema.append(field),
            lambda row: {**row.values, name: right.get(row.uid)},
            written=True,
        )
    )
    return True


def drop(world: World) -> bool:
    """Drop a column, or a field of one."""
    head, chance = world.head, world.chance
    names = [one for one in head.schema.names if one not in (UID, KEY)]
    if not names:
        return False
    name = chance.choice(names)
    kind = head.schema.field(name).type
    place = head.schema.get_field_index(name)
    if name == "point" and kind.num_fields == 2 and chance.random() < 0.5:
        world.says("drop_columns point.y")
        world.dataset().drop_columns(["point.y"])
        field = head.schema.field(name).with_type(pa.struct([kind.field(0)]))
        world.landed(head.with_columns(head.schema.set(place, field), _without_y))
        return True
    world.says(f"drop_columns {name}")
    world.dataset().drop_columns([name])
    world.landed(
        head.with_columns(
            head.schema.remove(place),
            lambda row: {key: one for key, one in row.values.items() if key != name},
        )
    )
    return True


def _without_y(row: Row) -> Values:
    point = row.values["point"]
    return {**row.values, "point": None if point is None else {"x": point["x"]}}


def rename(world: World) -> bool:
    """Give a column another name."""
    head = world.head
    names = [one for one in head.schema.names if one.startswith(ADDED)]
    if not names:
        return False
    name, new = world.chance.choice(names), f"{_name(world)}_r"
    world.says(f"alter_columns {name} to {new}")
    world.dataset().alter_columns({"path": name, "name": new})
    world.landed(head.with_columns(*_replaced(head.schema, name, new)))
    return True


def _replaced(schema: pa.Schema, name: str, new: str) -> Any:
    place = schema.get_field_index(name)
    changed = schema.set(place, schema.field(name).with_name(new))
    return changed, lambda row: {
        new if key == name else key: value for key, value in row.values.items()
    }


def forbid_nulls(world: World) -> bool:
    """Say that a column has no nulls, if that is so; or that it may have some."""
    head = world.head
    names = [one for one in head.schema.names if one != UID]
    name = world.chance.choice(names)
    field = head.schema.field(name)
    if field.nullable and any(one.values[name] is None for one in head.rows):
        return False
    if field.nullable and (not head.rows or pa.types.is_nested(field.type)):
        return False
    world.says(f"alter_columns {name} nullable={not field.nullable}")
    world.dataset().alter_columns({"path": name, "nullable": not field.nullable})
    schema = head.schema.set(
        head.schema.get_field_index(name), field.with_nullable(not field.nullable)
    )
    world.landed(head.with_columns(schema, lambda row: row.values))
    return True


CASTS = {
    pa.int64(): [pa.int32(), pa.int16()],
    pa.int32(): [pa.int64(), pa.int16()],
    pa.string(): [pa.large_string()],
    pa.large_string(): [pa.string()],
    pa.float64(): [pa.float32()],
}


def cast(world: World) -> bool:
    """Give a column another type."""
    head = world.head
    names = [
        one.name
        for one in head.schema
        if one.name not in (UID, KEY) and one.type in CASTS and one.name != "name"
    ]
    if not names:
        return False
    name = world.chance.choice(names)
    if _stumbles(world, name):
        return False
    field = head.schema.field(name)
    kind = world.chance.choice(CASTS[field.type])
    world.says(f"alter_columns {name} from {field.type} to {kind}")
    world.dataset().alter_columns({"path": name, "data_type": kind})
    schema = head.schema.set(head.schema.get_field_index(name), field.with_type(kind))
    turn = float if pa.types.is_floating(kind) else (lambda value: value)
    world.landed(
        head.with_columns(
            schema,
            lambda row: {
                **row.values,
                name: None if row.values[name] is None else turn(row.values[name]),
            },
            written=True,
        )
    )
    return True


VERBS = {
    add_computed: 1, add_nulls: 1, add_stream: 1, join: 1, drop: 1.5, rename: 1, forbid_nulls: 1,
    cast: 1,
}  # fmt: skip
