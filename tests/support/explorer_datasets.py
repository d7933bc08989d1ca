"""Small stored datasets for tests of the explorer: deleted rows, changes, branches and tags."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

import lance_nb


def table(count: int, first: int = 0) -> pa.Table:
    """Rows with an id, a text and a small vector."""
    ids = np.arange(first, first + count)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(count * 4, np.float32)), 4)
    return pa.table({"id": ids, "text": [f"row {one}" for one in ids], "vector": vectors})


def worn_dataset(path: Path) -> Any:
    """Three fragments, rows deleted in the second, a column added and one dropped, a tag."""
    for at in range(3):
        mode = "append" if at else "create"
        lance_nb.write_dataset(table(100, at * 100), path, mode=mode)
    dataset = lance_nb.dataset(path)
    dataset.delete("id >= 100 and id < 130")
    dataset.add_columns({"double": "id * 2"})
    dataset.drop_columns(["text"])
    dataset = lance_nb.dataset(path)
    dataset.tags.create("v1", 2)
    return lance_nb.dataset(path)


def changed_dataset(
    name: str = "changed.lance", *, folder: Path | None = None, stable: bool = True
) -> Any:
    """Seven versions: rows appended, updated, deleted; a column; compacted; a setting; a branch.

    1 sixty rows in two fragments, 2 ids 5 and 45 updated, 3 ids 0 to 2 deleted, 4 twenty rows more,
    5 a column added, 6 compacted, 7 a setting. Branch ``dev`` forks at 4 and has ten rows
    more. Tag ``start`` names 1. Without ``folder`` it lies in memory, in a place of its own: a
    module's fixture is made twice in a process when its tests are shared out among several.
    """
    uri = str(folder / name) if folder else f"memory://{uuid4().hex}/{name}"
    options: dict[str, Any] = {"max_rows_per_file": 30, "enable_stable_row_ids": stable}
    lance_nb.write_dataset(scores(60), uri, **options)
    lance_nb.dataset(uri).update({"score": "score + 100", "label": "'fox'"}, where="id in (5, 45)")
    lance_nb.dataset(uri).delete("id < 3")
    lance_nb.write_dataset(scores(20, 60), uri, mode="append")
    branch = lance_nb.dataset(uri).create_branch("dev", 4)
    lance_nb.write_dataset(scores(10, 200), branch, mode="append")
    lance_nb.dataset(uri).add_columns({"half": "id / 2"})
    lance_nb.dataset(uri).optimize.compact_files()
    lance_nb.dataset(uri).update_config({"team": "vision"})
    dataset = lance_nb.dataset(uri)
    dataset.tags.create("start", 1)
    return lance_nb.dataset(uri)


def scores(count: int, first: int = 0) -> pa.Table:
    """Rows with an id, a number and one of three texts."""
    ids = np.arange(first, first + count)
    labels = np.array(["cat", "dog", "bird"])[ids % 3]
    return pa.table({"id": ids, "score": ids / 4, "label": pa.array(labels.tolist())})


def forked_rows(first: int, count: int, value: int = 0) -> pa.Table:
    """Rows with an id, a number and a text."""
    ids = range(first, first + count)
    texts = [f"row {one}" for one in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [value] * count, "text": texts})


def forked_dataset(path: Path) -> Any:
    """Main and ``dev`` that both updated rows 5 to 9 of the fork (main:2), and added rows.

    ``v1`` tags main:1. Written by ``lance``, with stable row ids.
    """
    import lance

    made = lance.write_dataset(forked_rows(0, 60), path, enable_stable_row_ids=True)
    made = lance.write_dataset(forked_rows(60, 40), path, mode="append")
    made.tags.create("v1", 1)
    dev = made.create_branch("dev")
    dev.update({"v": "7"}, where="id < 10")
    dev.insert(forked_rows(200, 10))
    main = lance.dataset(path)
    main.update({"v": "9"}, where="id >= 5 and id < 20")
    main.insert(forked_rows(300, 10))
    return lance_nb.dataset(path)


def many_refs(path: Path, branches: int, tags: int) -> Any:
    """A version with many names: the records of branches and tags are copies of one each."""
    dataset = lance_nb.write_dataset(forked_rows(0, 5), path)
    dataset.create_branch("b0000")
    dataset.tags.create("t0000", 1)
    for kind, count in (("branches", branches), ("tags", tags)):
        (first,) = (path / "_refs" / kind).iterdir()
        for at in range(1, count):
            (first.parent / first.name.replace("0000", f"{at:04}")).write_bytes(first.read_bytes())
    return lance_nb.dataset(path)
