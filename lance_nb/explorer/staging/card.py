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

A card keeps the form it was made from, so that it can be re-run on a newer version.

Tags, branches and clean-ups are not part of a transaction: they are an ``Action``, which says what
it would do (``lines``, and ``files`` of a clean-up) and does it when its card is committed. A tag
is changed only if it still is where it was when it was staged.

Work on an engine reports tasks, rows and bytes; other work reports steps done and in all. Both end
when the browser has cancelled: an engine asks ``is_stopped``, other work gets an exception.

Limits: ``MAX_FILES`` files of a clean-up are listed.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs.stage_preview import Meeting, StagePreview
from lance_nb.dataset.verbs.staging import Stage
from lance_nb.errors import CancelledError, CommitStateUnknownError, InvalidInputError, LanceError
from lance_nb.explorer.messages import Progress
from lance_nb.explorer.models import refs, text
from lance_nb.explorer.staging.edit_execution import (
    BY_ROWS,
    LOCAL,
    SPARK,
    Placement,
    placement_of,
    plan_of,
    stage_of,
)
from lance_nb.explorer.staging.edit_forms import IN_CODE, EditForm
from lance_nb.explorer.staging.row_sources import Namespace

if TYPE_CHECKING:
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
    """A snapshot of running work, as a card shows it."""

    what: str
    phase: str = "planning"
    engine: str = "local"
    done: int = 0
    total: int = 0
    rows: int = 0
    size_bytes: int = 0
    elapsed_s: float = 0.0


def quiet(_done: int, _total: int) -> None:
    """Ignore progress."""


class ProgressReporter:
    """The progress of one running piece of work."""

    def __init__(self, what: str = "", progress: Progress = quiet) -> None:
        self._what = what
        self._progress = progress
        self._began = time.monotonic()
        self._stopped: CancelledError | None = None
        self.now = Running(what)

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
            rows=now.num_rows, size_bytes=now.done_bytes,
        )  # fmt: skip

    def is_stopped(self) -> bool:
        """Whether the work was cancelled."""
        self._report()
        return self._stopped is not None

    def check(self) -> None:
        """Raise CancelledError if the work was cancelled."""
        if self._stopped is not None:
            raise self._stopped

    def _update(self, **what: Any) -> None:
        self.now = Running(self._what, elapsed_s=time.monotonic() - self._began, **what)
        self._report()

    def _report(self) -> None:
        try:
            self._progress(self.now.done, self.now.total)
        except CancelledError as error:
            self._stopped = error


MAX_FILES = 200
ACTION_VERBS = ("tag", "branch", "cleanup")
PLANNED, READY, COMMITTED = "planned", "ready", "committed"
UNKNOWN, FAILED = "unknown", "failed"


@dataclass(frozen=True, slots=True)
class Action:
    """An operation with its effect. ``run`` does it and returns what was done, in one line."""

    lines: tuple[str, ...]
    run: Callable[[Progress], str]
    size_bytes: int = 0
    files: pa.Table | None = field(default=None, repr=False)


def action_of(dataset: LanceDataset, form: EditForm, progress: Progress) -> Action:
    """Return the action of a form; nothing is changed yet. Raises LanceError."""
    if form.verb == "cleanup":
        return _cleanup(dataset, form.args, progress)
    return _tag(dataset, form.args) if form.verb == "tag" else _branch(dataset, form.args, progress)


def _tag(dataset: LanceDataset, args: dict[str, Any]) -> Action:
    name, action = args["name"], args["action"]
    known = dataset.tags.list().get(name)
    if action == "create" and known is not None:
        raise InvalidInputError(f"tag {name!r} already exists: move it instead")
    if action != "create" and known is None:
        raise InvalidInputError(f"tag {name!r} does not exist")
    seen = None if known is None else (known.get("branch"), int(known["version"]))
    was = "" if seen is None else text.ref_label(*seen)
    if action == "delete":

        def delete(_: Progress) -> str:
            dataset.tags.delete(name, expected=seen)
            return f"tag {text.name(name)} was deleted"

        kept = f"{was} is kept, but the next clean-up may delete it"
        return Action((f"tag {text.name(name)} on {was} is deleted", kept), delete)
    target = refs.resolve(dataset, args["ref"]) if "ref" in args else dataset
    place, label = (target.branch, target.version), text.ref_label(target.branch, target.version)

    def write(_: Progress) -> str:
        if seen is None:
            dataset.tags.create(name, place)
        else:
            dataset.tags.update(name, place, expected=seen)
        return f"tag {text.name(name)} is on {label}"

    moved = f" (it was on {was})" if was else ""
    return Action((f"tag {text.name(name)} on {label}{moved}; clean-ups keep this version",), write)


def _branch(dataset: LanceDataset, args: dict[str, Any], progress: Progress) -> Action:
    name = args["name"]
    if args["action"] == "delete":
        going = dataset.branches.explain_delete(name, progress=progress)
        lines = tuple(text.line(one) for one in str(going).splitlines())

        def delete(report: Progress) -> str:
            dataset.branches.delete(name, progress=report)
            return f"branch {text.name(name)} was deleted"

        return Action(lines, delete, going.size_bytes)
    if name in dataset.branches.names():
        raise InvalidInputError(f"branch {name!r} already exists")
    target = refs.resolve(dataset, args["ref"]) if "ref" in args else dataset
    label = text.ref_label(target.branch, target.version)

    def create(_: Progress) -> str:
        made = dataset.create_branch(name, (target.branch, target.version))
        return (
            f"branch {text.name(name)} starts at {label}, as {text.ref_label(name, made.version)}"
        )

    return Action((f"branch {text.name(name)} from {label}; no data is copied",), create)


