"""Reading, ours against pylance, in one run.

Prints a Markdown table of medians and ratios. The datasets are written by pylance once and kept.
The goals were set at the size that is the default. What takes a few milliseconds is done several
times in a turn. Where compiled loops have a part in a row, a second row shows numpy alone.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import lance
import numpy as np
import pyarrow as pa

import lance_nb
from lance_nb.encodings.kernels import compiled
from tests.benchmarks.stored import DATA, write_once
from tests.benchmarks.timing import ONLY, Comparison, compare, table
from tests.support.compiled_forms import Form, forced

OPTIONS = {"--rows": {"type": int, "default": 10_000_000}, "--only": ONLY}
SEED = 11
SEVERAL = 10  # times in one turn, of what is over in a few milliseconds
WORDS = ("alpha", "river", "stone", "quick", "brown", "fox", "jumps", "over", "lazy", "dog")

Maker = Callable[[int], pa.Array]
Case = tuple[str, Callable[[], Comparison]]


def _rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


def _texts(rows: int) -> pa.Array:
    distinct = min(rows, 200_000)
    picks = _rng().integers(0, len(WORDS), (distinct, 6))
    sentences = [f"{' '.join(WORDS[w] for w in pick)} {at}" for at, pick in enumerate(picks)]
    return pa.array(sentences).take(pa.array(_rng().integers(0, distinct, rows)))


def _strings(rows: int) -> pa.Array:
    letters = _rng().integers(97, 123, rows * 20).astype(np.uint8)
    offsets = np.arange(rows + 1, dtype=np.int32) * 20
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
    return pa.Array.from_buffers(pa.string(), rows, buffers)


def _lists(rows: int) -> pa.Array:
    lengths = _rng().integers(0, 8, rows)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    items = _rng().integers(0, 1000, int(offsets[-1])).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(items))


def _vectors(rows: int, dimension: int) -> pa.Array:
    values = _rng().random(rows * dimension, np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(values), dimension)


# name -> (column, goal of the full scan, share of the rows)
COLUMNS: dict[str, tuple[Maker, float | None, float]] = {
    "flat int64": (lambda n: pa.array(_rng().integers(-(2**62), 2**62, n)), 4, 1),
    "bool": (lambda n: pa.array(_rng().random(n) < 0.5), 6, 1),
    "bit-packed int64, narrow": (lambda n: pa.array(_rng().integers(0, 1000, n)), 1, 1),
    "bit-packed float64, wide": (lambda n: pa.array(_rng().random(n)), 0.8, 1),
    "nullable int32": (
        lambda n: pa.array(_rng().integers(0, 50_000, n).astype("i4"), mask=_rng().random(n) < 0.2),
        1.5,
        0.5,
    ),
    "text (FSST)": (_texts, 0.45, 0.2),
    "strings of 20 letters (FSST)": (_strings, 0.45, 0.5),
    "list<int32>": (_lists, 0.8, 0.2),
    "embeddings 64": (lambda n: _vectors(n, 64), 8, 0.05),
    "embeddings 768": (lambda n: _vectors(n, 768), 8, 0.005),
    "low-cardinality text": (
        lambda n: pa.array([f"category {i}" for i in range(50)]).take(
            pa.array(_rng().integers(0, 50, n))
        ),
        None,
        0.5,
    ),
}


def _write_once(name: str, make: Callable[[str], object]) -> str:
    return write_once(DATA / f"{re.sub('[ <]', '_', name).replace('>', '')}.lance", make)


def _column_once(name: str, rows: int) -> str:
    maker, _, share = COLUMNS[name]
    count = int(rows * share)
    return _write_once(
        f"{name} {count}",
        lambda path: lance.write_dataset(pa.table({"c": maker(count)}), path, mode="overwrite"),
    )


# What the compiled loops shall reach, where they have a part in it.
COMPILED_GOALS = {
    "scan bit-packed int64, narrow": 2.5,
    "scan bit-packed float64, wide": 2.5,
    "scan nullable int32": 3,
    "scan text (FSST)": 2.3,
    "scan strings of 20 letters (FSST)": 2.3,
    "scan list<int32>": 2,
    "scan with 10 % deleted": 5,
    "count_rows(filter)": 3.5,
}


def scans(rows: int) -> Iterator[Case]:
    """Full scans, one column each, open included."""
    for name, (_, goal, _) in COLUMNS.items():
        yield (
            f"scan {name}",
            partial(_scan, f"scan {name}", partial(_column_once, name, rows), goal),
        )
    few = "scan low-cardinality text, dictionary kept"
    yield few, partial(_scan_dictionary, few, rows)
    yield "count_rows(filter)", partial(_count, rows)
    yield (
        "scan with 10 % deleted",
        partial(_scan, "scan with 10 % deleted", partial(_deleted_once, rows), 3),
    )


def _scan(name: str, write: Callable[[], str], goal: float | None) -> Comparison:
    path = write()
    return compare(
        name,
        lambda: lance_nb.dataset(path).to_table(),
        lambda: lance.dataset(path).to_table(),
        goal=goal,
    )


def projections(rows: int) -> Iterator[Case]:
    """One column of many; the benchmark of tables has many fragments and whole tables."""
    yield "project 1 of 50 columns", partial(_project, rows)


def _project(rows: int) -> Comparison:
    count = rows // 10

    def write(path: str) -> None:
        rng = _rng()
        columns = {f"c{at}": rng.integers(0, 1000, count) for at in range(50)}
        lance.write_dataset(pa.table(columns), path)

    path = _write_once(f"wide {count}", write)
    return compare(
        "project 1 of 50 columns",
        lambda: lance_nb.dataset(path).to_table(["c7"]),
        lambda: lance.dataset(path).to_table(["c7"]),
        goal=1.1,
    )


def _scan_dictionary(name: str, rows: int) -> Comparison:
    path = _column_once("low-cardinality text", rows)
    return compare(
        name,
        lambda: lance_nb.dataset(path).to_table(keep_dictionaries=True),
        lambda: lance.dataset(path).to_table(),
        goal=8,
    )


def _count(rows: int) -> Comparison:
    path = _column_once("bit-packed int64, narrow", rows)
    return compare(
        "count_rows(filter)",
        lambda: lance_nb.dataset(path).count_rows("c < 500"),
        lambda: lance.dataset(path).count_rows("c < 500"),
        goal=1.3,
    )


def _deleted_once(rows: int) -> str:
    def write(path: str) -> None:
        column = pa.array(_rng().integers(0, 1000, rows))
        dataset = lance.write_dataset(pa.table({"c": column}), path, mode="overwrite")
        dataset.delete("c < 100")

    return _write_once(f"deleted {rows}", write)


def metadata() -> Iterator[Case]:
    """Opening, listing versions."""
    for fragments, goal in ((1, 2.0), (10_000, 8.0), (100_000, 12.0)):
        name = f"open {fragments:,} fragments"
        yield name, partial(_open, name, fragments, goal)
    yield "open + versions() of 1,000", _versions


def _open(name: str, fragments: int, goal: float) -> Comparison:
    def write(path: str) -> None:
        # All fragments share one data file: cheap to write, as many to open.
        dataset = lance.write_dataset(pa.table({"c": [1, 2, 3]}), path, mode="overwrite")
        one = dataset.get_fragments()[0].metadata
        if fragments > 1:
            operation = lance.LanceOperation.Append([one] * (fragments - 1))
            lance.LanceDataset.commit(path, operation, read_version=1)

    path = _write_once(f"fragments {fragments}", write)
    return compare(
        name,
        lambda: lance_nb.dataset(path),
        lambda: lance.dataset(path),
        goal=goal,
        times=SEVERAL if fragments == 1 else 1,
    )


def _versions() -> Comparison:
    def write(path: str) -> None:
        rows = pa.table({"id": range(10), "text": [f"row {at}" for at in range(10)]})
        dataset = lance.write_dataset(rows, path, mode="overwrite")
        for _ in range(999):
            dataset.insert(rows)

    path = _write_once("versions 1000", write)
    return compare(
        "open + versions() of 1,000",
        lambda: lance_nb.dataset(path).versions(),
        lambda: lance.dataset(path).versions(),
        goal=4,
        runs=3,
    )


def takes(rows: int) -> Iterator[Case]:
    """1,000 random rows, on an open dataset and on one opened for it."""
    for column in ("flat int64", "bit-packed int64, narrow", "text (FSST)", "embeddings 64"):
        for fresh in (False, True):
            name = f"take 1,000 {column}, {'fresh' if fresh else 'warm'}"
            yield name, partial(_take, name, column, rows, fresh)


def _take(name: str, column: str, rows: int, fresh: bool) -> Comparison:
    path = _column_once(column, rows)
    mine, other = lance_nb.dataset(path), lance.dataset(path)
    picks = _rng().integers(0, mine.count_rows(), 1000)
    return compare(
        name,
        lambda: (lance_nb.dataset(path) if fresh else mine).take(picks),
        lambda: (lance.dataset(path) if fresh else other).take(picks),
        goal=2 if fresh else 4,
        times=SEVERAL,
    )


def previews(rows: int) -> Iterator[Case]:
    """The first rows of an open dataset; the benchmark of tables has those of a whole process."""
    yield "head(100), warm", partial(_head, rows)


def _head(rows: int) -> Comparison:
    path = _column_once("text (FSST)", rows)
    mine, other = lance_nb.dataset(path), lance.dataset(path)
    return compare(
        "head(100), warm",
        lambda: mine.head(100),
        lambda: other.head(100),
        goal=1.5,
        times=SEVERAL,
    )


def run(options: Namespace) -> None:
    """Measure what was asked for and print the table."""
    cases = [
        *metadata(),
        *scans(options.rows),
        *projections(options.rows),
        *takes(options.rows),
        *previews(options.rows),
    ]
    rows = []
    for name, measure in cases:
        if options.only not in name:
            continue
        goal = COMPILED_GOALS.get(name)
        if goal is None or compiled.loops is None:
            rows.append(measure())
            continue
        rows.append(replace(measure(), goal=goal))
        with forced(Form.NUMPY):
            rows.append(replace(measure(), name=f"{name}, numpy alone"))
    print(table(rows))
