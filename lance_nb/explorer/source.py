"""The interfaces through which the explorer reads a dataset.

``Source`` is the part of ``LanceDataset`` that most view models read, as a structural type, so that
a model can be tested with a small in-memory stand-in. The other interfaces extend it for views that
read files and indices, scan all rows in steps, compare versions, or write. Everything that comes
through them is untrusted: the models bound and escape names, values and counts.

A scan in steps goes over groups of consecutive fragments, each with at least ``GROUP_ROWS`` rows
except the last one, so that long work can report its progress.

Limits: a group holds at most ``GROUP_FRAGMENTS`` fragments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.errors import NotFoundError, NotSupportedError
from lance_nb.format.blob_fields import is_blob
from lance_nb.value_classes import dataclass

# Names of types only: a terminal that shows a schema compares nothing.
if TYPE_CHECKING:
    from lance_nb.format.fragment import Fragment
    from lance_nb.table.diff import Diff
    from lance_nb.table.diff.row_history import RowHistory
    from lance_nb.table.snapshot import Snapshot
    from lance_nb.table.space_usage import Space

GROUP_ROWS = 1_000_000
GROUP_FRAGMENTS = 4096
BATCH_ROWS = 131_072

Ref = int | str | tuple[str | None, int | None]


class Stats(Protocol):
    """Counts of one version, from its manifest alone."""

    @property
    def num_rows(self) -> int: ...
    @property
    def num_deleted_rows(self) -> int: ...
    @property
    def num_fragments(self) -> int: ...
    @property
    def num_data_files(self) -> int: ...
    @property
    def size_bytes(self) -> int | None: ...


class VersionInfo(Protocol):
    """One version as its manifest and transaction describe it."""

    @property
    def version(self) -> int: ...
    @property
    def timestamp(self) -> datetime | None: ...
    @property
    def num_rows(self) -> int | None: ...
    @property
    def num_deleted_rows(self) -> int | None: ...
    @property
    def num_fragments(self) -> int: ...
    @property
    def num_data_files(self) -> int: ...
    @property
    def num_deletion_files(self) -> int: ...
    @property
    def size_bytes(self) -> int | None: ...
    @property
    def operation(self) -> str | None: ...
    @property
    def message(self) -> str | None: ...
    @property
    def properties(self) -> Mapping[str, str]: ...
    @property
    def tags(self) -> tuple[str, ...]: ...


class TransactionInfo(Protocol):
    """The decoded transaction of a version."""

    @property
    def read_version(self) -> int: ...
    @property
    def uuid(self) -> str: ...
    @property
    def operation(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def details(self) -> Mapping[str, Any]: ...


class Refs(Protocol):
    """Tags or branches by name."""

    def list(self) -> Mapping[str, Mapping[str, Any]]: ...
    def names(self) -> Sequence[str]: ...


class TagRefs(Refs, Protocol):
    """Tags by name; ``readable`` leaves out those whose file is damaged.

    ``marks``: by name a text that changes when the tag is moved, from a listing alone.
    """

    def readable(self) -> Mapping[str, Mapping[str, Any]]: ...
    def marks(self) -> Mapping[str, str]: ...


class Source(Protocol):
    """A dataset at one version."""

    @property
    def uri(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def branch(self) -> str | None: ...
    @property
    def version(self) -> int: ...
    @property
    def latest_version(self) -> int: ...
    @property
    def schema(self) -> pa.Schema: ...
    @property
    def data_storage_version(self) -> str: ...
    @property
    def tags(self) -> TagRefs: ...
    @property
    def branches(self) -> Refs: ...

    def count_rows(self, filter: str | None = None) -> int: ...
    def stats(self) -> Stats: ...
    def version_numbers(self) -> Sequence[int]: ...
    def version_info(self, version: int, *, with_tags: bool = True) -> VersionInfo: ...
    def transaction(self, version: int) -> TransactionInfo | None: ...
    def checkout_version(self, version: Ref) -> Source: ...
    def to_table(
        self,
        columns: list[str] | None = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        filter: str | None = None,
    ) -> pa.Table: ...
    def take(self, indices: list[int], columns: list[str] | None = None) -> pa.Table: ...


class StoredSource(Source, Protocol):
    """A dataset whose files can be looked at."""

    @property
    def inspect(self) -> Any: ...
    @property
    def opened(self) -> tuple[Any, Snapshot]: ...
    def list_indices(self) -> list[dict[str, Any]]: ...
    def space(self, *, progress: Callable[[int, int], object] | None = None) -> Space: ...


def is_on_this_machine(uri: str) -> bool:
    """Whether reading a little more of a place costs next to nothing."""
    scheme, separator, _ = uri.partition("://")
    return not separator or scheme in ("file", "memory")


def stored_source(dataset: Source) -> StoredSource:
    """Return the dataset as one whose files can be looked at. Raises NotSupportedError."""
    if not hasattr(dataset, "opened"):
        raise NotSupportedError(f"{type(dataset).__name__} gives no access to its files")
    return cast("StoredSource", dataset)


def fragment_at(dataset: StoredSource, fragment_id: int) -> Fragment:
    """Return a fragment by its id. Raises NotFoundError."""
    fragments = dataset.opened[1].manifest.fragments
    ids = fragments.counts().ids
    for position in (ids == fragment_id).nonzero()[0][:1].tolist():
        fragment: Fragment = fragments[position]
        return fragment
    raise NotFoundError(f"version {dataset.version} has no fragment {fragment_id}")


def blob_columns(dataset: Source) -> frozenset[str]:
    """Return the columns at the top whose values lie apart, as blobs."""
    schema = getattr(dataset, "lance_schema", None)
    if schema is None:
        return frozenset()
    return frozenset(field.name for field in schema.tree.fields if is_blob(field))


def is_blob_column(dataset: Source, name: str) -> bool:
    """Tell whether the values of a column at the top lie apart, as blobs."""
    return name in blob_columns(dataset)


class ScannedSource(Source, Protocol):
    """A dataset that can be scanned fragment by fragment."""

    def get_fragments(self) -> list[Any]: ...
    def scanner(self, columns: Any = None, filter: Any = None, **options: Any) -> Any: ...
    def take(self, indices: list[int], columns: Any = None) -> pa.Table: ...
    def take_rows(self, row_ids: Any, columns: list[str] | None = None) -> pa.Table: ...
    def take_blobs(self, blob_column: str, ids: Any = None) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class FragmentGroup:
    """Fragments scanned in one step."""

    fragments: tuple[Any, ...]
    first: int
    num_rows: int


def scanned_source(dataset: Source) -> ScannedSource:
    """Return the dataset as one that is scanned. Raises NotSupportedError."""
    if not hasattr(dataset, "scanner"):
        raise NotSupportedError(f"{type(dataset).__name__} cannot be scanned step by step")
    return cast("ScannedSource", dataset)


def scan_groups(dataset: ScannedSource) -> list[FragmentGroup]:
    """Divide the fragments of a version into steps."""
    groups: list[FragmentGroup] = []
    held: list[Any] = []
    first = rows = 0
    for fragment in dataset.get_fragments():
        held.append(fragment)
        rows += fragment.count_rows()
        if rows >= GROUP_ROWS or len(held) >= GROUP_FRAGMENTS:
            groups.append(FragmentGroup(tuple(held), first, rows))
            first, rows, held = first + rows, 0, []
    if held:
        groups.append(FragmentGroup(tuple(held), first, rows))
    return groups


def group_batches(
    dataset: ScannedSource, group: FragmentGroup, columns: list[str], filter: str | None
) -> Iterator[pa.RecordBatch]:
    """Scan one group."""
    batches: Iterator[pa.RecordBatch] = dataset.scanner(
        columns=columns, filter=filter, fragments=group.fragments, batch_size=BATCH_ROWS
    ).to_batches()
    return batches


class ComparedSource(Source, Protocol):
    """A dataset whose versions can be compared."""

    @property
    def opened(self) -> tuple[Any, Snapshot]: ...
    def diff(self, a: Any, b: Any = None, *, key: Sequence[str] | None = None) -> Diff: ...
    def row_history(
        self,
        row_id: int | None = None,
        *,
        address: int | None = None,
        key: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
    ) -> RowHistory: ...


def compared_source(dataset: Source) -> ComparedSource:
    """Return the dataset as one whose versions can be compared. Raises NotSupportedError."""
    if not hasattr(dataset, "diff"):
        raise NotSupportedError(f"versions of a {type(dataset).__name__} cannot be compared")
    return cast("ComparedSource", dataset)


def writable_dataset(dataset: Source) -> LanceDataset:
    """Return the dataset as one that can be changed. Raises NotSupportedError."""
    if not hasattr(dataset, "opened"):
        raise NotSupportedError(
            f"{type(dataset).__name__} cannot be changed from here: only datasets that were opened "
            "with lance_nb can"
        )
    return cast("LanceDataset", dataset)
