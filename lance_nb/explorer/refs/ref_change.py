"""Changes of tags, branches and their notes, as values: what each does, and its inverse.

The tab of branches and tags makes a change at once, the stage when its card is committed, and the
log of operations undoes one by its inverse. A change says in ``label`` what it would do, in
``reason`` why it cannot be done now (empty if it can), and does it in ``run``.

A tag or note is changed only where it still is what was seen. Limits: the versions of a deleted
branch cannot be brought back; ``undo_of_branch_deletion`` says so.
"""

from __future__ import annotations

from lance_nb.code_lines import PYTHON_ONLY, Python, offered
from lance_nb.dataset import LanceDataset
from lance_nb.errors import LanceError, RefConflictError, RefNotFoundError
from lance_nb.explorer import text
from lance_nb.explorer.log.undo import NoUndo, Undo, Undone
from lance_nb.explorer.refs.ref_list import NOTE, Place
from lance_nb.explorer.refs.ref_preview import change_code
from lance_nb.value_classes import dataclass
from lance_nb.writing.branching import BranchDeletion
from lance_nb.writing.progress import Progress


@dataclass(frozen=True, slots=True)
class TagChange:
    """A tag goes from where it was seen to another version (None: it does not exist)."""

    name: str
    seen: Place | None
    place: Place | None

    @property
    def verb(self) -> str:
        """Return "create", "move" or "delete"."""
        return "delete" if self.place is None else "create" if self.seen is None else "move"

    @property
    def title(self) -> str:
        """Say what is done, without the version."""
        return f"{self.verb.capitalize()} tag {text.name(self.name)}"

    @property
    def label(self) -> str:
        """Say what it would do."""
        return (
            self.title if self.place is None else f"{self.title} at {text.ref_label(*self.place)}"
        )

    @property
    def inverse(self) -> TagChange:
        """The change that undoes it."""
        return TagChange(self.name, self.place, self.seen)

    def reason(self, dataset: LanceDataset) -> str:
        """Return why it cannot be done now; empty if it can."""
        tag = dataset.tags.list().get(self.name)
        now = None if tag is None else (tag.get("branch"), int(tag["version"]))
        if now != self.seen:
            return f"tag {text.name(self.name)} has changed since"
        return "" if self.place is None else _why_missing(dataset, self.place)

    def run(self, dataset: LanceDataset, progress: Progress) -> Undone:
        """Change the tag. Raises LanceError."""
        words = f"Tag {text.name(self.name)} "
        if self.place is None:
            dataset.tags.delete(self.name, expected=self.seen)
            words += "was deleted."
        elif self.seen is None:
            dataset.tags.create(self.name, self.place)
            words += f"was created at {text.ref_label(*self.place)}."
        else:
            dataset.tags.update(self.name, self.place, expected=self.seen)
            words += f"moved from {text.ref_label(*self.seen)} to {text.ref_label(*self.place)}."
        code = change_code(dataset, "tag", self.verb, name=self.name, place=self.place)
        return Undone(words, self.place, code, self.inverse)


@dataclass(frozen=True, slots=True)
class BranchChange:
    """A branch is created at a version, or one that started there is deleted."""

    name: str
    fork: Place
    creates: bool

    @property
    def title(self) -> str:
        """Say what is done, without the version."""
        return f"{'Create' if self.creates else 'Delete'} branch {text.name(self.name)}"

    @property
    def label(self) -> str:
        """Say what it would do."""
        return f"{self.title} at {text.ref_label(*self.fork)}" if self.creates else self.title

    @property
    def inverse(self) -> BranchChange:
        """The change that undoes it."""
        return BranchChange(self.name, self.fork, not self.creates)

    def reason(self, dataset: LanceDataset) -> str:
        """Return why it cannot be done now; empty if it can."""
        name, exists = text.name(self.name), self.name in dataset.branches.names()
        if self.creates:
            return f"a branch {name} exists again" if exists else _why_missing(dataset, self.fork)
        if not exists:
            return f"branch {name} no longer exists"
        own = _own_versions(dataset.branches.explain_delete(self.name, users=False), self.fork)
        return f"branch {name} has {text.plural(own, 'version')} of its own" if own else ""

    def run(self, dataset: LanceDataset, progress: Progress) -> Undone:
        """Create or delete it. Raises LanceError."""
        words, place = f"Branch {text.name(self.name)} was deleted.", self.fork
        if self.creates:
            created = dataset.create_branch(self.name, self.fork)
            words = f"Branch {text.name(self.name)} was created at {text.ref_label(*self.fork)}."
            place = self.name, created.version
        else:
            dataset.branches.delete(self.name, progress=progress)
        verb = "create" if self.creates else "delete"
        code = change_code(dataset, "branch", verb, name=self.name, place=self.fork)
        return Undone(words, place, code, self.inverse)


def undo_of_branch_deletion(deletion: BranchDeletion, fork: Place) -> Undo:
    """Return how the deletion of a branch is undone."""
    own = _own_versions(deletion, fork)
    if own:
        return NoUndo(f"{text.plural(own, 'version')} of the branch were deleted with it")
    return BranchChange(deletion.name, fork, creates=True)


def _own_versions(deletion: BranchDeletion, fork: Place) -> int:
    return sum(version > fork[1] for version in deletion.versions)


@dataclass(frozen=True, slots=True)
class NoteChange:
    """A note on a tag or branch is written in the place of the one that was seen."""

    kind: str
    name: str
    before: str
    after: str

    @property
    def title(self) -> str:
        """Say what is done."""
        return f"Write the note on {self.kind} {text.name(self.name)}"

    @property
    def label(self) -> str:
        """Say what it would do, as the inverse of a change."""
        return f"Write the former note on {self.kind} {text.name(self.name)}"

    def _metadata(self, dataset: LanceDataset) -> dict[str, str]:
        """Return the metadata around the note. Raises RefNotFoundError, RefConflictError."""
        owner = dataset.tags if self.kind == "tag" else dataset.branches
        records = owner.list()
        if self.name not in records:
            raise RefNotFoundError(self.kind, self.name, tuple(records))
        metadata = dict(records[self.name].get("metadata") or {})
        if metadata.pop(NOTE, "") != self.before:
            raise RefConflictError(
                f"the note on {self.kind} {self.name!r} was changed by another writer"
            )
        return metadata

    def reason(self, dataset: LanceDataset) -> str:
        """Return why it cannot be done now; empty if it can."""
        try:
            self._metadata(dataset)
        except RefNotFoundError:
            return f"{self.kind} {text.name(self.name)} no longer exists"
        except RefConflictError:
            return "the note has changed since"
        return ""

    def run(self, dataset: LanceDataset, progress: Progress) -> Undone:
        """Write it. Raises LanceError."""
        metadata = self._metadata(dataset) | ({NOTE: self.after} if self.after else {})
        owner = dataset.tags if self.kind == "tag" else dataset.branches
        owner.replace_metadata(self.name, metadata)
        noun = "tags" if self.kind == "tag" else "branches"
        opened = Python("lance_nb.dataset").call(dataset.uri)
        python = opened.attribute(f"{noun}.replace_metadata").call(self.name, metadata)
        words = f"The note on {self.kind} {text.name(self.name)} was saved."
        inverse = NoteChange(self.kind, self.name, self.after, self.before)
        return Undone(words, None, offered(python, PYTHON_ONLY), inverse)


def _why_missing(dataset: LanceDataset, place: Place) -> str:
    """Return why a version cannot be gone to; empty if it can."""
    try:
        dataset.checkout_version(place)
    except LanceError:
        return f"{text.ref_label(*place)} no longer exists"
    return ""
