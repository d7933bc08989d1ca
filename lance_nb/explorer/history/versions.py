"""Versions: the timeline of all branches, the header card of a dataset, one version in detail.

Layout of ``Timeline.to_json``::

    branch, version            where the view stands
    lanes    [{branch, label, runs: [[first, count], ...], older, details: [VersionBar, ...],
               fork: [parent branch, version] | null}, ...]      lane 0 is main
    hidden_branches            how many more branches exist
    tags     [{name, branch, version}, ...]           hidden_tags: how many more exist

Version numbers come from file names alone, so 10,000 versions cost one listing and travel as a few
runs. Details need one manifest each: for the first screen only ``FIRST_DETAILS`` around the present
version are read, and ``OTHER_DETAILS`` of each other branch; the browser asks for more as they come
in sight, ``MAX_DETAILS`` at a time. The bar of a merge, cherry-pick or revert says where its
changes came from (``MergeMark``), by the record in its transaction's properties.

Layout of ``DatasetCard.to_json``: ``name``, ``uri``, ``branch``, ``version``, ``label``
("main:42"), ``tags`` of this version, ``latest`` (newest version of the branch), ``facts``
(``{key, value, title}`` each).

Layout of ``VersionDetail.to_json``: ``label``, ``branch``, ``version``, ``time``, ``time_ms``,
``operation``, ``description`` (one line), ``message``, ``tags``, ``counts`` ``[{label, value}]``,
``properties`` ``[{label, value}]``, ``transaction`` ``[{label, value}]`` (the decoded operation,
flattened), ``schema`` (see ``schema_tree``).

Limits: ``MAX_RUNS`` runs per lane (``older`` counts the versions left out), ``MAX_LANES`` branches,
``MAX_TAGS`` tags on the timeline and ``MAX_CARD_TAGS`` on the card; ``MAX_FACTS`` entries of each
list of the detail, values are one line. Reads metadata only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from lance_nb.errors import LanceError, RefNotFoundError, VersionNotFoundError
from lance_nb.explorer import text
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.explorer.refs.ref_list import pin_label
from lance_nb.explorer.schema_tree import SchemaTree, schema_tree
from lance_nb.explorer.source import Source, TransactionInfo, VersionInfo
from lance_nb.format.merge_record import (
    FAST_FORWARD,
    MAIN_ID,
    MERGE,
    PICK,
    REVERT,
    identity_of,
    record_of,
)
from lance_nb.value_classes import dataclass

FIRST_DETAILS = 24
OTHER_DETAILS = 6
MAX_DETAILS = 64
MAX_RUNS = 2000
MAX_LANES = 6
MAX_TAGS = 300
DAMAGED = "Damaged"

_NO_ROWS_CHANGE = frozenset({"Rewrite", "CreateIndex", "UpdateConfig", "ReserveFragments", "Clone"})


@dataclass(frozen=True, slots=True)
class MergeMark:
    """Where the changes of a merge, cherry-pick or revert came from.

    ``is_there``: the branch still exists; a later branch of the same name is another one.
    """

    kind: str
    branch: str | None
    version: int
    is_fast_forward: bool
    is_there: bool

    @property
    def words(self) -> str:
        """One sentence for people."""
        source = text.ref_label(self.branch, self.version)
        verbs = {MERGE: "merges", PICK: "applies the change of", REVERT: "reverts"}
        merge_words = " (fast-forward)" if self.kind == MERGE and self.is_fast_forward else ""
        deleted_words = "" if self.is_there else ", which was deleted"
        return f"{verbs[self.kind]} {source}{merge_words}{deleted_words}"

    def to_json(self) -> dict[str, Any]:
        """Return the mark as JSON-able values."""
        return {
            "kind": self.kind,
            "branch": self.branch,
            "version": self.version,
            "there": self.is_there,
            "words": self.words,
        }


@dataclass(frozen=True, slots=True)
class VersionBar:
    """One version on the timeline. ``added`` and ``removed`` are rows, ``None`` when not known.

    ``orphaned``: the version that it was made from was cleaned up, so that its changes are known
    only as far as its own transaction tells.
    """

    version: int
    time: str
    time_ms: int | None
    operation: str
    message: str
    rows: int | None
    added: int | None
    removed: int | None
    orphaned: bool = False
    merge: MergeMark | None = None

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
            "orphaned": self.orphaned,
            **({} if self.merge is None else {"merge": self.merge.to_json()}),
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
    """A tag, as a flag on the version it names. ``pin``: see ref_list."""

    name: str
    branch: str | None
    version: int
    pin: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the tag as JSON-able values."""
        pin = {} if self.pin is None else {"pin": self.pin}
        return {"name": self.name, "branch": self.branch, "version": self.version, **pin}


