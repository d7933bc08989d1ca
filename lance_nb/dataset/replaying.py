"""Verbs that do a change once more, or undo it: cherry_pick, revert."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lance_nb.dataset import verbs
from lance_nb.dataset.opened import OpenedVersion

if TYPE_CHECKING:
    from typing import Unpack

    from lance_nb.dataset.verbs.merge_options import ChangeWishes
    from lance_nb.dataset.verbs.merge_plan import MergePlan
    from lance_nb.table.refs import Ref

Progress = Callable[[int, int], object]


class Replaying(OpenedVersion):
    """One change of some version, done or undone here. pylance has neither."""

    def cherry_pick(
        self,
        version: Ref,
        *,
        dry_run: bool = False,
        message: str | None = None,
        progress: Progress | None = None,
        **wishes: Unpack[ChangeWishes],
    ) -> MergePlan:
        """Do the change that made a version (7, ("dev", 7), a tag) on the newest version here.

        Wishes are those of ``branches.merge``, without ``strategy``. This object stands at the
        version that it made, unless ``dry_run``. Raises InvalidInputError if there is nothing to
        do, CommitConflictError if what the change touches has been changed here,
        VersionNotFoundError.
        """
        options = verbs.merge_options.options_of(**wishes)
        plan = verbs.merging.plan_pick(
            *self.opened, version, options, progress if dry_run else None
        )
        return self._done(plan, dry_run, message, progress)

    def revert(
        self,
        version: Ref,
        *,
        on_conflict: str = "fail",
        key: str | Sequence[str] | None = None,
        dry_run: bool = False,
        message: str | None = None,
        progress: Progress | None = None,
    ) -> MergePlan:
        """Undo the change that made a version, as a new version of this branch.

        Appended rows go, deleted rows live again, updated rows have their old values, columns go or
        come back, settings are as they were. What later versions did stays. Raises
        CommitConflictError if later versions changed the same rows, columns or settings (all are
        listed), InvalidInputError for a compaction, a first version, and what is undone already.
        """
        options = verbs.merge_options.options_of(on_conflict=on_conflict, key=key)
        plan = verbs.merging.plan_revert(
            *self.opened, version, options, progress if dry_run else None
        )
        return self._done(plan, dry_run, message, progress)

    def _done(
        self, plan: MergePlan, dry_run: bool, message: str | None, progress: Progress | None
    ) -> MergePlan:
        if dry_run:
            return plan
        made = plan.commit(message, progress=progress)
        self._snapshot = verbs.merging.newest(self._session, self._snapshot, made)
        return made
