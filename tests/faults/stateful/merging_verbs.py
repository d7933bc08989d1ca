"""Upserts of every kind, by uid."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lance_nb.errors import CommitConflictError, InvalidInputError, NotSupportedError
from tests.faults.stateful.columns import KEY, UID, Values
from tests.faults.stateful.model import LEARNED, Row, Snapshot
from tests.faults.stateful.world import OURS, World

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


def merge_branch(world: World) -> bool:
    """Bring what a branch did since it forked into the branch that it started from."""
    lines = world.model.lines
    sides = [
        name
        for name, line in lines.items()
        if line.parent and line.parent[0] == world.branch and not line.is_merged
        and lines[world.branch].head.schema == line.head.schema
        and line.parent[1] in lines[world.branch].versions
        and lines[world.branch].versions[line.parent[1]].schema == line.head.schema
    ]  # fmt: skip
    if not sides:
        return False
    name = world.chance.choice(sorted(sides))
    line, copies = lines[name], world.chance.random() < 0.5
    base, head = lines[world.branch].versions[line.parent[1]], world.head
    expected, disputed = three_ways(base, head, line.head)
    world.actor = OURS
    world.says(f"branches.merge {name}, copy={copies}; both changed {sorted(disputed)}")
    try:
        plan = world.dataset().branches.merge(name, world.branch or "main", key="uid", copy=copies)
    except (CommitConflictError, NotSupportedError):
        world.landed(head)
        return True
    assert not disputed, "two changes of one row were merged"
    line.is_merged = True
    world.model.tags |= {
        tag: (one["branch"], one["version"])
        for tag, one in world.at(OURS).tags.list().items()
        if tag.startswith("merged-")
    }
    now = world.at(OURS, branch=world.branch).version
    world.landed(replace(expected, version=now) if plan.version else head, ordered=False)
    return True


def three_ways(base: Snapshot, ours: Snapshot, theirs: Snapshot) -> tuple[Snapshot, set[int]]:
    """Merge by uid; also return the uids of rows that both changed, or one changed and one lost."""
    old = {one.uid: one for one in base.rows}
    mine, other = ({one.uid: one for one in side.rows} for side in (ours, theirs))
    rows, disputed = [], set()
    for uid in {**mine, **other}:
        before, left, right = (side.get(uid) for side in (old, mine, other))
        changed = [side is None or before is None or side.values != before.values
                   for side in (left, right)]  # fmt: skip
        if before is None:
            rows.append(left or replace(right, row_id=None, created=LEARNED, updated=LEARNED))
        elif all(changed):
            disputed.add(uid)
        elif not changed[1]:
            is_rewritten = right is not None and right.updated != before.updated  # with its values
            rows += [replace(left, updated=LEARNED) if is_rewritten else left] if left else []
        elif right:
            rows.append(replace(left, values=right.values, updated=LEARNED))
    return ours.with_rows(rows), disputed


def revert(world: World) -> bool:
    """Undo the newest version, if it can be undone."""
    head = world.head
    before = world.line.versions.get(head.version - 1)
    if before is None:
        return False
    world.actor = OURS
    world.says(f"revert {head.version}")
    try:
        world.dataset().revert(head.version, key="uid")
    except (CommitConflictError, InvalidInputError, NotSupportedError):
        world.landed(head)
        return True
    # Rows have their ids and values of before. A row that lives again was created by this version.
    rows = [replace(one, created=LEARNED, updated=LEARNED) for one in before.rows]
    world.landed(replace(before, version=head.version + 1, rows=tuple(rows)), ordered=False)
    return True


VERBS = {merge_insert: 4, merge_branch: 2, revert: 1}