def _cleanup(dataset: LanceDataset, args: dict[str, Any], progress: Progress) -> Action:
    days, keep = args.get("older_than"), args.get("keep")
    if days is not None and days > 36_500:
        raise InvalidInputError("older_than must be at most 36,500 days")
    rules: dict[str, Any] = {
        "older_than": None if days is None else timedelta(days=days),
        "retain_versions": keep,
        "error_if_tagged_old_versions": False,
    }
    found = dataset.cleanup_old_versions(**rules, dry_run=True, progress=progress)
    stats = found.stats
    going = (
        f"{text.plural(stats.old_versions, 'version')} and "
        f"{text.plural(stats.data_files_removed, 'data file')} to delete, "
        f"{text.size(stats.bytes_removed)}"
    )

    def run(report: Progress) -> str:
        done = dataset.cleanup_old_versions(**rules, progress=report)
        return (
            f"{text.plural(done.old_versions, 'version')} and "
            f"{text.plural(done.data_files_removed, 'data file')} deleted, "
            f"{text.size(done.bytes_removed)}"
        )

    lines = (going, *map(text.line, found.warnings))
    files = found.to_table().slice(0, MAX_FILES)
    sizes = [text.size(one) for one in files["size_bytes"].to_pylist()]
    shown = files.select(["reason", "path"]).append_column("size", pa.array(sizes, pa.string()))
    return Action(lines, run, stats.bytes_removed, shown)


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

    def prepare(self, reporter: ProgressReporter, *, run_large: bool = False) -> None:
        """Plan the edit, and execute it unless it is large and ``run_large`` is false.

        Raises LanceError.
        """
        if self.form.verb in ACTION_VERBS:
            self.action = action_of(self.dataset, self.form, reporter.count)
            self.where = Placement(LOCAL, "changes refs or files, and writes no data")
            self.state = READY
            return
        self.where = placement_of(self.dataset, self.form, self._namespace)
        if self.where.is_put_off and not run_large:
            self.state = PLANNED
            return
        self.adopt(self._done(reporter))

    def _done(self, reporter: ProgressReporter) -> Stage:
        """Execute the edit where it is to run, and return it staged."""
        where, plan = self.where, None
        if where.name != LOCAL or self.form.verb not in BY_ROWS:
            plan = where.plan
            if self.form.verb == "upsert":  # now with its rows
                there = replace(self.form, engine=where.name)
                plan = plan_of(self.dataset, there, self._namespace)
        edits = [] if plan is None else self._run(plan, reporter)
        self.notes = ()
        if not edits:
            if plan is not None and self.form.verb in ("delete", "update"):
                self.notes = ("no row matches: a commit would change nothing",)
            return stage_of(self.dataset, self.form, self._namespace, reporter.count)
        return self.dataset.stage().include(*edits)

    def adopt(self, stage: Stage) -> None:
        """Take over a stage whose work is done, and preview what it would change."""
        self.stage, self.preview = stage, stage.preview()
        self.meetings = self.preview.meetings
        self.state = READY

    def _run(self, plan: Plan, reporter: ProgressReporter) -> list[Any]:
        how: dict[str, Any] = {"engine": self.where.name}
        if self.where.name == SPARK:
            how["spark"] = spark.find_session(self._namespace)
        found = spark.run_edits(plan, progress=reporter.run, stop=reporter.is_stopped, **how)
        reporter.check()
        return plan.edits(found)

    def look(self) -> None:
        """Read again what others have committed since the card was made."""
        if self.state in (READY, FAILED) and self.stage is not None:
            self.meetings = self.stage.meetings()

    def commit(self, message: str | None, reporter: ProgressReporter) -> None:
        """Commit the card; a failed commit is recorded in ``problem`` and ``state``.

        Raises LanceError if the commit cannot begin.
        """
        if self.state == PLANNED:
            self.prepare(reporter, run_large=True)
        if self.state not in (READY, UNKNOWN):
            raise InvalidInputError(f"this card is {self.state}: it cannot be committed")
        self.message = message or self.message
        reporter.phase("committing")
        if self.action is not None:
            self.done = self.action.run(reporter.count)
            self.state = COMMITTED
        elif self.stage is not None:
            self.commit_stage(self.stage, message)

    def commit_stage(self, stage: Stage, message: str | None) -> None:
        """Commit the stage of this card, or one that it was joined to, and record the outcome."""
        try:
            self.land(stage.commit(message or self.message or None))
        except CommitStateUnknownError as error:
            self.fail(error, UNKNOWN)
        except LanceError as error:
            self.fail(error)

    def land(self, version: int) -> None:
        """Record the version that contains the card."""
        self.state, self.version, self.problem = COMMITTED, version, None

    def fail(self, error: LanceError, state: str = FAILED) -> None:
        """Record a commit that failed, or whose outcome is unknown."""
        self.state, self.problem = state, error
        if self.stage is not None and state == FAILED:
            self.meetings = self.stage.meetings()

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
        newest = self.dataset.checkout_version((self.dataset.branch, None))
        anew = Card(newest, self.form, self._namespace)
        anew.prepare(reporter, run_large=self.state != PLANNED)
        self.discard()
        self.dataset, self.state, self.where = anew.dataset, anew.state, anew.where
        self.stage, self.action, self.preview = anew.stage, anew.action, anew.preview
        self.meetings, self.notes, self.problem = anew.meetings, anew.notes, None

    def move(self, engine: str, reporter: ProgressReporter) -> None:
        """Run the card on another engine; work that is done already is discarded."""
        self.form = EditForm(self.form.verb, self.form.args, engine)
        if self.is_open:
            self.discard()
            self.stage = self.preview = None
            self.prepare(reporter)
