"""Upserts of every kind, by uid."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from tests.stateful.columns import KEY, UID, Values
from tests.stateful.model import Row, Snapshot
from tests.stateful.world import World

UPDATES = ("all", "all", "some columns", "if", "nothing", "delete")


def merge_insert(world: World) -> bool:
    """Update, delete or keep the rows that match; insert others; delete what does not match."""
    head, chance = world.head, world.chance
    old = chance.sample(head.uids, min(len(head.rows), chance.randint(0, 6)))
    new = world.new_rows(head, chance.randint(0, 4))
    source = [
        {**one, UID: uid} for one, uid in zip(world.new_rows(head, len(old)), old, strict=True)
    ]
    matched = chance.choice(UPDATES)
    inserts = matched == "nothing" or (matched != "some columns" and chance.random() < 0.7)
    lonely = chance.randint(0, 6) if matched != "delete" and chance.random() < 0.2 else None
    names = head.schema.names
    if matched == "some columns":
        names, lonely = [UID, *chance.sample(names[1:], chance.randint(1, len(names) - 1))], None
    source += new
    if not source:
        return False
    chance.shuffle(source)
    table = pa.Table.from_pylist(source, head.schema).select(names)
    world.says(
        f"merge_insert: matched {matched}, inserts={inserts}, by_source key = {lonely}, "
        f"columns {names}, source {[one[UID] for one in source]}"
    )
    builder = world.dataset().merge_insert(UID)
    if matched in ("all", "some columns"):
        builder = builder.when_matched_update_all()
    elif matched == "if":
        builder = builder.when_matched_update_all("source.key > target.key")
    elif matched == "delete":
        builder = builder.when_matched_delete()
    if inserts:
        builder = builder.when_not_matched_insert_all()
    if lonely is not None:
        builder = builder.when_not_matched_by_source_delete(f"key = {lonely}")
    done = builder.execute(table)
    given = {one[UID]: {name: one[name] for name in names} for one in source}
    expected = merged(head, given, matched, lonely)
    if inserts:
        rows = [one for one in source if one[UID] not in set(head.uids)]
        expected = replace(head, rows=expected.rows).appended(rows)
    assert done["num_inserted_rows"] == (len(new) if inserts else 0), done
    world.landed(expected, ordered=False)
    return True


def merged(head: Snapshot, given: dict[int, Values], matched: str, lonely: int | None) -> Snapshot:
    """What becomes of the rows that are there."""
    rows = []
    for one in head.rows:
        source = given.get(one.uid)
        if source is None:
            if lonely is None or one.values[KEY] != lonely:
                rows.append(one)
        elif matched != "delete":
            rows.append(_updated(one, source, matched, head.version + 1))
    return head.with_rows(rows)


def _updated(row: Row, source: Values, matched: str, version: int) -> Row:
    if matched == "nothing":
        return row
    if matched == "if":
        old, new = row.values[KEY], source[KEY]
        if old is None or new is None or not new > old:
            return row
    return replace(row, values={**row.values, **source}, updated=version)


VERBS = {merge_insert: 4}
