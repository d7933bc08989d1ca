"""Verbs that change rows."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from tests.faults.stateful.columns import (
    KEY,
    UID,
    condition_for,
    schema_for,
    update_for,
)
from tests.faults.stateful.model import Snapshot
from tests.faults.stateful.world import OURS, World


def append(world: World) -> bool:
    """Add rows, by write_dataset or insert; nullable columns may be left out."""
    head, chance = world.head, world.chance
    rows = world.new_rows(head, chance.randint(0, 12))
    left_out = [
        one.name
        for one in head.schema
        if one.nullable and one.name not in (UID, KEY) and chance.random() < 0.15
        and not (head.file_version == "2.0" and pa.types.is_nested(one.type))
    ]  # fmt: skip
    rows = [{**one, **dict.fromkeys(left_out)} for one in rows]
    names = [one for one in head.schema.names if one not in left_out]
    if chance.random() < 0.2:
        chance.shuffle(names)
    table = pa.Table.from_pylist(rows, head.schema).select(names)
    way = chance.choice(("insert", "write_dataset")) if world.branch is None else "insert"
    size = chance.choice((6, 100, 100))
    world.says(f"{way} {len(rows)} rows, columns {names}, max_rows_per_file={size}")
    if way == "insert":
        world.dataset().insert(table, max_rows_per_file=size)
    else:
        world.engine.write_dataset(table, world.uri, mode="append", max_rows_per_file=size)
    world.landed(head.appended(rows))
    return True


def commit_fragments(world: World) -> bool:
    """Write fragments and commit them by hand."""
    head = world.head
    if world.branch is not None or head.file_version != world.file_version:
        return False
    rows = world.new_rows(head, world.chance.randint(1, 8))
    table = pa.Table.from_pylist(rows, head.schema)
    world.says(f"write_fragments of {len(rows)} rows, committed as an Append")
    ours = world.actor == "ours"
    module = world.engine if ours else world.engine.fragment
    made = module.write_fragments(table, world.uri, data_storage_version=head.file_version)
    world.engine.LanceDataset.commit(
        world.uri, world.engine.LanceOperation.Append(made), read_version=head.version
    )
    world.landed(head.appended(rows))
    return True


def delete(world: World) -> bool:
    """Delete the rows that pass a filter."""
    head = world.head
    condition = condition_for(world.chance, head.schema, head.uids)
    kept = [one for one in head.rows if not condition.holds(one.values)]
    world.says(f"delete {condition.text}  ({len(head.rows) - len(kept)} rows)")
    done = world.dataset().delete(condition.text)
    assert done["num_deleted_rows"] == len(head.rows) - len(kept)
    world.landed(head.with_rows(kept))
    return True


def truncate(world: World) -> bool:
    """Delete every row."""
    if world.chance.random() < 0.7:
        return False
    world.says("truncate_table")
    world.dataset().truncate_table()
    world.landed(world.head.with_rows(()))
    return True


def update(world: World) -> bool:
    """Give columns new values."""
    head, chance = world.head, world.chance
    values, change = update_for(chance, head.schema)
    if not values:
        return False
    condition = None
    if chance.random() < 0.85:
        condition = condition_for(chance, head.schema, head.uids)
    chosen = {one.uid for one in head.rows if condition is None or condition.holds(one.values)}
    in_place = world.actor == OURS and chance.random() < 0.3
    options = {"mode": "columns"} if in_place else {}
    text = condition and condition.text
    world.says(f"update {values} where {text}, {options}  ({len(chosen)} rows)")
    done = world.dataset().update(values, where=text, **options)
    assert done["num_rows_updated"] == len(chosen)
    moves = Snapshot.updated_in_place if in_place else Snapshot.updated
    world.landed(moves(head, lambda row: row.uid in chosen, change))
    return True


def overwrite(world: World) -> bool:
    """Put other rows and columns in the place of all."""
    head, chance = world.head, world.chance
    if chance.random() < 0.5:
        return False
    file_version = chance.choice((None, "2.0", "2.1", "2.2"))
    now = file_version or head.file_version
    schema = schema_for(chance, now)
    blank = replace(head, schema=schema, file_version=now)
    rows = world.new_rows(blank, chance.randint(0, 15))
    table = pa.Table.from_pylist(rows, schema)
    options = {} if file_version is None else {"data_storage_version": file_version}
    world.says(f"overwrite by {len(rows)} rows of {schema.names[2:]}, {options}")
    world.dataset().insert(table, mode="overwrite", max_rows_per_file=world.max_rows, **options)
    world.landed(blank.replaced(rows))
    return True


VERBS = {
    append: 5, commit_fragments: 1, delete: 4, truncate: 1, update: 4, overwrite: 1,
}  # fmt: skip
