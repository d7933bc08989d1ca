"""Verbs that change how a dataset is stored, or what is said about it."""

from __future__ import annotations

from dataclasses import replace

from tests.faults.stateful.world import OURS, PYLANCE, World


def compact(world: World) -> bool:
    """Join small fragments and drop deleted rows."""
    head, chance = world.head, world.chance
    target = chance.choice((10, 20, 1000))
    threshold = chance.choice((0.0, 0.1, 0.9))
    world.says(f"compact_files to {target} rows, deletions above {threshold}")
    dataset = world.dataset()
    dataset.optimize.compact_files(
        target_rows_per_fragment=target, materialize_deletions_threshold=threshold
    )
    now = world.at(OURS, branch=world.branch).version
    if now == head.version:
        return True
    assert head.version < now <= head.version + 2
    if now == head.version + 2:  # ids were reserved first
        between = head.version + 1
        world.line.versions[between] = replace(head, version=between)
        world.line.used[between] = world.line.given
    world.landed(replace(head, version=now), ordered=False)
    return True


def configure(world: World) -> bool:
    """Set or remove a key of the configuration or of the table metadata."""
    head, chance = world.head, world.chance
    key, value = f"k_{chance.randint(0, 2)}", chance.choice((None, "", "value", "Ü"))
    what = chance.choice(("config", "metadata"))
    world.says(f"update_{what} {key}={value!r}")
    dataset = world.dataset()
    verb = dataset.update_config if what == "config" else dataset.update_metadata
    verb({key: value})
    old = head.config if what == "config" else head.metadata
    new = {k: v for k, v in old.items() if k != key} | ({} if value is None else {key: value})
    world.landed(head.with_rows(head.rows, **{what: new}))
    return True


def migrate_names(world: World) -> bool:
    """Rename manifests to those of the second scheme."""
    if world.v2_names or world.branch is not None:
        return False
    world.says("migrate_manifest_paths_v2")
    world.dataset().migrate_manifest_paths_v2()
    world.v2_names = True
    return True


def clean_up(world: World) -> bool:
    """Delete old versions; what is tagged or was branched from stays, and every file it needs."""
    line, chance = world.line, world.chance
    retained = chance.randint(1, 4)
    last = set(sorted(line.versions)[-retained:])
    needed = last | world.model.pinned(world.branch)
    world.says(f"cleanup_old_versions, the last {retained} stay; needed are {sorted(needed)}")
    world.dataset().cleanup_old_versions(
        retain_versions=retained,
        delete_unverified=chance.random() < 0.5,
        error_if_tagged_old_versions=False,
    )
    left = set(world.at(OURS, branch=world.branch).version_numbers())
    wanted = needed | world.model.forks(world.branch)
    assert needed <= left <= set(line.versions), left
    assert world.actor == PYLANCE or left == wanted, left
    line.versions = {number: one for number, one in line.versions.items() if number in left}
    world.forget_pins()
    world.landed(line.head)
    return True


VERBS = {compact: 2.5, configure: 1, migrate_names: 0.5, clean_up: 1}
