"""Expectations: marks of versions on the timeline, and the tab that edits, runs and bisects them.

The ES module of the tab is ``expectations.js``, that of the marks ``history/check_marks.js``. The
expectations are those of the newest version of a branch. Requests:

============== ================================== ============================================
request        args                               result
============== ================================== ============================================
checks.state   branch (long work)                 key, branch, version, expectations, problems,
                                                  gate, is_watched, columns
checks.marks   branch, numbers, read (long work)  key, marks: models.version_checks
checks.run     branch, version (long work)        outcomes, sentence, code
checks.bisect  branch, name, bad (long work)      sentence, first_bad, last_good, tried, outcome,
                                                  sample, code
checks.rows    branch, version, name (long work)  sample, outcome
checks.form    branch, kind, fields, name         problem, code
checks.add     branch, kind, fields, name (long   name, words, branch, version, code
               work)
checks.remove  branch, name (long work)           words, branch, version, code
checks.gate    branch, closed (long work)         words, branch, version, code
============== ================================== ============================================

``key`` changes whenever the expectations do: marks of another key are void. Marks are computed from
the cache by fragment. Without ``read``, at most ``UNASKED_BYTES`` bytes of data files per explorer
are read for them, and none from a store on the network; what would need more is "unchecked".
``is_watched``: all versions are looked at without being asked for, because the store is local and
their manifests are small (``WATCHED_FRAGMENTS`` fragments in all); else those in sight.

Nothing is written while the lock is shut.

Limits: ``MAX_NUMBERS`` versions of a request; ``MARKS_MAX`` marks are kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.checks.cache import digest
from lance_nb.dataset.checks.evaluation import Checker, check_usable
from lance_nb.errors import CancelledError, InvalidInputError, LanceError
from lance_nb.explorer import text
from lance_nb.explorer import version_refs as refs
from lance_nb.explorer.checks import version_checks as shown
from lance_nb.explorer.checks.picture import VIEW
from lance_nb.explorer.log.operations_log import operations_log_of
from lance_nb.explorer.log.undo import RestoreUndo
from lance_nb.explorer.messages import Answer, Handler, Job, Progress, integer, words
from lance_nb.explorer.picture_view import View
from lance_nb.explorer.schema_tree import type_label
from lance_nb.explorer.session import MAX_COUNT, RequestHandlers, Session, place_of
from lance_nb.explorer.source import writable_dataset
from lance_nb.explorer.static_rendering import StaticRendering, render_table
from lance_nb.explorer.widget import LanceWidget
from lance_nb.format.expectations import TEXT_CHARS_MAX, ConfiguredExpectations, Expectation
from lance_nb.value_classes import dataclass

MAX_NUMBERS = 64
MARKS_MAX = 20_000
UNASKED_BYTES = 16_000_000
WATCHED_FRAGMENTS = 50_000  # about 0.8 s of processor time
MAX_COLUMNS = 500
MAX_NAME = 200
LOCK_S = 0.1
NO_EXPECTATION = "there is no expectation of this name any more; refresh the list"
_LOCAL = frozenset({"file", "memory"})


@dataclass(frozen=True, slots=True)
class Watched:
    """The expectations of the newest version of a branch, and what evaluates them."""

    key: str
    newest: LanceDataset
    configured: ConfiguredExpectations
    checker: Checker


class CheckHandlers(RequestHandlers):
    """Handlers about expectations; keep the marks of versions between requests."""

    prefix: ClassVar[str] = "checks"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._watched: dict[str | None, Watched] = {}
        self._marks: OrderedDict[tuple[str, str | None, int], shown.Mark] = OrderedDict()
        self._unasked_bytes = 0
        self._lock = threading.Lock()  # a checker and its cache are not for several threads

    # --- looking ----------------------------------------------------------------------------------

    def on_state(self, args: Mapping[str, Any]) -> Job:
        """Return the expectations of a branch."""
        branch = _branch_of(args)

        def work(_progress: Progress) -> Answer:
            if not hasattr(self.session.dataset, "opened"):
                return Answer({"key": "", "branch": branch, "expectations": [], "problems": []})
            watched = self._newest(branch)
            dataset, configured = watched.newest, watched.configured
            return Answer(
                {
                    "key": watched.key,
                    "branch": branch,
                    "version": dataset.version,
                    "expectations": [
                        {"name": expectation.name, "kind": expectation.kind,
                         "statement": text.line(expectation.statement, shown.STATEMENT_CHARS)}
                        for expectation in configured.expectations.values()
                    ],
                    "problems": [
                        {"name": name, "label": text.name(name), "problem": text.line(problem)}
                        for name, problem in configured.problems.items()
                    ],
                    "gate": configured.is_gated,
                    "is_watched": _is_watched(dataset),
                    "columns": [
                        {"name": field.name, "label": text.name(field.name),
                         "type": type_label(field.type)}
                        for field in list(dataset.schema)[:MAX_COLUMNS]
                    ],
                }
            )  # fmt: skip

        return Job(work)

    def on_marks(self, args: Mapping[str, Any]) -> Job:
        """Evaluate the expectations at some versions, from the cache where possible."""
        branch, numbers = _branch_of(args), args.get("numbers")
        if not isinstance(numbers, list) or len(numbers) > MAX_NUMBERS:
            raise InvalidInputError(f"numbers must be a list of up to {MAX_NUMBERS} versions")
        numbers_asked = [integer({"n": number}, "n", low=0, high=MAX_COUNT) for number in numbers]
        is_asked = args.get("read") is True

        def work(progress: Progress) -> Answer:
            with self._alone(progress):
                watched = self._watched.get(branch) or self._newest(branch)
                marks = []
                try:
                    for done, number in enumerate(numbers_asked):
                        tick = partial(progress, done, len(numbers_asked))
                        tick()
                        marks.append(
                            self._mark(watched, branch, number, is_asked=is_asked, tick=tick)
                        )
                finally:
                    watched.checker.save()  # also what was found before it was cancelled
            return Answer({"key": watched.key, "marks": marks})

        return Job(work)

    def _mark(
        self,
        watched: Watched,
        branch: str | None,
        number: int,
        is_asked: bool,
        tick: Callable[[], object],
    ) -> shown.Mark:
        place = (watched.key, branch, number)
        if place in self._marks:
            return self._marks[place]
        try:
            dataset = watched.newest.checkout_version((branch, number))
            unread = 0 if is_asked else watched.checker.unread_bytes(dataset)
            is_free = dataset.opened[0].root.scheme in _LOCAL
            room = UNASKED_BYTES - self._unasked_bytes if is_free else 0
            if unread > room:
                size = text.size(unread)
                return number, "unchecked", f"not checked yet: {size} of files to look into"
            self._unasked_bytes += unread
            mark = shown.mark_of(watched.checker.evaluate(dataset, lambda *_: tick()))
        except CancelledError:
            raise
        except LanceError as error:  # such as a version that is damaged, or was cleaned up
            mark = (number, "unknown", f"? {text.line(str(error), 200)}")
        self._marks[place] = mark
        if len(self._marks) > MARKS_MAX:
            self._marks.popitem(last=False)
        return mark

    def on_run(self, args: Mapping[str, Any]) -> Job:
        """Evaluate the expectations at one version, whatever has to be read."""
        branch, version = place_of(args)

        def work(progress: Progress) -> Answer:
            with self._alone(progress):
                watched = self._newest(branch)
                dataset = watched.newest.checkout_version((branch, version))
                try:
                    result = watched.checker.evaluate(dataset, progress)
                finally:
                    watched.checker.save()
                self._marks[watched.key, branch, version] = mark = shown.mark_of(result)
            return Answer(
                {
                    "key": watched.key,
                    "mark": mark,
                    "outcomes": [shown.outcome_json(outcome) for outcome in result.outcomes],
                    "sentence": text.line(result.sentence),
                    "code": shown.check_code(branch, version),
                }
            )

        return Job(work)

    def on_bisect(self, args: Mapping[str, Any]) -> Job:
        """Find the first version at which an expectation fails, and the rows that fail there."""
        branch, name = _branch_of(args), words(args, "name", MAX_NAME)
        bad = integer(args, "bad", low=0, high=MAX_COUNT)

        def work(progress: Progress) -> Answer:
            with self._alone(progress):
                watched = self._newest(branch)
                bisection = watched.newest.expectations.bisect(name, bad=bad, progress=progress)
                first = bad if bisection.first_bad is None else bisection.first_bad
                outcome, sample = self._failing(watched, branch, first, name)
            return Answer(
                {
                    "name": name,
                    "branch": branch,
                    "sentence": text.line(bisection.sentence),
                    "first_bad": bisection.first_bad,
                    "last_good": bisection.last_good,
                    "label": text.ref_label(branch, first),
                    "tried": [
                        {"version": trial.version, "holds": trial.holds,
                         "operation": text.name(trial.operation or ""),
                         "message": text.line(trial.message or "", 200)}
                        for trial in bisection.tried
                    ],
                    "outcome": outcome,
                    "sample": sample,
                    "code": shown.bisect_code(name, bad),
                }
            )  # fmt: skip

        return Job(work)

    def on_rows(self, args: Mapping[str, Any]) -> Job:
        """Return the first rows for which an expectation fails at a version."""
        (branch, version), name = place_of(args), words(args, "name", MAX_NAME)

        def work(progress: Progress) -> Answer:
            with self._alone(progress):
                outcome, sample = self._failing(self._newest(branch), branch, version, name)
            return Answer({"outcome": outcome, "sample": sample})

        return Job(work)

    @staticmethod
    def _failing(
        watched: Watched, branch: str | None, version: int, name: str
    ) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Return an outcome and a sample of the rows that fail; None where there are none."""
        dataset = watched.newest.checkout_version((branch, version))
        if name not in watched.configured.expectations:
            raise InvalidInputError(NO_EXPECTATION)
        checker = Checker(watched.newest, [name])
        (outcome,) = checker.evaluate(dataset).outcomes
        sample = None
        if outcome.status == "fail" and outcome.num_failed:
            own = checker.columns_of(name)
            columns = shown.concerned_columns(dataset, own)
            rows = checker.failing_rows(dataset, shown.MAX_ROWS, columns)
            sample = shown.sample_json(rows, len(dataset.schema))
        checker.save()
        return shown.outcome_json(outcome), sample

    def on_form(self, args: Mapping[str, Any]) -> Answer:
        """Check the form of a new expectation while it is filled in."""
        newest = self._branch_dataset(_branch_of(args))
        try:
            expectation, name = _form_of(args)
            check_usable(newest, expectation)
            if name in newest.expectations.names():
                raise InvalidInputError(f"there is an expectation {text.name(name)} already")
        except LanceError as error:
            return Answer({"problem": text.line(str(error)), "code": None})
        return Answer({"problem": "", "code": shown.add_code(expectation, name)})

    # --- writing ----------------------------------------------------------------------------------

    def on_add(self, args: Mapping[str, Any]) -> Job:
        """Add an expectation, as a new version."""
        (expectation, name), branch = _form_of(args), _branch_of(args)
        method, values, named = shown.add_call(expectation)

        def change(dataset: LanceDataset) -> tuple[str, dict[str, str]]:
            keywords = {**named, "name": name}
            added_name = getattr(dataset.expectations, method)(*values, **keywords)
            return f"Add expectation {text.name(added_name)}", shown.add_code(expectation, name)

        return self._change(branch, change)

    def on_remove(self, args: Mapping[str, Any]) -> Job:
        """Remove an expectation, as a new version."""
        name = words(args, "name", TEXT_CHARS_MAX)

        def change(dataset: LanceDataset) -> tuple[str, dict[str, str]]:
            dataset.expectations.remove(name)
            return f"Remove expectation {text.name(name)}", shown.remove_code(name)

        return self._change(_branch_of(args), change)

    def on_gate(self, args: Mapping[str, Any]) -> Job:
        """Close or open the gate of staging, as a new version."""
        closed = args.get("closed") is True

        def change(dataset: LanceDataset) -> tuple[str, dict[str, str]]:
            dataset.expectations.set_gate(closed)
            title = "Close" if closed else "Open"
            return f"{title} the gate of staging", shown.gate_code(closed=closed)

        return self._change(_branch_of(args), change)

    def _change(
        self, branch: str | None, change: Callable[[LanceDataset], tuple[str, dict[str, str]]]
    ) -> Job:
        """Return a job that commits a change of the configuration to the newest version."""
        self.session.check_unlocked()

        def work(_progress: Progress) -> Answer:
            dataset = self._branch_dataset(branch)
            title, code = change(dataset)
            undo = RestoreUndo(branch, dataset.version, title)
            operations_log_of(dataset.uri).record(title, code, undo, (branch, dataset.version))
            label = text.ref_label(branch, dataset.version)
            return Answer(
                {"words": f"{title}: {label}", "branch": branch, "version": dataset.version,
                 "code": code}
            )  # fmt: skip

        return Job(work)

    @contextmanager
    def _alone(self, progress: Progress) -> Iterator[None]:
        """Hold the lock; waiting for it can be cancelled."""
        while not self._lock.acquire(timeout=LOCK_S):
            progress(0, 1)
        try:
            yield
        finally:
            self._lock.release()

    def _branch_dataset(self, branch: str | None) -> LanceDataset:
        return writable_dataset(self.session.dataset).checkout_version((branch, None))

    def _newest(self, branch: str | None) -> Watched:
        """Return the expectations of the newest version of a branch, and keep them."""
        newest = self._branch_dataset(branch)
        configured = ConfiguredExpectations.of(newest.config())
        listed = [
            f"{expectation.name}\0{expectation.to_json()}"
            for expectation in configured.expectations.values()
        ]
        key = digest(*listed, "problems", *configured.problems)
        cached = self._watched.get(branch)
        checker = Checker(newest) if cached is None or cached.key != key else cached.checker
        watched = self._watched[branch] = Watched(key, newest, configured, checker)
        return watched


