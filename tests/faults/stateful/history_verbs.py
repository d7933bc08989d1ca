"""Verbs about versions: back to one, names for them, lines of them, copies."""

from __future__ import annotations

import shutil
from dataclasses import replace

from tests.faults.stateful.world import OURS, PYLANCE, World, compare, read

MOST_BRANCHES = 3


def restore(world: World) -> bool:
    """Make an older version the newest."""
    number = world.chance.choice(sorted(world.line.versions))
    old = world.line.versions[number]
    world.says(f"restore {number}")
    dataset = world.at(world.actor, number, world.branch)
    dataset.restore()
    world.landed(replace(old, version=world.head.version + 1))
    return True


def look_back(world: World) -> bool:
    """Read an older version by the other reader than the one that acts."""
    number = world.chance.choice(sorted(world.line.versions))
    world.says(f"read version {number}")
    dataset = world.at(world.actor, number, world.branch)
    expected = world.line.versions[number]
    compare(expected, read(dataset, expected), dataset)
    return True


def tag(world: World) -> bool:
    """Create, move or delete a tag, and read by it."""
    chance, tags = world.chance, world.model.tags
    number = chance.choice(sorted(world.line.versions))
    what = chance.choice(("create", "create", "update", "delete")) if tags else "create"
    dataset = world.dataset()
    name = f"tag{world.number}" if what == "create" else chance.choice(sorted(tags))
    world.says(f"tags.{what} {name} {'' if what == 'delete' else number}")
    if what == "delete":
        dataset.tags.delete(name)
        del tags[name]
    else:
        getattr(dataset.tags, what)(name, (world.branch, number))
        tags[name] = (world.branch, number)
    check_tags(world)
    return True


def check_tags(world: World) -> None:
    """Compare the tags, and read one."""
    for actor in (OURS, PYLANCE):
        found = world.at(actor).tags.list()
        assert {k: (one["branch"], one["version"]) for k, one in found.items()} == world.model.tags
    for name, (branch, number) in world.model.tags.items():
        expected = world.model.lines[branch].versions[number]
        dataset = world.at(OURS).checkout_version(name)
        assert dataset.version == number
        assert dataset.count_rows() == len(expected.rows)


def branch(world: World) -> bool:
    """Start a branch at a version, or delete one."""
    lines, chance = world.model.lines, world.chance
    if len(lines) > MOST_BRANCHES:
        return _delete_branch(world)
    number = chance.choice(sorted(world.line.versions))
    name = f"branch{world.number}"
    world.says(f"create_branch {name} from {number}")
    source = world.at(world.actor, branch=world.branch)
    source.create_branch(name, (world.branch, number))
    lines[name] = world.line.started(world.branch, number)
    dataset = world.at(OURS, branch=name)
    assert dataset.version == number
    expected = lines[name].head
    compare(expected, read(dataset, expected), dataset)
    return True


def _delete_branch(world: World) -> bool:
    lines, tags = world.model.lines, world.model.tags
    parents = {one.parent[0] for one in lines.values() if one.parent}
    leaves = [name for name in lines if name is not None and name not in parents]
    name = world.chance.choice(sorted(leaves))
    if any(place == name for place, _ in tags.values()):
        return False
    world.branch = None
    world.says(f"branches.delete {name}")
    world.dataset().branches.delete(name)
    del lines[name]
    world.forget(name)
    world.forget_pins()
    return True


def clone(world: World) -> bool:
    """Copy a version, shallow or deep; read and change the copy; throw it away."""
    chance = world.chance
    number = chance.choice(sorted(world.line.versions))
    expected = world.line.versions[number]
    shallow = chance.random() < 0.7
    target = world.folder / f"clone{world.number}"
    world.says(f"{'shallow' if shallow else 'deep'}_clone of {number}, and a deletion there")
    source = world.at(world.actor, number, world.branch)
    verb = source.shallow_clone if shallow else source.deep_clone
    verb(str(target), (world.branch, number))
    allowed = {"allow_bases": [world.uri]}
    readers = {
        OURS: world.engines[OURS].dataset(str(target), **allowed),
        PYLANCE: world.engines[PYLANCE].dataset(str(target)),
    }
    for dataset in readers.values():
        assert dataset.version == number
        compare(expected, read(dataset, expected), dataset)
    other = readers[chance.choice((OURS, PYLANCE))]
    other.delete("key = 3")
    rest = expected.with_rows(one for one in expected.rows if one.values["key"] != 3)
    for actor in (OURS, PYLANCE):
        options = allowed if actor == OURS else {}
        dataset = world.engines[actor].dataset(str(target), **options)
        compare(rest, read(dataset, rest), dataset)
    shutil.rmtree(target)
    return True


VERBS = {restore: 1, look_back: 1, tag: 1, branch: 1.5, clone: 0.3}
