"""Maintain a dataset: its space, the checksums of its files, old versions, and dropping all of it.

A dataset that is dropped must hold a version that can be read: a mistyped path is refused, not
emptied. Manifests of main go last, so that what was interrupted can be done again. Files under
other base paths stay, as in pylance.

Source: ``cleanup_old_versions``, ``explain_cleanup_old_versions`` and ``LanceDataset.drop`` of
pylance 14.0.2; format/checksums.py, which pylance does not have.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from lance_nb.errors import (
    CleanupError,
    DatasetNotFoundError,
    FormatError,
    InvalidInputError,
    LanceError,
    NotSupportedError,
    ObjectNotFoundError,
)
from lance_nb.format.checksums import ALGORITHM, CONFIG_KEY, wants_checksums
from lance_nb.format.layout import HINT_PATH, VERSIONS, branch_root
from lance_nb.session.session import Session, open_session
from lance_nb.shown_text import visible
from lance_nb.storage.base import Store, prune, sync_folder
from lance_nb.storage.registry import StorageOptions, relative_uri
from lance_nb.table.file_references import References
from lance_nb.table.indices import read_indices
from lance_nb.table.retention import RetentionPolicy, auto_cleanup_policy
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.space_usage import Space, space_of
from lance_nb.table.survey import Survey, take_survey
from lance_nb.table.versions import load_manifest, version_names
from lance_nb.transactions.checksum_records import AddedChecksums, record_existing
from lance_nb.transactions.version_slots import forget_versions
from lance_nb.writing.branching import prune_pins, tag_writer
from lance_nb.writing.cleanup import (
    Cleanup,
    CleanupExplanation,
    CleanupOptions,
    CleanupStats,
    explanation_of,
)
from lance_nb.writing.cloning import files_of

Progress = Callable[[int, int], object]


def space(session: Session, progress: Progress | None = None) -> Space:
    """Survey a dataset, read the manifests of all its versions and add up."""
    survey = take_survey(session.root, tolerant=True)
    return space_of(survey, read_all(survey, progress), datetime.now(UTC))


def read_all(survey: Survey, progress: Progress | None = None) -> References:
    """Read the manifests of every version of every branch; damaged ones are noted."""
    total = sum(len(line.names) + len(line.detached) for line in survey.lines.values())
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    references = References(tolerant=True)
    for folder, line in survey.lines.items():
        references.read(survey.store(folder), folder, (*line.names, *line.detached), tick)
    return references


CHECKSUM_SETTING = {CONFIG_KEY: ALGORITHM}


def checksums_are_wanted(snapshot: Snapshot) -> bool:
    """Tell whether a version asks for checksums. Raises NotSupportedError for an unknown kind."""
    return wants_checksums(snapshot.manifest.config)


def add_checksums(
    session: Session, snapshot: Snapshot, progress: Progress | None
) -> AddedChecksums:
    """Record the sums of the files of a version that have none. Raises StorageError."""
    indices = tuple(read_indices(snapshot))
    files = [
        (named_file.store, named_file.path)
        for named_file in files_of(snapshot.locations, snapshot.manifest, indices)
        if relative_uri(named_file.store.uri, session.root.uri) is not None
    ]

    def report(done: int) -> None:
        if progress is not None:
            progress(done, len(files))

    return record_existing(files, report)


_log = logging.getLogger(__name__)

CONCURRENCY_MAX = 2**61 - 1


def rules(
    older_than: timedelta | None,
    retain_versions: int | None,
    versions: Collection[int] | None,
    **flags: bool,
) -> RetentionPolicy:
    """Return the rules by which versions go. Raises CleanupError."""
    return RetentionPolicy.of(older_than, retain_versions, versions, **flags)


def deleting(
    rate_limit: int | None, concurrency: int | None, progress: Progress | None
) -> CleanupOptions:
    """Return how files are deleted. Raises CleanupError."""
    if rate_limit is not None and rate_limit < 1:
        raise CleanupError(f"delete_rate_limit must be at least 1, not {rate_limit}")
    if concurrency is not None and not 1 <= concurrency <= CONCURRENCY_MAX:
        raise CleanupError(
            f"delete_concurrency must be between 1 and {CONCURRENCY_MAX}, not {concurrency}"
        )
    return CleanupOptions(concurrency, rate_limit, progress=progress)


def clean(
    session: Session, snapshot: Snapshot, policy: RetentionPolicy, options: CleanupOptions
) -> CleanupStats:
    """Delete what the policy lets go."""
    return _cleanup(session, snapshot.branch, snapshot.version, policy, options).run()


def clean_after(session: Session, snapshot: Snapshot, read_version: int) -> None:
    """Clean up after a commit if the configuration asks for it now; as pylance does.

    The commit has landed: that cleaning up failed is logged, and undoes nothing. Versions from the
    one on that the commit was planned on stay.
    """
    try:
        policy = auto_cleanup_policy(snapshot.version, snapshot.manifest.config)
        if policy is not None:
            first_kept = min(read_version or snapshot.version, snapshot.version)
            _cleanup(session, snapshot.branch, first_kept, policy, CleanupOptions()).run()
    except LanceError as error:
        _log.warning(
            "version %d of %s was committed, but the automatic cleanup that its configuration "
            "requests (lance.auto_cleanup) failed: %s",
            snapshot.version,
            visible(session.root.uri),
            visible(str(error)),
        )


def explain(
    session: Session,
    snapshot: Snapshot,
    policy: RetentionPolicy,
    options: CleanupOptions,
    *,
    max_files: int | None = None,
    include_files: bool = True,
) -> CleanupExplanation:
    """Say what ``clean`` would delete, listing at most ``max_files`` files (None: all)."""
    cleanup = _cleanup(session, snapshot.branch, snapshot.version, policy, options)
    plan, survey = cleanup.explain()
    return explanation_of(
        plan,
        survey,
        snapshot.version,
        max_files=max_files,
        include_files=include_files,
        pinned=cleanup.pinned(plan),
    )


def _cleanup(
    session: Session,
    branch: str | None,
    version: int,
    policy: RetentionPolicy,
    options: CleanupOptions,
) -> Cleanup:
    """Return a clean-up; tags of merges that nothing needs any more go after it."""
    folder = "" if branch is None else branch_root(branch)
    options = replace(options, afterwards=partial(prune_pins, tag_writer(session)))
    return Cleanup(session.root, folder, version, policy, options)


_TREE = "tree/"


def drop(
    base_uri: str | os.PathLike[str],
    storage_options: StorageOptions | None = None,
    *,
    ignore_not_found: bool = False,
) -> None:
    """Delete the dataset at ``base_uri``.

    Raises InvalidInputError where there is something else, DatasetNotFoundError where there is
    nothing, StorageError.
    """
    root = open_session(base_uri, storage_options).root
    files = sorted(entry.name for entry in root.list_recursive(""))
    if not files:
        prune(root)
        if ignore_not_found:
            return
        raise DatasetNotFoundError(root.uri, "the folder is empty or does not exist")
    if not _has_a_version(root):
        raise InvalidInputError(
            f"{root.uri!r} is not the root of a dataset: {VERSIONS!r} has no readable manifest, "
            "so nothing was deleted. Check that the path is not a folder above the dataset. "
            "Remove files that belong to no version with the tools of the store"
        )
    branches = {_branch_folder(file) for file in files if file.startswith(_TREE)}
    manifests = [file for file in files if file.startswith(f"{VERSIONS}/") and file != HINT_PATH]
    _delete(root, sorted({*files} - {*manifests}))
    for folder in branches - {""}:
        forget_versions(root.child(folder))
    forget_versions(root)  # before the manifests, else their store would call for them again
    _delete(root, manifests)
    prune(root)


def _delete(root: Store, files: Sequence[str]) -> None:
    """Delete files durably: what is deleted after them may not be lost to a power failure first."""
    for file in files:
        root.delete(file)
    for folder in sorted({file.rpartition("/")[0] for file in files}):
        with suppress(ObjectNotFoundError):  # somebody else drops it too
            sync_folder(root, folder)


def _has_a_version(root: Store) -> bool:
    try:
        names = version_names(root)
    except (DatasetNotFoundError, FormatError):
        return False
    for name in reversed(names):
        try:
            load_manifest(root, name)
        except (FormatError, NotSupportedError, ObjectNotFoundError):
            continue
        return True
    return False


def _branch_folder(path: str) -> str:
    folder, separator, _ = path.partition(f"/{VERSIONS}/")
    return branch_root(folder.removeprefix(_TREE)) if separator else ""
