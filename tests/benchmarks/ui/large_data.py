"""Large datasets on the local disk, one per dimension in which a dataset can be large.

========= ==========================================================================
versions  10,000 versions of one small table
fragments 100,000 fragments, 100 million rows (the fragments share one data file); two
          versions of it, the newer one with some rows deleted and some fragments more
columns   2,000 columns, of which a version changes every hundredth
cell      one cell of 5 MB among small ones
branches  300 branches and 300 tags
========= ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import lance_nb


def versions(path: Path, share: float) -> None:
    """Many versions, by the smallest commit there is."""
    dataset = lance_nb.write_dataset(pa.table({"id": range(100)}), path)
    for at in range(int(10_000 * share)):
        dataset.update_config({"n": str(at)})


def fragments(path: Path, share: float) -> None:
    """Many fragments over one data file."""
    dataset = lance_nb.write_dataset(pa.table({"id": range(1000), "x": [0.5] * 1000}), path)
    one = dataset.get_fragments()[0].metadata
    for count in (int(100_000 * share) - 11, 10):
        operation = lance_nb.LanceOperation.Append([one] * count)
        lance_nb.LanceDataset.commit(str(path), operation, read_version=dataset.version)
        dataset = lance_nb.dataset(str(path))
    _delete_few(path)


def _delete_few(path: Path) -> None:
    """Delete some rows of the newest fragment, as a deletion of the whole would take long."""
    dataset = lance_nb.dataset(str(path))
    newest = dataset.get_fragments()[-1]
    deleted = newest.delete("id % 10 = 0")
    if deleted is not None:
        operation = lance_nb.LanceOperation.Delete([deleted], [], "id % 10 = 0")
        lance_nb.LanceDataset.commit(str(path), operation, read_version=dataset.version)


def columns(path: Path, share: float) -> None:
    """Many columns."""
    count = int(2000 * share)
    names = [f"column {at}" for at in range(count)]
    dataset = lance_nb.write_dataset(pa.table({name: range(1000) for name in names}), path)
    changed = {name: f"`{name}` + 1" for name in names[:: max(1, count // 20)]}
    dataset.update(changed, where="`column 0` % 2 = 0")


def cell(path: Path, share: float) -> None:
    """One value larger than all others together."""
    texts = ["short"] * 200
    texts[7] = "x" * int(5_000_000 * share)
    dataset = lance_nb.write_dataset(pa.table({"id": range(200), "text": texts}), path)
    dataset.update({"text": "concat(text, 'y')"}, where="id = 7")


def branches(path: Path, share: float) -> None:
    """Many branches and tags."""
    dataset = lance_nb.write_dataset(pa.table({"id": range(100)}), path)
    for at in range(int(300 * share)):
        dataset.create_branch(f"branch-{at}")
        dataset.tags.create(f"tag-{at}", 1)
    dataset.update_config({"n": "1"})


CASES: dict[str, Callable[[Path, float], None]] = {
    "versions": versions, "fragments": fragments, "columns": columns, "cell": cell,
    "branches": branches,
}  # fmt: skip
