"""Branches: create and delete them, and find what refers to one; which version a reference means.

A reference is a version number of the branch that is open, a tag, ``(branch, version)`` with None
for main and for the latest, or None for the version that is open.

A branch is a record in ``_refs/branches`` and a folder below ``tree/``. Creating one first claims
the name, by creating the record exclusively, and then commits a Clone of the parent's version into
the folder, where version numbers continue. Deleting is the reverse: versions first, then the other
files, the record last; so a name is free only when no file of it is left.

A creation that Ctrl-C interrupts completes its branch first. One whose process was killed leaves a
record without versions, an unfinished branch. Whoever creates the same branch from the same version
completes it: the record holds the id of the Clone transaction, and a transaction is committed once,
so several may do that at the same moment, the first creator among them. From another version it is
refused until the record is deleted. pylance works in the reverse order and leaves a version without
a record; when that is a copy of the same version and nothing else, its record is written.

To a branch refer: branches that started from it, tags on it, and versions that read its files. A
branch that has merged another one reads that one's files in their place. Only manifests say which,
so every version of every other line is read, the newest first, until one is found that does. Where
none does, the tags that merges made to keep these files (pins.py) go with the branch.

Layout: format/refs.py. The identifier of a branch is its parent's, followed by (parent version, id
of the Clone transaction without dashes).
Limits: of two processes that create a branch from the same version at the same moment, both may
report success. What pylance puts into the folder after we have looked, from another version, is
found by ``verify`` only. Clones outside of the dataset are not known. What refers to a branch is
looked up, not locked: a tag that is created in that moment is not seen.
Source: spec page "branch and tag"; layout and identifiers as pylance 14.0.2; base paths of the
manifest; ``LanceDataset.tags``, ``branches``, ``create_branch`` of pylance 14.0.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from uuid import UUID

from lance_nb.errors import (
    CommitStateUnknownError,
    DatasetAlreadyExistsError,
    LanceError,
    ObjectNotFoundError,
    RefConflictError,
    RefNotFoundError,
    StorageError,
)
from lance_nb.format.layout import (
    VERSIONS,
    ManifestName,
    branch_path,
    branch_root,
    parse_manifest_name,
)
from lance_nb.format.refs import Branch, Tag, check_branch_name
from lance_nb.format.transaction_summary import count_of
from lance_nb.session.session import Session
from lance_nb.storage.base import ObjectInfo, Store, prune, sync_folder
from lance_nb.table import refs
from lance_nb.table.ref_grammar import resolve
from lance_nb.table.refs import Ref, Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.operations.clone import Clone
from lance_nb.transactions.ref_writer import (
    PlaceOf,
    TagWriter,
    check_metadata,
    create_record,
    delete_record,
    locate,
    replace_record,
    sync_record,
)
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import (
    Version,
    VersionSource,
    forget_versions,
    parse_version,
)
from lance_nb.value_classes import dataclass
from lance_nb.writing.pins import pins_of, plain_uri
from lance_nb.writing.progress import Progress


@dataclass(frozen=True, slots=True)
class BranchUsers:
    """Who needs a branch. Children are (name, version they started from), tags (name, version).

    ``readers``: (branch, None for main; the newest version of it that reads files of this one).
    ``pins`` are tags of merges that nothing needs any more: they go with the branch.
    """

    children: tuple[tuple[str, int], ...] = ()
    tags: tuple[tuple[str, int], ...] = ()
    readers: tuple[tuple[str | None, int], ...] = ()
    pins: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.children or self.tags or self.readers)

    def words(self) -> list[str]:
        """Return one phrase for each user."""
        users = [f"branch {name!r} (from version {version})" for name, version in self.children]
        users += [f"tag {name!r} (version {version})" for name, version in self.tags]
        for reader, version in self.readers:
            shown = refs.MAIN if reader is None else f"branch {reader!r}"
            users.append(f"{shown} (version {version} reads files that it has merged)")
        return users


@dataclass(frozen=True, slots=True)
class BranchDeletion:
    """What deleting a branch would take away; nothing while ``users`` need it.

    ``fork`` is the version that it started from, which loses its protection. ``versions`` are the
    branch's own, the first of them the copy of the fork.
    """

    name: str
    fork: Target
    versions: tuple[int, ...]
    num_files: int
    size_bytes: int
    users: BranchUsers

    def __str__(self) -> str:
        first = (
            f"deleting branch {self.name!r}: {count_of(len(self.versions), 'version')}, "
            f"{count_of(self.num_files, 'file')}, {count_of(self.size_bytes, 'byte')}"
        )
        return "\n".join([first, *(f"refused: {user}" for user in self.users.words())])


def users_of(
    root: Store, place_of: PlaceOf, name: str, progress: Progress | None = None
) -> BranchUsers:
    """Find who needs a branch. ``progress`` gets the number of versions read, and of all."""
    branches = refs.list_branches(root)
    mine = branches[name].identifier if name in branches else ()
    other_branches = [
        branch
        for branch in (None, *branches)
        if branch != name and not (branch is not None and _inherits(branches[branch], mine))
    ]
    readers = tuple(
        _readers({branch: place_of(branch) for branch in other_branches}, place_of(name), progress)
    )
    tags = {
        tag: tag_record
        for tag, tag_record in refs.list_tags(root).items()
        if tag_record.branch == name
    }
    pins = () if readers else tuple(_settled_pins(tags, place_of))
    tags_kept = tuple(
        (tag, tag_record.version) for tag, tag_record in tags.items() if tag not in pins
    )
    return BranchUsers(_children(branches, name, mine), tags_kept, readers, pins)


def _settled_pins(tags: Mapping[str, Tag], place_of: PlaceOf) -> Iterator[str]:
    """Return the pins whose merges are committed, or never will be."""
    for pin in pins_of(tags):
        newest = place_of(pin.made_for.branch).slots.latest()
        if not pin.is_under_way(None if newest is None else newest.version):
            yield pin.name


def check_unused(name: str, users: BranchUsers) -> None:
    """Raise RefConflictError if somebody needs the branch."""
    if users:
        raise RefConflictError(
            f"branch {name!r} cannot be deleted: {', '.join(users.words())} would lose what they "
            "refer to; delete them first, or force it"
        )


def _children(
    branches: Mapping[str, Branch], name: str, mine: Sequence[tuple[int, str]]
) -> tuple[tuple[str, int], ...]:
    """Return the branches that started from this one, at any depth."""
    return tuple(
        (other, branch.parent_version)
        for other, branch in branches.items()
        if branch.parent_branch == name or (other != name and _inherits(branch, mine))
    )


def _inherits(branch: Branch, mine: Sequence[tuple[int, str]]) -> bool:
    return bool(mine) and branch.identifier[: len(mine)] == mine


def _readers(
    other_places: Mapping[str | None, CommitPlace], place: CommitPlace, progress: Progress | None
) -> Iterator[tuple[str | None, int]]:
    """Find the branches that read files of a place because they have merged it.

    Those that started from it are not among ``other_places``: they do so by being its children.
    """
    base_place = plain_uri(place.home.uri)
    names = {
        other: other_place.slots.list_names()[::-1] for other, other_place in other_places.items()
    }
    done, total = 0, sum(map(len, names.values()))
    for other, versions in names.items():
        for position, name in enumerate(versions):
            if progress is not None:
                progress(done + position, total)
            if _reads_from(other_places[other], name, base_place):
                yield other, name.version
                break
        done += len(versions)


def _reads_from(place: CommitPlace, name: ManifestName, base_place: tuple[str, str]) -> bool:
    try:
        data = place.slots.read(name)
    except ObjectNotFoundError:
        return False  # cleaned up meanwhile
    version = parse_version(data, name, f"{place.home.uri}/{name.path}")
    bases = place.locations(version.manifest).present_bases()
    ids = {base.id for base in bases if plain_uri(base.path) == base_place}
    return bool(ids) and not ids.isdisjoint(_bases_in_use(version))


def is_same_place(uri: str, other: str) -> bool:
    """Return whether two URIs name one folder, by their text."""
    return plain_uri(uri) == plain_uri(other)


def _bases_in_use(version: Version) -> Iterator[int | None]:
    yield from (index.base_id for index in version.indices)
    for fragment in version.manifest.fragments:
        yield from (file.base_id for file in fragment.files)
        if fragment.deletion_file is not None:
            yield fragment.deletion_file.base_id


_NS = 1_000_000_000
_TEMPORARY = ".tmp-"


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
        version, size_bytes = locate(parent, target.version, target.tag or "")
        record = self._record_of(name)
        if record is not None and refs.is_absent(self.root, branch_path(name), name):
            raise RefConflictError(
                f"branch {name!r} cannot be created: this file system does not tell capitals "
                f"apart, and there is a branch of the same name in other ones "
                f"({', '.join(map(repr, self._alike(name)))}); choose another name"
            )
        if record is not None:
            return self._finish(name, record, Target(target.branch, version))
        leftover = self._left_version(name, parent, version)
        uuid = self.environment.new_uuid() if leftover is None else leftover.transaction.uuid
        branch = Branch(
            target.branch,
            version,
            (*self._identifier(target.branch), (version, uuid.replace("-", ""))),
            create_at=self.environment.clock() // _NS,
            manifest_size_bytes=size_bytes,
        )
        is_interrupted = True
        try:
            create_record(self.root, branch_path(name), branch.to_bytes(), f"branch {name!r}")
            committed = leftover or self._first_version(name, branch, uuid)
            is_interrupted = False
        except LanceError:
            is_interrupted = False
            raise
        finally:
            if is_interrupted:  # by Ctrl-C, or for want of memory
                self._end_interrupted(name, branch, uuid)
        return committed

    def _first_version(self, name: str, branch: Branch, uuid: str) -> Committed:
        """Create the first version of a branch whose name is claimed; else give up the claim."""
        try:
            committed = self._clone(name, branch, uuid)
        except CommitStateUnknownError:
            raise  # the versions may appear: the record must stay
        except DatasetAlreadyExistsError as error:
            copy = self._copy_of_fork(name, self.place_of(branch.parent_branch), branch)
            if copy is not None:  # pylance makes the version first: the record is here already
                return copy
            self._release(name, branch, error)
            raise RefConflictError(f"branch {name!r} already exists") from error
        except LanceError as error:
            self._release(name, branch, error)
            raise
        try:
            self._check_alone(name, branch)
        except StorageError as error:  # the record stays: the version is committed
            raise CommitStateUnknownError(
                f"branch {name!r} has been created, but whether another program created it at the "
                f"same time could not be found out ({error}); look at its versions before you use "
                "it",
                uuid,
                branch.parent_version,
            ) from error
        return committed

    def _check_alone(self, name: str, branch: Branch) -> None:
        """Raise RefConflictError if pylance put a copy of another version into the folder.

        It does so before it sees that the name is taken, and leaves the copy: as a version of this
        branch that nobody made, and as its newest one if its number is greater.
        """
        place = self.place_of(name)
        source = VersionSource(place.slots, place.locations)
        for listed in place.slots.list_names():
            if listed.version == branch.parent_version:
                continue
            source.head(listed.version)
            operation = source.transaction(listed.version).operation
            if isinstance(operation, Clone) and operation.branch_name == name:
                origin = f"{operation.ref_name or refs.MAIN}:{operation.ref_version}"
                raise RefConflictError(
                    f"branch {name!r} was created from {origin} by another program at the same "
                    f"time: its folder holds a version of each creation. Delete it with "
                    f"branches.delete({name!r}), and create it again"
                )

    def replace_metadata(self, name: str, metadata: Mapping[str, str]) -> Branch:
        """Replace all metadata of a branch. Raises RefNotFoundError, RefConflictError."""
        path = branch_path(check_branch_name(name))
        if refs.is_absent(self.root, branch_path(name), name):
            raise self._missing(name)
        try:
            raw = bytes(self.root.read(path))
            old = Branch.from_bytes(raw, f"{self.root.uri}/{path}")
            branch = replace(old, metadata=check_metadata(metadata))
            replace_record(self.root, path, raw, data=branch.to_bytes(), subject=f"branch {name!r}")
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
        record = self._record_of(name)
        if record is not None and refs.is_absent(self.root, branch_path(name), name):
            raise self._missing(name)  # it is that of a name in other capitals
        leftovers = [entry.name for entry in self._files_of(name)]
        if record is None and not (force and leftovers):
            raise self._missing(name)
        if not force:
            users = users_of(self.root, self.place_of, name, progress)
            check_unused(name, users)
            for pin in users.pins:
                with suppress(RefNotFoundError):  # a commit elsewhere has pruned it meanwhile
                    TagWriter(self.root, self.place_of).delete(pin)
        leftovers.sort(key=_deletion_order)
        home = self.root.child(branch_root(name))
        manifests = [path for path in leftovers if path.startswith(f"{VERSIONS}/")]
        for path in manifests:
            home.delete(path)
        if manifests:
            sync_folder(home, VERSIONS)  # else a power failure may leave one without its files
        for path in leftovers[len(manifests) :]:
            home.delete(path)
        forget_versions(home)
        self.root.delete(branch_path(name))
        if record is not None:
            sync_record(self.root, branch_path(name), f"branch {name!r}", "deleted")
        parts = name.split("/")
        for end in range(len(parts), 0, -1):  # folders of other branches hold files, and stay
            prune(self.root.child(branch_root("/".join(parts[:end]))))

    def explain_delete(
        self, name: str, *, users: bool = True, progress: Progress | None = None
    ) -> BranchDeletion:
        """Say what deleting a branch would take away, and what is in its way; deletes nothing.

        Without ``users`` only its folder is listed. Raises RefNotFoundError.
        """
        record = self._record_of(check_branch_name(name))
        if record is None or refs.is_absent(self.root, branch_path(name), name):
            raise self._missing(name)
        files = self._files_of(name)
        versions = self.place_of(name).slots.list_names()
        return BranchDeletion(
            name,
            Target(record.parent_branch, record.parent_version),
            tuple(sorted(version.version for version in versions)),
            num_files=len(files),
            size_bytes=sum(file.size_bytes for file in files),
            users=users_of(self.root, self.place_of, name, progress) if users else BranchUsers(),
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
        return commit(self.place_of(name), transaction, options)

    def _end_interrupted(self, name: str, branch: Branch, uuid: str) -> None:
        """Complete a creation that was interrupted, if its record has been written.

        So no name without versions stays. To give up the name instead would be wrong while the
        interrupted request may still arrive; the Clone is committed once, however often.
        """
        path = branch_path(name)
        with suppress(LanceError):  # what is left then can be completed, as after a crash
            if self.root.exists(path) and bytes(self.root.read(path)) == branch.to_bytes():
                self._first_version(name, branch, uuid)

    def _release(self, name: str, branch: Branch, reason: LanceError) -> None:
        """Give up the claim on a name, if it is still ours; ``reason`` is why it is given up.

        Raises CommitStateUnknownError when that may not have worked: what is left can be completed.
        """
        path = branch_path(name)
        try:
            if bytes(self.root.read(path)) == branch.to_bytes():
                delete_record(self.root, path, f"the record of branch {name!r}")
        except ObjectNotFoundError:
            return
        except LanceError as error:
            fork = f"{branch.parent_branch or refs.MAIN}:{branch.parent_version}"
            raise CommitStateUnknownError(
                f"branch {name!r} has no version ({reason}), and its record may be left behind, "
                f"which makes it an unfinished branch ({error}): create it again from {fork} to "
                f"complete it, or remove it with branches.delete({name!r})"
            ) from reason

    def _finish(self, name: str, record: Branch, target: Target) -> Committed:
        """Complete a creation that was interrupted. Raises RefConflictError if it was not."""
        place = self.place_of(name)
        if place.slots.latest() is not None:
            raise RefConflictError(f"branch {name!r} already exists")
        uuid = _clone_uuid(record)
        same = (record.parent_branch, record.parent_version) == (target.branch, target.version)
        if not same or uuid is None or record.identifier[:-1] != self._identifier(target.branch):
            fork = f"{record.parent_branch or refs.MAIN}:{record.parent_version}"
            remedy = "" if uuid is None else f"create it again from {fork} to complete it, or "
            raise RefConflictError(
                f"branch {name!r} is unfinished: its creation from {fork} or its deletion was "
                f"interrupted, or is under way, and it cannot be created from "
                f"{target.branch or refs.MAIN}:{target.version} while its record is there; {remedy}"
                f"remove it with branches.delete({name!r}) first"
            )
        try:
            return self._clone(name, record, uuid)
        except DatasetAlreadyExistsError as error:
            raise RefConflictError(f"branch {name!r} already exists") from error

    def _identifier(self, branch: str | None) -> tuple[tuple[int, str], ...]:
        return () if branch is None else refs.read_branch(self.root, branch).identifier

    def _left_version(self, name: str, parent: CommitPlace, version: int) -> Committed | None:
        """Return the copy of a version that a creation left without a record; None: no versions.

        Raises RefConflictError for versions that are anything else.
        """
        place = self.place_of(name)
        manifest_names = place.slots.list_names()
        names = place.home.list_names(VERSIONS)
        if not manifest_names and all(file_name.startswith(_TEMPORARY) for file_name in names):
            return None  # of a creation that failed and could not remove its temporary file
        if [manifest_name.version for manifest_name in manifest_names] == [version]:
            copy = self._copy_at(name, parent, version)
            if copy is not None:
                return copy
        raise RefConflictError(
            f"the folder of branch {name!r} holds versions, but the branch has no record: it is "
            "being created, or an earlier creation or deletion was interrupted. If no program is "
            f"creating it, remove what is left with branches.delete({name!r}, force=True)"
        )

    def _copy_of_fork(self, name: str, parent: CommitPlace, branch: Branch) -> Committed | None:
        """Return the only version of a branch if it is a copy of where the branch starts."""
        numbers = [listed.version for listed in self.place_of(name).slots.list_names()]
        if numbers != [branch.parent_version]:
            return None
        return self._copy_at(name, parent, branch.parent_version)

    def _copy_at(self, name: str, parent: CommitPlace, version: int) -> Committed | None:
        """Return a version of a branch if it is a copy of the same version of ``parent``."""
        place = self.place_of(name)
        source = VersionSource(place.slots, place.locations)
        with suppress(LanceError):  # damaged: it is no copy
            source.head(version)
            parsed, transaction = source.load(version), source.transaction(version)
            if parsed.manifest.branch == name and _is_copy(
                transaction.operation, parent, version, name
            ):
                return Committed(parsed.manifest, parsed.indices, transaction)
        return None

    # --- looking ----------------------------------------------------------------------------------

    def _record_of(self, name: str) -> Branch | None:
        path = branch_path(name)
        try:
            return Branch.from_bytes(self.root.read(path), f"{self.root.uri}/{path}")
        except ObjectNotFoundError:  # nothing is listed: creating one branch reads no other
            return None

    def _alike(self, name: str) -> list[str]:
        names = refs.branch_names(self.root)
        return [other for other in names if other.casefold() == name.casefold()]

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
        entries = self.root.list_recursive(folder)
        return [entry for entry in entries if not entry.name.startswith(tuple(inner))]


def _deletion_order(path: str) -> tuple[int, int]:
    """Sort the files of a branch: the hint, the versions from the oldest on, all other files.

    So the newest version stays the newest until the branch has none.
    """
    folder, _, name = path.partition("/")
    if folder != VERSIONS:
        return 2, 0
    version = parse_manifest_name(name)
    return (0, 0) if version is None else (1, version.version)


def _clone_uuid(branch: Branch) -> str | None:
    """Return the id of the transaction that makes a branch's first version, None if unknown."""
    digits = branch.identifier[-1][1] if branch.identifier else ""
    return str(UUID(digits)) if re.fullmatch("[0-9a-f]{32}", digits) else None


