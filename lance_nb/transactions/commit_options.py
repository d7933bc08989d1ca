"""The place and the options of a commit, and its result.

Limits: ``max_retries`` counts attempts after the first; ``timeout_s`` None means no limit.
Source: arguments and defaults of ``LanceDataset.commit`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from lance_nb.errors import InvalidInputError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest
from lance_nb.storage.base import Store
from lance_nb.storage.registry import StorageOptions
from lance_nb.table.locations import Locations
from lance_nb.table.refs import branch_store
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.operation import ApplyContext, BuildOptions, Built, Snapshotted
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import CommitLock, ManifestSlots, slots_of
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.table.checksums import ReadChecks

MAX_RETRIES = 20
TIMEOUT_S = 1800.0


@dataclass(frozen=True, slots=True)
class CommitPlace:
    """One branch of one dataset. ``home`` is its folder: the root itself on main.

    ``allow_bases``, ``storage_options`` and ``checks``: see table/locations. ``commit_lock`` is
    taken by every commit whose options name no other.
    """

    root: Store
    home: Store
    branch: str | None
    slots: ManifestSlots
    allow_bases: tuple[str, ...] = ()
    storage_options: StorageOptions | None = field(default=None, repr=False)
    commit_lock: CommitLock | None = field(default=None, repr=False)
    checks: ReadChecks | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        root: Store,
        branch: str | None = None,
        *,
        allow_bases: tuple[str, ...] = (),
        storage_options: StorageOptions | None = None,
        commit_lock: CommitLock | None = None,
        checks: ReadChecks | None = None,
    ) -> CommitPlace:
        """Return the place of a branch in the store that holds the dataset."""
        home = branch_store(root, branch)
        slots = slots_of(home)
        return cls(
            root=root,
            home=home,
            branch=branch,
            slots=slots,
            allow_bases=allow_bases,
            storage_options=storage_options,
            commit_lock=commit_lock,
            checks=checks,
        )

    def snapshot(self, manifest: Manifest) -> Snapshot:
        """Return a version of this branch, ready to be read."""
        return Snapshot(manifest, self.locations(manifest), self.branch)

    def locations(self, manifest: Manifest) -> Locations:
        """Return where the files of a version of this branch are."""
        return Locations(
            self.root,
            self.home,
            manifest.base_paths,
            allowed=self.allow_bases,
            options=self.storage_options,
            checks=self.checks,
        )


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """How to commit.

    ``affected_rows``: fragment id -> the rows of it that our operation touched (deleted, updated),
    which is what lets two deletions in one fragment both succeed. ``message`` becomes a property of
    the transaction. ``enable_v2_manifest_paths`` and ``build`` matter when the commit creates the
    dataset (``build.detached_version`` is chosen by the commit). ``clone_source`` loads versions of
    the dataset that a Clone starts from. ``apply`` makes the version instead of the operation that
    is recorded beside it. ``is_exact``: the change fits its read version only; any other commit
    since is a retryable conflict. ``read_manifest``: the version that the change was made for;
    it may have been cleaned up since. ``checks_files``: the files were written elsewhere, so check
    that they are there. ``is_by_hand``: the operation was put together by a caller, so check also
    that its fragments say what their files hold (file_presence.py).
    """

    max_retries: int = MAX_RETRIES
    timeout_s: float | None = TIMEOUT_S
    detached: bool = False
    message: str | None = None
    enable_v2_manifest_paths: bool = True
    commit_lock: CommitLock | None = None
    environment: Environment = field(default_factory=Environment)
    affected_rows: Mapping[int, DeletionVector] | None = None
    build: BuildOptions = field(default_factory=BuildOptions)
    clone_source: Callable[[int], Snapshotted] | None = None
    apply: Callable[[ApplyContext], Built] | None = None
    is_exact: bool = False
    read_manifest: Manifest | None = None
    checks_files: bool = False
    is_by_hand: bool = False

    def __post_init__(self) -> None:
        if self.max_retries < 0:
            raise InvalidInputError(f"max_retries must be at least 0, not {self.max_retries}")
        if self.timeout_s is not None and self.timeout_s <= 0:
            raise InvalidInputError(f"a commit timeout is positive, not {self.timeout_s} s")
        if self.commit_lock is not None and not callable(self.commit_lock):
            raise InvalidInputError("commit_lock is a function that returns a context manager")


@dataclass(frozen=True, slots=True)
class Committed:
    """A version that landed.

    ``transaction`` is as it landed, which after a rebase is not as it was handed in. ``manifest``
    and ``indices`` are what a reader would load. ``attempts`` counts from 1.
    """

    manifest: Manifest
    indices: tuple[IndexMetadata, ...]
    transaction: Transaction
    attempts: int = 1

    @property
    def version(self) -> int:
        """The number of the new version."""
        return self.manifest.version
