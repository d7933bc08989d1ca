"""How an act is undone: by the inverse change, by restoring a version, or by putting a ref back.

Each way says in ``label`` what it would do, in ``reason`` why it cannot be done now (empty if it
can), and does it in ``run``, which returns ``Undone``: what was done, the place to go to, the code,
and how that is undone in turn. Nothing is undone that has changed since: a version is restored only
while the version of the act is the newest, a ref is put back only where the act left it.

Limits: what a clean-up has removed, and the versions of a deleted branch, cannot be brought back;
``NoUndo`` says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from lance_nb.code_lines import PYTHON_ONLY, Python, magic, offered
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    CommitConflictError,
    InvalidInputError,
    LanceError,
    NotFoundError,
    NotSupportedError,
)
from lance_nb.explorer import text
from lance_nb.explorer.messages import Progress
from lance_nb.explorer.refs.ref_list import NOTE, Place
from lance_nb.explorer.refs.ref_preview import Code, change_code
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.merging.branch_merging import MergePlan


class Undo(Protocol):
    """One way to undo an act."""

    @property
    def label(self) -> str: ...
    def reason(self, dataset: LanceDataset) -> str: ...
    def run(self, dataset: LanceDataset, progress: Progress) -> Undone: ...


@dataclass(frozen=True, slots=True)
class Undone:
    """What was done to undo an act. ``version`` is the one that it created, if any."""

    words: str
    place: Place | None
    code: Code
    undo: Undo
    version: int | None = None


@dataclass(frozen=True, slots=True)
class NoUndo:
    """An act that cannot be undone."""

    why: str
    label: str = ""

    def reason(self, dataset: LanceDataset) -> str:
        """Return why not."""
        return self.why

    def run(self, dataset: LanceDataset, progress: Progress) -> Undone:
        """Refuse. Raises InvalidInputError."""
        raise InvalidInputError(self.why)


@dataclass(frozen=True, slots=True)
class RestoreUndo:
    """A version of a branch is undone: the rows, columns and settings before it are back.

    The inverse change is committed where it brings back everything: a merge of branches sees which
    rows it changed, and writers beside it are in its way only where they changed the same. Else the
    version before is restored, which replaces the whole content.
    """

    branch: str | None
    version: int
    action: str = ""

    @property
    def label(self) -> str:
        """Say what it would do."""
        return f"Restore {text.ref_label(self.branch, self.version - 1)}"

    def reason(self, dataset: LanceDataset) -> str:
        """Return why it cannot be done now; empty if it can."""
        try:
            newest = dataset.checkout_version((self.branch, None))
        except LanceError:
            return f"branch {text.name(self.branch or 'main')} no longer exists"
        before = text.ref_label(self.branch, self.version - 1)
        if newest.version != self.version:
            latest = text.ref_label(self.branch, newest.version)
            return f"{latest} is newer, and restoring {before} would undo it as well"
        numbers = newest.version_numbers()
        return "" if self.version - 1 in numbers else f"{before} was cleaned up"

    def run(self, dataset: LanceDataset, progress: Progress) -> Undone:
        """Commit the version before as a new one. Raises LanceError."""
        newest = dataset.checkout_version((self.branch, None))
        message = f"Undo version {self.version}" + (f": {self.action}" if self.action else "")
        restored = text.ref_label(self.branch, self.version - 1)
        opened = Python("ds")
        if self.branch is not None:
            opened = Python("ds.checkout_version").call((self.branch, None))
        plan = self._inverse(newest)
        if plan is not None:
            version = plan.commit(message, progress=progress).version or newest.version
            python = opened.attribute("revert").call(self.version, message=message)
            code = offered(python, magic("revert", str(self.version)))
        else:
            version = newest.stage().restore(self.version - 1).commit(message)
            python = opened.attribute("stage").call().attribute("restore").call(self.version - 1)
            code = offered(
                python.attribute("commit").call(message), magic("restore", str(self.version - 1))
            )
        place = self.branch, version
        words = f"{restored} was restored as {text.ref_label(*place)}."
        undo = RestoreUndo(self.branch, version, f"restore {restored}")
        return Undone(words, place, code, undo=undo, version=version)

    def _inverse(self, newest: LanceDataset) -> MergePlan | None:
        """Plan the inverse change; None if a restore brings back more.

        After the inverse of an overwrite both count as changes of everything, a restore undoes it.
        """
        if newest.version_info(self.version).operation == "Overwrite":
            return None
        try:
            plan = newest.revert(self.version, dry_run=True)
        except (InvalidInputError, CommitConflictError, NotSupportedError, NotFoundError):
            return None  # an overwrite, a compaction, another file version, a cleaned version
        return None if plan.conflicts or plan.notes else plan


@dataclass(frozen=True, slots=True)
class TagUndo:
    """A tag goes back to where it was before (None: it did not exist)."""

    name: str
    before: Place | None
    after: Place | None

    @property
    def label(self) -> str:
        """Say what it would do."""
        name = text.name(self.name)
        if self.before is None:
            return f"Delete tag {name}"
        verb = "Create" if self.after is None else "Move"
        return f"{verb} tag {name} at {text.ref_label(*self.before)}"

    def reason(self, dataset: LanceDataset) -> str:
        """Return why it cannot be done now; empty if it can."""
        tag_record = dataset.tags.list().get(self.name)
        now = None if tag_record is None else (tag_record.get("branch"), int(tag_record["version"]))
        if now != self.after:
            return f"tag {text.name(self.name)} has changed since"
        return "" if self.before is None else _why_not_there(dataset, self.before)

    def run(self, dataset: LanceDataset, progress: Progress) -> Undone:
        """Put the tag back. Raises LanceError."""
        tags, place = dataset.tags, self.before
        shown = text.name(self.name)
        if place is None:
            tags.delete(self.name, expected=self.after)
            verb, words = "delete", f"Tag {shown} was deleted."
        elif self.after is None:
            tags.create(self.name, place)
            verb, words = "create", f"Tag {shown} was created at {text.ref_label(*place)}."
        else:
            tags.update(self.name, place, expected=self.after)
            verb, words = "move", f"Tag {shown} was moved to {text.ref_label(*place)}."
        code = change_code(dataset, "tag", verb, name=self.name, place=place)
        return Undone(words, place, code, TagUndo(self.name, self.after, self.before))


@dataclass(frozen=True, slots=True)
class BranchUndo:
    """A branch that was created is deleted, one that was deleted is created where it started."""

    name: str
    fork: Place
    is_created: bool

    @property
    def label(self) -> str:
        """Say what it would do."""
        name = text.name(self.name)
        if self.is_created:
            return f"Delete branch {name}"
        return f"Create branch {name} at {text.ref_label(*self.fork)}"

    def reason(self, dataset: LanceDataset) -> str:
        """Return why it cannot be done now; empty if it can."""
        name = text.name(self.name)
        is_there = self.name in dataset.branches.names()
        if not self.is_created:
            taken = f"a branch {name} exists again"
            return taken if is_there else _why_not_there(dataset, self.fork)
        if not is_there:
            return f"branch {name} no longer exists"
        deletion = dataset.branches.explain_delete(self.name, users=False)
        own = [version for version in deletion.versions if version > self.fork[1]]
        return f"branch {name} has {text.plural(len(own), 'version')} of its own" if own else ""

    def run(self, dataset: LanceDataset, progress: Progress) -> Undone:
        """Delete or create it. Raises LanceError."""
        name = text.name(self.name)
        if self.is_created:
            place: Place | None = self.fork
            dataset.branches.delete(self.name, progress=progress)
            verb, words = "delete", f"Branch {name} was deleted."
        else:
            place = self.name, self.fork[1]
            dataset.create_branch(self.name, self.fork)
            verb, words = "create", f"Branch {name} starts at {text.ref_label(*self.fork)} again."
        code = change_code(dataset, "branch", verb, name=self.name, place=self.fork)
        again = BranchUndo(self.name, self.fork, not self.is_created)
        return Undone(words, place, code, again)


@dataclass(frozen=True, slots=True)
class NoteUndo:
    """A note on a tag or branch is what it was before."""

    kind: str
    name: str
    before: str
    after: str

    @property
    def label(self) -> str:
        """Say what it would do."""
        return f"Write the former note on {self.kind} {text.name(self.name)}"

    def _metadata(self, dataset: LanceDataset) -> dict[str, str] | None:
        owner = dataset.tags if self.kind == "tag" else dataset.branches
        record = owner.list().get(self.name)
        return None if record is None else dict(record.get("metadata") or {})

    def reason(self, dataset: LanceDataset) -> str:
        """Return why it cannot be done now; empty if it can."""
        metadata = self._metadata(dataset)
        if metadata is None:
            return f"{self.kind} {text.name(self.name)} no longer exists"
        return "" if metadata.get(NOTE, "") == self.after else "the note has changed since"

    def run(self, dataset: LanceDataset, progress: Progress) -> Undone:
        """Write it. Raises LanceError."""
        metadata = self._metadata(dataset) or {}
        remaining = {key: value for key, value in metadata.items() if key != NOTE}
        written = remaining | ({NOTE: self.before} if self.before else {})
        owner = dataset.tags if self.kind == "tag" else dataset.branches
        owner.replace_metadata(self.name, written)
        noun = "tags" if self.kind == "tag" else "branches"
        opened = Python("lance_nb.dataset").call(dataset.uri)
        python = opened.attribute(f"{noun}.replace_metadata").call(self.name, written)
        words = f"The former note on {self.kind} {text.name(self.name)} was written."
        again = NoteUndo(self.kind, self.name, self.after, self.before)
        return Undone(words, None, offered(python, PYTHON_ONLY), again)


def _why_not_there(dataset: LanceDataset, place: Place) -> str:
    """Return why a version cannot be gone to; empty if it can."""
    try:
        dataset.checkout_version(place)
    except LanceError:
        return f"{text.ref_label(*place)} no longer exists"
    return ""
