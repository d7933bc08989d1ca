"""Create and delete branches.

A branch is a record in ``_refs/branches`` and a folder below ``tree/``. Creating one first claims
the name, by creating the record exclusively, and then commits a Clone of the parent's version into
the folder, where numbers go on from there. Deleting goes the other way round: versions first, then
the other files, the record last; so a name is free only when nothing is left behind it.

Layout: format/refs.py. The identifier of a branch is its parent's, followed by (parent version, id
of the Clone transaction without dashes).

Limits: a creation that was interrupted leaves a record without versions: after
``UNFINISHED_AFTER_S`` whoever creates the same branch from the same version completes it. What
depends on a branch is found by ``branch_users``, with its limits.
Source: spec page "branch and tag"; layout and identifiers as pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lance_nb.errors import (
    CommitStateUnknownError,
    DatasetAlreadyExistsError,
    LanceError,
    ObjectNotFoundError,
    RefConflictError,
    RefNotFoundError,
    VersionNotFoundError,
)
from lance_nb.format.layout import VERSIONS, branch_path, branch_root
from lance_nb.format.refs import Branch, check_branch_name
from lance_nb.storage.base import ObjectInfo, Store, prune
from lance_nb.table import refs
from lance_nb.table.refs import Target
from lance_nb.transactions.branch_users import (
    BranchDeletion,
    BranchUsers,
    Progress,
    check_unused,
    users_of,
)
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.manifest_slots import forget_versions
from lance_nb.transactions.operations.clone import Clone
from lance_nb.transactions.ref_record import create_record, replace_record
from lance_nb.transactions.tag_writer import PlaceOf, check_metadata, locate
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_source import VersionSource

UNFINISHED_AFTER_S = 60
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class BranchWriter:
    """Changes the branches of one dataset. ``place_of`` gives the place of a branch."""

    root: Store
    place_of: PlaceOf
    environment: Environment = field(default_factory=Environment)

    def create(self, name: str, target: Target) -> Committed:
        """Create a branch from a version; return its first version, which has the same number.

        Raises InvalidRefError, RefConflictError (the name is taken), VersionNotFoundError,
        CommitStateUnknownError.
        """
        check_branch_name(name)
        parent = self.place_of(target.branch)
        version, size_bytes = locate(parent, target.version)
        known = self._known(name)
        if known is not None:
            return self._finish(name, known, Target(target.branch, version))
        self._check_folder_is_free(name)
        uuid = self.environment.new_uuid()
        above = () if target.branch is None else refs.read_branch(self.root, target.branch)
        branch = Branch(
            target.branch,
            version,
            (*(above.identifier if above else ()), (version, uuid.replace("-", ""))),
            self.environment.clock() // _NS,
            size_bytes,
        )
        create_record(self.root, branch_path(name), branch.to_bytes(), f"branch {name!r}")
        return self._clone(name, branch, uuid)

    def replace_metadata(self, name: str, metadata: Mapping[str, str]) -> Branch:
        """Replace all metadata of a branch. Raises RefNotFoundError, RefConflictError."""
        path = branch_path(check_branch_name(name))
        try:
            raw = bytes(self.root.read(path))
            old = Branch.from_bytes(raw, f"{self.root.uri}/{path}")
            branch = replace(old, metadata=check_metadata(metadata))
            replace_record(self.root, path, raw, branch.to_bytes(), f"branch {name!r}")
        except ObjectNotFoundError as error:
            raise self._missing(name) from error
        return branch

    def delete(self, name: str, *, force: bool = False, progress: Progress | None = None) -> None:
        """Delete a branch with its versions and files.

        Refused while tags or other branches depend on it, unless forced: then they are left
        without what they refer to. Forced, it also removes what an interrupted creation or deletion
        has left without a record. Raises RefNotFoundError, RefConflictError.
        """
        check_branch_name(name)
        known = self._known(name)
        leftovers = [one.name for one in self._files_of(name)]
        if known is None and not (force and leftovers):
            raise self._missing(name)
        if not force:
            check_unused(name, users_of(self.root, self.place_of, name, progress))
        leftovers.sort(key=lambda path: not path.startswith(f"{VERSIONS}/"))
        home = self.root.child(branch_root(name))
        for path in leftovers:
            home.delete(path)
        forget_versions(home)
        self.root.delete(branch_path(name))
        parts = name.split("/")
        for end in range(len(parts), 0, -1):  # folders of other branches hold files, and stay
            prune(self.root.child(branch_root("/".join(parts[:end]))))

    def explain_delete(
        self, name: str, *, users: bool = True, progress: Progress | None = None
    ) -> BranchDeletion:
        """Say what deleting a branch would take away, and what is in its way; deletes nothing.

        Without ``users`` only its folder is listed. Raises RefNotFoundError.
        """
        known = self._known(check_branch_name(name))
        if known is None:
            raise self._missing(name)
        files = self._files_of(name)
        versions = self.place_of(name).slots.list_names()
        return BranchDeletion(
            name,
            Target(known.parent_branch, known.parent_version),
            tuple(sorted(one.version for one in versions)),
            len(files),
            sum(one.size_bytes for one in files),
            users_of(self.root, self.place_of, name, progress) if users else BranchUsers(),
        )

    # --- creating ---------------------------------------------------------------------------------

    def _clone(self, name: str, branch: Branch, uuid: str) -> Committed:
        source = self.place_of(branch.parent_branch)
        operation = Clone(
            is_shallow=True,
            ref_version=branch.parent_version,
            ref_path=source.home.uri,
            ref_name=branch.parent_branch,
            branch_name=name,
        )
        transaction = Transaction(branch.parent_version, operation, uuid)
        options = CommitOptions(
            environment=self.environment,
            clone_source=clone_source(source, branch.parent_version).snapshotted,
        )
        try:
            return commit(self.place_of(name), transaction, options)
        except CommitStateUnknownError:
            raise  # the versions may appear: the record must stay
        except DatasetAlreadyExistsError as error:
            self._release(name, branch)
            raise RefConflictError(f"branch {name!r} already exists") from error
        except LanceError:
            self._release(name, branch)
            raise

    def _release(self, name: str, branch: Branch) -> None:
        """Give up the claim on a name, if it is still ours."""
        path = branch_path(name)
        if bytes(self.root.read(path)) == branch.to_bytes():
            self.root.delete(path)

    def _finish(self, name: str, known: Branch, target: Target) -> Committed:
        """Complete a creation that was interrupted. Raises RefConflictError if it was not."""
        exists = RefConflictError(f"branch {name!r} already exists")
        place = self.place_of(name)
        if place.slots.latest() is not None:
            raise exists
        age_s = self.environment.clock() // _NS - known.create_at
        same = (known.parent_branch, known.parent_version) == (target.branch, target.version)
        if not same or not known.identifier or age_s < UNFINISHED_AFTER_S:
            raise RefConflictError(
                f"branch {name!r} is being created, or its creation was interrupted {age_s} s ago; "
                f"delete it, or create it again from the same version after {UNFINISHED_AFTER_S} s"
            )
        return self._clone(name, known, self.environment.new_uuid())

    def _check_folder_is_free(self, name: str) -> None:
        if self.root.child(branch_root(name)).list_names(VERSIONS):
            raise RefConflictError(
                f"the folder of branch {name!r} holds versions, but the branch has no record: it is"
                " being created, or an earlier creation or deletion was interrupted. If nobody is "
                "at it, remove what is left with branches.delete(name, force=True)"
            )

    # --- looking ----------------------------------------------------------------------------------

    def _known(self, name: str) -> Branch | None:
        try:
            return refs.read_branch(self.root, name)
        except RefNotFoundError:
            return None

    def _missing(self, name: str) -> RefNotFoundError:
        return RefNotFoundError("branch", name, tuple(refs.branch_names(self.root)))

    def _files_of(self, name: str) -> list[ObjectInfo]:
        """List the files in a branch's folder, without those of branches named below it."""
        folder = branch_root(name)
        inner = [
            other.removeprefix(f"{name}/") + "/"
            for other in refs.branch_names(self.root)
            if other.startswith(f"{name}/")
        ]
        found = self.root.list_recursive(folder)
        return [one for one in found if not one.name.startswith(tuple(inner))]


def clone_source(place: CommitPlace, version: int) -> VersionSource:
    """Return a source from which a Clone can load the version it starts from.

    Raises VersionNotFoundError.
    """
    source = VersionSource(place.slots, place.locations)
    if source.head(version) is None:
        raise VersionNotFoundError(place.home.uri, version)
    source.load(version)
    return source
