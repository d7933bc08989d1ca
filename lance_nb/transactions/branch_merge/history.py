"""The versions that lead from the base to each side of a merge, and the base itself.

Limits: the transactions since the fork are read, all of them; of versions that were cleaned up, or
lie on a branch that was deleted, nothing is known.
Source: none; Lance has no merge of branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from lance_nb.errors import NotFoundError, VersionNotFoundError
from lance_nb.format.refs import Branch
from lance_nb.transactions.branch_merge.merge_base import Ancestry, Base, Line, Shared, Side, Step
from lance_nb.transactions.branch_merge.records import MERGE, MergeRecord, record_of
from lance_nb.transactions.transaction import Transaction


class Repository(Protocol):
    """The dataset: every version of every branch."""

    def branches(self) -> Mapping[str, Branch]:
        """Return all branches by name."""
        ...

    def load(self, branch: str | None, version: int | None) -> Side:
        """Read a version, None: the newest. Raises VersionNotFoundError."""
        ...

    def transactions(
        self, branch: str | None, versions: Sequence[int]
    ) -> Iterator[Transaction | None]:
        """Read the transactions of versions, None for what is not known any more."""
        ...

    def home_uri(self, branch: str | None) -> str:
        """Return where the folder of a branch is."""
        ...


def steps_from(repository: Repository, lines: Ancestry, start: Line) -> tuple[Step, ...]:
    """Return the versions that lead from ``start`` to the end of a line, oldest first."""
    depth = next(at for at, one in enumerate(lines) if one.identity == start.identity)
    found: list[Step] = []
    first = start.version
    for line in reversed(lines[: depth + 1]):
        numbers = range(first + 1, line.version + 1)
        first = line.version
        if line.is_gone:
            found += [Step(line.branch, one, None) for one in numbers]
            continue
        done = repository.transactions(line.branch, numbers)
        found += [Step(line.branch, number, one) for number, one in zip(numbers, done, strict=True)]
    return tuple(found)


def records_of(steps: Sequence[Step]) -> Iterator[tuple[int, MergeRecord | None]]:
    """Return the records of merges among versions."""
    for one in steps:
        if one.transaction is not None:
            yield one.version, record_of(one.transaction.properties)


def own_steps(
    steps: Sequence[tuple[Step, ...]], lines: Sequence[Ancestry], base: Base, *, holds_base: bool
) -> tuple[Step, ...]:
    """Return what the first side did beyond the base; the second is the other one.

    On the side that holds the base, that is what came after it. On the other: what no merge has
    brought into the base, without merges of what the base holds.
    """
    mine, other = lines
    if holds_base:
        place = _place(mine, base.line.identity, base.line.version)
        return tuple(one for one in steps[0] if _place_of(mine, one) > place)
    until = _place(other, base.line.identity, base.line.version)
    known = (-len(mine), 0)
    for one in steps[1]:
        record = _merge_of(one)
        if record is not None and _place_of(other, one) <= until:
            known = max(known, _place(mine, record.source_id, record.source_version))
    known = _within(mine, known)
    kept = []
    for one in steps[0]:
        record = _merge_of(one)
        is_held = record is not None and (
            _holds(other, record.source_id, record.source_version)
            and _place(other, record.source_id, record.source_version) <= until
        )
        if _place_of(mine, one) > known and not is_held:
            kept.append(one)
    return tuple(kept)


def _merge_of(step: Step) -> MergeRecord | None:
    record = None if step.transaction is None else record_of(step.transaction.properties)
    return record if record is not None and record.kind == MERGE else None


def _holds(lines: Ancestry, identity: str, version: int) -> bool:
    """Tell whether a version lies on a line of history."""
    return any(one.identity == identity and version <= one.version for one in lines)


def _within(lines: Ancestry, place: tuple[int, int]) -> tuple[int, int]:
    """Go back to where a line was left: what its branch did afterwards is not on it."""
    depth, version = -place[0], place[1]
    return place if depth >= len(lines) else (-depth, min(version, lines[depth].version))


def _place(lines: Ancestry, identity: str, version: int) -> tuple[int, int]:
    """Return how far along a line of history a version is; before all of it if it is not on it."""
    depths = (at for at, one in enumerate(lines) if one.identity == identity)
    return -next(depths, len(lines)), version


def _place_of(lines: Ancestry, step: Step) -> tuple[int, int]:
    depths = (at for at, one in enumerate(lines) if not one.is_gone and one.branch == step.branch)
    return -next(depths, len(lines)), step.version


def load_line(repository: Repository, line: Line, lines: Sequence[Ancestry]) -> Side:
    """Load a version of a line; if it is gone, the first version of a branch that began there."""
    places = [] if line.is_gone else [line.branch]
    for side in lines:
        for child, parent in pairwise(side):
            if (parent.identity, parent.version) == (line.identity, line.version):
                places.append(child.branch)
    for branch in places:
        try:
            return repository.load(branch, line.version)
        except NotFoundError:
            continue
    raise VersionNotFoundError(
        repository.home_uri(line.branch), line.version, "it is the base of this merge and is gone"
    )


def shared_since(fork: Side) -> Shared:
    """Return what two branches number alike: what was numbered before their fork."""
    manifest = fork.manifest
    highest = manifest.max_fragment_id
    in_files = [
        number for one in fork.fragments.values() for file in one.files for number in file.fields
    ]
    return Shared(
        max(fork.fragments, default=-1) if highest is None else highest,
        max([manifest.schema.max_field_id, manifest.max_allocated_field_id or -1, *in_files]),
        manifest.next_row_id,
    )


def uuids_of(steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the ids of the transactions."""
    return tuple(one.transaction.uuid for one in steps if one.transaction is not None)
