"""Random damage to whole manifests and refs: the same, an error of ours, or other rows; never more.

Every case follows from its seed, which a failure shows.
"""

from __future__ import annotations

import random
from functools import partial

import pytest

import lance_nb
from lance_nb.errors import LanceError
from lance_nb.storage import memory
from tests.faults.damage.mutate import flip_bits, overwrite, truncate
from tests.faults.lies.mutations import change_manifest
from tests.faults.lies.reading import bounded, read_everything
from tests.golden.copies import copy_to_memory, edited_manifest

pytestmark = pytest.mark.slow

FLIPS = 60  # for each of the manifests below
EDITS = 60
VERSIONS = {"history": (3, 9, 12, 14), "stable_ids": (6,), "types_2_2": (1,)}
CASES = [(name, version) for name, versions in VERSIONS.items() for version in versions]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def damaged(request):
    """(store, path of a manifest, its bytes, read it): a dataset whose manifest may change."""
    name, version = request.param
    store = copy_to_memory(name)
    path = f"_versions/{2**64 - 1 - version:020d}.manifest"
    yield store, path, bytes(store.read(path)), lambda: read_everything(store.uri, version=version)
    memory.clear(store.uri.removeprefix("memory://").partition("/")[0])


def outcome(read, expected) -> str:
    """Read within bounds; tell whether the rows are the same, others, or refused."""
    try:
        with bounded():
            found = read()
    except LanceError as error:
        assert len(str(error)) < 1500  # noqa: PT017
        return "refused"
    return "same" if found.equals(expected) else "other"


def test_flipped_bits_of_a_manifest_never_escape(damaged):
    store, path, data, read = damaged
    expected = read()
    counted = {"same": 0, "refused": 0, "other": 0}
    for seed in range(FLIPS):
        rng = random.Random(seed)
        way = rng.choice((flip_bits, flip_bits, flip_bits, overwrite, truncate))
        store.write(path, way(data, rng))
        counted[outcome(read, expected)] += 1
    assert counted["refused"] > FLIPS // 4, counted


def test_changed_fields_of_a_manifest_never_escape(damaged):
    store, path, data, read = damaged
    expected = read()
    for seed in range(EDITS):
        change = partial(change_manifest, rng=random.Random(seed))
        store.write(path, edited_manifest(data, change))
        outcome(read, expected)


def test_flipped_bits_of_refs_never_escape():
    store = copy_to_memory("history")
    paths = ["_refs/tags/first.json", "_refs/tags/on-side.json", "_refs/branches/team%2Fdeep.json"]
    whole = {path: bytes(store.read(path)) for path in paths}
    for seed in range(120):
        rng = random.Random(seed)
        path = rng.choice(paths)
        store.write(path, flip_bits(whole[path], rng))
        for look in (
            lambda: lance_nb.dataset(store.uri, "first").version,
            lambda: lance_nb.dataset(store.uri, "on-side").to_table(),
            lambda: len(lance_nb.dataset(store.uri, ("team/deep", None)).branches.list()),
            lambda: len(lance_nb.dataset(store.uri).tags.list()),
        ):
            try:
                look()
            except LanceError as error:
                assert str(error)  # noqa: PT017
        store.write(path, whole[path])
