"""How large the tables of the benchmark are, and how long each row is measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.stored import DATA

FORM = 1  # raised when other values are written, so that no old data is measured

# Of each measured process: pylance starts a thread for each that it sees, and pays for them, so
# ratios of machines of many sizes can be compared only with the same number.
PROCESSORS = 2


@dataclass(frozen=True, slots=True)
class Size:
    """Counts of rows, columns and fragments; seconds and processes of a row."""

    name: str
    tiny_fragments: int  # of TINY_ROWS rows
    fragments: int
    fragment_rows: int
    documents: int
    columns: int
    column_rows: int
    many_columns: int  # of MANY_COLUMNS_ROWS rows
    deletion_files: int  # of as many fragments of DELETED_ROWS rows
    bitmap_files: int
    nested: int
    single_rows: int  # fragments of one row
    tags: int
    branches: int
    processes: int  # of each engine, one after the other
    shared_processes: bool  # the same ones for all operations: a start takes longer than most rows
    seconds: float  # of warm calls in each pair of processes
    rounds: int  # at least so many, however long they take
    process_rounds: int  # of whole processes, exactly so many
    most_rounds: int

    @property
    def rows(self) -> int:
        """Rows of the numbers, strings, lists and vectors, in many fragments or in one."""
        return self.fragments * self.fragment_rows

    @property
    def folder(self) -> Path:
        """Return where the data of this size lies."""
        return DATA / f"tables-{self.name}-{FORM}"


TINY_ROWS = 20
MANY_COLUMNS_ROWS = 50
DELETED_ROWS = 50
SIZES = {
    "full": Size(
        name="full",
        tiny_fragments=400,
        fragments=200,
        fragment_rows=10_000,
        documents=300_000,
        columns=500,
        column_rows=20_000,
        many_columns=3000,
        deletion_files=2000,
        bitmap_files=100,
        nested=200_000,
        single_rows=1000,
        tags=1000,
        branches=200,
        processes=2,
        shared_processes=False,
        seconds=2.0,
        rounds=2,
        process_rounds=5,
        most_rounds=50,
    ),
    "ci": Size(
        name="ci",
        tiny_fragments=100,
        fragments=40,
        fragment_rows=2_500,
        documents=30_000,
        columns=100,
        column_rows=2_000,
        many_columns=500,
        deletion_files=200,
        bitmap_files=4,
        nested=20_000,
        single_rows=200,
        tags=200,
        branches=40,
        processes=1,
        shared_processes=True,
        seconds=0.3,
        rounds=3,
        process_rounds=1,
        most_rounds=20,
    ),
}
# What the cost per fragment, column, deletion file, ref and version is measured with.
GROWTH_FRAGMENTS = (10, 100, 1000, 10_000)
GROWTH_COLUMNS = (10, 100, 500, 2000)
GROWTH_VERSIONS = (10, 100, 1000, 5000)
GROWTH_WRITTEN_COLUMNS = (10, 100, 1000, 3000, 10_000)
GROWTH_REFS = (10, 100, 1000)
