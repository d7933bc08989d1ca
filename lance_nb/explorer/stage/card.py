"""A staged change as a card: what it would do, its state, its progress, and its outcome.

========== ==============================================================================
state      meaning
========== ==============================================================================
planned    large, or for Spark: its work is done when it is prepared or committed
ready      its files are written and its effect is known; nothing is committed
committed  done; ``version`` is the one it created, if it created one
unknown    the outcome of the commit is not known: check again
failed     a commit was refused: re-run it on the newest version, or remove it
========== ==============================================================================

A card of edits in the grid has a ``draft`` (see cell_draft.py). Its files are written when it is
prepared or committed. A newer version is met cell by cell: the draft is carried over to it, and a
conflict leaves the card failed until it is decided.

A card keeps the form it was made from, so that it can be re-run on a newer version.

Tags, branches and clean-ups are not part of a transaction: they are an ``Action`` (see actions.py).

What takes something away has a ``review`` (see act_review.py). An act whose review is final is done
only as it was shown: if the dataset has changed since, the card is made again, and its commit has
to be asked for again.

Work on an engine reports tasks, rows and bytes; other work reports steps done and in all. Both end
when the browser has cancelled: an engine asks ``is_stopped``, other work gets an exception.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.dataset.staging import Stage
from lance_nb.errors import (
    CancelledError,
    CommitConflictError,
    CommitStateUnknownError,
    ExpectationFailedError,
    InvalidInputError,
    LanceError,
)
from lance_nb.explorer.editing.cell_draft import CellDraft
from lance_nb.explorer.messages import Progress
from lance_nb.explorer.stage.act_review import (
    ActReview,
    joined,
    review_of_auto_cleanup,
    review_of_edit,
)
from lance_nb.explorer.stage.actions import ACTION_VERBS, Action, action_of
from lance_nb.explorer.stage.edit_execution import (
    BY_ROWS,
    LOCAL,
    SPARK,
    Placement,
    placement_of,
    plan_of,
    stage_of,
)
from lance_nb.explorer.stage.edit_forms import COORDINATES, EDITS, IN_CODE, EditForm
from lance_nb.explorer.stage.row_sources import Namespace
from lance_nb.value_classes import dataclass
from lance_nb.writing.stage_preview import Meeting, StagePreview

if TYPE_CHECKING:
    from lance_nb.dataset.checks.checking import StagedCheck
    from lance_nb.spark.plan import Plan


class RunProgress(Protocol):
    """How far a run on an engine is; see lance_nb.spark.background_jobs."""

    @property
    def phase(self) -> str: ...
    @property
    def engine(self) -> str: ...
    @property
    def num_done(self) -> int: ...
    @property
    def num_tasks(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def done_bytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Running:
    """A snapshot of running work, as a card shows it.

    ``counts_tasks``: ``done`` and ``total`` are tasks of an engine, known from the start.
    """

    title: str
    phase: str = "planning"
    engine: str = "local"
    done: int = 0
    total: int = 0
    rows: int = 0
    size_bytes: int = 0
    elapsed_s: float = 0.0
    counts_tasks: bool = False


_SHOWN_AGAIN = (
    "The dataset changed after this preview was made. Nothing was done; these are the consequences "
    "now."
)


def quiet(_done: int, _total: int) -> None:
    """Ignore progress."""


class ProgressReporter:
    """The progress of one running piece of work."""

    def __init__(self, title: str = "", progress: Progress = quiet) -> None:
        self._title = title
        self._progress = progress
        self._began = time.monotonic()
        self._stopped: CancelledError | None = None
        self.now = Running(title)

    def snapshot(self) -> Running:
        """Return the current progress; the elapsed time is that of the call."""
        return replace(self.now, elapsed_s=time.monotonic() - self._began)

    def phase(self, phase: str) -> None:
        """Begin another phase."""
        self.now = replace(self.now, phase=phase)
        self._report()

    def count(self, done: int, total: int) -> None:
        """Record steps. Raises CancelledError."""
        self._update(phase="running", done=done, total=total)
        self.check()

    def run(self, now: RunProgress) -> None:
        """Record the progress of a run; may be called from any thread, and never raises."""
        self._update(
            phase=now.phase, engine=now.engine or "local", done=now.num_done, total=now.num_tasks,
            rows=now.num_rows, size_bytes=now.done_bytes, counts_tasks=now.num_tasks > 0,
        )  # fmt: skip

    def is_stopped(self) -> bool:
        """Whether the work was cancelled."""
        self._report()
        return self._stopped is not None

    def check(self) -> None:
        """Raise CancelledError if the work was cancelled."""
        if self._stopped is not None:
            raise self._stopped

    def _update(self, **changes: Any) -> None:
        self.now = Running(self._title, elapsed_s=time.monotonic() - self._began, **changes)
        self._report()

    def _report(self) -> None:
        try:
            self._progress(self.now.done, self.now.total)
        except CancelledError as error:
            self._stopped = error


PLANNED, READY, COMMITTED = "planned", "ready", "committed"
UNKNOWN, FAILED = "unknown", "failed"


class Card:
    """A staged change; owns the files that it wrote until it is committed or discarded."""

    def __init__(self, dataset: LanceDataset, form: EditForm, namespace: Namespace) -> None:
        self.id = uuid.uuid4().hex[:12]
        self.dataset = dataset
        self.form = form
        self.message = ""
        self.state = READY
        self.where = Placement()
        self.stage: Stage | None = None
        self.action: Action | None = None
        self.draft: CellDraft | None = None
        self.review: ActReview | None = None
        self.is_outdated = False
        self.preview: StagePreview | None = None
        self.meetings: tuple[Meeting, ...] = ()
        self.checked_version = 0  # the newest version when the meetings were read
        self.check: StagedCheck | None = None
        self.check_problem = ""
        self._checked: tuple[Stage, int] | None = None  # what the check belongs to
        self.version: int | None = None
        self.done = ""
        self.notes: tuple[str, ...] = ()
        self.problem: LanceError | None = None
        self._namespace = namespace
        self._mark: tuple[Any, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether it can still be committed or discarded."""
        return self.state in (PLANNED, READY, FAILED)

    def prepare(self, reporter: ProgressReporter, *, run_large: bool = False) -> None:
        """Plan the edit, and execute it unless it is large and ``run_large`` is false.

        Raises LanceError.
        """
        if self.draft is not None:
            self._prepare_draft(self.draft, reporter, run_large=run_large)
            return
        if self.form.verb in ACTION_VERBS:
            self.action = action_of(self.dataset, self.form, reporter.count)
            self.review = self.action.review
            self._mark = self._dataset_mark()
            self.where = Placement(LOCAL, "runs in this process, and changes no rows")
            self.state = READY
            return
        self.where = placement_of(self.dataset, self.form, self._namespace)
        if self.where.is_put_off and not run_large:
            self.state = PLANNED
            return
        self.adopt(self._done(reporter))

    def _prepare_draft(
        self, draft: CellDraft, reporter: ProgressReporter, *, run_large: bool
    ) -> None:
        """Write the files of edits in the grid, on the newest version."""
        self.form = EditForm(EDITS, draft.form_args())
        self.where = Placement(LOCAL, "runs in this process")
        if not run_large:
            self.discard()
            self.stage = self.preview = self.problem = None
            self.meetings, self.review = (), None
            self.state = PLANNED
            return
        newest = self.dataset.checkout_version((self.dataset.branch, None))
        is_clear = draft.rebase(newest)
        self.dataset, self.form = draft.dataset, EditForm(EDITS, draft.form_args())
        if not is_clear:
            raise CommitConflictError(
                f"{draft.conflicts_with} has other values where these edits change something; "
                "nothing was committed. Decide the conflicts below"
            )
        self.adopt(newest.stage().edit(**draft.arguments(), progress=reporter.count))

    def edited(self) -> None:
        """Take note of a change of the draft: files that were written for it are deleted."""
        if self.draft is not None:
            self.dataset = self.draft.dataset
            self._prepare_draft(self.draft, ProgressReporter(), run_large=False)

    def _done(self, reporter: ProgressReporter) -> Stage:
        """Execute the edit where it is to run, and return it staged."""
        where, plan = self.where, None
        if where.name != LOCAL or self.form.verb not in BY_ROWS:
            plan = where.plan
            if self.form.verb == "upsert":  # now with its rows
                form = replace(self.form, engine=where.name)
                plan = plan_of(self.dataset, form, self._namespace)
        edits = [] if plan is None else self._run(plan, reporter)
        self.notes = ()
        if not edits:
            if plan is not None and self.form.verb in ("delete", "update"):
                self.notes = ("no row matches: a commit would change nothing",)
            return stage_of(self.dataset, self.form, self._namespace, reporter.count)
        return self.dataset.stage().include(*edits)

    def adopt(self, stage: Stage) -> None:
        """Take over a stage whose work is done, and preview what it would change."""
        checked = stage.newest_version()
        self.stage, self.preview = stage, stage.preview()
        self.checked_version = checked
        self.meetings = self.preview.meetings
        edit = review_of_edit(self.dataset, self.form, self.preview)
        self.review = joined(edit, review_of_auto_cleanup(self.dataset))
        self._mark = self._dataset_mark()
        self.state = READY

    def _run(self, plan: Plan, reporter: ProgressReporter) -> list[Any]:
        run_options: dict[str, Any] = {"engine": self.where.name}
        if self.where.name == SPARK:
            run_options["spark"] = spark.find_session(self._namespace)
        result = spark.run_edits(
            plan, progress=reporter.run, stop=reporter.is_stopped, **run_options
        )
        reporter.check()
        return plan.edits(result)

    def is_stale(self) -> bool:
        """Whether others have committed since the card was last compared with their commits."""
        if self.state not in (READY, FAILED) or self.stage is None:
            return False
        return self.stage.newest_version() != self.checked_version

    def refresh_meetings(self, progress: Progress = quiet) -> None:
        """Forecast a commit of the card anew; may run beside other work on it."""
        stage, state = self.stage, self.state
        if state not in (READY, FAILED) or stage is None:
            return
        newest = stage.newest_version()
        meetings = stage.meetings(progress=progress)
        if (self.stage, self.state) == (stage, state):
            self.meetings, self.checked_version = meetings, newest

    @property
    def needs_check(self) -> bool:
        """Whether the expectations were not evaluated yet on what the card would commit now."""
        if self.state not in (READY, FAILED) or self.stage is None or self.stage.state != "open":
            return False
        return self._checked != (self.stage, self.checked_version)

    def check_expectations(self, progress: Progress = quiet) -> None:
        """Evaluate the expectations on what the card would commit; may run beside other work."""
        stage = self.stage
        if stage is None or not self.needs_check:
            return
        mark = (stage, self.checked_version)
        check, problem = None, ""
        try:
            check = stage.check(progress=progress)
        except CancelledError:
            raise
        except LanceError as error:
            problem = str(error)
        if self.stage is stage:
            self.check, self.check_problem, self._checked = check, problem, mark

    def check_outdated(self) -> None:
        """Note whether the dataset has changed in a way that changes what the card would do."""
        if self.state == READY and self._is_pinned:
            self.is_outdated = self._dataset_mark() != self._mark

    @property
    def _is_final(self) -> bool:
        return self.review is not None and self.review.is_final

    @property
    def _is_pinned(self) -> bool:
        """Return whether other commits change what it does."""
        return self._is_final or (self.review is not None and self.review.is_empty)

    def _dataset_mark(self) -> tuple[Any, ...]:
        """Return what changes when a version, tag or branch comes or goes; from listings alone."""
        if not self._is_pinned:
            return ()
        dataset = self.dataset
        numbers = hash(tuple(dataset.version_numbers()))
        return numbers, dict(dataset.tags.marks()), dataset.branches.names()

    def _changed_meanwhile(self, reporter: ProgressReporter) -> bool:
        """Make the card again, and return whether its consequences are others now."""
        shown = self.review
        self._show_again(reporter)
        if self.review is None or shown is None or self.review.key != shown.key:
            return True
        self.notes = ()
        return False

    def _show_again(self, reporter: ProgressReporter) -> None:
        """Make the card again because the dataset has changed, and say so."""
        self.rerun(reporter)
        self.notes = (_SHOWN_AGAIN,)

    def commit(self, message: str | None, reporter: ProgressReporter, typed: str = "") -> None:
        """Commit the card; a failed commit is recorded in ``problem`` and ``state``.

        An act that is final is not done if its consequences have changed: the card is made again,
        and stays open. ``typed`` is the word that the review asks for. Raises LanceError if the
        commit cannot begin.
        """
        was_planned = self.state == PLANNED
        self.message = message or self.message
        if was_planned:
            try:
                self.prepare(reporter, run_large=True)
            except CommitConflictError as error:
                if self.draft is None:
                    raise
                self.fail(error)
                return
        if self.state not in (READY, UNKNOWN):
            raise InvalidInputError(f"this card is {self.state}: it cannot be committed")
        self.message = message or self.message
        if self.state == READY and self.review is not None:
            if was_planned and self._is_final:
                self.notes = ("Look at the consequences before you commit this.",)
                return
            if self.review.typed and typed != self.review.typed:
                raise InvalidInputError(
                    f"this cannot be undone: type {self.review.typed!r} to confirm it"
                )
        is_moved = self._is_pinned and self._dataset_mark() != self._mark
        if is_moved and self._changed_meanwhile(reporter):
            return
        reporter.phase("committing")
        if self.action is not None:
            try:
                self.done = self.action.run(reporter.count)
            except CommitConflictError:
                self._show_again(reporter)
                return
            self.state = COMMITTED
        elif self.stage is not None and self._starts_other_cleanup():
            self._show_again(reporter)
        elif self.stage is not None:
            self.commit_stage(self.stage, message)

    def _starts_other_cleanup(self) -> bool:
        """Return whether the clean-up after the commit is another one than was shown."""
        edit = review_of_edit(self.dataset, self.form, self.preview)
        now = joined(edit, review_of_auto_cleanup(self.dataset))
        is_final = now is not None and now.is_final
        if self.state != READY or not (is_final or self._is_final):
            return False
        return now is None or self.review is None or now.removed != self.review.removed

    def commit_stage(self, stage: Stage, message: str | None) -> None:
        """Commit the stage of this card, or one that it was joined to, and record the outcome."""
        try:
            self.land(stage.commit(message or self.message or None))
        except CommitStateUnknownError as error:
            self.fail(error, UNKNOWN)
        except ExpectationFailedError as error:
            self.problem = error  # nothing was offered to a commit: the card stays as it is
            self._checked = None
            self.check_expectations()
        except LanceError as error:
            self.fail(error)

    def land(self, version: int) -> None:
        """Record the version that contains the card."""
        self.state, self.version, self.problem = COMMITTED, version, None

    def fail(self, error: LanceError, state: str = FAILED) -> None:
        """Record a commit that failed, or whose outcome is unknown."""
        self.state, self.problem = state, error
        if state == FAILED:
            self.refresh_meetings()

    def look_again(self) -> None:
        """After an unknown outcome, check whether the commit is in the dataset."""
        if self.state != UNKNOWN or self.stage is None:
            raise InvalidInputError("the outcome of this card is already known")
        version = self.stage.look_again()
        if version is not None:
            self.land(version)

    def discard(self) -> int:
        """Discard the card and return the number of deleted files. Raises InvalidInputError."""
        if self.stage is None or self.stage.state != "open":
            return 0
        return self.stage.discard()

    def rerun(self, reporter: ProgressReporter) -> None:
        """Re-run the card on the newest version of its branch; it is unchanged if that fails."""
        if not self.is_open:
            raise InvalidInputError(f"this card is {self.state}: it cannot be re-run")
        if self.form.verb == IN_CODE:
            raise InvalidInputError("this was staged in code: run that code again")
        if self.form.verb == COORDINATES:
            raise InvalidInputError("these coordinates are of an older version: stage them again "
                                    "from the map")  # fmt: skip
        newest = self.dataset.checkout_version((self.dataset.branch, None))
        if self.draft is not None:
            self.discard()
            self.stage = self.preview = self.problem = None
            try:
                self._prepare_draft(self.draft, reporter, run_large=True)
            except CommitConflictError as error:
                self.fail(error)
            return
        anew = Card(newest, self.form, self._namespace)
        anew.prepare(reporter, run_large=self.state != PLANNED)
        self.discard()
        self.dataset, self.state, self.where = anew.dataset, anew.state, anew.where
        self.stage, self.action, self.preview = anew.stage, anew.action, anew.preview
        self.review, self._mark, self.is_outdated = anew.review, anew._mark, False
        self.meetings, self.notes, self.problem = anew.meetings, anew.notes, None
        self.checked_version = anew.checked_version
        self.check, self.check_problem, self._checked = None, "", None

    def move(self, engine: str, reporter: ProgressReporter) -> None:
        """Run the card on another engine; work that is done already is discarded."""
        self.form = EditForm(self.form.verb, self.form.args, engine)
        if self.is_open:
            self.discard()
            self.stage = self.preview = None
            self.prepare(reporter)
