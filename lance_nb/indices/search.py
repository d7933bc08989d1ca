"""Answer a filter from the scalar indices of one version.

A filter is a tree of AND, OR and NOT above conditions on single columns (``leaf``). Each condition
has three sets of rows: those for which it is true, false, and null. Indices give the first, and the
last where it is needed:

* AND: rows that are true in every part. A part without an index, or one that would cost more to
  search than to compute for the rows that are left, is left to the filter: the answer is then not
  exact.
* OR: rows that are true in some part; every part needs an index.
* NOT: all live rows without those that are true or null; the part needs an exact answer.

What is said holds for the fragments that every used index covers. Of several indices on a column
the cheapest one is used, by the rows that each would name or read. Nothing is answered where
reading the index would cost more than the scan: ``SHARE_MAX`` of the rows, and at least
``ROWS_ALWAYS``.

A file that is missing, damaged or too large is no reason to fail: a warning, and the scan goes on
without indices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.errors import InvalidInputError, LanceError, NotSupportedError
from lance_nb.format.fragment import Fragment
from lance_nb.indices.column_values import (
    ValueCounts,
    ValueRange,
    count_values,
    has_whole_bounds,
    range_of,
    set_reader,
)
from lance_nb.indices.leaf import Between, Leaf, leaf_of, merged
from lance_nb.indices.listing import ListedIndex, list_indices, listed_once, report_unusable
from lance_nb.indices.registry import KINDS
from lance_nb.indices.row_sets import ROWS_MAX, U64s, ascending, common, joined, without
from lance_nb.table.filtered_scan import RowChoice
from lance_nb.table.index_search import Ids, IndexAnswer, among
from lance_nb.table.indexed_scan import is_worthwhile
from lance_nb.table.predicate import Filter, comparison
from lance_nb.table.predicate.expression import Call, Column, Expression
from lance_nb.table.predicate.logic import invert
from lance_nb.table.row_ids import live_offsets
from lance_nb.table.scan_tasks import live_counts
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

SHARE_MAX = 0.1
ROWS_ALWAYS = 32_768
_DEPTH_MAX = 32  # of AND, OR and NOT inside each other
_PARTS_MAX = 256
_WORTH = 64  # a part with so many times the candidates left is computed for these instead
_LEGACY = "0.1"
BITMAP, ZONEMAP = "Bitmap", "ZoneMap"
EXACT = ("Bitmap", "BTree", "LabelList")
_CANDIDATE = 4  # to read a row and compute the filter, against a row that an index names
_INSTEAD = "rows are scanned instead"
Answer = TypeVar("Answer")
ChosenKeys = Callable[[pa.Array], npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class _Part:
    """What is known of a condition in the covered fragments; ``nulls`` None where not known."""

    rows: U64s
    nulls: U64s | None
    is_exact: bool
    covered: Ids
    words: tuple[str, ...]


class ScalarSearch:
    """The scalar indices of one version."""

    def __init__(self, snapshot: Snapshot) -> None:
        """List the indices. Raises CorruptFileError for an index section that cannot be read."""
        self._snapshot = snapshot
        self._indices = _indices_of(snapshot)

    def answer(self, condition: Filter) -> IndexAnswer | None:
        """Search the indices; None when none helps, with a warning when one is damaged."""
        if condition.expression is None or not self._indices:
            return None
        expression = condition.expression
        part = self._guarded(lambda: self._answered(expression))
        if part is None:
            return None
        return IndexAnswer(part.rows, part.covered, part.is_exact, part.words)

    def count(self, condition: Filter) -> tuple[int, Ids] | None:
        """Count the rows that pass a condition on one column by their sets; see ``IndexSearch``."""
        expression = condition.expression
        if expression is None:
            return None
        is_denied = isinstance(expression, Call) and _negated(expression) is not None
        inner = _negated(expression) if isinstance(expression, Call) and is_denied else expression
        leaf = None if inner is None else leaf_of(inner)
        index = None if leaf is None else self._counter(leaf.column.path)
        if leaf is None or index is None:
            return None

        def chosen(keys: pa.Array) -> npt.NDArray[np.bool_]:
            true, null = leaf.test(keys)
            return ~(true | null) if is_denied else true

        counted = self._guarded(lambda: self._count(index, leaf.column.type, chosen))
        return None if counted is None else (counted, index.covered)

    def _count(self, index: ListedIndex, kind: pa.DataType, chosen: ChosenKeys) -> int:
        """Count the rows of the chosen keys; of most keys by those of the others.

        Every live row of the covered fragments is in the set of one key, that of null included.
        """
        rows = live_counts(self._snapshot)
        ids = self._snapshot.manifest.fragments.counts().ids
        total = 0
        for segment in index.segments:
            reader = set_reader(index, segment, kind)
            is_chosen = chosen(reader.keys)
            is_most = 2 * int(np.count_nonzero(is_chosen)) > is_chosen.size
            sets = reader.sets.read(~is_chosen if is_most else is_chosen)
            num_rows = int(segment.counts(sets).sum())
            total += (
                int(rows[among(ids, segment.covered)].sum()) - num_rows if is_most else num_rows
            )
        return total

    def value_counts(self, column: str, condition: Filter | None = None) -> ValueCounts | None:
        """Count the rows of each value of a column, null among them, in the covered fragments.

        ``condition``: which of the rows to count. None where no BITMAP index is on the column, one
        of the indices is damaged (with a warning), or they do not decide the condition.
        """
        index = self._counter((column,))
        if index is None:
            return None
        kind = self._snapshot.manifest.schema.to_arrow().field(column).type
        if condition is None:
            return self._guarded(lambda: count_values(index, kind, None))
        answer = self.answer(condition)
        if answer is None or not answer.is_exact or not among(index.covered, answer.covered).all():
            return None
        counted = self._guarded(lambda: count_values(index, kind, answer.rows))
        if counted is None:
            return None
        return replace(counted, words=" and ".join(dict.fromkeys((counted.words, *answer.words))))

    def value_range(self, column: str) -> ValueRange | None:
        """Return the least and the greatest value of a column, by a ZONEMAP index.

        None where no such index covers every fragment, deleted rows may have had them, or it is
        damaged (with a warning).
        """
        kind = self._snapshot.manifest.schema.to_arrow().field(column).type
        count = len(self._snapshot.manifest.fragments)
        for index in self._indices if has_whole_bounds(kind) else ():
            size = sum(segment.covered.size for segment in index.segments)
            is_complete = size == index.covered.size == count
            if index.kind == ZONEMAP and index.column == column and is_complete:
                return self._guarded(partial(range_of, index, kind))
        return None

    def _counter(self, path: tuple[str, ...]) -> ListedIndex | None:
        """Return a BITMAP index of a column, each fragment of which is in one segment."""
        for index in self._indices:
            size = sum(segment.covered.size for segment in index.segments)
            if index.kind == BITMAP and (index.column,) == path and size == index.covered.size:
                return index
        return None

    def _guarded(self, read: Callable[[], Answer]) -> Answer | None:
        """Read files of indices; a damaged one is a warning, and None."""
        try:
            return read()
        except (NotSupportedError, InvalidInputError):
            return None  # also links that may not be followed: a scan that needs them says so
        except LanceError as error:
            report_unusable(self._snapshot, self._indices, error, _INSTEAD)
            return None

    def prepare(self, name: str, uuids: Collection[str] | None = None) -> None:
        """Open the segments of an index, or some of them. Raises LanceError."""
        for index in self._indices:
            for segment in index.segments if index.name == name else ():
                if uuids is None or segment.index.uuid in uuids:
                    segment.reader()

    def explain(self, condition: Filter) -> list[str]:
        """Say in words which indices will be searched."""
        if condition.expression is None or not self._indices:
            return []
        try:
            names = self._words(condition.expression, 0)
            plan = self._plan(condition.expression, 0) if names else None
        except LanceError as error:
            return [f"index: not used, {error}"]
        if not names:
            return []
        if plan is None:
            return ["index: none answers the filter, every row is scanned"]
        if plan > self._most:
            return [f"index: not used, about {plan:,} rows may pass and a scan is cheaper"]
        total = len(self._snapshot.manifest.fragments)
        lines = []
        for index, reason in names:
            covered = f"{index.covered.size} of {total} fragments covered"
            scan_text = ", the others are scanned" if index.covered.size < total else ""
            lines.append(f"index: {index.words}, {covered}{scan_text}{reason}")
        return lines

    @property
    def _most(self) -> int:
        rows = int(live_counts(self._snapshot).sum())
        return min(max(int(rows * SHARE_MAX), ROWS_ALWAYS), ROWS_MAX)

    def _answered(self, expression: Expression) -> _Part | None:
        estimate = self._plan(expression, 0)
        if estimate is None or estimate > self._most:
            return None
        part = self._part(expression, 0, with_nulls=False)
        return part if part is not None and part.covered.size else None

    # --- plans: which parts can be answered, by reading little ------------------------------------

    def _plan(self, expression: Expression, depth: int) -> int | None:
        """Return about how many rows an answer will have; None if there is none."""
        searchable = self._leaf(expression)
        if searchable is not None:
            leaf, index = searchable
            return sum(segment.reader().estimate(leaf) for segment in index.segments)
        if not isinstance(expression, Call) or depth > _DEPTH_MAX:
            return None
        if expression.kernel is comparison.all_of:
            plans = [self._plan(conjunct, depth + 1) for conjunct in self._conjuncts(expression)]
            known_plans = [plan for plan in plans if plan is not None]
            return min(known_plans, default=None)
        if expression.kernel is comparison.any_of:
            if len(expression.operands) > _PARTS_MAX:
                return None
            total = 0
            for operand in expression.operands:
                plan = self._plan(operand, depth + 1)
                if plan is None:
                    return None
                total += plan
            return total
        inner = _negated(expression)
        if inner is None or self._plan(inner, depth + 1) is None:
            return None
        return int(live_counts(self._snapshot).sum())

    def _leaf(self, expression: Expression) -> tuple[Leaf, ListedIndex] | None:
        """Return the condition on a single column, and the index that answers it."""
        leaf = leaf_of(expression)
        return None if leaf is None else self._index_for(leaf)

    def _index_for(self, leaf: Leaf) -> tuple[Leaf, ListedIndex] | None:
        costs = self._costs(leaf)
        return (leaf, costs[0][1]) if costs else None

    def _costs(self, leaf: Leaf) -> list[tuple[int, ListedIndex]]:
        """Return the indices that answer a condition with what each costs, the cheapest first.

        The cost is a number of rows: about those that the index names or reads, more where they
        are only candidates, and those of fragments that it does not cover. It is 0 of an index
        without a choice.
        """
        able = [
            index
            for index in self._indices
            if (index.column,) == leaf.column.path
            and all(segment.reader().understands(leaf) for segment in index.segments)
        ]
        if len(able) < 2:
            return [(0, index) for index in able]
        rows = live_counts(self._snapshot)
        ids = self._snapshot.manifest.fragments.counts().ids

        def cost(index: ListedIndex) -> int:
            estimate = sum(segment.reader().estimate(leaf) for segment in index.segments)
            weight = 1 if index.kind in EXACT else _CANDIDATE
            return weight * estimate + int(rows[~among(ids, index.covered)].sum())

        return sorted(((cost(index), index) for index in able), key=lambda pair: pair[0])

    def _conjuncts(self, expression: Call) -> list[Expression]:
        """Return the operands of AND; ranges of one column as one of them."""
        ranges: dict[Column, list[Leaf]] = {}
        conjuncts: list[Expression] = []
        for operand in expression.operands[:_PARTS_MAX]:
            leaf = leaf_of(operand)
            if leaf is not None and leaf.asks(Between) is not None:
                ranges.setdefault(leaf.column, []).append(leaf)
            else:
                conjuncts.append(operand)
        return [*conjuncts, *(merged(leaves) for leaves in ranges.values())]

    def _words(self, expression: Expression, depth: int) -> list[tuple[ListedIndex, str]]:
        """Return the indices that answer parts of the filter, and why each was chosen."""
        leaf = leaf_of(expression)
        costs = [] if leaf is None else self._costs(leaf)
        if costs:
            (cost, index), *others = costs
            dearer = "".join(
                f", cheaper than {other.name!r} ({other.kind}): about {cost:,} rows "
                f"against {more:,}"
                for more, other in others
            )
            return [(index, dearer)]
        if not isinstance(expression, Call) or depth > _DEPTH_MAX:
            return []
        names: dict[str, tuple[ListedIndex, str]] = {}
        for operand in expression.operands[:_PARTS_MAX]:
            names |= {pair[0].name: pair for pair in self._words(operand, depth + 1)}
        return list(names.values())

    # --- answers ----------------------------------------------------------------------------------

    def _part(self, expression: Expression, depth: int, *, with_nulls: bool) -> _Part | None:
        searchable = self._leaf(expression)
        if searchable is not None:
            return _searched(*searchable, with_nulls=with_nulls)
        if not isinstance(expression, Call) or depth > _DEPTH_MAX:
            return None
        if expression.kernel is comparison.all_of:
            operands = self._conjuncts(expression)
            is_whole = len(expression.operands) <= _PARTS_MAX
            return self._all_of(operands, depth, with_nulls=with_nulls, is_whole=is_whole)
        if expression.kernel is comparison.any_of:
            return self._any_of(expression.operands, depth, with_nulls=with_nulls)
        inner = _negated(expression)
        if inner is None:
            return None
        part = self._part(inner, depth + 1, with_nulls=True)
        if part is None or not part.is_exact or part.nulls is None:
            return None
        outside = without(without(self._live_rows(part.covered), part.rows), part.nulls)
        return replace(part, rows=outside)

    def _all_of(
        self, operands: Sequence[Expression], depth: int, *, with_nulls: bool, is_whole: bool
    ) -> _Part | None:
        plans = [(self._plan(operand, depth + 1), place) for place, operand in enumerate(operands)]
        cheap = sorted((plan, place) for plan, place in plans if plan is not None)
        if with_nulls and (len(cheap) < len(operands) or not is_whole):
            return None
        result: _Part | None = None
        used = 0
        for plan, place in cheap:
            if result is not None and not with_nulls:
                is_dear = plan > _WORTH * result.rows.size + ROWS_ALWAYS
                if is_dear or plan > self._most:
                    continue
            part = self._part(operands[place], depth + 1, with_nulls=with_nulls)
            if part is None:
                continue
            if result is None:
                result = part
            elif not among(result.covered, part.covered).all():
                continue
            else:
                result = _both(result, part)
            used += 1
        if result is None:
            return None
        complete = is_whole and used == len(operands)
        if with_nulls and not complete:
            return None
        return replace(result, is_exact=result.is_exact and complete)

    def _any_of(
        self, operands: Iterable[Expression], depth: int, *, with_nulls: bool
    ) -> _Part | None:
        result: _Part | None = None
        for operand in operands:
            part = self._part(operand, depth + 1, with_nulls=with_nulls)
            if part is None:
                return None
            result = part if result is None else _either(result, part)
        return result

    def _live_rows(self, covered: Ids) -> U64s:
        """Return the addresses of all live rows of some fragments. Raises NotSupportedError."""
        fragments = self._snapshot.manifest.fragments
        places = np.flatnonzero(among(fragments.counts().ids, covered)).tolist()
        if int(live_counts(self._snapshot)[places].sum()) > ROWS_MAX:
            raise NotSupportedError(f"more than {ROWS_MAX:,} rows")
        return joined(
            live_offsets(self._snapshot, fragments[place]).astype(np.uint64)
            | np.uint64(fragments[place].id << 32)
            for place in places
        )


def _searched(leaf: Leaf, index: ListedIndex, *, with_nulls: bool) -> _Part:
    rows, nulls = [], []
    is_exact, knows_nulls = True, True
    for segment in index.segments:
        answer = segment.reader().search(leaf, with_nulls=with_nulls)
        rows.append(segment.present(answer.rows))
        is_exact &= answer.is_exact
        if answer.nulls is None:
            knows_nulls = False
        else:
            nulls.append(segment.present(answer.nulls))
    unknown = None if not knows_nulls else joined(nulls)
    return _Part(joined(rows), unknown, is_exact, covered=index.covered, words=(index.words,))


def _both(part: _Part, other: _Part) -> _Part:
    """Join by AND: null where neither is false, and not both are true."""
    rows = common(part.rows, other.rows)
    nulls = None
    if part.nulls is not None and other.nulls is not None:
        possible = common(joined([part.rows, part.nulls]), joined([other.rows, other.nulls]))
        nulls = without(possible, rows)
    covered = part.covered[among(part.covered, other.covered)]
    words = tuple(dict.fromkeys((*part.words, *other.words)))
    return _inside(
        _Part(rows, nulls, part.is_exact and other.is_exact, covered=covered, words=words)
    )


def _either(part: _Part, other: _Part) -> _Part:
    """Join by OR: null where none is true, and one is null."""
    rows = joined([part.rows, other.rows])
    nulls = None
    if part.nulls is not None and other.nulls is not None:
        nulls = without(joined([part.nulls, other.nulls]), rows)
    covered = part.covered[among(part.covered, other.covered)]
    words = tuple(dict.fromkeys((*part.words, *other.words)))
    return _inside(
        _Part(rows, nulls, part.is_exact and other.is_exact, covered=covered, words=words)
    )


def _inside(part: _Part) -> _Part:
    """Drop rows of fragments that are not covered."""

    def only_inside(rows: U64s) -> U64s:
        return rows[among((rows >> np.uint64(32)).astype(np.int64), part.covered)]

    nulls = None if part.nulls is None else only_inside(part.nulls)
    return replace(part, rows=ascending(only_inside(part.rows)), nulls=nulls)


def _negated(expression: Call) -> Expression | None:
    """Return what NOT, or <>, denies."""
    if expression.kernel is invert:
        return expression.operands[0]
    if expression.kernel is comparison.not_equal:
        return Call("operator =", comparison.equal, expression.operands, pa.bool_())
    return None


def _indices_of(snapshot: Snapshot) -> tuple[ListedIndex, ...]:
    data_format = snapshot.manifest.data_format
    if data_format is None or data_format.version == _LEGACY:
        return ()  # scans of 0.1 files return some value in the place of a null
    order = list(KINDS)
    return tuple(sorted(list_indices(snapshot, KINDS), key=lambda index: order.index(index.kind)))


def scalar_search(snapshot: Snapshot) -> ScalarSearch | None:
    """Return the scalar indices of a version, None if it has none; listed once per version.

    A version whose list of indices cannot be read is scanned without them, with a warning.
    """
    return listed_once(snapshot, ScalarSearch, ScalarSearch, _INSTEAD)


def row_choice(
    snapshot: Snapshot, condition: Filter | None, fragments: tuple[Fragment, ...] | None = None
) -> RowChoice:
    """Return the rows that pass a filter, found by indices where one answers it."""
    answer = None
    if condition is not None:
        search = scalar_search(snapshot)
        answer = None if search is None else search.answer(condition)
        if answer is not None and not is_worthwhile(snapshot, answer):
            answer = None
    return RowChoice(condition, fragments, answer=answer)
