"""One card: a change that is looked at before it happens, and what became of it.

========== ==============================================================================
state      means
========== ==============================================================================
planned    large, or for Spark: its work is done when it is prepared or committed
ready      its files are written, what it changes is known; nothing is committed
committed  done; ``version`` is the one it made, if it made one
unknown    nobody knows whether the commit landed: look again
failed     a commit was refused: re-run it on the newest version, or take it away
========== ==============================================================================

A card keeps what was wished, so that it can be made anew on a newer version.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.engines import Plan, engines
from lance_nb.dataset.verbs.stage_preview import Meeting, StagePreview
from lance_nb.dataset.verbs.staging import Stage
from lance_nb.errors import CommitStateUnknownError, InvalidInputError, LanceError
from lance_nb.explorer.staging.actions import NAMES, Action, action_of
from lance_nb.explorer.staging.edits import BY_ROWS, plan_of, stage_of
from lance_nb.explorer.staging.rows import Namespace
from lance_nb.explorer.staging.teller import Teller
from lance_nb.explorer.staging.where import LOCAL, SPARK, Where, where_of
from lance_nb.explorer.staging.wishes import IN_CODE, Wish

PLANNED, READY, COMMITTED = "planned", "ready", "committed"
UNKNOWN, FAILED = "unknown", "failed"


class Card:
    """A change on a deck; owns the files that it wrote until it is committed or discarded."""

    def __init__(self, dataset: LanceDataset, wish: Wish, namespace: Namespace) -> None:
        self.id = uuid.uuid4().hex[:12]
        self.dataset = dataset
        self.wish = wish
        self.message = ""
        self.state = READY
        self.where = Where()
        self.stage: Stage | None = None
        self.action: Action | None = None
        self.preview: StagePreview | None = None
        self.meetings: tuple[Meeting, ...] = ()
        self.version: int | None = None
        self.done = ""
        self.notes: tuple[str, ...] = ()
        self.problem: LanceError | None = None
        self._namespace = namespace

    @property
    def is_open(self) -> bool:
        """Whether it can still be committed or discarded."""
        return self.state in (PLANNED, READY, FAILED)

    def prepare(self, teller: Teller, *, run_large: bool = False) -> None:
        """Plan it, and do its work unless that is large and not asked for. Raises LanceError."""
        if self.wish.verb in NAMES:
            self.action = action_of(self.dataset, self.wish, teller.count)
            self.where = Where(LOCAL, "files of names are changed, no data")
            self.state = READY
            return
        self.where = where_of(self.dataset, self.wish, self._namespace)
        if self.where.is_put_off and not run_large:
            self.state = PLANNED
            return
        self.adopt(self._done(teller))

    def _done(self, teller: Teller) -> Stage:
        """Do the work where it is to run; return it staged."""
        where, plan = self.where, None
        if where.name != LOCAL or self.wish.verb not in BY_ROWS:
            plan = where.plan
            if self.wish.verb == "upsert":  # now with its rows
                there = replace(self.wish, engine=where.name)
                plan = plan_of(self.dataset, there, self._namespace)
        edits = [] if plan is None else self._run(plan, teller)
        self.notes = ()
        if not edits:
            if plan is not None and self.wish.verb in ("delete", "update"):
                self.notes = ("no row is concerned: a commit would change nothing",)
            return stage_of(self.dataset, self.wish, self._namespace, teller.count)
        return self.dataset.stage().include(*edits)

    def adopt(self, stage: Stage) -> None:
        """Take a stage whose work is done, and look at what it would change."""
        self.stage, self.preview = stage, stage.preview()
        self.meetings = self.preview.meetings
        self.state = READY

    def _run(self, plan: Plan, teller: Teller) -> list[Any]:
        how: dict[str, Any] = {"engine": self.where.name}
        if self.where.name == SPARK:
            how["spark"] = engines().find_session(self._namespace)
        found = engines().run_edits(plan, progress=teller.run, stop=teller.is_stopped, **how)
        teller.check()
        return plan.edits(found)

    def look(self) -> None:
        """Ask again what others have committed since it was made."""
        if self.state in (READY, FAILED) and self.stage is not None:
            self.meetings = self.stage.meetings()

    def commit(self, message: str | None, teller: Teller) -> None:
        """Commit it; what went wrong is in ``problem`` and ``state``. Raises before it began."""
        if self.state == PLANNED:
            self.prepare(teller, run_large=True)
        if self.state not in (READY, UNKNOWN):
            raise InvalidInputError(f"this card is {self.state}: it cannot be committed")
        self.message = message or self.message
        teller.phase("committing")
        if self.action is not None:
            self.done = self.action.run(teller.count)
            self.state = COMMITTED
        elif self.stage is not None:
            self.commit_stage(self.stage, message)

    def commit_stage(self, stage: Stage, message: str | None) -> None:
        """Commit the stage of this card, or one that it was joined to, and take note."""
        try:
            self.land(stage.commit(message or self.message or None))
        except CommitStateUnknownError as error:
            self.fail(error, UNKNOWN)
        except LanceError as error:
            self.fail(error)

    def land(self, version: int) -> None:
        """Take note that it is in a version."""
        self.state, self.version, self.problem = COMMITTED, version, None

    def fail(self, error: LanceError, state: str = FAILED) -> None:
        """Take note of a commit that did not land, or of which nobody knows."""
        self.state, self.problem = state, error
        if self.stage is not None and state == FAILED:
            self.meetings = self.stage.meetings()

    def look_again(self) -> None:
        """After an unknown outcome, look whether the commit landed."""
        if self.state != UNKNOWN or self.stage is None:
            raise InvalidInputError("the outcome of this card is known")
        version = self.stage.look_again()
        if version is not None:
            self.land(version)

    def discard(self) -> int:
        """Let go of it; return how many files were deleted. Raises InvalidInputError."""
        if self.stage is None or self.stage.state != "open":
            return 0
        return self.stage.discard()

    def rerun(self, teller: Teller) -> None:
        """Make it anew on the newest version of its branch; as it was when that fails."""
        if not self.is_open:
            raise InvalidInputError(f"this card is {self.state}: there is nothing to make anew")
        if self.wish.verb == IN_CODE:
            raise InvalidInputError("this was staged in code: run that code again")
        newest = self.dataset.checkout_version((self.dataset.branch, None))
        anew = Card(newest, self.wish, self._namespace)
        anew.prepare(teller, run_large=self.state != PLANNED)
        self.discard()
        self.dataset, self.state, self.where = anew.dataset, anew.state, anew.where
        self.stage, self.action, self.preview = anew.stage, anew.action, anew.preview
        self.meetings, self.notes, self.problem = anew.meetings, anew.notes, None

    def move(self, engine: str, teller: Teller) -> None:
        """Have it run elsewhere; what was done already is thrown away."""
        self.wish = Wish(self.wish.verb, self.wish.args, engine)
        if self.is_open:
            self.discard()
            self.stage = self.preview = None
            self.prepare(teller)
