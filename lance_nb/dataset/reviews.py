"""ds.branches.review: a branch against its target; what it changes, and what people say about it.

A review compares the branch with the version that it would be merged on top of: the last common
version of both, so that what others did to the target is not shown as a change of the branch.

Comments, approvals and requests for changes are files of their own beside the refs
(format/reviews.py), written once. They need no commit and no lock, and change no version.

An approval is for the version of the branch that was looked at; ``is_approved`` asks for one of the
newest version, and for no later request for changes by the same author.

Limits: ``COMMENTS_MAX`` comments of a branch are read. An author is what the writer says, not
proof of identity: the store decides who may write.
Source: our own.
"""

from __future__ import annotations

import getpass
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lance_nb.dataset import display
from lance_nb.dataset.checks.result import CheckResult
from lance_nb.errors import (
    FormatError,
    InvalidInputError,
    LanceError,
    ObjectNotFoundError,
    RefNotFoundError,
    StorageError,
)
from lance_nb.format.expectations import ConfiguredExpectations
from lance_nb.format.reviews import (
    FOLDER,
    ReviewComment,
    is_comment_name,
    review_folder,
)
from lance_nb.session import provenance
from lance_nb.shown_text import visible
from lance_nb.storage.threads import run_all
from lance_nb.table import refs
from lance_nb.transactions.ref_writer import create_record, delete_record
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.dataset.checks.evaluation import Progress
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.session.session import Session
    from lance_nb.storage.base import Store
    from lance_nb.table.diff import Diff

COMMENTS_MAX = 10_000
MAIN = refs.MAIN


@dataclass(frozen=True, slots=True)
class ReviewFolder:
    """The comments of one branch, also of one that was deleted. ``is_deleted``: it was.

    Examples:
        >>> _ = ds.create_branch("dev")
        >>> _ = ds.branches.review("dev").approve("Ship it.", author="ada")
        >>> ds.branches.delete("dev")
        >>> [(one.branch, one.num_comments, one.is_deleted) for one in ds.branches.reviews()]
        [('dev', 1, True)]
    """

    branch: str
    identifier: str
    num_comments: int
    is_deleted: bool