@dataclass(frozen=True, slots=True)
class Timeline(JsonFields):
    """Everything the first screen of the timeline needs."""

    branch: str | None
    version: int
    lanes: tuple[Lane, ...]
    hidden_branches: int
    tags: tuple[TagFlag, ...]
    hidden_tags: int


def timeline(dataset: Source, num_details: int = FIRST_DETAILS) -> Timeline:
    """Read the first screen of the timeline of ``dataset``, whatever version it is at."""
    # The latest fork on top: so no fork edge crosses the versions of another branch.
    branch_items = dataset.branches.list().items()
    branches = dict(
        sorted(branch_items, key=lambda item: (-int(item[1]["parent_version"]), item[0]))
    )
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
            TagFlag(
                text.name(tag), facts.get("branch"), int(facts["version"]), pin_label(tag, facts)
            )
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
    is_own = branch == dataset.branch
    try:
        source = dataset if is_own else dataset.checkout_version((branch, None))
        numbers = list(source.version_numbers())
    except LanceError:
        if is_own:
            raise
        return Lane(branch, (), 0, fork=fork, details=())
    runs, older = runs_of(numbers)
    limit = num_details if is_own else min(num_details, OTHER_DETAILS)
    shown_numbers = _around(numbers, source.version, limit)
    return Lane(
        branch, runs, older, fork=fork, details=tuple(version_bars(source, shown_numbers, numbers))
    )


def runs_of(numbers: Sequence[int]) -> tuple[tuple[tuple[int, int], ...], int]:
    """Ascending numbers as (first, count) runs, newest ``MAX_RUNS``; and how many are left out."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][0] + runs[-1][1] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    shown_runs = runs[-MAX_RUNS:]
    older = sum(length for _, length in runs[: len(runs) - len(shown_runs)])
    return tuple((first, length) for first, length in shown_runs), older


def _around(numbers: Sequence[int], version: int, limit: int) -> Sequence[int]:
    """Up to ``limit`` of the numbers around ``version``, leaning towards newer ones."""
    stop = min(len(numbers), bisect_left(numbers, version) + 1 + limit // 2)
    return numbers[max(0, stop - limit) : stop]


def version_bars(
    dataset: Source, numbers: Iterable[int], known_numbers: Sequence[int]
) -> list[VersionBar]:
    """Return details of versions of the branch of ``dataset``; ``known_numbers``: all its versions.

    A version whose manifest cannot be read has ``DAMAGED`` for operation and says why.
    """
    bars = []
    marks = _MergeMarks(dataset)
    for first, stop in _spans(numbers, known_numbers):
        infos, problems = _described(dataset, known_numbers[max(0, first - 1) : stop])
        for position in range(first, stop):
            number = known_numbers[position]
            if number in infos:
                before = infos.get(number - 1)
                is_orphaned = (
                    number > 1
                    and before is None
                    and (not position or known_numbers[position - 1] < number - 1)
                )
                mark = marks.of(infos[number].properties)
                bars.append(_bar(infos[number], before, mark, is_orphaned=is_orphaned))
            elif number in problems:
                bars.append(_damaged(number, problems[number]))
    return bars


def _damaged(number: int, problem: LanceError) -> VersionBar:
    return VersionBar(
        version=number,
        time="",
        time_ms=None,
        operation=DAMAGED,
        message=text.line(str(problem), 200),
        rows=0,
        added=None,
        removed=None,
    )


def _spans(numbers: Iterable[int], known_numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the runs of positions in ``known_numbers`` where ``numbers`` stand."""
    places = {bisect_left(known_numbers, number): number for number in numbers}
    spans: list[tuple[int, int]] = []
    for position, number in sorted(places.items()):
        if position == len(known_numbers) or known_numbers[position] != number:
            continue
        if spans and spans[-1][1] == position:
            spans[-1] = (spans[-1][0], position + 1)
        else:
            spans.append((position, position + 1))
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


