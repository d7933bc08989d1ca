"""What the benchmark measures: reads and changes of a table, the same code for both engines.

The verbs of both engines have the same names and arguments, so an operation gets a module, ours or
pylance, and uses it. Every read looks at each byte of its answer: a file that was mapped and not
read costs nothing and proves nothing. That is done by numpy, alike for both.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.benchmarks.tables.sizes import (
    GROWTH_COLUMNS,
    GROWTH_FRAGMENTS,
    GROWTH_REFS,
    GROWTH_VERSIONS,
    GROWTH_WRITTEN_COLUMNS,
    MANY_COLUMNS_ROWS,
    TINY_ROWS,
    Size,
)

TAKEN = 300
HEAD = 100
UPDATES = 10
POINT = "a = 77 OR b = 777"


@dataclass
class Workplace:
    """One engine, the data of one size, and a folder of its own to change things in."""

    engine: Any
    size: Size
    target: Path
    source: Any = None  # the table that is written, where there is one

    def open(self, name: str) -> Any:
        """Open one of the datasets, which nobody changes."""
        return self.engine.dataset(str(self.size.folder / name))

    def open_target(self) -> Any:
        """Open the dataset that this engine may change."""
        return self.engine.dataset(str(self.target))

    def replace_target(self, name: str) -> None:
        """Put a fresh copy of a dataset in the place of the target; of "", nothing."""
        shutil.rmtree(self.target, ignore_errors=True)
        if name:
            # Neither engine changes a file that it has committed: links do.
            copy = Path.hardlink_to
            shutil.copytree(
                self.size.folder / name,
                self.target,
                copy_function=lambda source, link: copy(Path(link), source),
            )


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the table: ``goal`` is the least ratio that we want, None for a mere look."""

    key: str  # in stored ratios
    title: Callable[[Size], str]
    goal: float | None
    run: Callable[[Workplace], Any] | None  # None: a process of its own, see ``processes``
    reads: str = ""  # dataset that is read
    copied: str | None = None  # dataset that replaces the target before each run; "" for none
    source: str = ""  # Arrow file that is loaded beforehand
    script: str = field(default="", repr=False)  # of a process: with engine, uri, dataset, rows

    @property
    def data(self) -> set[str]:
        """Return the names of what has to be written for it."""
        return {self.reads, self.copied or "", self.source} - {""}


def touch(answer: Any) -> Any:
    """Read every byte of a table once, and return the table."""
    import numpy as np

    buffers = {
        buffer.address: buffer
        for column in answer.columns
        for chunk in column.chunks
        for buffer in chunk.buffers()
        if buffer is not None and buffer.size
    }
    for buffer in buffers.values():
        np.frombuffer(buffer, np.uint8).max()
    return answer


def _scan(name: str, work: Workplace, **options: Any) -> Any:
    return touch(work.open(name).to_table(**options))


def _compact(work: Workplace) -> int:
    return int(work.open_target().optimize.compact_files().fragments_removed)


def _upsert(work: Workplace, rows: int | None = None) -> None:
    merge = work.open_target().merge_insert("id").when_matched_update_all()
    merge.when_not_matched_insert_all().execute(work.source.slice(0, rows))


def _delete(work: Workplace) -> None:
    work.open_target().delete("a % 100 = 7")


def _take(work: Workplace) -> Any:
    step = work.size.rows // TAKEN
    # Irregular, sorted, without repetition.
    return touch(work.open("rows").take([at * step + at * at % step for at in range(TAKEN)]))


def _write(work: Workplace) -> None:
    work.engine.write_dataset(work.source, str(work.target))


def _append(work: Workplace) -> None:
    work.engine.write_dataset(work.source, str(work.target), mode="append")


def _tag(work: Workplace) -> None:
    work.open_target().tags.create("new", 1)


def _branch(work: Workplace) -> None:
    work.open_target().create_branch("new")


def _update(work: Workplace) -> None:
    """Change few rows of every fragment several times: deletions, fragments and manifest grow."""
    dataset = work.open_target()
    for number in range(UPDATES):
        dataset.update({"b": "b + 1"}, where=f"id % 100 = {number}")


def _fixed(text: str) -> Callable[[Size], str]:
    return lambda _: text


