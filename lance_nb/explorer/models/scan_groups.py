"""A whole scan in steps: the fragments of a version in groups, for work that tells how far it is.

Layout of a group: fragments that follow one another, at least ``GROUP_ROWS`` rows of them unless
the version ends; ``first`` is the position of its first live row in the dataset.

Limits: one group holds at most ``GROUP_FRAGMENTS`` fragments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, cast

import pyarrow as pa

from lance_nb.errors import NotSupportedError
from lance_nb.explorer.models.source import Source

GROUP_ROWS = 1_000_000
GROUP_FRAGMENTS = 4096
BATCH_ROWS = 131_072


class ScannedSource(Source, Protocol):
    """A dataset that can be scanned fragment by fragment."""

    def get_fragments(self) -> list[Any]: ...
    def scanner(self, columns: Any = None, filter: Any = None, **options: Any) -> Any: ...
    def take_rows(self, row_ids: Any, columns: list[str] | None = None) -> pa.Table: ...
    def take_blobs(self, blob_column: str, ids: Any = None) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class Group:
    """Fragments scanned in one step."""

    fragments: tuple[Any, ...]
    first: int
    num_rows: int


def scanned(dataset: Source) -> ScannedSource:
    """Return the dataset as one that is scanned. Raises NotSupportedError."""
    if not hasattr(dataset, "scanner"):
        raise NotSupportedError(f"{type(dataset).__name__} cannot be scanned step by step")
    return cast("ScannedSource", dataset)


def scan_groups(dataset: ScannedSource) -> list[Group]:
    """Divide the fragments of a version into steps."""
    groups: list[Group] = []
    held: list[Any] = []
    first = rows = 0
    for fragment in dataset.get_fragments():
        held.append(fragment)
        rows += fragment.count_rows()
        if rows >= GROUP_ROWS or len(held) >= GROUP_FRAGMENTS:
            groups.append(Group(tuple(held), first, rows))
            first, rows, held = first + rows, 0, []
    if held:
        groups.append(Group(tuple(held), first, rows))
    return groups


def group_batches(
    dataset: ScannedSource, group: Group, columns: list[str], filter: str | None
) -> Iterator[pa.RecordBatch]:
    """Scan one group."""
    found: Iterator[pa.RecordBatch] = dataset.scanner(
        columns=columns, filter=filter, fragments=group.fragments, batch_size=BATCH_ROWS
    ).to_batches()
    return found
