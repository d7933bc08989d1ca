"""Datasets with branches and tags, written by pylance: what the views of refs look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_nb


def rows(first: int, count: int, value: int = 0) -> pa.Table:
    """Rows with an id, a number and a text."""
    ids = range(first, first + count)
    texts = [f"row {one}" for one in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [value] * count, "text": texts})


def forked_dataset(path: Path) -> Any:
    """Main and ``dev`` that both updated rows 5 to 9 of the fork (main:2), and added rows.

    ``v1`` tags main:1. Written by ``lance``, with stable row ids.
    """
    import lance

    made = lance.write_dataset(rows(0, 60), path, enable_stable_row_ids=True)
    made = lance.write_dataset(rows(60, 40), path, mode="append")
    made.tags.create("v1", 1)
    dev = made.create_branch("dev")
    dev.update({"v": "7"}, where="id < 10")
    dev.insert(rows(200, 10))
    main = lance.dataset(path)
    main.update({"v": "9"}, where="id >= 5 and id < 20")
    main.insert(rows(300, 10))
    return lance_nb.dataset(path)


def many_refs(path: Path, branches: int, tags: int) -> Any:
    """A version with many names: the records of branches and tags are copies of one each."""
    dataset = lance_nb.write_dataset(rows(0, 5), path)
    dataset.create_branch("b0000")
    dataset.tags.create("t0000", 1)
    for kind, count in (("branches", branches), ("tags", tags)):
        (first,) = (path / "_refs" / kind).iterdir()
        for at in range(1, count):
            (first.parent / first.name.replace("0000", f"{at:04}")).write_bytes(first.read_bytes())
    return lance_nb.dataset(path)