def _is_copy(operation: object, parent: CommitPlace, version: int, name: str) -> bool:
    """Return whether an operation made branch ``name`` out of a version of ``parent``."""
    return (
        isinstance(operation, Clone)
        and operation.is_shallow
        and (operation.ref_version, operation.branch_name) == (version, name)
        and operation.ref_name == parent.branch
        and is_same_place(operation.ref_path, parent.home.uri)
    )


def clone_source(place: CommitPlace, version: int) -> VersionSource:
    """Return a source from which a Clone can load the version it starts from.

    Raises VersionNotFoundError.
    """
    source = VersionSource(place.slots, place.locations)
    source.load(version)
    return source


def target_of(session: Session, snapshot: Snapshot, reference: Ref | None) -> Target:
    """Return the branch and version that a reference means. Raises InvalidRefError."""
    if reference is None:
        return Target(snapshot.branch, snapshot.version)
    return resolve(session.root, reference, snapshot.branch)


def tag_writer(session: Session) -> TagWriter:
    """Return who changes the tags of a dataset."""
    return TagWriter(session.root, session.place)


def branch_writer(session: Session) -> BranchWriter:
    """Return who changes the branches of a dataset."""
    return BranchWriter(session.root, session.place)


def create_branch(
    session: Session, snapshot: Snapshot, name: str, reference: Ref | None
) -> Snapshot:
    """Create a branch and return its first version."""
    target = target_of(session, snapshot, reference)
    committed = branch_writer(session).create(name, target)
    return session.snapshot(committed.manifest, name)
