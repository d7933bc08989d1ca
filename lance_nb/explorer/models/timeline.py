"""The timeline: version numbers of each branch, tags, fork points, and details for a window only.

Layout of ``to_json``::

    branch, version            where the view stands
    lanes    [{branch, label, runs: [[first, count], ...], older, details: [VersionBar, ...],
               fork: [parent branch, version] | null}, ...]      lane 0 is main
    hidden_branches            how many more branches exist
    tags     [{name, branch, version}, ...]           hidden_tags: how many more exist

Version numbers come from file names alone, so 10,000 versions cost one listing and travel as a few
runs. Details need one manifest each: for the first screen only ``FIRST_DETAILS`` around the present
version are read, and ``OTHER_DETAILS`` of each other branch; the browser asks for more as they come
in sight, ``MAX_DETAILS`` at a time.

Limits: ``MAX_RUNS`` runs per lane (``older`` counts the versions left out), ``MAX_LANES`` branches,
``MAX_TAGS`` tags.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lance_nb.errors import LanceError, RefNotFoundError, VersionNotFoundError
from lance_nb.explorer.models import text
from lance_nb.explorer.models.source import Source, VersionInfo

FIRST_DETAILS = 24
OTHER_DETAILS = 6
MAX_DETAILS = 64
MAX_RUNS = 2000
MAX_LANES = 6
MAX_TAGS = 300
DAMAGED = "Damaged"

_NO_ROWS_CHANGE = frozenset({"Rewrite", "CreateIndex", "UpdateConfig", "ReserveFragments", "Clone"})


@dataclass(frozen=True, slots=True)
class VersionBar:
    """One version on the timeline. ``added`` and ``removed`` are rows, ``None`` when not known."""

    version: int
    time: str
    time_ms: int | None
    operation: str
    message: str
    rows: int | None
    added: int | None
    removed: int | None

    def to_json(self) -> dict[str, Any]:
        """Return the bar as JSON-able values.

        ``dataclasses.asdict`` would copy every field by way of ``deepcopy``, and a screen holds
        hundreds of bars.
        """
        return {
            "version": self.version,
            "time": self.time,
            "time_ms": self.time_ms,
            "operation": self.operation,
            "message": self.message,
            "rows": self.rows,
            "added": self.added,
            "removed": self.removed,
        }


@dataclass(frozen=True, slots=True)
class Lane:
    """The versions of one branch."""

    branch: str | None
    runs: tuple[tuple[int, int], ...]
    older: int
    fork: tuple[str | None, int] | None
    details: tuple[VersionBar, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the lane as JSON-able values."""
        return {
            "branch": self.branch,
            "label": text.name(self.branch or "main"),
            "runs": [list(run) for run in self.runs],
            "older": self.older,
            "fork": None if self.fork is None else list(self.fork),
            "details": [bar.to_json() for bar in self.details],
        }


@dataclass(frozen=True, slots=True)
class TagFlag:
    """A tag, as a flag on the version it names."""

    name: str
    branch: str | None
    version: int

    def to_json(self) -> dict[str, Any]:
        """Return the tag as JSON-able values."""
        return {"name": self.name, "branch": self.branch, "version": self.version}


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything the first screen of the timeline needs."""

    branch: str | None
    version: int
    lanes: tuple[Lane, ...]
    hidden_branches: int
    tags: tuple[TagFlag, ...]
    hidden_tags: int

    def to_json(self) -> dict[str, Any]:
        """Return the timeline as JSON-able values."""
        return {
            "branch": self.branch,
            "version": self.version,
            "lanes": [lane.to_json() for lane in self.lanes],
            "hidden_branches": self.hidden_branches,
            "tags": [tag.to_json() for tag in self.tags],
            "hidden_tags": self.hidden_tags,
        }


def timeline(dataset: Source, num_details: int = FIRST_DETAILS) -> Timeline:
    """Read the first screen of the timeline of ``dataset``, whatever version it is at."""
    # The latest fork on top: so no fork edge crosses the versions of another branch.
    found = dataset.branches.list().items()
    branches = dict(sorted(found, key=lambda item: (-int(item[1]["parent_version"]), item[0])))
    shown: list[str | None] = [None, *list(branches)[: MAX_LANES - 1]]
    if dataset.branch is not None and dataset.branch not in shown:
        if dataset.branch not in branches:  # deleted by somebody else, meanwhile
            raise RefNotFoundError("branch", dataset.branch, tuple(branches))
        shown[-1] = dataset.branch
    tags = list(_tags(dataset).items())
    return Timeline(
        branch=dataset.branch,
        version=dataset.version,
        lanes=tuple(_lane(dataset, branch, branches, num_details) for branch in shown),
        hidden_branches=max(0, len(branches) + 1 - len(shown)),
        tags=tuple(
            TagFlag(text.name(tag), facts.get("branch"), int(facts["version"]))
            for tag, facts in tags[:MAX_TAGS]
        ),
        hidden_tags=max(0, len(tags) - MAX_TAGS),
    )


def _tags(dataset: Source) -> Mapping[str, Mapping[str, Any]]:
    """Describe the tags; one that is damaged does not hide the others."""
    try:
        return dataset.tags.list()
    except LanceError:
        return dataset.tags.readable()


def _lane(dataset: Source, branch: str | None, branches: dict[str, Any], num_details: int) -> Lane:
    """One branch; a branch that cannot be read is shown empty rather than hiding the others."""
    fork = None
    if branch is not None:
        fork = (branches[branch].get("parent_branch"), int(branches[branch]["parent_version"]))
    here = branch == dataset.branch
    try:
        source = dataset if here else dataset.checkout_version((branch, None))
        numbers = list(source.version_numbers())
    except LanceError:
        if here:
            raise
        return Lane(branch, (), 0, fork, ())
    runs, older = runs_of(numbers)
    limit = num_details if here else min(num_details, OTHER_DETAILS)
    wanted = _around(numbers, source.version, limit)
    return Lane(branch, runs, older, fork, tuple(version_bars(source, wanted, numbers)))


def runs_of(numbers: Sequence[int]) -> tuple[tuple[tuple[int, int], ...], int]:
    """Ascending numbers as (first, count) runs, newest ``MAX_RUNS``; and how many are left out."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][0] + runs[-1][1] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    kept = runs[-MAX_RUNS:]
    older = sum(length for _, length in runs[: len(runs) - len(kept)])
    return tuple((first, length) for first, length in kept), older


