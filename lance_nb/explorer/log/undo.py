"""How an act is undone: by the inverse change, or by restoring a version.

Each way says in ``label`` what it would do, in ``reason`` why it cannot be done now (empty if it
can), and does it in ``run``, which returns ``Undone``: what was done, the place to go to, the code,
and how that is undone in turn. Nothing is undone that has changed since: a version is restored only
while the version of the act is the newest, a ref is put back (``refs.ref_change``) only where the
act left it.

Limits: what a clean-up has removed cannot be brought back; ``NoUndo`` says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from lance_nb.code_lines import Python, magic, offered
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
from lance_nb.explorer.refs.ref_list import Place
from lance_nb.explorer.refs.ref_preview import Code
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.merging.merge_plan import MergePlan


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
