"""What an operation is: a value that says how one version becomes the next, and what it touches.

An operation knows three things: its message (``from_pb``, ``to_pb``), the manifest that it makes of
the current one (``apply``, pure) and what it touches (``footprint``). It never imports another
operation: whether it can follow one that was committed first is decided by the rules of the
conflict grid (conflict_grid.py), which compare footprints. Fields of a footprint that mean nothing
to an operation stay empty.

Limits: ``apply`` does no I/O but ``ApplyContext.load_version``.
Source: message ``Transaction`` of lance.table, whose oneof names the arms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, fields
from typing import Any, ClassVar, Protocol, TypeVar

from lance_nb.errors import ArgumentError
from lance_nb.format.fragment import Fragment
from lance_nb.format.frozen_list import FrozenList
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.manifest import BasePath, Manifest, WriterVersion
from lance_nb.format.transaction_summary import DESCRIBERS
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.stream_mark import StreamMark
from lance_nb.value_classes import dataclass

CONFIG = "config"
TABLE_METADATA = "table metadata"
SCHEMA_METADATA = "schema metadata"
FIELD_METADATA = "field metadata"

Ids = frozenset[int]
NOTHING: Ids = frozenset()


@dataclass(frozen=True, slots=True)
class Settings:
    """The key-value maps an operation changes.

    ``keys`` holds (kind of map, field id or -1, key); ``replaced`` the (kind, field id) of maps
    that are replaced as a whole.
    """

    keys: frozenset[tuple[str, int, str]] = frozenset()
    replaced: frozenset[tuple[str, int]] = frozenset()

    @property
    def maps(self) -> frozenset[tuple[str, int]]:
        """The maps that are changed at all."""
        return self.replaced | {(kind, field) for kind, field, _ in self.keys}

    @property
    def touches_schema(self) -> bool:
        """Whether metadata of the schema or of a field is changed."""
        return any(kind in (SCHEMA_METADATA, FIELD_METADATA) for kind, _ in self.maps)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one operation touches.

    ``changed_fragments``: existing ones that stay and get other rows, files or deletions.
    ``removed_fragments``: existing ones that are removed. ``groups``: fragments rewritten together.
    ``moves_rows``: rows of changed fragments are written anew into other fragments.
    ``fields_modified``: ids of fields whose stored values change in place.
    ``replaced``: (fragment id, field id) of column data that is replaced.
    ``field_ids``: all fields of the schema it leaves behind, None if it keeps the schema.
    ``supplies_values``: it writes values that a stricter schema might refuse.
    ``may_alter_nullability``: it changes the schema without saying that nulls stay allowed.
    ``inserted_keys``: keys of rows that were inserted because no row had them.
    ``compacted``: (shard id, generation) of write-ahead logs it marks as merged.
    """

    changed_fragments: Ids = NOTHING
    removed_fragments: Ids = NOTHING
    groups: tuple[Ids, ...] = ()
    moves_rows: bool = False
    fields_modified: Ids = NOTHING
    replaced: frozenset[tuple[int, int]] = frozenset()
    field_ids: Ids | None = None
    supplies_values: bool = False
    may_alter_nullability: bool = False
    settings: Settings = Settings()
    new_indices: tuple[IndexMetadata, ...] = ()
    removed_indices: tuple[IndexMetadata, ...] = ()
    carries_reuse_index: bool = False
    new_bases: tuple[BasePath, ...] = ()
    inserted_keys: KeyFilter | None = None
    compacted: tuple[tuple[str, int], ...] = ()

    @property
    def touched(self) -> Ids:
        """Every existing fragment that is changed or removed."""
        return self.changed_fragments | self.removed_fragments


T = TypeVar("T")

UNKNOWN_ARM = "unknown"
DEFAULT_FILE_VERSION = "2.2"

# Parts of operations that pylance's do not have, shown only where they are set.
_OUR_OWN = frozenset({
    "compacted_sstables", "config_upsert_values", "deprecated", "frag_reuse_index",
    "inserted_rows", "legacy", "new_index_files", "offset_lists", "unknown",
})  # fmt: skip

