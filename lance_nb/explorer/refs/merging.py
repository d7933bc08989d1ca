"""Merges, cherry-picks and reverts: a preview, the table of cells in conflict, the commit.

Requests of the page ``refs/merge_page.js``; a ``source`` is a ref as people write it:

============= ================================================ =================================
request       args                                             result
============= ================================================ =================================
refs.plan     kind (merge, cherry-pick, revert), source (a     models.merge_preview.MergePreview,
              ref), into (a branch or null), strategy,         ``plan`` (its number), ``code``
              on_conflict, copy, key, choices (long work)
refs.cells    plan, first, count (long work)                   lines: models.merge_preview
refs.value    plan, column, text (null: no value)              shown, problem (why it is none)
refs.merge    plan, message (long work)                        words, place, code, parts
============= ================================================ =================================

``choices`` are ``{row, column, take, value}`` each: the row as JSON text and the column, null for
every one; ``take`` is base, ours, theirs or value.

Where both sides changed the same rows and no side is to count as a whole, the plan is made cell by
cell, if something identifies the rows. A plan is committed only while its target is still at the
version it was planned for: what was shown is what is done. Only the last plan is kept.

Limits: ``MAX_CHOICES`` choices, ``MAX_CELLS`` cells at a time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    CommitConflictError,
    InvalidInputError,
    NotSupportedError,
    RefNotFoundError,
)
from lance_nb.explorer import text
from lance_nb.explorer import version_refs as refs
from lance_nb.explorer.log.operations_log import operations_log_of
from lance_nb.explorer.log.undo import RestoreUndo
from lance_nb.explorer.messages import Answer, Handler, Job, Progress, integer, words
from lance_nb.explorer.refs.merge_preview import (
    Refusal,
    cell_lines,
    merge_code,
    merge_preview,
    shown_value,
)
from lance_nb.explorer.refs.ref_list import Place
from lance_nb.explorer.session import (
    MAX_COUNT,
    MAX_VALUE_CHARS,
    RequestHandlers,
    Session,
    read_choice,
)
from lance_nb.explorer.source import writable_dataset
from lance_nb.format.merge_record import FAST_FORWARD
from lance_nb.merging.choices import VALUE, CellChoice
from lance_nb.merging.conflicts import FAIL, KEYS, ROWS
from lance_nb.merging.merge_plan import MergePlan
from lance_nb.value_classes import dataclass
from lance_nb.writing.editing import hand_value

MAX_MESSAGE = 2000
MAX_KEYS = 500
MAX_CHOICES = 5000
MAX_CELLS = 200
_REPLACED = "a newer preview replaced this one; preview the change again"
MERGE_KINDS = ("merge", "cherry-pick", "revert")


@dataclass(frozen=True, slots=True)
class MergeForm:
    """A merge, cherry-pick or revert to do. ``choices`` is None while none was made."""

    kind: str
    source: str
    into: str | None
    options: Mapping[str, Any]
    choices: tuple[CellChoice, ...] | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """The options of the engine."""
        chosen = {} if self.choices is None else {"resolve": list(self.choices)}
        return {**self.options, **chosen}


@dataclass(frozen=True, slots=True)
class _Shown:
    """The plan that was shown last. ``since``: the first one of the same two versions in a row."""

    number: int
    plan: MergePlan
    form: MergeForm
    since: int

    def has_cells_of(self, plan: MergePlan, form: MergeForm) -> bool:
        """Whether another plan differs in nothing but what was chosen of the cells in conflict."""
        ends = [(compared.base, compared.source, compared.target) for compared in (self.plan, plan)]
        forms = [replace(compared, choices=None) for compared in (self.form, form)]
        return ends[0] == ends[1] and forms[0] == forms[1]


class MergeHandlers(RequestHandlers):
    """Plans, and commits the last one."""

    prefix: ClassVar[str] = "refs"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._number = 0
        self._last: _Shown | None = None

    def on_plan(self, args: Mapping[str, Any]) -> Job:
        """Find out what it would do; nothing is written."""
        dataset = writable_dataset(self.session.dataset)
        form = _form_of(args, self._last)

        def work(progress: Progress) -> Answer:
            plan, used, refusal = _planned(dataset, form, progress)
            self._number += 1
            since, last = self._number, self._last
            if last is not None and last.has_cells_of(plan, used):
                since = last.since
            self._last = _Shown(self._number, plan, used, since)
            preview = merge_preview(plan, refusal).to_json()
            code = _code(dataset, used, dry_run=True)
            return Answer({**preview, "plan": self._number, "code": code})

        return Job(work)

    def on_cells(self, args: Mapping[str, Any]) -> Job:
        """Read some cells in conflict."""
        cells = self._with_cells(args).plan.cells
        first = integer(args, "first", low=0, high=MAX_COUNT)
        count = integer(args, "count", low=1, high=MAX_CELLS)
        if cells is None:
            raise InvalidInputError("this preview has no table of cells")
        return Job(lambda _progress: Answer({"lines": cell_lines(cells, first, count)}))

    def on_value(self, args: Mapping[str, Any]) -> Answer:
        """Check a value that was written by hand."""
        plan, column = self._with_cells(args).plan, words(args, "column", MAX_VALUE_CHARS)
        written = None if args.get("text") is None else words(args, "text", MAX_VALUE_CHARS)
        try:
            value = hand_value(written, plan.schema_after.field(column))
        except InvalidInputError as error:
            return Answer({"shown": None, "problem": text.line(str(error), 300)})
        return Answer({"shown": shown_value(value[0]), "problem": ""})

    def on_merge(self, args: Mapping[str, Any]) -> Job:
        """Commit the plan that was shown."""
        self.session.check_unlocked()
        shown = self._shown(args)
        plan, form = shown.plan, shown.form
        message = words(args, "message", MAX_MESSAGE).strip()
        given_message = None if message == plan.message else message
        dataset = writable_dataset(self.session.dataset)

        def work(progress: Progress) -> Answer:
            _check_target(dataset, plan)
            result = plan.commit(message, progress=progress)
            self._last = None
            branch, version = result.target.branch, result.version or 0
            label = text.ref_label(branch, version)
            return Answer(
                {
                    "words": f"{label} was created: {text.line(result.title, 300)}",
                    "place": {"branch": branch, "version": version},
                    "code": _code(dataset, form, message=given_message),
                    "parts": self.session.parts_json(("timeline", "card")),
                }
            )

        return Job(work)

    def _shown(self, args: Mapping[str, Any]) -> _Shown:
        """Return the newest plan, which must be the one that was asked for."""
        last = self._with_cells(args)
        if last.number != args["plan"]:
            raise InvalidInputError(_REPLACED)
        return last

    def _with_cells(self, args: Mapping[str, Any]) -> _Shown:
        """Return the newest plan if it has the cells in conflict of the one that was asked for.

        While choices are checked, the browser does not know the number of the next plan yet.
        """
        number = integer(args, "plan", low=0, high=MAX_COUNT)
        if self._last is None or not self._last.since <= number <= self._last.number:
            raise InvalidInputError(_REPLACED)
        return self._last


def logged(session: Session, merge: Handler) -> Handler:
    """Return the handler of merges, with what it commits recorded in the log of operations."""

    def handle(args: Mapping[str, Any]) -> Answer | Job:
        job = merge(args)
        if not isinstance(job, Job):
            return job

        def work(progress: Progress) -> Answer:
            answer = job.work(progress)
            place = answer.result["place"]
            committed = place["branch"], place["version"]
            title = text.line(answer.result["words"].partition(": ")[2], 200)
            log = operations_log_of(session.dataset.uri)
            log.record(title, answer.result["code"], RestoreUndo(*committed, title), committed)
            return answer

        return Job(work)

    return handle


# --- forms ----------------------------------------------------------------------------------------


def _form_of(args: Mapping[str, Any], last: _Shown | None) -> MergeForm:
    kind = words(args, "kind", 20)
    if kind not in MERGE_KINDS:
        raise InvalidInputError(f"kind must be one of {', '.join(MERGE_KINDS)}")
    source = words(args, "source", refs.MAX_CHARS).strip()
    if not source:
        noun = "branch" if kind == "merge" else "version"
        raise InvalidInputError(f"name the {noun} to take changes from")
    into = None if args.get("into") is None else words(args, "into", refs.MAX_CHARS)
    key = words(args, "key", MAX_KEYS).strip()
    options: dict[str, Any] = {"on_conflict": words(args, "on_conflict", 20)}
    if key:
        options["key"] = [column.strip() for column in key.split(",")]
    if kind == "merge":
        options["strategy"] = words(args, "strategy", 20)
    if kind != "revert" and args.get("copy") is True:
        options["copy"] = True
    target = None if into == refs.MAIN else into
    return MergeForm(
        kind, source, target, options=options, choices=_choices(args.get("choices"), last)
    )


def _choices(choices: object, last: _Shown | None) -> tuple[CellChoice, ...] | None:
    if choices is None:
        return None
    if not isinstance(choices, list) or len(choices) > MAX_CHOICES:
        raise InvalidInputError(f"at most {MAX_CHOICES:,} choices: choose by column or for all")
    return tuple(_choice(choice, last) for choice in choices)


def _choice(request: object, last: _Shown | None) -> CellChoice:
    choice = read_choice(request, _row)
    if choice.take != VALUE or last is None or choice.column is None or choice.value is None:
        return choice
    return replace(choice, value=_typed(choice.value, choice.column, last.plan))


def _row(written: object) -> object:
    if not isinstance(written, str) or len(written) > MAX_VALUE_CHARS:
        raise InvalidInputError("row must be the text of a key or row id")
    try:
        row = json.loads(written)
    except ValueError as error:
        raise InvalidInputError(f"{written[:80]!r} is no row") from error
    return tuple(row) if isinstance(row, list) else row


def _typed(written: object, column: str, plan: MergePlan) -> object:
    """Return a value as Python writes it in a line of code: a number, a text; else its text."""
    value = hand_value(written, plan.schema_after.field(column))[0].as_py()
    return value if isinstance(value, bool | int | float | str) else written


# --- plans ----------------------------------------------------------------------------------------


def _planned(
    dataset: LanceDataset, form: MergeForm, progress: Progress
) -> tuple[MergePlan, MergeForm, Refusal | None]:
    """Plan, cell by cell where both sides changed rows; and say why not as it was asked for."""
    try:
        plan = _plan(dataset, form, progress)
    except CommitConflictError as error:
        if form.options.get("strategy") != FAST_FORWARD:
            raise
        auto = replace(form, options={**form.options, "strategy": "auto"})
        plan, used, _ = _planned(dataset, auto, progress)
        reason = text.line(str(error).partition(";")[0], 300)
        return plan, used, Refusal(reason, "Merge with a new version", {"strategy": "auto"})
    kinds = {conflict.kind for conflict in plan.unresolved}
    is_whole = form.options["on_conflict"] != FAIL
    if form.choices is not None or is_whole or not kinds & {ROWS, KEYS}:
        return plan, form, None
    by_cell = replace(form, choices=())
    try:
        return _plan(dataset, by_cell, progress), by_cell, None
    except (InvalidInputError, NotSupportedError):  # nothing identifies the rows: the plan says so
        return plan, form, None


def _plan(dataset: LanceDataset, form: MergeForm, progress: Progress) -> MergePlan:
    if form.kind == "merge":
        source = _source(dataset, form.source)
        into = form.into or refs.MAIN
        return dataset.branches.plan_merge(source, into, progress=progress, **form.arguments)
    target = writable_dataset(dataset.checkout_version((form.into, None)))
    place = _place(target, form.source)
    do = target.revert if form.kind == "revert" else target.cherry_pick
    return do(place, dry_run=True, progress=progress, **form.arguments)


def _source(dataset: LanceDataset, source: str) -> str | Place:
    """Return what to merge: the name of a branch stays one, anything else is a version."""
    if source == refs.MAIN or source in dataset.branches.names():
        return source
    branch, version = _place(dataset, source)
    return branch or refs.MAIN, version


def _place(dataset: LanceDataset, source: str) -> Place:
    resolved = dataset.checkout_version(source)
    return resolved.branch, resolved.version


def _check_target(dataset: LanceDataset, plan: MergePlan) -> None:
    """Raise CommitConflictError when somebody has committed since the preview."""
    try:
        now = dataset.checkout_version((plan.target.branch, None)).version
    except RefNotFoundError as error:
        raise CommitConflictError(f"nothing was changed: {error}") from error
    if now != plan.target.version:
        shown = text.ref_label(plan.target.branch, plan.target.version or 0)
        raise CommitConflictError(
            f"nothing was changed: version {now} was committed after this preview of {shown} was "
            "made; refresh the preview"
        )


def _code(
    dataset: LanceDataset, form: MergeForm, *, message: str | None = None, dry_run: bool = False
) -> dict[str, str]:
    source: str | Place = form.source
    if form.kind != "merge":
        source = _place(writable_dataset(dataset.checkout_version((form.into, None))), form.source)
    elif form.source != refs.MAIN and form.source not in dataset.branches.names():
        source = _source(dataset, form.source)
    settings = dict(form.options)
    if form.choices:
        settings["resolve"] = [str(choice) for choice in form.choices]
    return merge_code(
        dataset,
        form.kind,
        source,
        into=form.into,
        settings=settings,
        message=message,
        dry_run=dry_run,
    )