def _around(numbers: Sequence[int], version: int, limit: int) -> Sequence[int]:
    """Up to ``limit`` of the numbers around ``version``, leaning towards newer ones."""
    stop = min(len(numbers), bisect_left(numbers, version) + 1 + limit // 2)
    return numbers[max(0, stop - limit) : stop]


def version_bars(dataset: Source, numbers: Iterable[int], known: Sequence[int]) -> list[VersionBar]:
    """Details of some versions of the branch that ``dataset`` is on; ``known``: all its numbers.

    A version whose manifest cannot be read has ``DAMAGED`` for operation and says why.
    """
    bars = []
    for first, stop in _spans(numbers, known):
        infos, problems = _described(dataset, known[max(0, first - 1) : stop])
        for at in range(first, stop):
            number = known[at]
            if number in infos:
                before = infos.get(known[at - 1]) if at else None
                bars.append(_bar(infos[number], before, is_first=number == 1))
            elif number in problems:
                bars.append(_damaged(number, problems[number]))
    return bars


def _damaged(number: int, problem: LanceError) -> VersionBar:
    return VersionBar(number, "", None, DAMAGED, text.line(str(problem), 200), 0, None, None)


def _spans(numbers: Iterable[int], known: Sequence[int]) -> list[tuple[int, int]]:
    """Return the positions in ``known`` where ``numbers`` stand, neighbours taken together."""
    places = {bisect_left(known, number): number for number in numbers}
    spans: list[tuple[int, int]] = []
    for at, number in sorted(places.items()):
        if at == len(known) or known[at] != number:
            continue
        if spans and spans[-1][1] == at:
            spans[-1] = (spans[-1][0], at + 1)
        else:
            spans.append((at, at + 1))
    return spans


def _described(
    dataset: Source, numbers: Sequence[int]
) -> tuple[dict[int, VersionInfo], dict[int, LanceError]]:
    """Describe versions; one that was cleaned up since they were listed is left out."""
    infos: dict[int, VersionInfo] = {}
    problems: dict[int, LanceError] = {}
    for number in numbers:
        try:
            infos[number] = dataset.version_info(number, with_tags=False)
        except VersionNotFoundError:
            continue
        except LanceError as problem:
            problems[number] = problem
    return infos, problems


def _bar(info: VersionInfo, before: VersionInfo | None, *, is_first: bool) -> VersionBar:
    added, removed = _rows_changed(info, before, is_first=is_first)
    return VersionBar(
        version=info.version,
        time=text.moment(info.timestamp),
        time_ms=text.milliseconds(info.timestamp),
        operation=text.name(info.operation or ""),
        message=text.line(info.message or "", 200),
        rows=info.num_rows,
        added=added,
        removed=removed,
    )


def _rows_changed(
    info: VersionInfo, before: VersionInfo | None, *, is_first: bool
) -> tuple[int | None, int | None]:
    """Rows added and removed since the version before, from the two manifests' counts alone.

    An update counts as one removed and one added row, because that is what it writes.
    """
    if info.operation in _NO_ROWS_CHANGE:
        return 0, 0
    if before is None:
        return (info.num_rows, 0) if is_first and info.num_rows is not None else (None, None)
    if info.num_rows is None or before.num_rows is None:
        return None, None
    if info.operation == "Overwrite":
        return info.num_rows, before.num_rows
    gained = info.num_rows - before.num_rows
    deleted = (info.num_deleted_rows or 0) - (before.num_deleted_rows or 0)
    removed = max(0, deleted, -gained)
    return gained + removed, removed