class _MergeMarks:
    """Makes the marks of merges; reads the records of the branches when the first one is met."""

    def __init__(self, dataset: Source) -> None:
        self._dataset = dataset
        self._identities: dict[str | None, str] | None = None

    def of(self, properties: Mapping[str, str]) -> MergeMark | None:
        """Return the mark of a version by the properties of its transaction, None if it is none."""
        record = record_of(properties)
        if record is None:
            return None
        if self._identities is None:
            branches = self._dataset.branches.list().items()
            self._identities = {
                name: identity_of(name, branch.get("branch_identifier", ()), branch["create_at"])
                for name, branch in branches
            } | {None: MAIN_ID}
        name = record.source_branch
        return MergeMark(
            record.kind,
            name,
            record.source_version,
            is_fast_forward=record.strategy == FAST_FORWARD,
            is_there=self._identities.get(name) == record.source_id,
        )


def _bar(
    info: VersionInfo,
    before: VersionInfo | None,
    merge: MergeMark | None,
    *,
    is_orphaned: bool,
) -> VersionBar:
    added, removed = _rows_changed(info, before)
    return VersionBar(
        version=info.version,
        time=text.moment(info.timestamp),
        time_ms=text.milliseconds(info.timestamp),
        operation=text.name(info.operation or ""),
        message=text.line(info.message or "", 200),
        rows=info.num_rows,
        added=added,
        removed=removed,
        orphaned=is_orphaned and added is None,
        merge=merge,
    )


def _rows_changed(info: VersionInfo, before: VersionInfo | None) -> tuple[int | None, int | None]:
    """Rows added and removed since the version before, from the two manifests' counts alone.

    Another version than the one before, if that was cleaned up, would also count the changes of
    those in between.

    An update counts as one removed and one added row, because that is what it writes.
    """
    if info.operation in _NO_ROWS_CHANGE:
        return 0, 0
    if before is None:
        is_first = info.version == 1
        return (info.num_rows, 0) if is_first and info.num_rows is not None else (None, None)
    if info.num_rows is None or before.num_rows is None:
        return None, None
    if info.operation == "Overwrite":
        return info.num_rows, before.num_rows
    gained = info.num_rows - before.num_rows
    deleted = (info.num_deleted_rows or 0) - (before.num_deleted_rows or 0)
    removed = max(0, deleted, -gained)
    return gained + removed, removed


MAX_FACTS = 40
MAX_MESSAGE_CHARS = 20_000  # of the version that is shown; the page folds it
_MAX_DEPTH = 6
_VALUE_CHARS = 300
MAX_CARD_TAGS = 8


