"""The clean-up simulator on the timeline: a retention rule, and what it would remove.

Its ES module is ``retention.js``, loaded when the control is opened. Requests:

================ =================================== ==========================================
request          args                                result
================ =================================== ==========================================
retention.open   branch (long work)                  models.retention_preview
retention.move   keep, days, drop_tags               models.retention_preview, ``code``
retention.files  keep, days, drop_tags, version      models.retention_preview
================ =================================== ==========================================

``keep`` and ``days`` are null for no such rule. ``retention.open`` reads the manifests of all
versions; the other requests read nothing, so that they follow a control that is moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from lance_nb.errors import InvalidInputError
from lance_nb.explorer import version_refs as refs
from lance_nb.explorer.messages import Answer, Job, Progress, integer, words
from lance_nb.explorer.retention.retention_preview import (
    retention_files,
    retention_move,
    retention_state,
)
from lance_nb.explorer.session import MAX_COUNT, RequestHandlers, Session
from lance_nb.explorer.source import stored_source
from lance_nb.explorer.stage.card_view import stage_code
from lance_nb.explorer.stage.edit_forms import EditForm
from lance_nb.table.retention_simulation import RetentionRule, RetentionSimulator

MAX_DAYS = 36_500
MAX_TAGS = 100


class RetentionHandlers(RequestHandlers):
    """Handlers of the simulator; keep the references of all versions between requests."""

    prefix: ClassVar[str] = "retention"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._simulator: RetentionSimulator | None = None

    def on_open(self, args: Mapping[str, Any]) -> Job:
        """Read all manifests, and return what the control offers."""
        branch = None if args.get("branch") is None else words(args, "branch", refs.MAX_CHARS)
        dataset = stored_source(self.session.dataset)

        def work(progress: Progress) -> Answer:
            space = dataset.space(progress=progress)
            self._simulator = space.simulator(branch)
            return Answer(retention_state(self._simulator, len(space.damaged)))

        return Job(work)

    def on_move(self, args: Mapping[str, Any]) -> Answer:
        """Simulate a rule."""
        simulator = self._opened()
        rule = _rule_of(args, simulator)
        days = None if rule.older_than is None else rule.older_than / timedelta(days=1)
        form = EditForm.of("cleanup", {"keep": rule.retain_versions, "older_than": days})
        return Answer({**retention_move(simulator, rule), "code": stage_code(form)})

    def on_files(self, args: Mapping[str, Any]) -> Answer:
        """Name who keeps the files of a version."""
        version = integer(args, "version", low=0, high=MAX_COUNT)
        simulator = self._opened()
        return Answer(retention_files(simulator, _rule_of(args, simulator), version))

    def _opened(self) -> RetentionSimulator:
        if self._simulator is None:
            raise InvalidInputError("open the clean-up simulator again: its survey is gone")
        return self._simulator


def _rule_of(args: Mapping[str, Any], simulator: RetentionSimulator) -> RetentionRule:
    keep = None if args.get("keep") is None else integer(args, "keep", low=1, high=MAX_COUNT)
    days, tags = args.get("days"), args.get("drop_tags", [])
    if days is not None and (
        isinstance(days, bool) or not isinstance(days, int | float) or not 0 <= days <= MAX_DAYS
    ):
        raise InvalidInputError(f"days must be a number from 0 to {MAX_DAYS:,}")
    if not isinstance(tags, list) or len(tags) > MAX_TAGS:
        raise InvalidInputError(f"drop_tags must be a list of up to {MAX_TAGS} tags")
    chosen_tags = frozenset(tag for tag in tags if isinstance(tag, str) and tag in simulator.tags)
    if keep is None and days is None:
        keep = max(1, len(simulator.numbers))
    return RetentionRule(keep, None if days is None else timedelta(days=days), chosen_tags)
