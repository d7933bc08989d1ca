"""A verb of the catalogue, and the datasets that verbs are tried on.

A verb acts on a dataset in a folder, and only on that; it may be done again on what an earlier
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

AT_ONCE = timedelta(0)
# Storage options of every dataset: empty, or those that name a manifest store.
OPTIONS: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Verb:
    """One change of a dataset, as a call with the opened dataset.

    ``on``: which dataset is opened: the end of its name, "dev" for that branch, or None for a call
    with the path. ``prepare`` is called with the path of the dataset before. ``at``: the end of the
    name of the dataset that is looked at. ``between``: what may be seen of a verb that takes
    several commits, besides before and after (``State.is_between``). ``commits``: False for a verb
    that writes files only, so that readers see no difference. ``foreign_before``: False when
    pylance cannot read the dataset before the verb.
    """

    act: Callable[[Any], Any]
    prepare: Callable[[str], Any] = lambda _: None
    on: str | None = ""
    at: str = ""
    between: tuple[str, ...] = ()
    commits: bool = True
    foreign_before: bool = True

    def run(self, path: str) -> None:
        """Open the dataset and make the change."""
        if self.on is None:
            self.act(path)
        elif self.on == "dev":
            self.act(branch(path))
        else:
            self.act(opened(path + self.on))


def rows(first: int, count: int = 10) -> pa.Table:
    """Rows with ids that count up from ``first``."""
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "n": pa.array([number % 7 for number in ids], pa.int64()),
            "text": [f"text {number}" for number in ids],
        }
    )


def blobs(first: int, count: int = 4) -> pa.Table:
    """Rows with blobs of the second kind, small ones and some of more than 64 KB."""
    ids = range(first, first + count)
    values = lance_nb.blob_array([bytes([n % 251]) * (9 + 70_000 * (n % 2)) for n in ids])
    schema = pa.schema([pa.field("id", pa.int64()), lance_nb.blob_field("file")])
    return pa.table([pa.array(ids, pa.int64()), values], schema=schema)


def first_blobs(first: int, count: int = 4) -> pa.Table:
    """Rows with blobs of the first kind."""
    ids = range(first, first + count)
    marked = pa.field("file", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), marked])
    return pa.table([pa.array(ids), [bytes([n % 251]) * 900 for n in ids]], schema=schema)


def make(path: str, seed: int) -> None:
    """Write the dataset that verbs are tried on: three versions of several fragments."""
    chance = random.Random(seed)
    lance_nb.write_dataset(
        rows(0, 30),
        path,
        max_rows_per_file=chance.choice((10, 15)),
        data_storage_version=chance.choice(("2.0", "2.1", "2.2")),
        enable_stable_row_ids=chance.random() < 0.5,
        enable_v2_manifest_paths=chance.random() < 0.75,
        storage_options=OPTIONS,
    )
    dataset = opened(path)
    dataset.insert(rows(50))
    dataset.delete("id = 3")


def opened(path: str) -> Any:
    """Open the newest version of main."""
    bases = [path.rpartition("/")[0]]
    return lance_nb.dataset(path, storage_options=OPTIONS, allow_bases=bases)


def branch(path: str) -> Any:
    """Open the newest version of the branch "dev"."""
    return opened(path).checkout_version(("dev", None))


def branched(path: str) -> None:
    """Start the branch "dev", and add rows to it."""
    opened(path).create_branch("dev", 2).insert(rows(500))


def stable(path: str) -> None:
    """Write a dataset with stable row ids beside it."""
    options: dict[str, Any] = {"max_rows_per_file": 10, "enable_stable_row_ids": True}
    lance_nb.write_dataset(rows(0, 30), f"{path}-stable", storage_options=OPTIONS, **options)
    opened(f"{path}-stable").delete("id = 3")


def with_blobs(path: str) -> None:
    """Write a dataset with blobs of the second kind beside it."""
    lance_nb.write_dataset(blobs(0), f"{path}-blobs", data_storage_version="2.2")


def with_first_blobs(path: str) -> None:
    """Write a dataset with blobs of the first kind beside it."""
    lance_nb.write_dataset(first_blobs(0), f"{path}-blobs", data_storage_version="2.1")


def indexed(path: str) -> None:
    """Build an index on the ids."""
    opened(path).create_scalar_index("id", "BTREE")


def add_checksums(path: str) -> None:
    """Record checksums, also of all that is written from now on."""
    opened(path).add_checksums()


def clean_up_by_itself(path: str) -> None:
    """Let every commit clean up."""
    opened(path).optimize.enable_auto_cleanup({"interval": 1, "older_than_seconds": 0})


def commit(dataset: Any, operation: Any, **options: Any) -> None:
    """Commit an operation that was planned on the opened version."""
    lance_nb.LanceDataset.commit(dataset, operation, dataset.version, **options)


def newest_manifest(path: str) -> Path:
    """Return the path of main's newest manifest, under either naming scheme."""
    number = opened(path).version
    names = (f"{number}.manifest", f"{2**64 - 1 - number:020}.manifest")
    return next(file for name in names if (file := Path(path, "_versions", name)).exists())