@dataclass(frozen=True, slots=True)
class Entry(JsonFields):
    """A label and its value, both text."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class VersionDetail(JsonFields):
    """Everything the detail pane shows of one version."""

    label: str
    branch: str | None
    version: int
    time: str
    time_ms: int | None
    operation: str
    description: str
    message: str
    tags: tuple[str, ...]
    counts: tuple[Entry, ...]
    properties: tuple[Entry, ...]
    transaction: tuple[Entry, ...]
    schema: SchemaTree


def version_detail(dataset: Source) -> VersionDetail:
    """Describe the version that ``dataset`` is at."""
    info = dataset.version_info(dataset.version)
    transaction, problem = _transaction(dataset)
    return VersionDetail(
        label=text.ref_label(dataset.branch, info.version),
        branch=None if dataset.branch is None else text.name(dataset.branch),
        version=info.version,
        time=text.moment(info.timestamp),
        time_ms=text.milliseconds(info.timestamp),
        operation=text.name(info.operation or "operation not recorded"),
        description=problem or ("" if transaction is None else text.line(transaction.description)),
        message=text.line(info.message or "", MAX_MESSAGE_CHARS),
        tags=tuple(text.name(tag) for tag in info.tags[:MAX_FACTS]),
        counts=_counts(info),
        properties=tuple(entries(info.properties)),
        transaction=() if transaction is None else tuple(_transaction_entries(transaction)),
        schema=schema_tree(dataset.schema),
    )


def _transaction(dataset: Source) -> tuple[TransactionInfo | None, str]:
    """Return the decoded transaction, or why it cannot be shown."""
    try:
        return dataset.transaction(dataset.version), ""
    except LanceError as error:
        return None, text.line(f"The transaction cannot be read: {error}")


def _counts(info: VersionInfo) -> tuple[Entry, ...]:
    size = "unknown" if info.size_bytes is None else text.size(info.size_bytes)
    rows, deleted = (
        "not recorded" if count is None else text.count(count)
        for count in (info.num_rows, info.num_deleted_rows)
    )
    return (
        Entry("rows", rows),
        Entry("deleted rows", deleted),
        Entry("fragments", text.count(info.num_fragments)),
        Entry("data files", text.count(info.num_data_files)),
        Entry("deletion files", text.count(info.num_deletion_files)),
        Entry("size", size),
    )


def _transaction_entries(transaction: TransactionInfo) -> Iterator[Entry]:
    yield Entry("read version", str(transaction.read_version))
    yield Entry("transaction", text.name(transaction.uuid))
    yield from entries(transaction.details)


def entries(values: Mapping[str, Any]) -> Iterator[Entry]:
    """Flatten nested values to dotted labels, at most ``MAX_FACTS`` of them."""
    leaves = _leaves("", values, 0) if values else iter(())
    for label, value in islice(leaves, MAX_FACTS):
        yield Entry(text.line(label, 160), text.line(value, _VALUE_CHARS))


def _leaves(label: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if depth < _MAX_DEPTH and isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(f"{label}.{key}" if label else str(key), inner, depth + 1)
    elif depth < _MAX_DEPTH and isinstance(value, (list, tuple)) and _is_deep(value):
        for index, inner in enumerate(value):
            yield from _leaves(f"{label}[{index}]", inner, depth + 1)
    elif isinstance(value, (list, tuple)):
        shown = ", ".join(text.cut(str(item), 40) for item in value[:20])
        more = f", {text.ELLIPSIS} {len(value)} items" if len(value) > 20 else ""
        yield label, f"{shown}{more}" or "none"
    else:
        yield label, "none" if value is None or value == {} else text.cut(str(value), 400)


def _is_deep(value: list[Any] | tuple[Any, ...]) -> bool:
    return bool(value) and isinstance(value[0], (Mapping, list, tuple))


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure: ``value`` is what the eye reads, ``title`` the sentence behind it."""

    key: str
    value: str
    title: str


@dataclass(frozen=True, slots=True)
class DatasetCard(JsonFields):
    """The header card of one version of a dataset."""

    name: str
    uri: str
    branch: str | None
    version: int
    label: str
    latest: int
    tags: tuple[str, ...]
    facts: tuple[Fact, ...]


def dataset_card(dataset: Source, latest: int | None = None) -> DatasetCard:
    """Read the card of ``dataset`` at its version; ``latest`` saves a listing when it is known."""
    info = dataset.version_info(dataset.version)
    return DatasetCard(
        name=text.name(dataset.name),
        uri=text.line(dataset.uri),
        branch=None if dataset.branch is None else text.name(dataset.branch),
        version=dataset.version,
        label=text.ref_label(dataset.branch, dataset.version),
        latest=dataset.latest_version if latest is None else latest,
        tags=tuple(text.name(tag) for tag in info.tags[:MAX_CARD_TAGS]),
        facts=_card_facts(dataset),
    )


def _card_facts(dataset: Source) -> tuple[Fact, ...]:
    stats = dataset.stats()
    physical = stats.num_rows + stats.num_deleted_rows
    deleted = text.share(stats.num_deleted_rows, physical)
    num_columns = len(dataset.schema)
    facts = [
        Fact("rows", text.count(stats.num_rows), f"{text.count(stats.num_rows)} live rows"),
        Fact("columns", text.count(num_columns), "columns at the top level of the schema"),
        Fact(
            "size",
            "unknown" if stats.size_bytes is None else text.size(stats.size_bytes),
            "bytes of the data files that this version uses",
        ),
        Fact(
            "fragments",
            text.count(stats.num_fragments),
            f"{text.plural(stats.num_fragments, 'fragment')} "
            f"in {text.plural(stats.num_data_files, 'data file')}",
        ),
        Fact(
            "deleted",
            deleted,
            f"{text.count(stats.num_deleted_rows)} of {text.count(physical)} stored rows "
            "are marked deleted",
        ),
        Fact("format", text.name(dataset.data_storage_version), "version of the data file format"),
    ]
    return tuple(facts)