OPERATIONS = (
    Operation(
        "scan-tiny",
        lambda size: f"scan {size.tiny_fragments} fragments of {TINY_ROWS} rows",
        1.0,
        partial(_scan, "tiny"),
        "tiny",
    ),
    Operation(
        "compact-tiny",
        lambda size: f"compact {size.tiny_fragments} fragments of {TINY_ROWS} rows",
        1.0,
        _compact,
        copied="tiny",
    ),
    Operation(
        "one-column",
        lambda size: f"one column of {size.fragments} fragments of {size.fragment_rows:,} rows",
        1.2,
        lambda work: _scan("parts", work, columns=["a"]),
        "parts",
    ),
    Operation(
        "compact-parts",
        lambda size: f"compact {size.fragments} fragments of {size.fragment_rows:,} rows",
        1.2,
        _compact,
        copied="parts",
    ),
    Operation(
        "text",
        lambda size: f"scan text of {size.documents:,} documents",
        1.3,
        lambda work: _scan("documents", work, columns=["text"]),
        "documents",
    ),
    Operation(
        "titles",
        lambda size: f"scan titles and URLs of {size.documents:,} documents",
        1.3,
        lambda work: _scan("documents", work, columns=["title", "url"]),
        "documents",
    ),
    Operation(
        "like",
        _fixed("count_rows(filter=\"title LIKE '%wv21%'\")"),
        1.3,
        lambda work: work.open("documents").count_rows(filter="title LIKE '%wv21%'"),
        "documents",
    ),
    Operation(
        "upsert",
        lambda size: f"upsert 1 % of {size.documents:,} documents",
        1.2,
        _upsert,
        copied="documents",
        source="upserted.arrow",
    ),
    Operation(
        "delete",
        lambda size: f"delete 1 % of {size.rows:,} rows",
        1.2,
        _delete,
        copied="rows",
    ),
    Operation(
        "scan-wide",
        lambda size: f"scan {size.columns} columns of {size.column_rows:,} rows",
        1.2,
        partial(_scan, "wide"),
        "wide",
    ),
    Operation(
        "scan-many-columns",
        lambda size: f"scan {size.many_columns:,} columns of {MANY_COLUMNS_ROWS} rows",
        1.2,
        partial(_scan, "many-columns"),
        "many-columns",
    ),
    Operation(
        "head-many-columns",
        lambda size: f"open, head(5) of {size.many_columns:,} columns",
        1.2,
        lambda work: touch(work.open("many-columns").head(5)),
        "many-columns",
    ),
    Operation(
        "head-columns",
        _fixed(f"open, head({HEAD}) of 16 columns"),
        1.2,
        lambda work: touch(work.open("sixteen").head(HEAD)),
        "sixteen",
    ),
    Operation(
        "scan-deleted",
        lambda size: f"scan {size.deletion_files:,} fragments with deletion files",
        1.5,
        partial(_scan, "deleted"),
        "deleted",
    ),
    Operation(
        "count-deleted",
        lambda size: f"count_rows(filter) of {size.deletion_files:,} fragments with deletion files",
        1.5,
        lambda work: work.open("deleted").count_rows(filter="x < 1000"),
        "deleted",
    ),
    Operation(
        "count-deleted-ids",
        lambda size: f"the same of {size.deletion_files:,} fragments with stable row ids",
        1.5,
        lambda work: work.open("deleted-ids").count_rows(filter="x < 1000"),
        "deleted-ids",
    ),
    Operation(
        "scan-bitmaps",
        lambda size: f"scan {size.bitmap_files} fragments of 20,000 rows with deletion bitmaps",
        1.5,
        partial(_scan, "bitmaps"),
        "bitmaps",
    ),
    Operation(
        "write-wide",
        lambda size: f"write {size.columns} columns of {size.column_rows:,} rows",
        1.2,
        _write,
        copied="",
        source="wide.arrow",
    ),
    Operation(
        "write-columns",
        lambda size: f"write {size.many_columns:,} columns of {MANY_COLUMNS_ROWS} rows",
        1.0,
        _write,
        copied="",
        source="many-columns.arrow",
    ),
    Operation(
        "write-nested",
        lambda size: f"write nested structs of lists, {size.nested:,} rows",
        1.2,
        _write,
        copied="",
        source="nested.arrow",
    ),
    Operation("take", _fixed(f"open, take {TAKEN} whole rows"), 1.5, _take, "rows"),
    Operation(
        "head",
        _fixed(f"open, head({HEAD})"),
        1.5,
        lambda work: touch(work.open("rows").head(HEAD)),
        "rows",
    ),
    Operation(
        "point",
        lambda size: f"filter {POINT} on {size.rows:,} rows",
        1.5,
        lambda work: _scan("rows", work, filter=POINT),
        "rows",
    ),
    Operation(
        "limit",
        _fixed("filter b > 50 with limit 100"),
        1.5,
        lambda work: _scan("rows", work, filter="b > 50", limit=100),
        "rows",
    ),
    Operation(
        "append",
        _fixed("append 10 rows"),
        1.0,
        _append,
        copied="small",
        source="small.arrow",
    ),
    Operation(
        "upsert-few",
        lambda size: f"upsert 10 rows of {size.documents:,} documents",
        1.2,
        lambda work: _upsert(work, 10),
        copied="documents",
        source="upserted.arrow",
    ),
    Operation(
        "update-tiny",
        lambda size: f"{UPDATES} updates of {size.tiny_fragments} fragments of {TINY_ROWS} rows",
        1.0,
        _update,
        copied="tiny",
    ),
    Operation(
        "tag",
        lambda size: f"open, create a tag among {size.tags:,}",
        1.0,
        _tag,
        copied="tags",
    ),
    Operation(
        "list-tags",
        lambda size: f"open, list {size.tags:,} tags",
        1.0,
        lambda work: len(work.open("tags").tags.list()),
        "tags",
    ),
    Operation(
        "branch",
        lambda size: f"open, create a branch among {size.branches:,}",
        1.0,
        _branch,
        copied="branches",
    ),
    Operation(
        "list-branches",
        lambda size: f"open, list {size.branches:,} branches",
        1.0,
        lambda work: len(work.open("branches").branches.list()),
        "branches",
    ),
    Operation(
        "write-documents",
        lambda size: f"write {size.documents:,} documents",
        1.2,
        _write,
        copied="",
        source="documents.arrow",
    ),
    Operation(
        "nested",
        lambda size: f"scan nested structs of lists, {size.nested:,} rows",
        1.2,
        partial(_scan, "nested"),
        "nested",
    ),
    Operation(
        "singles",
        lambda size: f"scan {size.single_rows:,} fragments of one row",
        None,
        partial(_scan, "singles"),
        "singles",
    ),
)
GROWTH = (
    *(
        Operation(
            f"fragments-{count}",
            _fixed(f"scan {count:,} fragments of 10 rows"),
            None,
            partial(_scan, f"fragments-{count}"),
            f"fragments-{count}",
        )
        for count in GROWTH_FRAGMENTS
    ),
    *(
        Operation(
            f"columns-{count}",
            _fixed(f"scan {count:,} columns of 1,000 rows"),
            None,
            partial(_scan, f"columns-{count}"),
            f"columns-{count}",
        )
        for count in GROWTH_COLUMNS
    ),
    *(
        Operation(
            f"versions-{count}",
            _fixed(f"open, list {count:,} versions"),
            None,
            lambda work, name=f"versions-{count}": len(work.open(name).versions()),
            f"versions-{count}",
        )
        for count in GROWTH_VERSIONS
    ),
    *(
        Operation(
            f"append-{count}",
            _fixed(f"append 10 rows to {count:,} versions"),
            None,
            _append,
            copied=f"versions-{count}",
            source="small.arrow",
        )
        for count in GROWTH_VERSIONS
    ),
    *(
        Operation(
            f"write-columns-{count}",
            _fixed(f"write {count:,} columns of {MANY_COLUMNS_ROWS} rows"),
            None,
            _write,
            copied="",
            source=f"written-{count}.arrow",
        )
        for count in GROWTH_WRITTEN_COLUMNS
    ),
    *(
        Operation(
            f"deletions-{count}",
            _fixed(f"scan {count:,} fragments with deletion files"),
            None,
            partial(_scan, f"deletions-{count}"),
            f"deletions-{count}",
        )
        for count in GROWTH_FRAGMENTS
    ),
    *(
        Operation(
            f"refs-{count}",
            _fixed(f"list {count:,} tags"),
            None,
            lambda work, name=f"refs-{count}": len(work.open(name).tags.list()),
            f"refs-{count}",
        )
        for count in GROWTH_REFS
    ),
)
