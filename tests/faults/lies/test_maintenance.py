"""Clean-ups of damaged datasets: refused, or nothing is lost that stays."""

from __future__ import annotations

import random
import uuid
from datetime import timedelta

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import LanceError
from lance_nb.storage.base import Store
from lance_nb.storage.registry import open_store

pytestmark = pytest.mark.slow

ROWS = pa.table({"id": pa.array(range(50), pa.int64()), "s": [f"s{n}" for n in range(50)]})
NEWEST = 4
FLIPS = 24


@pytest.fixture
def uri() -> str:
    """Return a dataset of four versions with deletions, a tag and a branch."""
    place = f"memory://hostile/{uuid.uuid4().hex}.lance"
    found = lance_nb.write_dataset(ROWS, place)
    found.insert(ROWS)
    found.delete("id < 5")
    found.insert(ROWS, mode="overwrite")
    found.tags.create("t", 2)
    found.create_branch("dev", 3)
    return place


def contents(store: Store) -> dict[str, bytes]:
    return {one.name: bytes(store.read(one.name)) for one in store.list_recursive("")}


def flipped(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(
        changed[: chance.choice((len(changed), len(changed), chance.randrange(len(changed)) + 1))]
    )


def test_a_cleanup_of_damaged_manifests_refuses_or_leaves_what_stays_whole(uri: str):
    store = open_store(uri, None)
    whole = contents(store)
    names = [name for name in whole if name.endswith(".manifest")]
    chance = random.Random(7)
    kept = {"t": ROWS.num_rows * 2, ("dev", None): 90, None: ROWS.num_rows}
    cleaned = 0
    for _ in range(FLIPS):
        name = chance.choice(names)
        store.write(name, flipped(whole[name], chance))
        before = contents(store)
        try:
            lance_nb.dataset(uri).cleanup_old_versions(
                timedelta(0), error_if_tagged_old_versions=False
            )
            cleaned += 1
        except LanceError:
            assert contents(store) == before
        else:
            store.write(name, whole[name])
            for ref, count in kept.items():
                found = lance_nb.dataset(uri, ref).to_table()
                assert found.num_rows == count, (name, ref)
        for path in contents(store):
            store.delete(path)
        for path, data in whole.items():
            store.write(path, data)
    print(f"{cleaned} of {FLIPS} were cleaned up")