def _is_watched(dataset: LanceDataset) -> bool:
    fragments = len(dataset.opened[1].manifest.fragments)
    is_little = len(dataset.version_numbers()) * fragments <= WATCHED_FRAGMENTS
    return is_little and dataset.opened[0].root.scheme in _LOCAL


def _branch_of(args: Mapping[str, Any]) -> str | None:
    return None if args.get("branch") is None else words(args, "branch", refs.MAX_CHARS)


def _form_of(args: Mapping[str, Any]) -> tuple[Expectation, str | None]:
    fields, name = args.get("fields"), words({"name": args.get("name") or ""}, "name", MAX_NAME)
    if not isinstance(fields, Mapping):
        raise InvalidInputError("fields must be an object")
    return shown.expectation_of(words(args, "kind", 20), fields), name.strip() or None


class ExpectationsPanel(LanceWidget):
    """The expectations of a dataset: add, remove, run, and find the version that broke one."""

    entry: ClassVar[str] = "checks/expectations.js"
    parts: ClassVar[tuple[str, ...]] = ("card",)
    handlers_type: ClassVar[type[RequestHandlers]] = CheckHandlers
    view: ClassVar[View] = VIEW

    @classmethod
    def request_handlers(cls, session: Session) -> dict[str, Handler]:
        """Return the requests about expectations."""
        return session.keep(CheckHandlers).handlers()

    def picture(self) -> StaticRendering:
        """Return the expectations as a table."""
        if self._error is not None or not isinstance(self.dataset, LanceDataset):
            return super().picture()
        expectations = self.dataset.expectations
        rows = [
            (name, text.line(expectation.statement))
            for name, expectation in expectations.list().items()
        ]
        label = text.ref_label(self.dataset.branch, self.dataset.version)
        gate = "closed: staging refuses a commit that breaks one" if expectations.gate else "open"
        return render_table(
            f"Expectations of {text.name(self.dataset.name)} {label}",
            (f"the gate is {gate}",),
            (("name", "expectation"), rows),
        )
