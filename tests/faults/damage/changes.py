"""Every verb that writes, called on a damaged dataset: done, or refused with an error of ours.

``CHANGES`` is the table: a weight and the function of the world, the dataset and a source of
chance. Rows that are written are rows of the dataset itself, so that they fit any schema.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa

import lance_nb
from tests.faults.damage.looks import column_of, opened
from tests.faults.damage.worlds import World

Change = Callable[[World, Any, random.Random], object]
AT_ONCE = timedelta(0)


def rows_for(dataset: Any, rng: random.Random) -> pa.Table:
    """Return rows that fit: nulls, or the first rows that are there."""
    schema = dataset.schema
    if rng.random() < 0.5:
        return dataset.to_table(limit=3)
    return pa.table([pa.nulls(2, field.type) for field in schema], schema=schema)


def _append(world: World, dataset: Any, rng: random.Random) -> None:
    mode = rng.choice(("append", "append", "append", "overwrite"))
    dataset.insert(rows_for(dataset, rng), mode=mode)


def _delete(world: World, dataset: Any, rng: random.Random) -> None:
    ends = ("is null", "is not null", "= 5", "> 3", "in (1, 2)")
    where = rng.choice((f"{column_of(dataset, rng)} {rng.choice(ends)}", "true"))
    dataset.delete(where)


def _update(world: World, dataset: Any, rng: random.Random) -> None:
    name = column_of(dataset, rng)
    value = rng.choice(("null", "5", "'x'", name))
    column = name.strip("`").replace("``", "`")
    where = rng.choice((None, f"{column_of(dataset, rng)} is not null"))
    options = {"mode": "columns"} if rng.random() < 0.3 else {}
    dataset.update({column: value}, where=where, **options)


def _merge_insert(world: World, dataset: Any, rng: random.Random) -> None:
    names = dataset.schema.names
    builder = dataset.merge_insert(rng.choice(names) if names else "id")
    if rng.random() < 0.7:
        builder = builder.when_matched_update_all()
    if rng.random() < 0.7:
        builder = builder.when_not_matched_insert_all()
    if rng.random() < 0.2:
        builder = builder.when_not_matched_by_source_delete()
    builder.execute(rows_for(dataset, rng))


def _columns(world: World, dataset: Any, rng: random.Random) -> None:
    names = dataset.schema.names or ["id"]
    name = rng.choice(names)
    way = rng.randrange(5)
    if way == 0:
        dataset.add_columns({"new": rng.choice(("1", column_of(dataset, rng)))})
    elif way == 1:
        dataset.add_columns(pa.schema([("new", pa.int32())]))
    elif way == 2:
        dataset.drop_columns([name])
    elif way == 3:
        dataset.alter_columns({"path": name, "name": "renamed"})
    else:
        dataset.alter_columns({"path": name, "data_type": rng.choice((pa.int64(), pa.string()))})


def _merge(world: World, dataset: Any, rng: random.Random) -> None:
    name = rng.choice(dataset.schema.names or ["id"])
    right = dataset.to_table(columns=[name], limit=4)
    dataset.merge(right.append_column("merged", pa.array(range(right.num_rows))), name)


def _compact(world: World, dataset: Any, rng: random.Random) -> None:
    options = {"target_rows_per_fragment": rng.choice((20, 100, 100_000))}
    if rng.random() < 0.3:
        options["defer_index_remap"] = True
    dataset.optimize.compact_files(**options)
    if rng.random() < 0.2:
        dataset.optimize.cleanup_frag_reuse_index()


def _index(world: World, dataset: Any, rng: random.Random) -> None:
    names = [one.name for one in dataset.describe_indices()]
    if names and rng.random() < 0.4:
        dataset.drop_index(rng.choice(names))
    else:
        dataset.create_scalar_index(rng.choice(dataset.schema.names or ["id"]), "BTREE")


def _restore(world: World, dataset: Any, rng: random.Random) -> None:
    dataset.checkout_version(rng.choice(dataset.version_numbers())).restore()


def _settings(world: World, dataset: Any, rng: random.Random) -> None:
    way = rng.randrange(7)
    if way == 0:
        dataset.update_config({"key": "value"}, replace=rng.random() < 0.5)
    elif way == 1:
        dataset.delete_config_keys(list(dataset.config())[:1] or ["x"])
    elif way == 2:
        dataset.update_metadata({"key": "value"})
    elif way == 3:
        dataset.update_schema_metadata({"key": "value"})
    elif way == 4:
        dataset.update_field_metadata({(dataset.schema.names or ["id"])[0]: {"k": "v"}})
    elif way == 5:
        dataset.optimize.enable_auto_cleanup({"interval": 1, "older_than_seconds": 0})
        opened(world).update_config({"key": "other"})
    else:
        dataset.add_bases([lance_nb.DatasetBasePath(f"{world.top}/more", "added")])


def _branches(world: World, dataset: Any, rng: random.Random) -> None:
    names = dataset.branches.names()
    way = rng.randrange(5)
    if not names or way == 0:
        dataset.create_branch("new", rng.choice(dataset.version_numbers()))
    elif way == 1:
        dataset.branches.delete(rng.choice(names), force=rng.random() < 0.5)
    elif way == 2:
        dataset.branches.merge(rng.choice(names), copy=rng.random() < 0.5)
    elif way == 3:
        branch = dataset.checkout_version((rng.choice(names), None))
        branch.insert(rows_for(branch, rng))
    else:
        dataset.branches.replace_metadata(rng.choice(names), {"k": "v"})


def _tags(world: World, dataset: Any, rng: random.Random) -> None:
    names = dataset.tags.names()
    way = rng.randrange(4)
    if not names or way == 0:
        dataset.tags.create("new", rng.choice(dataset.version_numbers()))
    elif way == 1:
        dataset.tags.update(rng.choice(names), rng.choice(dataset.version_numbers()))
    elif way == 2:
        dataset.tags.delete(rng.choice(names))
    else:
        dataset.tags.replace_metadata(rng.choice(names), {"k": "v"})


def _one_change(world: World, dataset: Any, rng: random.Random) -> None:
    number = rng.choice(dataset.version_numbers())
    if rng.random() < 0.6:
        dataset.revert(number)
    else:
        branch = rng.choice([None, *dataset.branches.names()])
        dataset.cherry_pick((branch, number))


def _cleanup(world: World, dataset: Any, rng: random.Random) -> None:
    dataset.cleanup_old_versions(
        AT_ONCE if rng.random() < 0.7 else None,
        retain_versions=rng.choice((None, 1, 2)),
        delete_unverified=rng.random() < 0.7,
        error_if_tagged_old_versions=rng.random() < 0.3,
    )


def _clone(world: World, dataset: Any, rng: random.Random) -> None:
    clone = dataset.deep_clone if rng.random() < 0.5 else dataset.shallow_clone
    clone(f"{world.top}/clone.lance", rng.choice(dataset.version_numbers()))
    lance_nb.dataset(f"{world.top}/clone.lance", allow_bases=[world.top]).to_table()


def _checksums(world: World, dataset: Any, rng: random.Random) -> None:
    dataset.add_checksums()


def _names(world: World, dataset: Any, rng: random.Random) -> None:
    if rng.random() < 0.5:
        dataset.migrate_manifest_paths_v2()
    else:
        dataset.repair_moved(dry_run=rng.random() < 0.3)


def _stage(world: World, dataset: Any, rng: random.Random) -> None:
    staged = dataset.stage().delete(f"{column_of(dataset, rng)} is null")
    staged.append(rows_for(dataset, rng))
    repr(staged.preview())
    staged.commit()


def _truncate(world: World, dataset: Any, rng: random.Random) -> None:
    dataset.truncate_table()


def _repair(world: World, _: Any, rng: random.Random) -> None:
    plan = lance_nb.plan_repair(world.uri, older_than=AT_ONCE, allow_bases=[world.top])
    plan.run()
    lance_nb.verify(world.uri, values=False, allow_bases=[world.top])
    if rng.random() < 0.3:
        lance_nb.undo_repair(world.uri)


# They need no dataset that opens.
FIRST_CHANGES: dict[str, tuple[float, Change]] = {"repair": (1.0, _repair)}
CHANGES: dict[str, tuple[float, Change]] = {
    **FIRST_CHANGES,
    "append": (2, _append),
    "delete": (2, _delete),
    "update": (2, _update),
    "merge_insert": (1.5, _merge_insert),
    "columns": (2, _columns),
    "merge": (0.5, _merge),
    "compact": (1, _compact),
    "index": (1, _index),
    "restore": (1, _restore),
    "settings": (1.5, _settings),
    "branches": (2, _branches),
    "tags": (1.5, _tags),
    "cherry-pick or revert": (1, _one_change),
    "cleanup": (1.5, _cleanup),
    "clone": (0.7, _clone),
    "checksums": (0.5, _checksums),
    "names": (0.5, _names),
    "stage": (0.5, _stage),
    "truncate": (0.2, _truncate),
}