class Review:
    """The review of a branch. Created by ``ds.branches.review``.

    Examples:
        >>> _ = ds.create_branch("dev").insert(rows)
        >>> review = ds.branches.review("dev")
        >>> review.diff.counts.rows_in
        2
        >>> _ = review.comment("Where do these rows come from?", author="ada")
        >>> [one.text for one in review.comments()]
        ['Where do these rows come from?']
    """

    def __init__(self, source: LanceDataset, target: LanceDataset) -> None:
        self.source = source
        self.target = target
        self._diff: Diff | None = None
        self._base: LanceDataset | None = None
        self._read: dict[str, ReviewComment] = {}  # comments never change
        self._problems: list[str] = []
        # Taken once: the branch may be deleted, and created again, while a review is open.
        self._identifier = identifier_of(source.opened[0], source.branch)

    @property
    def branch(self) -> str:
        """The branch that is reviewed.

        Examples:
            >>> _ = ds.create_branch("dev")
            >>> ds.branches.review("dev").branch
            'dev'
        """
        return self.source.branch or MAIN

    @property
    def into(self) -> str:
        """The branch that it would be merged into.

        Examples:
            >>> _ = ds.create_branch("dev")
            >>> ds.branches.review("dev").into
            'main'
        """
        return self.target.branch or MAIN

    @property
    def identifier(self) -> str:
        """The unique id of the branch, which a new branch of the same name does not have.

        Examples:
            >>> _ = ds.create_branch("dev")
            >>> len(ds.branches.review("dev").identifier)
            32
        """
        return self._identifier

    @property
    def diff(self) -> Diff:
        """What the branch changes since it forked, or was merged last.

        Raises InvalidInputError where the branches have no version in common.

        Examples:
            >>> _ = ds.create_branch("dev").delete("id = 5")
            >>> ds.branches.review("dev").diff.counts.rows_deleted
            1
        """
        if self._diff is None:
            self._diff = self.source.diff(self.base)
        return self._diff

    @property
    def base(self) -> LanceDataset:
        """The version that the branch is compared with: the last one that both have in common.

        Raises InvalidInputError where the branches have no version in common.

        Examples:
            >>> _ = ds.create_branch("dev").delete("id = 5")
            >>> ds.branches.review("dev").base.version
            1
        """
        if self._base is None:
            self._base = self._merge_base()
        return self._base

    def _merge_base(self) -> LanceDataset:
        branch, into = self.source.branch, self.target.branch
        try:
            plan = self.target.branches.plan_merge((branch, self.source.version), into)
        except LanceError:
            ancestor = self.source.diff(self.target).ancestor
            if ancestor is None:
                raise InvalidInputError(
                    f"{self.branch} and {self.into} have no version in common to compare with"
                ) from None
            return self.source.checkout_version((ancestor.branch, ancestor.version))
        return self.source.checkout_version((plan.base.branch, plan.base.version))

    @property
    def checks(self) -> CheckResult:
        """The expectations of the target, evaluated at the newest version of the branch.

        Examples:
            >>> _ = ds.create_branch("dev")
            >>> ds.branches.review("dev").checks.ok
            True
        """
        return self.check()

    def check(self, progress: Progress | None = None) -> CheckResult:
        """Evaluate the expectations of the target at the branch, as ``checks`` does.

        Args:
            progress: called with expectations evaluated and their number.

        Raises StorageError.

        Examples:
            >>> _ = ds.create_branch("dev")
            >>> ds.branches.review("dev").check().ok
            True
        """
        from lance_nb.dataset.checks.evaluation import Checker

        configured = ConfiguredExpectations.of(self.target.config())
        checker = Checker(self.source, configured=configured)
        try:
            return checker.evaluate(self.source, progress)
        finally:
            checker.save()

    # --- discussion -------------------------------------------------------------------------------

    def comment(
        self, text: str, *, reply_to: str | None = None, author: str | None = None
    ) -> ReviewComment:
        """Write a comment.

        Args:
            text: plain text.
            reply_to: the id of the comment that this one answers.
            author: the person of ``lance_nb.provenance``, or the user of the system, by default.

        Raises InvalidInputError, StorageError, CommitStateUnknownError.

        Examples:
            >>> _ = ds.create_branch("dev")
            >>> review = ds.branches.review("dev")
            >>> first = review.comment("Why?", author="ada")
            >>> review.comment("New camera.", reply_to=first.id, author="bob").reply_to == first.id
            True
        """
        return self._write("comment", text, reply_to, author)

    def approve(self, text: str = "", *, author: str | None = None) -> ReviewComment:
        """Approve the version of the branch that was open when the review was made.

        Args:
            text: a remark.
            author: as for ``comment``.

        Raises InvalidInputError, StorageError, CommitStateUnknownError.

        Examples:
            >>> _ = ds.create_branch("dev")
            >>> review = ds.branches.review("dev")
            >>> review.approve(author="ada").kind
            'approval'
            >>> review.is_approved
            True
        """
        return self._write("approval", text, None, author)

    def request_changes(self, text: str, *, author: str | None = None) -> ReviewComment:
        """Ask for changes; takes back an earlier approval of the same author.

        Args:
            text: what should change.
            author: as for ``comment``.

        Raises InvalidInputError, StorageError, CommitStateUnknownError.

        Examples:
            >>> _ = ds.create_branch("dev")
            >>> review = ds.branches.review("dev")
            >>> _ = review.approve(author="ada")
            >>> _ = review.request_changes("The labels are empty.", author="ada")
            >>> review.is_approved
            False
        """
        return self._write("changes-requested", text, None, author)

    def comments(self) -> list[ReviewComment]:
        """Read all comments and approvals, oldest first. Damaged ones are left out.

        Examples:
            >>> _ = ds.create_branch("dev")
            >>> ds.branches.review("dev").comments()
            []
        """
        entries = read_comments(self._session.root, self.branch, self.identifier, self._read)
        self._problems = [str(entry) for entry in entries if isinstance(entry, FormatError)]
        return [entry for entry in entries if isinstance(entry, ReviewComment)]

    @property
    def problems(self) -> list[str]:
        """Why comments were left out by the last call of ``comments``.

        Examples:
            >>> _ = ds.create_branch("dev")
            >>> ds.branches.review("dev").problems
            []
        """
        return list(self._problems)

    @property
    def is_approved(self) -> bool:
        """Whether somebody approved this version of the branch, and nobody asks for changes.

        Examples:
            >>> _ = ds.create_branch("dev")
            >>> ds.branches.review("dev").is_approved
            False
        """
        return is_approved(self.comments(), self.source.version)

    def _write(
        self, kind: str, text: str, reply_to: str | None, author: str | None
    ) -> ReviewComment:
        comment = ReviewComment(
            id=uuid.uuid4().hex,
            kind=kind,
            branch=self.branch,
            version=self.source.version,
            into=self.into,
            author=author or default_author(),
            created_at_ns=time.time_ns(),
            text=text,
            reply_to=reply_to,
        )
        return write_comment(self._session.root, comment, self.identifier)

    @property
    def _session(self) -> Session:
        return self.source.opened[0]

    # --- pages ------------------------------------------------------------------------------------

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the review as one HTML page, without scripts and without anything to load.

        For a pull request or a mail.

        Args:
            path: also write it there.

        Raises MissingPackageError without the packages of the notebook, StorageError.

        Examples:
            >>> _ = ds.create_branch("dev").delete("id = 5")
            >>> "Content-Security-Policy" in ds.branches.review("dev").to_html()
            True
        """
        page = display.review_html(self, whole=True)
        if path is not None:
            try:
                Path(path).write_text(page, "utf-8")
            except OSError as error:
                raise StorageError(str(path), error.strerror or str(error)) from error
        return page

    def _repr_html_(self) -> str:
        return display.review_html(self, whole=False)

    def __repr__(self) -> str:
        comments = self.comments()
        approved = is_approved(comments, self.source.version)
        return visible(
            f"<lance_nb.Review of {self.branch}:{self.source.version} into {self.into}, "
            f"{len(comments)} comment{'' if len(comments) == 1 else 's'}, "
            f"{'' if approved else 'not '}approved>"
        )


def is_approved(comments: Sequence[ReviewComment], version: int) -> bool:
    """Return whether a version is approved by the last word of each author, and nobody objects."""
    return not objects(comments) and any(
        comment.version == version
        for comment in _last_words(comments)
        if comment.kind == "approval"
    )


def objects(comments: Sequence[ReviewComment]) -> bool:
    """Return whether the last word of somebody asks for changes."""
    return any(comment.kind == "changes-requested" for comment in _last_words(comments))


def _last_words(comments: Sequence[ReviewComment]) -> list[ReviewComment]:
    """Return the newest approval or request for changes of each author."""
    return list(
        {comment.author: comment for comment in comments if comment.kind != "comment"}.values()
    )


def default_author() -> str:
    """Return who writes comments by default: the person of the provenance, or the user."""
    author = provenance.properties().get(provenance.AUTHOR)
    if author:
        return author
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"


def identifier_of(session: Session, branch: str | None) -> str:
    """Return the unique id of a branch; main has the id "main". Raises RefNotFoundError."""
    if branch is None:
        return MAIN
    branch_record = refs.read_branch(session.root, branch)
    return (
        branch_record.identifier[-1][1]
        if branch_record.identifier
        else str(branch_record.create_at)
    )


def write_comment(root: Store, comment: ReviewComment, identifier: str) -> ReviewComment:
    """Write a comment that no file exists for yet; its time moves on if one does."""
    folder = review_folder(comment.branch, identifier)
    stored_comment = replace(comment, text=storable_text(comment.text))
    create_record(
        root,
        f"{folder}/{stored_comment.file_name}",
        stored_comment.to_bytes(),
        f"comment {stored_comment.id}",
    )
    return stored_comment


def storable_text(text: str) -> str:
    """Return a text that any reader can store. Raises InvalidInputError for another type."""
    if not isinstance(text, str):
        raise InvalidInputError(f"a comment is a text, not {type(text).__name__}")
    return text.encode("utf-8", "replace").decode("utf-8")


def read_comments(
    root: Store, branch: str, identifier: str, cached: dict[str, ReviewComment] | None = None
) -> list[ReviewComment | FormatError]:
    """Read the comments of a branch, oldest first; what is damaged is its error.

    Comments in ``cached``, by path, are not read again; those that are read are added to it.
    """
    cached = {} if cached is None else cached
    folder = review_folder(branch, identifier)
    names = sorted(file_name for file_name in root.list_names(folder) if is_comment_name(file_name))
    paths = [f"{folder}/{file_name}" for file_name in names[-COMMENTS_MAX:]]
    missing = [path for path in paths if path not in cached]
    read = dict(
        zip(missing, run_all([partial(_read, root, path) for path in missing]), strict=True)
    )
    cached |= {
        path: comment for path, comment in read.items() if isinstance(comment, ReviewComment)
    }
    entries = (cached.get(path) or read[path] for path in paths)
    return [entry for entry in entries if entry is not None]


def _read(root: Store, path: str) -> ReviewComment | FormatError | None:
    try:
        return ReviewComment.from_bytes(root.read(path), path)
    except ObjectNotFoundError:
        return None  # removed with the review since the folder was listed
    except FormatError as error:
        return error


def list_reviews(session: Session) -> list[ReviewFolder]:
    """Return the branches that have comments, those that were deleted too."""
    counts: dict[tuple[str, str], int] = {}
    for entry in session.root.list_recursive(FOLDER):
        parts = entry.name.split("/")
        if len(parts) == 3 and is_comment_name(parts[2]):
            place = unquote(parts[0]), parts[1]
            counts[place] = counts.get(place, 0) + 1
    reviews = []
    for (branch, identifier), count in sorted(counts.items()):
        is_deleted = not _is_there(session, branch, identifier)
        reviews.append(ReviewFolder(branch, identifier, count, is_deleted))
    return reviews


def _is_there(session: Session, branch: str, identifier: str) -> bool:
    try:
        return identifier_of(session, None if branch == MAIN else branch) == identifier
    except (RefNotFoundError, LanceError):
        return False


def delete_review(session: Session, branch: str, identifier: str) -> int:
    """Delete the comments of a branch; return how many."""
    folder = review_folder(branch, identifier)
    names = [
        file_name for file_name in session.root.list_names(folder) if is_comment_name(file_name)
    ]
    return sum(
        delete_record(session.root, f"{folder}/{file_name}", f"comment {file_name}")
        for file_name in names
    )
