"""Write the tables of the benchmark with pylance, once: ``python -m tests.benchmarks.tables.data``.

Arguments are the name of a size and the names of the datasets; what is there is left as it is. A
name that ends in ``.arrow`` is the input of a write, an Arrow IPC file that both engines load.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.benchmarks.stored import write_once
from tests.benchmarks.tables.sizes import (
    DELETED_ROWS,
    MANY_COLUMNS_ROWS,
    SIZES,
    TINY_ROWS,
    Size,
)

SEED = 1
WORDS = pa.array([f"w{chr(97 + at % 26)}{at}" for at in range(3000)])
COLOURS = pa.array(["red", "green", "blue", "black"])
UPSERTED = 0.01  # of the documents

Writer = Callable[[Size, str], object]


def _word_lists(random: np.random.Generator, lengths: np.ndarray) -> pa.ListArray:
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    words = WORDS.take(pa.array(random.integers(0, len(WORDS), offsets[-1])))
    return pa.ListArray.from_arrays(pa.array(offsets), words)


def records(rows: int, first: int = 0) -> pa.Table:
    """Return 11 columns of the usual kinds."""
    random = np.random.default_rng([SEED, first])
    moments = random.integers(0, 10**9, rows).astype("datetime64[s]")
    vectors = random.random(rows * 8).astype(np.float32)
    users = pa.array(random.integers(0, 10**6, rows)).cast(pa.string())
    return pa.table(
        {
            "id": pa.array(np.arange(first, first + rows)),
            "a": pa.array(random.integers(0, 1_000_000, rows)),
            "b": pa.array(random.integers(0, 100, rows).astype(np.int32)),
            "score": pa.array(random.random(rows)),
            "flag": pa.array(random.random(rows) > 0.5),
            "ts": pa.array(moments.astype("datetime64[us]")),
            "cat": COLOURS.take(pa.array(random.integers(0, 4, rows))),
            "name": pc.binary_join_element_wise("user", users, " "),
            "opt": pa.array(random.integers(0, 1000, rows), mask=random.random(rows) < 0.1),
            "emb": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 8),
            "tags": _word_lists(random, random.integers(0, 4, rows)),
        }
    )


def documents(size: Size) -> pa.Table:
    """Return titles, addresses and texts of 20 to 60 words."""
    random = np.random.default_rng(SEED)
    rows = size.documents
    numbers = pa.array(np.arange(rows))
    places = WORDS.take(pa.array(random.integers(0, len(WORDS), rows)))
    return pa.table(
        {
            "id": numbers,
            "title": pc.binary_join(_word_lists(random, np.full(rows, 6)), " "),
            "url": pc.binary_join_element_wise(
                "https://example.com", places, numbers.cast(pa.string()), "/"
            ),
            "text": pc.binary_join(_word_lists(random, random.integers(20, 60, rows)), " "),
        }
    )


def upserted(size: Size) -> pa.Table:
    """Return one in a hundred documents, with the title and text of another one."""
    found = documents(size)
    random = np.random.default_rng(SEED)
    picks = random.choice(len(found), int(len(found) * UPSERTED), replace=False)
    return found.take(pa.array(np.roll(picks, 1))).set_column(0, "id", pa.array(picks))


def wide(columns: int, rows: int) -> pa.Table:
    """Return integers, floats and short strings by turns."""
    random = np.random.default_rng(SEED)
    values = pa.array([f"v{at}" for at in range(500)])
    kinds: tuple[Callable[[], pa.Array], ...] = (
        lambda: pa.array(random.integers(0, 1000, rows)),
        lambda: pa.array(random.random(rows)),
        lambda: values.take(pa.array(random.integers(0, len(values), rows))),
    )
    return pa.table({f"c{at}": kinds[at % 3]() for at in range(columns)})


def nested(size: Size) -> pa.Table:
    """Return structs of lists of structs."""
    rows = [
        {
            "x": at,
            "l": [{"u": item, "v": str(item)} for item in range(at % 4)] if at % 7 else None,
            "s": {"p": float(at)},
        }
        for at in range(size.nested)
    ]
    return pa.table({"n": pa.array(rows)})


def _appended(path: str, fragments: int, rows: int) -> None:
    """Write each fragment by a commit of its own, as such a table comes to be."""
    for at in range(fragments):
        mode = "append" if at else "create"
        lance.write_dataset(records(rows, at * rows), path, mode=mode)


def _one_commit(path: str, fragments: int, rows: int) -> None:
    """Write many fragments of three columns and commit them together."""
    numbers = np.arange(fragments * rows)
    data = pa.table({"id": numbers, "x": numbers / 2, "s": pa.array(numbers).cast(pa.string())})
    written = lance.fragment.write_fragments(data, path, max_rows_per_file=rows)
    if len(written) != fragments:
        raise SystemExit(f"wrote {len(written)} fragments of {fragments}")
    lance.LanceDataset.commit(path, lance.LanceOperation.Overwrite(data.schema, written))


def _deleted(
    path: str,
    fragments: int,
    rows: int = DELETED_ROWS,
    condition: str = "id % 10 = 3",
    **options: bool,
) -> None:
    """Write many fragments and give each a deletion file: a bitmap from 5,000 deleted rows on."""
    numbers = np.arange(fragments * rows)
    data = pa.table({"id": numbers, "x": numbers / 2, "s": pa.array(numbers).cast(pa.string())})
    lance.write_dataset(data, path, max_rows_per_file=rows, **options)
    lance.dataset(path).delete(condition)


def _one_fragment(size: Size, path: str) -> None:
    parts = [records(size.fragment_rows, at * size.fragment_rows) for at in range(size.fragments)]
    lance.write_dataset(pa.concat_tables(parts), path, max_rows_per_file=size.rows)


def _arrow_file(data: pa.Table, path: str) -> None:
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, data.schema) as writer:
        writer.write_table(data)


def _versions(path: str, count: int) -> None:
    """Write a small fragment, and versions that change a setting."""
    dataset = lance.write_dataset(_small(), path)
    for number in range(count - 1):
        dataset.update_config({"k": str(number)})


def _tags(path: str, count: int) -> None:
    dataset = lance.write_dataset(_small(), path)
    for number in range(count):
        dataset.tags.create(f"tag-{number}", 1)


def _branches(path: str, count: int) -> None:
    dataset = lance.write_dataset(_small(), path)
    for number in range(count):
        dataset.create_branch(f"branch-{number}")


def _small() -> pa.Table:
    return pa.table({"x": list(range(10)), "s": ["a"] * 10})


WRITERS: dict[str, Writer] = {
    "tiny": lambda size, path: _appended(path, size.tiny_fragments, TINY_ROWS),
    "parts": lambda size, path: _appended(path, size.fragments, size.fragment_rows),
    "rows": _one_fragment,
    "documents": lambda size, path: lance.write_dataset(documents(size), path),
    "documents.arrow": lambda size, path: _arrow_file(documents(size), path),
    "upserted.arrow": lambda size, path: _arrow_file(upserted(size), path),
    "wide": lambda size, path: lance.write_dataset(wide(size.columns, size.column_rows), path),
    "wide.arrow": lambda size, path: _arrow_file(wide(size.columns, size.column_rows), path),
    "many-columns.arrow": lambda size, path: _arrow_file(
        wide(size.many_columns, MANY_COLUMNS_ROWS), path
    ),
    "nested.arrow": lambda size, path: _arrow_file(nested(size), path),
    "many-columns": lambda size, path: lance.write_dataset(
        wide(size.many_columns, MANY_COLUMNS_ROWS), path
    ),
    "sixteen": lambda _, path: lance.write_dataset(wide(16, 100_000), path),
    "deleted": lambda size, path: _deleted(path, size.deletion_files),
    "deleted-ids": lambda size, path: _deleted(
        path, size.deletion_files, enable_stable_row_ids=True
    ),
    "bitmaps": lambda size, path: _deleted(path, size.bitmap_files, 20_000, "id % 2 = 1"),
    "nested": lambda size, path: lance.write_dataset(nested(size), path),
    "singles": lambda size, path: _one_commit(path, size.single_rows, 1),
    "tags": lambda size, path: _tags(path, size.tags),
    "branches": lambda size, path: _branches(path, size.branches),
    "small": lambda _, path: lance.write_dataset(_small(), path),
    "small.arrow": lambda _, path: _arrow_file(_small(), path),
}


def _writer(name: str) -> Writer:
    """Return what writes a dataset; those of the growth are ``fragments-10`` and the like."""
    kind, _, count = name.partition("-")
    if kind == "fragments":
        return lambda _, path: _one_commit(path, int(count), 10)
    if kind == "written":
        table = wide(int(count.removesuffix(".arrow")), MANY_COLUMNS_ROWS)
        return lambda _, path: _arrow_file(table, path)
    if kind == "deletions":
        return lambda _, path: _deleted(path, int(count))
    if kind == "refs":
        return lambda _, path: _tags(path, int(count))
    if kind == "columns":
        return lambda _, path: lance.write_dataset(wide(int(count), 1000), path)
    if kind == "versions":
        return lambda _, path: _versions(path, int(count))
    return WRITERS[name]


def main() -> None:
    """Write what is missing of the datasets that are named."""
    size = SIZES[sys.argv[1]]
    for name in sys.argv[2:]:
        writer = _writer(name)
        write_once(size.folder / name, lambda path, writer=writer: writer(size, path))


if __name__ == "__main__":
    main()
