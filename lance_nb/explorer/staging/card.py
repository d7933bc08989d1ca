"""A staged change as a card: what it would do, its state, and its outcome.

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

Limits: ``MAX_FILES`` files of a clean-up are listed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.engines import Plan, engines
from lance_nb.dataset.verbs.stage_preview import Meeting, StagePreview
from lance_nb.dataset.verbs.staging import Stage
from lance_nb.errors import CommitStateUnknownError, InvalidInputError, LanceError
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
from lance_nb.explorer.staging.progress import ProgressReporter
from lance_nb.explorer.staging.row_sources import Namespace

MAX_FILES = 200
ACTION_VERBS = ("tag", "branch", "cleanup")
PLANNED, READY, COMMITTED = "planned", "ready", "committed"
UNKNOWN, FAILED = "unknown", "failed"


@dataclass(frozen=True, slots=True)
class Action:
    """What would be done. ``run`` does it and says what was done, in one line."""

    lines: tuple[str, ...]
    run: Callable[[Progress], str]
    size_bytes: int = 0
    files: pa.Table | None = field(default=None, repr=False)


def action_of(dataset: LanceDataset, wish: EditForm, progress: Progress) -> Action:
    """Look at what a wish would do; nothing is changed. Raises LanceError."""
    if wish.verb == "cleanup":
        return _cleanup(dataset, wish.args, progress)
    return _tag(dataset, wish.args) if wish.verb == "tag" else _branch(dataset, wish.args, progress)


def _tag(dataset: LanceDataset, args: dict[str, Any]) -> Action:
    name, action = args["name"], args["action"]
    known = dataset.tags.list().get(name)
    if action == "create" and known is not None:
        raise InvalidInputError(f"tag {name!r} is there already: move it")
    if action != "create" and known is None:
        raise InvalidInputError(f"there is no tag {name!r}")
    seen = None if known is None else (known.get("branch"), int(known["version"]))
    was = "" if seen is None else text.ref_label(*seen)
    if action == "delete":

        def delete(_: Progress) -> str:
            dataset.tags.delete(name, expected=seen)
            return f"tag {text.name(name)} is gone"

        kept = f"{was} stays, and the next clean-up may take it"
        return Action((f"tag {text.name(name)} on {was} goes", kept), delete)
    target = refs.resolve(dataset, args["ref"]) if "ref" in args else dataset
    place, label = (target.branch, target.version), text.ref_label(target.branch, target.version)

    def write(_: Progress) -> str:
        if seen is None:
            dataset.tags.create(name, place)
        else:
            dataset.tags.update(name, place, expected=seen)
        return f"tag {text.name(name)} is on {label}"

    moved = f" (it was on {was})" if was else ""
    return Action((f"tag {text.name(name)} on {label}{moved}; no clean-up takes it then",), write)


def _branch(dataset: LanceDataset, args: dict[str, Any], progress: Progress) -> Action:
    name = args["name"]
    if args["action"] == "delete":
        going = dataset.branches.explain_delete(name, progress=progress)
        lines = tuple(text.line(one) for one in str(going).splitlines())

        def delete(told: Progress) -> str:
            dataset.branches.delete(name, progress=told)
            return f"branch {text.name(name)} is gone"

        return Action(lines, delete, going.size_bytes)
    if name in dataset.branches.names():
        raise InvalidInputError(f"there is a branch {name!r} already")
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
        raise InvalidInputError("older than a hundred years is nothing")
    rules: dict[str, Any] = {
        "older_than": None if days is None else timedelta(days=days),
        "retain_versions": keep,
        "error_if_tagged_old_versions": False,
    }
    found = dataset.cleanup_old_versions(**rules, dry_run=True, progress=progress)
    stats = found.stats
    going = (
        f"{text.plural(stats.old_versions, 'version')} and "
        f"{text.plural(stats.data_files_removed, 'data file')} go, {text.size(stats.bytes_removed)}"
    )

    def run(told: Progress) -> str:
        done = dataset.cleanup_old_versions(**rules, progress=told)
        return (
            f"{text.plural(done.old_versions, 'version')} and "
            f"{text.plural(done.data_files_removed, 'data file')} are gone, "
            f"{text.size(done.bytes_removed)}"
        )

    lines = (going, *map(text.line, found.warnings))
    files = found.to_table().slice(0, MAX_FILES)
    sizes = [text.size(one) for one in files["size_bytes"].to_pylist()]
    shown = files.select(["reason", "path"]).append_column("size", pa.array(sizes, pa.string()))
    return Action(lines, run, stats.bytes_removed, shown)


class Card:
    """A change on a deck; owns the files that it wrote until it is committed or discarded."""

    def __init__(self, dataset: LanceDataset, wish: EditForm, namespace: Namespace) -> None:
        self.id = uuid.uuid4().hex[:12]
        self.dataset = dataset
        self.wish = wish
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

    def prepare(self, teller: ProgressReporter, *, run_large: bool = False) -> None:
        """Plan it, and do its work unless that is large and not asked for. Raises LanceError."""
        if self.wish.verb in ACTION_VERBS:
            self.action = action_of(self.dataset, self.wish, teller.count)
            self.where = Placement(LOCAL, "files of names are changed, no data")
            self.state = READY
            return
        self.where = placement_of(self.dataset, self.wish, self._namespace)
        if self.where.is_put_off and not run_large:
            self.state = PLANNED
            return
        self.adopt(self._done(teller))

    def _done(self, teller: ProgressReporter) -> Stage:
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

    def _run(self, plan: Plan, teller: ProgressReporter) -> list[Any]:
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

    def commit(self, message: str | None, teller: ProgressReporter) -> None:
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

    def rerun(self, teller: ProgressReporter) -> None:
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

    def move(self, engine: str, teller: ProgressReporter) -> None:
        """Have it run elsewhere; what was done already is thrown away."""
        self.wish = EditForm(self.wish.verb, self.wish.args, engine)
        if self.is_open:
            self.discard()
            self.stage = self.preview = None
            self.prepare(teller)
