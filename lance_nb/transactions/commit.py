"""Make a new version out of a transaction, safely beside other writers: the commit loop.

One attempt: find the newest version; read every transaction committed since ours was made and
rebase ours over them; build the next manifest; write the ``.txn`` file; create the version's slot.
A writer that finds the slot taken by somebody else starts again from the new version, after a wait.

Exactly once: a transaction is known by its uuid. A writer that commits the same one again, after an
unknown outcome or a restart, gets the version it made the first time. ``find_transaction`` only
looks for it.

Our own processes on one local disk take turns, attempt by attempt: of those that race for a slot
one would win, and the others would have waited for the disk in vain. Safety does not depend on it.

A detached version is committed beside the history and found only by its number: random, with bit 63
set, in a file named ``d<number>.manifest``. It is built on the version that its transaction was
made for, is never the latest, and conflicts with nothing.

A batch of appends becomes one version. The merged transaction is made for the oldest version that
any of them was made for, so nothing that was committed since is overlooked. Its uuid follows from
theirs, so that a batch of unknown outcome can be committed again without being there twice. Where
two transactions give a property different values, the later one counts.

Layout of what is written, in this order: deletion files of a rebase, ``_transactions/{read
version}-{uuid}.txn``, the manifest (one exclusive write, with the transaction inline), and
``latest_version_hint.json``, which nothing here trusts. Data files were written, durably, before.
To a far store that is one request more than pylance sends: the hint, by which ``verify`` finds out
that the newest version was lost. A server that is not one of the services' own is probed before the
first commit of a process (storage/conditional_put.py).

Limits: read version 0 means that the dataset must not exist: of several creations one wins. A
dataset created with V1 names while another process creates it with V2 names would have both.
That a transaction is not found means "not there now": a request that is still on its way may arrive
until its slot is taken by somebody else. Versions that have been cleaned up are not found. Detached
versions are not listed; whoever needs one keeps its number.
Not supported: deleting what a failed commit wrote: an orphan is harmless, a missing file is not.
Source: spec page "transactions" (commit protocol), ``commit`` and ``commit_batch`` of pylance
14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from lance_nb.errors import (
    CommitStateUnknownError,
    CorruptFileError,
    DatasetAlreadyExistsError,
    DatasetNotFoundError,
    InternalError,
    InvalidInputError,
    NotSupportedError,
    ObjectNotFoundError,
    RetryableCommitConflictError,
    StorageError,
    TooMuchWriteContentionError,
    VersionNotFoundError,
)
from lance_nb.format import layout
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.fragment import DeletionFileType, Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.layout import DETACHED_BIT, ManifestName, NamingScheme
from lance_nb.format.manifest import Manifest
from lance_nb.storage.base import is_far, turn
from lance_nb.storage.threads import begin
from lance_nb.table.file_cache import cache_manifest
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.deletion_files import read_deletion_file, write_deletion_file
from lance_nb.transactions.environment import attempts
from lance_nb.transactions.file_presence import check_contents, check_new_files, check_schema
from lance_nb.transactions.manifest_migration import settle_v1
from lance_nb.transactions.new_version import (
    NewVersion,
    build,
    prepare,
    with_message,
    write_hint,
    write_transaction_file,
)
from lance_nb.transactions.operation import ApplyContext, Built, operation_name
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.side_effects import dropped_parts, warn_of_dropped, with_dropped
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import (
    Version,
    VersionSource,
    claim_under_lock,
    sync_version,
    transaction_uuid,
    unknown_change_error,
)
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:  # Read where somebody else has committed; it knows all operations.
    from lance_nb.transactions.rebase import RebaseContext

DEFAULTS = CommitOptions()
_CREATING = ("overwrite", "clone")
_LOOKS_MAX = 4  # of one attempt at what others commit meanwhile
_BATCH_NAMESPACE = UUID("6c8f1f4e-9d0f-5d0c-9a39-4b6f6d2f5a10")
_DETACHED_TRIES_MAX = 3  # two equal random numbers of 63 bits: the random source is broken


def commit(
    place: CommitPlace, transaction: Transaction, options: CommitOptions = DEFAULTS
) -> Committed:
    """Commit a transaction, rebasing it over what others committed since its read version.

    Raises CommitConflictError (do not retry), RetryableCommitConflictError (read again, do it
    again), TooMuchWriteContentionError, DatasetAlreadyExistsError (a concurrent creation won),
    DatasetNotFoundError, VersionNotFoundError, InvalidInputError (the change fits no version),
    NotSupportedError (features we would break), StorageError (nothing landed),
    CommitStateUnknownError (it may have landed: keep every file, commit it again).
    """
    transaction = with_message(transaction, options.message)
    if options.detached:
        return commit_detached(place, transaction, options)
    if transaction.read_version & layout.DETACHED_BIT:
        raise InvalidInputError(
            f"a change of detached version {transaction.read_version} can only be committed as "
            "another detached version"
        )
    return _Commit(place, transaction, options).run()


class _Commit:
    """One call of ``commit``: the transaction as rebased so far, and what has been read."""

    def __init__(
        self, place: CommitPlace, transaction: Transaction, options: CommitOptions
    ) -> None:
        self._place = place
        self._options = options
        self._transaction = transaction
        self._source = VersionSource(place.slots, place.locations)
        self._creates = transaction.read_version == 0 or transaction.operation.arm == "clone"
        self._seen = transaction.read_version  # what our transaction has been made to fit
        self._existing = 0 if self._creates else self._seen  # a version that is there for certain
        self._file_written = ""

    def run(self) -> Committed:
        number = 0
        budget = self._options
        for number in attempts(budget.environment, budget.max_retries, budget.timeout_s):
            with turn(self._place.home, layout.VERSIONS):
                committed = self._attempt(number)
            if committed is not None:
                return committed
        raise TooMuchWriteContentionError(
            f"too many concurrent writers on {self._place.home.uri!r}: {number} attempts to commit "
            f"after version {self._seen} met somebody else's version; nothing was committed. "
            "Try again later, or allow more retries"
        )

    def _attempt(self, number: int) -> Committed | None:
        head = self._source.head(self._existing)
        if head is None or self._creates:
            landed = self._check_creation(head, number)
        else:
            landed, head = self._follow(head, number)
        if landed is not None:
            return landed
        current = None if head is None else self._source.load(head.version)
        built = self._build(current)
        name = ManifestName(built.manifest.version, self._scheme(head))
        if current is not None and name.version != current.manifest.version + 1:
            raise InternalError(f"version {name.version} built on {current.manifest.version}")
        return self._write(built, name, number)

    # --- what others did --------------------------------------------------------------------------

    def _check_creation(self, head: ManifestName | None, number: int) -> Committed | None:
        """Refuse unless exactly one of "is there" and "creates" holds; return ours if it landed."""
        if head is None:
            if not self._creates or self._transaction.operation.arm not in _CREATING:
                raise DatasetNotFoundError(self._place.home.uri)
            return None
        if self._transaction.operation.arm not in _CREATING:
            raise VersionNotFoundError(self._place.home.uri, 0)
        first = max(self._transaction.read_version, 1)  # a clone keeps the number of its source
        try:
            landed = self._landed(first, self._source.transaction(first), number)
        except RetryableCommitConflictError:
            landed = None  # it cannot be ours: nobody can have removed it by now
        if landed is not None:
            return landed
        raise DatasetAlreadyExistsError(
            f"a dataset is at {self._place.home.uri!r} already (version {head.version})"
        )

    def _follow(self, head: ManifestName, number: int) -> tuple[Committed | None, ManifestName]:
        """Catch up until nothing new is there; return ours if it landed, and the newest version.

        Reading what others did takes time, in which they may do more: without another look, a
        writer far from its store would never be in time. After ``_LOOKS_MAX`` the attempt is made
        all the same, so that retries and timeout stay what ends a commit.
        """
        newest: ManifestName | None = head
        for _ in range(_LOOKS_MAX):
            if newest is None:
                break
            seen, head = self._seen, newest
            landed = self._catch_up(head, number)
            if landed is not None or self._seen == seen:
                return landed, head
            newest = self._source.head(head.version)
        return None, head

    def _catch_up(self, head: ManifestName, number: int) -> Committed | None:
        """Rebase over every version since the last look; return ours if it is among them."""
        theirs = []
        self._source.load_ahead(range(self._seen + 1, head.version + 1))
        present = self._source.present_versions(self._seen + 1, head)
        for version in present:
            transaction = self._source.transaction(version)
            landed = self._landed(version, transaction, number)
            if landed is not None:
                return landed
            theirs.append((version, transaction))
        if theirs and self._options.is_exact:
            raise RetryableCommitConflictError(
                f"version {head.version} was committed meanwhile, and this change fits version "
                f"{self._seen} only: look at the newest version and do it again"
            )
        if len(present) < head.version - self._seen:
            self._check_gap(present, head)
        if theirs:
            from lance_nb.transactions.rebase import rebase

            self._transaction = rebase(self._transaction, theirs, self._rebase_context(head))
            self._seen = self._existing = head.version
        return None

    def _check_gap(self, present: Sequence[int], head: ManifestName) -> None:
        """Refuse unless our change fits whatever was done in versions that are gone."""
        from lance_nb.transactions.rebase import gap_problem

        before = self._options.read_manifest
        if before is None or before.version != self._seen:
            is_there = self._source.has(self._seen)
            before = self._source.load(self._seen).manifest if is_there else None
        current = self._source.load(head.version).manifest
        problem = gap_problem(self._transaction.operation, before, current)
        if problem is not None:
            missing = min({*range(self._seen + 1, head.version)} - {*present})
            raise unknown_change_error(self._place.home.uri, missing, problem)

    def _landed(self, version: int, transaction: Transaction, number: int) -> Committed | None:
        if transaction.uuid != self._transaction.uuid:
            return None
        parsed = self._source.load(version)
        sync_version(self._place.home, version, transaction.uuid)
        return Committed(parsed.manifest, parsed.indices, transaction, number)

    def _rebase_context(self, head: ManifestName) -> RebaseContext:
        from lance_nb.transactions.rebase import RebaseContext

        current = self._source.load(head.version)
        locations = self._place.locations(current.manifest)
        return RebaseContext(
            current.manifest,
            current.indices,
            self._source.snapshotted,
            read_deletions=lambda fragment: read_deletion_file(locations, fragment),
            write_deletions=lambda fragment_id, read_version, vector: write_deletion_file(
                self._place.home,
                fragment_id,
                read_version,
                vector,
                environment=self._options.environment,
                file_type=DeletionFileType.BITMAP,
                checksums=wants_checksums(current.manifest.config),
            ),
            affected_rows=self._options.affected_rows,
        )

    # --- the new version --------------------------------------------------------------------------

    def _build(self, current: Version | None) -> Built:
        load = self._options.clone_source or self._source.snapshotted
        context = ApplyContext(
            None if current is None else current.manifest,
            () if current is None else current.indices,
            load,
            timestamp_ns=self._options.environment.clock(),
            options=self._options.build,
            open_snapshot=self._place.snapshot,
        )
        is_by_hand = self._options.is_by_hand
        built = build(self._transaction, context, self._options.apply, is_by_hand=is_by_hand)
        if self._options.checks_files:
            check_new_files(self._place.home, built, context.current, context.indices)
        if is_by_hand:
            snapshot, operation = self._place.snapshot(built.manifest), self._transaction.operation
            check_schema(snapshot, operation, context.current)
            check_contents(snapshot, operation, built.fresh, context.current)
        if context.current is not None and self._options.apply is None:
            self._record_dropped(built, context.current, context.indices)
        return built

    def _record_dropped(
        self, built: Built, current: Manifest, indices: tuple[IndexMetadata, ...]
    ) -> None:
        """Say what the version drops besides, once as long as that is the same."""
        parts = dropped_parts(self._transaction, current, indices, built)
        transaction = with_dropped(self._transaction, parts)
        if transaction is not self._transaction:
            self._transaction, self._file_written = transaction, ""
            warn_of_dropped(transaction, parts, self._place.home.uri, current.version)

    def _scheme(self, head: ManifestName | None) -> NamingScheme:
        if head is not None:
            return head.scheme
        return NamingScheme.V2 if self._options.enable_v2_manifest_paths else NamingScheme.V1

    def _write(self, built: Built, name: ManifestName, number: int) -> Committed | None:
        home = self._place.home
        version = prepare(home, built, self._transaction, name)
        with self._transaction_file(version):
            claimed = self._claim(name, version.data)
        if not claimed:
            # A lock may have refused a version that nobody has written yet.
            if self._source.has(name.version):
                self._existing = name.version
            return None
        manifest = version.committed.manifest
        cache_manifest(manifest.path, version.data, manifest.size_bytes, manifest)
        write_hint(home, name.version)
        return replace(version.committed, attempts=number)

    @contextmanager
    def _transaction_file(self, version: NewVersion) -> Iterator[None]:
        """Write the ``.txn`` file before the block; in a far store, beside it.

        There it spares a commit the time of one request. That the version may be there a moment
        earlier than the file does no harm, nor does a file that cannot be written: the manifest
        holds the same transaction.
        """
        if version.committed.manifest.transaction_file == self._file_written:
            yield
            return
        write = partial(write_transaction_file, self._place.home, version)
        writing = begin(write) if is_far(self._place.home) else None
        if writing is None:
            self._file_written = write()
            yield
            return
        try:
            yield
        finally:
            with suppress(StorageError):
                self._file_written = writing.result()

    def _claim(self, name: ManifestName, data: bytes) -> bool:
        claimed = claim_under_lock(
            self._options.commit_lock or self._place.commit_lock,
            self._place.slots,
            name,
            data,
            uuid=self._transaction.uuid,
            environment=self._options.environment,
        )
        if claimed and name.scheme is NamingScheme.V1:
            try:
                return settle_v1(self._place.slots, name, data)
            except StorageError as error:
                raise CommitStateUnknownError(
                    f"version {name.version} of {self._place.home.uri!r} has been created, but "
                    f"whether its name stays could not be found out ({error}); look for "
                    f"transaction {self._transaction.uuid} before doing the change again",
                    self._transaction.uuid,
                    name.version,
                ) from error
        return claimed


# --- detached versions ----------------------------------------------------------------------------


def commit_detached(
    place: CommitPlace, transaction: Transaction, options: CommitOptions
) -> Committed:
    """Commit a transaction on the version it was made for, beside the history.

    Raises VersionNotFoundError, StorageError, CommitStateUnknownError.
    """
    if transaction.read_version == 0:
        raise InvalidInputError("a detached version needs a version to be built on")
    source = VersionSource(place.slots, place.locations)
    if source.head(transaction.read_version) is None:
        raise DatasetNotFoundError(place.home.uri)
    current = source.load(transaction.read_version)
    for _ in range(_DETACHED_TRIES_MAX):
        number = DETACHED_BIT | _random_63_bits(options)
        context = ApplyContext(
            current.manifest,
            current.indices,
            source.snapshotted,
            timestamp_ns=options.environment.clock(),
            options=replace(options.build, detached_version=number),
            open_snapshot=place.snapshot,
        )
        built = build(transaction, context, is_by_hand=options.is_by_hand)
        if options.checks_files:
            check_new_files(place.home, built, current.manifest, current.indices)
        if options.is_by_hand:
            snapshot = place.snapshot(built.manifest)
            check_schema(snapshot, transaction.operation, current.manifest)
            check_contents(snapshot, transaction.operation, built.fresh, current.manifest)
        parts = dropped_parts(transaction, current.manifest, current.indices, built)
        transaction = with_dropped(transaction, parts)
        name = ManifestName(number, NamingScheme.V2)
        version = prepare(place.home, built, transaction, name)
        write_transaction_file(place.home, version)
        claimed = claim_under_lock(
            options.commit_lock or place.commit_lock,
            place.slots,
            name,
            version.data,
            uuid=transaction.uuid,
            environment=options.environment,
        )
        if claimed:
            return version.committed
    raise TooMuchWriteContentionError(f"no free number for a detached version of {place.home.uri}")


def _random_63_bits(options: CommitOptions) -> int:
    """Return a random number below 2**63, from the ids of the environment."""
    return int(options.environment.new_uuid().replace("-", ""), 16) % DETACHED_BIT


# --- after a lost reply ---------------------------------------------------------------------------


def find_transaction(place: CommitPlace, uuid: str, since: int = 0) -> int | None:
    """Return the version that a transaction made, None if none did.

    Looks at the versions after ``since``, the newest first. A version that cannot be read is passed
    over.
    """
    for name in reversed(place.slots.list_names()):
        if name.version <= since:
            return None
        try:
            stored_uuid = transaction_uuid(place.slots.read(name), f"{place.home.uri}/{name.path}")
        except (ObjectNotFoundError, CorruptFileError, NotSupportedError):
            continue
        if stored_uuid == uuid:
            return name.version
    return None


# --- several appends as one version ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BatchCommitted:
    """What a batch made: the version, and the one transaction that the others became."""

    committed: Committed
    merged: Transaction


def commit_batch(
    place: CommitPlace, transactions: Sequence[Transaction], options: CommitOptions = DEFAULTS
) -> BatchCommitted:
    """Commit appends as one. Raises InvalidInputError, NotSupportedError, and as ``commit``."""
    merged = merge_appends(transactions)
    committed = commit(place, merged, options)
    return BatchCommitted(committed, committed.transaction)


def merge_appends(transactions: Sequence[Transaction]) -> Transaction:
    """Make one append of several, their fragments in the order given."""
    if not transactions:
        raise InvalidInputError("no transactions to commit")
    fragments: list[Fragment] = []
    properties: dict[str, str] = {}
    for transaction in transactions:
        if (
            not isinstance(transaction.operation, Append)
            or transaction.unknown
            or transaction.operation.unknown
        ):
            name = operation_name(transaction.operation.arm)
            raise NotSupportedError(
                f"only appends that this release knows can be committed in a batch, not {name}"
            )
        fragments += transaction.operation.fragments
        properties |= transaction.properties
    read_version = min(transaction.read_version for transaction in transactions)
    name = str(uuid5(_BATCH_NAMESPACE, " ".join(transaction.uuid for transaction in transactions)))
    return Transaction(
        read_version, Append(tuple(fragments)), name, transaction_properties=properties
    )
