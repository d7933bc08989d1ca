"""The tags and branches of a dataset, as pylance shows and changes them."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lance_nb.errors import InvalidInputError
from lance_nb.session.opened import VersionPart
from lance_nb.table import refs
from lance_nb.table.ref_grammar import resolve

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.dataset.reviews import Review, ReviewFolder
    from lance_nb.format.refs import Branch, Tag
    from lance_nb.merging.branch_merging import BranchComparison
    from lance_nb.merging.merge_plan import MergePlan, Resolve
    from lance_nb.session.session import Session
    from lance_nb.table.refs import Ref, Target
    from lance_nb.table.snapshot import Snapshot
    from lance_nb.writing.branching import BranchDeletion
    from lance_nb.writing.progress import Progress


class Tags(VersionPart):
    """Tags: names for versions. Created by ``LanceDataset.tags``.

    Examples:
        >>> ds.tags.create("first", 1)
        >>> lance_nb.dataset(uri, "first").version
        1
    """

    def list(self) -> dict[str, dict[str, Any]]:
        """Describe every tag by name; see ``Tag``. Raises CorruptFileError, StorageError.

        Examples:
            >>> ds.tags.create("first", 1)
            >>> {name: tag["version"] for name, tag in ds.tags.list().items()}
            {'first': 1}
        """
        return {name: _tag(tag) for name, tag in self._session.refs.tags().items()}

    def readable(self) -> dict[str, dict[str, Any]]:
        """Describe as ``list`` does, but leave out tags whose file is damaged. Not in pylance.

        Examples:
            >>> ds.tags.create("first", 1)
            >>> list(ds.tags.readable())
            ['first']
        """
        return {name: _tag(tag) for name, tag in self._session.refs.readable_tags().items()}

    def list_ordered(self, order: str | None = None) -> builtins.list[tuple[str, dict[str, Any]]]:
        """List (name, description) by version.

        Args:
            order: "desc" (the newest first, the default) or "asc".

        Raises InvalidInputError for another order.

        Examples:
            >>> ds.tags.create("first", 1)
            >>> [name for name, _ in ds.tags.list_ordered("asc")]
            ['first']
        """
        from lance_nb.transactions.ref_writer import ordered_tags

        tags = self._session.refs.tags()
        return [(name, _tag(tag)) for name, tag in ordered_tags(tags, order)]

    def names(self) -> builtins.list[str]:
        """List the names only; reads no tag. Not in pylance.

        Examples:
            >>> ds.tags.create("first", 1)
            >>> ds.tags.names()
            ['first']
        """
        return refs.tag_names(self._session.root)

    def marks(self) -> dict[str, str]:
        """Return by name a text that changes when the tag is moved; reads no tag. Not in pylance.

        Examples:
            >>> ds.tags.create("first", 1)
            >>> list(ds.tags.marks())
            ['first']
        """
        return self._session.refs.tag_marks()

    def get_version(self, tag: str) -> int:
        """Return the version that a tag points at.

        Args:
            tag: its name.

        Raises RefNotFoundError.

        Examples:
            >>> ds.tags.create("first", 1)
            >>> ds.tags.get_version("first")
            1
        """
        return refs.read_tag(self._session.root, tag).version

    def create(self, tag: str, reference: Ref | None = None) -> None:
        """Name a version.

        A name has letters, digits, ".", "-" and "_". With a tag whose name is not ASCII, whoever
        created it, pylance 14.0.2 cannot list tags, clean up or delete branches.

        Args:
            tag: the new name.
            reference: a version as for ``checkout_version``; the one that is open by default.

        Raises InvalidRefError, RefConflictError (the name is taken), VersionNotFoundError.

        Examples:
            >>> ds.tags.create("first")
            >>> ds.tags.names()
            ['first']
        """
        from lance_nb.writing import branching

        target = branching.target_of(self._session, self._snapshot, reference)
        branching.tag_writer(self._session).create(tag, target)

    def update(
        self, tag: str, reference: Ref | None = None, *, expected: Ref | None = None
    ) -> None:
        """Move a tag to another version.

        Args:
            tag: its name.
            reference: a version as for ``checkout_version``; the one that is open by default.
            expected: the version that the tag was seen at. Not in pylance.

        Raises RefNotFoundError, VersionNotFoundError, and RefConflictError if somebody has moved it
        since ``expected``.

        Examples:
            >>> ds.tags.create("stable")
            >>> ds.insert(rows)
            >>> ds.tags.update("stable", 2)
            >>> ds.tags.get_version("stable")
            2
        """
        from lance_nb.writing import branching

        target = branching.target_of(self._session, self._snapshot, reference)
        seen = self._expected(expected)
        branching.tag_writer(self._session).update(tag, target, seen)

    def delete(self, tag: str, *, expected: Ref | None = None) -> None:
        """Delete a tag; the version stays.

        Args:
            tag: its name.
            expected: as for ``update``.

        Raises RefNotFoundError, RefConflictError.

        Examples:
            >>> ds.tags.create("stable")
            >>> ds.tags.delete("stable")
            >>> ds.tags.names()
            []
        """
        from lance_nb.writing import branching

        branching.tag_writer(self._session).delete(tag, self._expected(expected))

    def _expected(self, reference: Ref | None) -> Target | None:
        from lance_nb.writing import branching

        match reference:
            case None:
                return None
            case (str() | None as branch, int() as version):
                # Compared with the record only: the branch may have been deleted.
                return refs.Target(None if branch == refs.MAIN else branch, version)
        return branching.target_of(self._session, self._snapshot, reference)

    def replace_metadata(self, tag: str, metadata: Mapping[str, str]) -> None:
        """Put new metadata in the place of a tag's.

        Args:
            tag: its name.
            metadata: all keys.

        Raises RefNotFoundError.

        Examples:
            >>> ds.tags.create("stable")
            >>> ds.tags.replace_metadata("stable", {"author": "ada"})
            >>> ds.tags.list()["stable"]["metadata"]
            {'author': 'ada'}
        """
        from lance_nb.writing import branching

        branching.tag_writer(self._session).replace_metadata(tag, metadata)


class Branches(VersionPart):
    """Branches: lines of history that started from some version of another one.

    Created by ``LanceDataset.branches``.

    Examples:
        >>> experiment = ds.create_branch("experiment")
        >>> experiment.insert(rows)
        >>> plan = ds.branches.merge("experiment")
        >>> ds.count_rows()
        12
    """

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        on_commit: Callable[[Snapshot], None],
        dataset_type: type[LanceDataset],
    ) -> None:
        super().__init__(session, snapshot)
        self._on_commit = on_commit
        self._dataset_type = dataset_type

    def list(self) -> dict[str, dict[str, Any]]:
        """Describe every branch by name; main has no entry. See ``Branch``.

        A branch that has a record and no version, because its creation or deletion was interrupted
        or is under way, has ``"is_unfinished": True`` in addition (ours). Creating it again from
        the same version completes it, ``delete`` removes it. Raises CorruptFileError, StorageError.

        Examples:
            >>> _ = ds.create_branch("experiment")
            >>> ds.branches.list()["experiment"]["parent_version"]
            1
        """
        return dict(self._described(self._session.refs.branches().items()))

    def list_ordered(self, order: str | None = None) -> builtins.list[tuple[str, dict[str, Any]]]:
        """List (name, description) by parent version.

        Args:
            order: "desc" (the newest first, the default) or "asc".

        Raises InvalidInputError for another order.

        Examples:
            >>> _ = ds.create_branch("experiment")
            >>> [name for name, _ in ds.branches.list_ordered("asc")]
            ['experiment']
        """
        from lance_nb.transactions.ref_writer import ordered_branches

        branches = self._session.refs.branches()
        return self._described(ordered_branches(branches, order))

    def _described(
        self, branches: Iterable[tuple[str, Branch]]
    ) -> builtins.list[tuple[str, dict[str, Any]]]:
        branches_by_name = dict(branches)
        unfinished = self._session.refs.unfinished(branches_by_name)
        return [
            (name, _branch(branch, is_unfinished=name in unfinished))
            for name, branch in branches_by_name.items()
        ]

    def names(self) -> builtins.list[str]:
        """List the names only; reads no branch. Not in pylance.

        Examples:
            >>> _ = ds.create_branch("experiment")
            >>> ds.branches.names()
            ['experiment']
        """
        return refs.branch_names(self._session.root)

    def delete(self, branch: str, *, force: bool = False, progress: Progress | None = None) -> None:
        """Delete a branch with all its versions.

        Tags that a merge made to keep files, and that nothing needs any more, go with it.

        Args:
            branch: its name.
            force: delete it although another branch or a tag depends on it. Not in pylance.
            progress: called with versions of other branches looked at, and all of them. Ours.

        Raises RefNotFoundError; RefConflictError while another branch or a tag depends on it.

        Examples:
            >>> _ = ds.create_branch("experiment")
            >>> ds.branches.delete("experiment")
            >>> ds.branches.names()
            []
        """
        from lance_nb.writing import branching
        from lance_nb.writing.pins import prune_pins

        writer = branching.branch_writer(self._session)
        writer.delete(branch, force=force, progress=progress)
        prune_pins(branching.tag_writer(self._session))

    def explain_delete(
        self, branch: str, *, users: bool = True, progress: Progress | None = None
    ) -> BranchDeletion:
        """Say what ``delete`` would take away, and who is in its way; deletes nothing. Ours.

        Args:
            branch: its name.
            users: find who reads its files, which reads the manifests of every other branch; else
                only the folder is listed.
            progress: as for ``delete``.

        Raises RefNotFoundError.

        Examples:
            >>> _ = ds.create_branch("experiment")
            >>> ds.branches.explain_delete("experiment").versions
            (1,)
        """
        from lance_nb.writing import branching

        writer = branching.branch_writer(self._session)
        return writer.explain_delete(branch, users=users, progress=progress)

    def review(self, branch: str, into: str | None = None) -> Review:
        """Open the review of a branch: what it changes, checks, and the discussion. Not in pylance.

        Args:
            branch: the branch to review.
            into: the branch that it would be merged into; the one that is open by default.

        Raises RefNotFoundError, InvalidInputError for the same branch twice.

        Examples:
            >>> _ = ds.create_branch("dev").delete("id = 5")
            >>> review = ds.branches.review("dev")
            >>> _ = review.comment("Why is row 5 gone?", author="ada")
            >>> review.diff.counts.rows_deleted, len(review.comments())
            (1, 1)
        """
        from lance_nb.dataset import reviews

        target = self._snapshot.branch if into is None else into
        names = [None if name in {None, refs.MAIN} else name for name in (branch, target)]
        if names[0] == names[1]:
            raise InvalidInputError(f"{branch!r} cannot be reviewed against itself: name another")
        dataset = self._dataset_type.from_opened(self._session, self._snapshot)
        source, merged = (dataset.checkout_version((name, None)) for name in names)
        return reviews.Review(source, merged)

    def reviews(self) -> builtins.list[ReviewFolder]:
        """List the branches that have comments, those that were deleted too. Not in pylance.

        Deleting a branch leaves its comments, and a new branch of the same name has none of them.

        Examples:
            >>> ds.branches.reviews()
            []
        """
        from lance_nb.dataset import reviews

        return reviews.list_reviews(self._session)

    def delete_review(self, branch: str, identifier: str) -> int:
        """Delete all comments of a branch; return how many. Not in pylance.

        Args:
            branch: its name.
            identifier: its unique id, as ``reviews`` lists it.

        Raises InvalidInputError, StorageError.

        Examples:
            >>> _ = ds.create_branch("dev")
            >>> review = ds.branches.review("dev")
            >>> _ = review.comment("No.", author="ada")
            >>> ds.branches.delete_review("dev", review.identifier)
            1
        """
        from lance_nb.dataset import reviews

        return reviews.delete_review(self._session, branch, identifier)

    def replace_metadata(self, branch: str, metadata: Mapping[str, str]) -> None:
        """Put new metadata in the place of a branch's.

        Args:
            branch: its name.
            metadata: all keys.

        Raises RefNotFoundError.

        Examples:
            >>> _ = ds.create_branch("experiment")
            >>> ds.branches.replace_metadata("experiment", {"author": "ada"})
            >>> ds.branches.list()["experiment"]["metadata"]
            {'author': 'ada'}
        """
        from lance_nb.writing import branching

        branching.branch_writer(self._session).replace_metadata(branch, metadata)

    def compare(
        self, source: Ref, into: str | None = None, *, progress: Progress | None = None
    ) -> BranchComparison:
        """Count the versions that a branch and another one do not have in common. Not in pylance.

        Args:
            source: a branch, a tag or ``(branch, version)``; "main" is main.
            into: the branch to compare with; the one that is open by default.
            progress: called with the versions read, and those known to be needed so far.

        Raises RefNotFoundError, VersionNotFoundError.

        Examples:
            >>> experiment = ds.create_branch("experiment")
            >>> experiment.insert(rows)
            >>> ds.branches.compare("experiment").ahead
            1
            >>> _ = ds.branches.merge("experiment")
            >>> ds.branches.compare("experiment").status
            'identical'
        """
        from lance_nb.merging import branch_merging
        from lance_nb.writing import branching

        origin = resolve(self._session.root, source, None)
        name = (self._snapshot.branch or refs.MAIN) if into is None else into
        target = branching.target_of(self._session, self._snapshot, (name, None))
        return branch_merging.compare_branches(self._session, origin, target, progress)

    def plan_merge(
        self,
        source: Ref,
        into: str | None = None,
        *,
        strategy: str = "auto",
        on_conflict: str = "fail",
        key: str | Sequence[str] | None = None,
        copy: bool = False,
        pin: bool = True,
        resolve: Resolve = None,
        progress: Progress | None = None,
    ) -> MergePlan:
        """Find out what ``merge`` would do; writes nothing. ``.commit()`` does it.

        Args:
            progress: called with the versions read, and those known to be needed so far.

        The other arguments are those of ``merge``. Raises RefNotFoundError, VersionNotFoundError,
        InvalidInputError.

        Examples:
            >>> experiment = ds.create_branch("experiment")
            >>> experiment.insert(rows)
            >>> ds.branches.plan_merge("experiment").num_rows_after
            12
        """
        from lance_nb.merging import branch_merging, merge_plan

        options = merge_plan.options_of(
            strategy=strategy,
            on_conflict=on_conflict,
            key=key,
            copy=copy,
            pin=pin,
            resolve=resolve,
        )
        branch = self._snapshot.branch
        plan = branch_merging.plan_branch(
            self._session, branch, source, into=into, options=options, progress=progress
        )
        return plan.followed_by(self._on_commit)

    def merge(
        self,
        source: Ref,
        into: str | None = None,
        *,
        squash: bool = True,
        dry_run: bool = False,
        message: str | None = None,
        strategy: str = "auto",
        on_conflict: str = "fail",
        key: str | Sequence[str] | None = None,
        copy: bool = False,
        pin: bool = True,
        resolve: Resolve = None,
        progress: Progress | None = None,
    ) -> MergePlan:
        """Bring what a branch did since it forked, or was merged last, into another branch.

        No data is copied: files of the source are read where they are. pylance has no merge, and
        reads what this one makes. Returns the plan, with the version that it made; a dataset that
        has the branch ``into`` open moves to it.

        Args:
            source: a branch, a tag or ``(branch, version)``; "main" is main.
            into: a branch; the one that is open by default.
            squash: make one version of all; else one per version of the source.
            dry_run: only plan.
            message: of the commit; "Merge dev:7 into main" by default, an empty text is none.
            strategy: "auto", "fast-forward" (refuse if ``into`` has moved) or "replay".
            on_conflict: where both sides changed the same: "fail", "ours" (``into`` stays) or
                "theirs" (the source is taken).
            key: columns that identify a row; else stable row ids or the unenforced primary key do.
            copy: copy the files, so that ``into`` stands alone.
            pin: tag the merged version ("merged-dev-7"), which keeps files that are not copied,
                also from cleaning and deleting by pylance, which does not know that they are read.
                A clean-up and the end of a branch delete the tag once no version reads the files.
            resolve: choices for the cells that both sides changed; what only one side changed is
                taken from there, cell by cell. "ours", "theirs", "base", or a list of
                ``CellChoice`` or of their texts: ``"price=ours"`` for a column, ``"12.=theirs"``
                for the row with key 12, ``"12.price=base"`` and ``"12.price:=9.5"`` for a cell. The
                narrower choice counts; without one for each cell nothing is merged.
            progress: called with what is done and what there is to do.

        Raises CommitConflictError (nothing was changed), RefNotFoundError, VersionNotFoundError,
        InvalidInputError, TooMuchWriteContentionError, StorageError.

        Examples:
            >>> experiment = ds.create_branch("experiment")
            >>> experiment.insert(rows)
            >>> ds.branches.merge("experiment").num_rows_after
            12
        """
        from lance_nb.merging import branch_merging

        plan = self.plan_merge(
            source,
            into,
            strategy=strategy,
            on_conflict=on_conflict,
            key=key,
            copy=copy,
            pin=pin,
            resolve=resolve,
            progress=progress if dry_run else None,
        )
        if dry_run:
            return plan
        if squash:
            return plan.commit(message, progress=progress)
        return branch_merging.merge_one_by_one(
            self._session, plan, message=message, progress=progress
        )


def _tag(tag: Tag) -> dict[str, Any]:
    return {
        "branch": tag.branch,
        "version": tag.version,
        "created_at": tag.created_at,
        "updated_at": tag.updated_at,
        "manifest_size": tag.manifest_size_bytes,
        "metadata": dict(tag.metadata),
    }


def _branch(branch: Branch, *, is_unfinished: bool) -> dict[str, Any]:
    return {
        "parent_branch": branch.parent_branch,
        "branch_identifier": list(branch.identifier),
        "parent_version": branch.parent_version,
        "create_at": branch.create_at,
        "manifest_size": branch.manifest_size_bytes,
        "metadata": dict(branch.metadata),
        **({"is_unfinished": True} if is_unfinished else {}),
    }
