"""Tags, branches and clones: which version a reference means, and who changes the record.

A reference is a version number of the branch that is open, a tag, ``(branch, version)`` with None
for main and for the latest, or None for the version that is open.

Source: ``LanceDataset.tags``, ``branches``, ``create_branch``, ``shallow_clone``, ``deep_clone`` of
pylance 14.0.2.
"""

from __future__ import annotations

from typing import Any

from lance_nb.errors import InvalidInputError
from lance_nb.session.base_paths import inherit_blobs, remember_created
from lance_nb.session.session import Session, open_session
from lance_nb.storage.registry import StorageOptions
from lance_nb.table.refs import Ref, Target, resolve
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace
from lance_nb.transactions.manifest_migration import migrate_manifest_paths_v2
from lance_nb.transactions.ref_writer import TagWriter, locate, ordered_branches, ordered_tags
from lance_nb.writing import cloning, moved_bases
from lance_nb.writing.branch_writer import BranchWriter
from lance_nb.writing.committing import place_of
from lance_nb.writing.pins import prune_pins

__all__ = [
    "branch_writer",
    "create_branch",
    "deep_clone",
    "migrate_manifest_paths_v2",
    "moved_branches_of",
    "ordered_branches",
    "ordered_tags",
    "prune_pins",
    "repair_moved_branches",
    "shallow_clone",
    "tag_writer",
    "target_of",
]


def target_of(session: Session, snapshot: Snapshot, reference: Ref | None) -> Target:
    """Return the branch and version that a reference means. Raises InvalidRefError."""
    if reference is None:
        return Target(snapshot.branch, snapshot.version)
    return resolve(session.root, reference, snapshot.branch)


def tag_writer(session: Session) -> TagWriter:
    """Return who changes the tags of a dataset."""
    return TagWriter(session.root, lambda branch: place_of(session, branch))


def branch_writer(session: Session) -> BranchWriter:
    """Return who changes the branches of a dataset."""
    return BranchWriter(session.root, lambda branch: place_of(session, branch))


def create_branch(
    session: Session, snapshot: Snapshot, name: str, reference: Ref | None
) -> Snapshot:
    """Create a branch and return its first version."""
    target = target_of(session, snapshot, reference)
    committed = branch_writer(session).create(name, target)
    return session.snapshot(committed.manifest, name)


def shallow_clone(
    session: Session, target: Target, uri: Any, options: StorageOptions | None
) -> tuple[Session, Snapshot]:
    """Make a dataset that refers to the files of this one."""
    source, version, place, clone_session = clone_places(session, target, uri, options)
    committed = cloning.shallow_clone(source, version, place, CommitOptions())
    remember_created(clone_session.root.uri, clone_session.allow_bases)
    inherit_blobs(clone_session.root.uri, session.root.uri)
    return clone_session, clone_session.snapshot(committed.manifest, None)


def deep_clone(
    session: Session,
    target: Target,
    uri: Any,
    options: StorageOptions | None,
    progress: cloning.CloneProgress | None = None,
) -> tuple[Session, Snapshot]:
    """Copy a version with all its files."""
    source, version, place, clone_session = clone_places(session, target, uri, options)
    committed = cloning.deep_clone(source, version, place, CommitOptions(), progress)
    inherit_blobs(clone_session.root.uri, session.root.uri)
    return clone_session, clone_session.snapshot(committed.manifest, None)


def clone_places(
    session: Session, target: Target, uri: Any, options: StorageOptions | None
) -> tuple[CommitPlace, int, CommitPlace, Session]:
    """Return where a clone comes from, which version of it, where it goes, and who reads that."""
    # The clone names the source as a base path: whoever made it may read it.
    bases = (*session.trusted_bases, session.root.uri)
    clone_session = open_session(
        uri, session.storage_options if options is None else options, bases
    )
    if clone_session.root.uri == session.root.uri:
        place = clone_session.root.uri
        raise InvalidInputError(f"a dataset cannot be cloned into its own folder {place!r}")
    source = place_of(session, target.branch)
    version, _ = locate(source, target.version, target.tag or "")
    return source, version, place_of(clone_session, None), clone_session


def moved_branches_of(session: Session) -> list[moved_bases.MovedBranch]:
    """Find the branches that name a place where the dataset was before it was moved or copied."""
    return moved_bases.moved_branches(session.root, lambda branch: place_of(session, branch))


def repair_moved_branches(session: Session, *, dry_run: bool) -> list[moved_bases.MovedBranch]:
    """Let these branches name where the dataset is now; return what was found before."""
    moved = moved_branches_of(session)
    for branch in () if dry_run else moved:
        moved_bases.repair_moved(place_of(session, branch.branch))
    return moved
