"""A verb of the rig, and the datasets that verbs are tried on.

Each acts on a dataset in a folder, and only on that; ``act`` may be called again on what an earlier
call left behind. A dataset is made from a seed, which chooses file format, row ids and fragments.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_nb

Act = Callable[[str], Any]
AT_ONCE = timedelta(0)
# Storage options of every dataset: empty, or those that name a manifest store.
OPTIONS: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Verb:
    """One change of the dataset in a folder.

    ``at``: the end of the name of the dataset that is looked at. ``between``: what may be seen of a
    verb that takes several commits, besides before and after (``looking.is_between``), on main or
    on the branch "dev" (``on_branch``). ``commits``: False for a verb that writes files only, so
    that readers see no difference. ``foreign_before``: False when pylance cannot read the dataset
    before the verb.
    """

    act: Act
    prepare: Act = lambda _: None
    at: str = ""
    between: tuple[str, ...] = ()
    on_branch: bool = False
    commits: bool = True
    foreign_before: bool = True


def rows(first: int, count: int = 10) -> pa.Table:
    """Rows with ids that count up from ``first``."""
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "n": pa.array([one % 7 for one in ids], pa.int64()),
            "text": [f"text {one}" for one in ids],
        }
    )


def blobs(first: int, count: int = 4) -> pa.Table:
    """Rows with blobs of the second kind, small ones and some of more than 64 KB."""
    ids = range(first, first + count)
    values = lance_nb.blob_array([bytes([one % 251]) * (9 + 70_000 * (one % 2)) for one in ids])
    schema = pa.schema([pa.field("id", pa.int64()), lance_nb.blob_field("file")])
    return pa.table([pa.array(ids, pa.int64()), values], schema=schema)


def first_blobs(first: int, count: int = 4) -> pa.Table:
    """Rows with blobs of the first kind."""
    ids = range(first, first + count)
    marked = pa.field("file", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), marked])
    return pa.table([pa.array(ids), [bytes([one % 251]) * 900 for one in ids]], schema=schema)


def make(place: str, seed: int) -> None:
    """Write the dataset that verbs are tried on: three versions of several fragments."""
    chance = random.Random(seed)
    lance_nb.write_dataset(
        rows(0, 30),
        place,
        max_rows_per_file=chance.choice((10, 15)),
        data_storage_version=chance.choice(("2.0", "2.1", "2.2")),
        enable_stable_row_ids=chance.random() < 0.5,
        enable_v2_manifest_paths=chance.random() < 0.75,
        storage_options=OPTIONS,
    )
    dataset = opened(place)
    dataset.insert(rows(50))
    dataset.delete("id = 3")


def opened(place: str) -> Any:
    """Open the newest version of main."""
    bases = [str(Path(place).parent)]
    return lance_nb.dataset(place, storage_options=OPTIONS, allow_bases=bases)


def branch(place: str) -> Any:
    """Open the newest version of the branch "dev"."""
    return opened(place).checkout_version(("dev", None))


def branched(place: str) -> None:
    """Start the branch "dev", and add rows to it."""
    opened(place).create_branch("dev", 2).insert(rows(500))


def stable(place: str) -> None:
    """Write a dataset with stable row ids beside it."""
    options: dict[str, Any] = {"max_rows_per_file": 10, "enable_stable_row_ids": True}
    lance_nb.write_dataset(rows(0, 30), f"{place}-stable", storage_options=OPTIONS, **options)
    opened(f"{place}-stable").delete("id = 3")


def with_blobs(place: str) -> None:
    """Write a dataset with blobs of the second kind beside it."""
    lance_nb.write_dataset(blobs(0), f"{place}-blobs", data_storage_version="2.2")


def with_first_blobs(place: str) -> None:
    """Write a dataset with blobs of the first kind beside it."""
    lance_nb.write_dataset(first_blobs(0), f"{place}-blobs", data_storage_version="2.1")


def indexed(place: str) -> None:
    """Build an index on the ids."""
    opened(place).create_scalar_index("id", "BTREE")


def add_checksums(place: str) -> None:
    """Record checksums, also of all that is written from now on."""
    opened(place).add_checksums()


def clean_up_by_itself(place: str) -> None:
    """Let every commit clean up."""
    opened(place).optimize.enable_auto_cleanup({"interval": 1, "older_than_seconds": 0})
