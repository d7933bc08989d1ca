"""Handlers of the requests to merge, cherry-pick and revert, for the view of branches.

============ ================================================ ==================================
request      args                                             result
============ ================================================ ==================================
refs.plan    kind (merge, cherry-pick, revert), source (a     models.merge_preview, with ``plan``
             ref), into (a branch or null), strategy,         (its number) and ``code``
             on_conflict, copy, key (long work)
refs.merge   plan, message (long work)                        see ``widgets.branches``
============ ================================================ ==================================

A plan is committed only while its target is still at the version it was planned for: what was shown
is what is done. Only the last plan is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs.branch_merging import MergePlan
from lance_nb.errors import CommitConflictError, InvalidInputError, RefNotFoundError
from lance_nb.explorer.messages import Answer, Job, Progress, integer, words
from lance_nb.explorer.models import refs, text
from lance_nb.explorer.models.merge_preview import merge_preview
from lance_nb.explorer.models.ref_changes import merge_code
from lance_nb.explorer.models.source import writable_dataset
from lance_nb.explorer.session import MAX_COUNT, RequestHandlers, Session

MAX_MESSAGE = 2000
MAX_KEYS = 500
KINDS = ("merge", "cherry-pick", "revert")
Place = tuple[str | None, int]


@dataclass(frozen=True, slots=True)
class MergeForm:
    """What is to be brought where, and how."""

    kind: str
    source: str
    into: str | None
    options: Mapping[str, Any]


class MergeHandlers(RequestHandlers):
    """Plans, and commits the last one."""

    requests: ClassVar[Mapping[str, str]] = {"refs.plan": "on_plan", "refs.merge": "on_merge"}

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._number = 0
        self._last: tuple[int, MergePlan, MergeForm] | None = None

    def on_plan(self, args: Mapping[str, Any]) -> Job:
        """Find out what it would do; nothing is written."""
        form = _form_of(args)
        dataset = writable_dataset(self.session.dataset)

        def work(progress: Progress) -> Answer:
            plan = _plan(dataset, form, progress)
            self._number += 1
            self._last = self._number, plan, form
            found = merge_preview(plan).to_json()
            code = _code(dataset, form, dry_run=True)
            return Answer({**found, "plan": self._number, "code": code})

        return Job(work)

    def on_merge(self, args: Mapping[str, Any]) -> Job:
        """Commit the plan that was shown."""
        self.session.check_unlocked()
        number = integer(args, "plan", low=0, high=MAX_COUNT)
        message = words(args, "message", MAX_MESSAGE).strip() or None
        if self._last is None or self._last[0] != number:
            raise InvalidInputError("a newer preview replaced this one; preview the change again")
        _, plan, form = self._last
        dataset = writable_dataset(self.session.dataset)

        def work(progress: Progress) -> Answer:
            _check_target(dataset, plan)
            made = plan.commit(message, progress=progress)
            self._last = None
            branch, version = made.target.branch, made.version or 0
            place = {"branch": branch, "version": version}
            shown = text.ref_label(branch, version)
            return Answer(
                {
                    "words": f"{shown} was created: {text.line(made.title, 300)}",
                    "place": place,
                    "code": _code(dataset, form, message=message),
                    "parts": self.session.parts_json(("timeline", "card")),
                }
            )

        return Job(work)


def _form_of(args: Mapping[str, Any]) -> MergeForm:
    kind = words(args, "kind", 20)
    if kind not in KINDS:
        raise InvalidInputError(f"kind must be one of {', '.join(KINDS)}")
    source = words(args, "source", refs.MAX_CHARS).strip()
    if not source:
        what = "branch" if kind == "merge" else "version"
        raise InvalidInputError(f"name the {what} to take changes from")
    into = None if args.get("into") is None else words(args, "into", refs.MAX_CHARS)
    key = words(args, "key", MAX_KEYS).strip()
    options: dict[str, Any] = {"on_conflict": words(args, "on_conflict", 20)}
    if key:
        options["key"] = [one.strip() for one in key.split(",")]
    if kind == "merge":
        options["strategy"] = words(args, "strategy", 20)
    if kind != "revert" and args.get("copy") is True:
        options["copy"] = True
    return MergeForm(kind, source, None if into == refs.MAIN else into, options)


def _plan(dataset: LanceDataset, form: MergeForm, progress: Progress) -> MergePlan:
    if form.kind == "merge":
        source = _source(dataset, form.source)
        into = form.into or refs.MAIN
        return dataset.branches.plan_merge(source, into, progress=progress, **form.options)
    target = writable_dataset(dataset.checkout_version((form.into, None)))
    place = _place(target, form.source)
    do = target.revert if form.kind == "revert" else target.cherry_pick
    return do(place, dry_run=True, progress=progress, **form.options)


def _source(dataset: LanceDataset, source: str) -> str | Place:
    """Return what to merge: the name of a branch stays one, anything else is a version."""
    if source == refs.MAIN or source in dataset.branches.names():
        return source
    branch, version = _place(dataset, source)
    return branch or refs.MAIN, version


def _place(dataset: LanceDataset, source: str) -> Place:
    found = refs.resolve(dataset, source)
    return found.branch, found.version


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
    return merge_code(
        dataset, form.kind, source, form.into, form.options, message=message, dry_run=dry_run
    )