Snapshotted = tuple[Manifest, tuple[IndexMetadata, ...]]


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Choices that are made once, when a dataset is created, and what a version gets besides.

    ``file_version``: of the data files, asked for by the writer; None keeps (or the default).
    ``detached_version``: the version number of a detached commit (bit 63 set).
    ``no_transaction_file``: the transaction is recorded inline only.
    ``mark``: the batch of a stream that the version holds; a commit fails if it is there already.
    """

    file_version: str | None = None
    stable_row_ids: bool = False
    detached_version: int | None = None
    no_transaction_file: bool = False
    mark: StreamMark | None = None


@dataclass(frozen=True, slots=True)
class ApplyContext:
    """What an operation is applied to.

    ``current`` is None when the dataset does not exist yet. ``load_version`` gives any version of
    the same branch with its indices; for a Clone it is the *source*'s.
    ``transaction_file`` and ``tag`` are what the version records of its transaction.
    ``open_snapshot`` gives access to the files of a version, for what old releases did not count.
    """

    current: Manifest | None
    indices: tuple[IndexMetadata, ...]
    load_version: Callable[[int], Snapshotted]
    timestamp_ns: int
    options: BuildOptions = field(default_factory=BuildOptions)
    transaction_file: str = ""
    tag: str = ""
    open_snapshot: Callable[[Manifest], Snapshot] | None = None


@dataclass(frozen=True, slots=True)
class Built:
    """A new version, not yet written: a manifest without sections, and its indices.

    ``fresh``: the fragments that this version adds or changes. ``only_appended``: those before them
    are unchanged. ``writers``: who wrote the versions that it is made of, None where one does not
    say. Some left states that are repaired before it is written (old_manifests.py).
    """

    manifest: Manifest
    indices: tuple[IndexMetadata, ...]
    fresh: tuple[Fragment, ...] = ()
    only_appended: bool = False
    writers: tuple[WriterVersion | None, ...] = ()


class OperationValue:
    """A value of LanceOperation: shown as in pylance."""

    __slots__ = ()

    def __repr__(self) -> str:
        every = fields(self)  # type: ignore[arg-type]
        shown = [
            f"{attribute.name}={getattr(self, attribute.name)!r}"
            for attribute in every
            if attribute.name not in _OUR_OWN or getattr(self, attribute.name)
        ]
        return f"LanceOperation.{type(self).__name__}({', '.join(shown)})"


class BaseOperation(OperationValue):
    """Base class of all operations, for ``isinstance``."""

    __slots__ = ()

    def describe(self: Operation) -> str:
        """Return one line that says what the operation does, as histories show it."""
        return DESCRIBERS[self.arm](self.to_pb())[0]


class Operation(Protocol):
    """One arm of ``Transaction.operation``. ``unknown`` carries fields of a newer writer."""

    arm: ClassVar[str]

    @property
    def unknown(self) -> bytes:
        """Serialized fields that this release does not know."""
        ...

    @classmethod
    def from_pb(cls, message: Any, path: str = "") -> Operation:
        """Read the message of this arm. Raises CorruptFileError naming ``path``."""
        ...

    def to_pb(self) -> Any:
        """Return the message of this arm."""
        ...

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the next version; changes nothing. Raises InvalidInputError, NotSupportedError."""
        ...

    def footprint(self) -> Footprint:
        """Return what the operation touches."""
        ...

    def describe(self) -> str:
        """Return one line that says what the operation does."""
        ...


def listed(value: Iterable[T], kind: type[T], subject: str) -> FrozenList[T]:
    """Return values that a caller gave as a list. Raises ArgumentError for another type."""
    items = FrozenList(value) if isinstance(value, Iterable) else FrozenList([value])
    wrong = [type(item).__name__ for item in items if not isinstance(item, kind)]
    if wrong:
        name = "FragmentMetadata" if kind is Fragment else kind.__name__
        raise ArgumentError(f"{subject} must be a list of {name}, not of {wrong[0]}")
    return items


def operation_name(arm: str) -> str:
    """Return the CamelCase name that people see for an arm."""
    return "".join(part.capitalize() for part in arm.split("_"))
