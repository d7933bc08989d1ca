r"""The parts of a filter that one column decides, and what they ask of it.

===============  ==================================================================
question         of a bound expression
===============  ==================================================================
``Between``      ``c < 5``, ``c BETWEEN 1 AND 2``, ``starts_with(c, 'a')``, ``c LIKE 'a%'``
``OneOf``        ``c = 5``, ``c IN (1, 2)``, a column of booleans
``IsNull``       ``c IS NULL``
``HasItems``     ``array_has(c, 1)``, ``array_has_any(c, [1, 2])``, ``array_has_all``
``Contains``     ``contains(c, 'abc')``, ``c LIKE '%abc%'``
===============  ==================================================================

Any other condition on one column is a leaf without a question: an index that knows the different
values of the column can compute it for these.

A question never asks for fewer rows than pass; ``Leaf.test`` says of values which do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.arrow_compute import scalar_of
from lance_nb.errors import PredicateError
from lance_nb.table.predicate import comparison
from lance_nb.table.predicate.expression import (
    Call,
    Column,
    Expression,
    Literal,
    evaluate,
    first_line,
    one_array,
    paths_of,
)
from lance_nb.table.predicate.logic import is_null
from lance_nb.value_classes import dataclass

Mask = npt.NDArray[np.bool_]

_SWAPPED: dict[Any, Any] = {
    comparison.less: comparison.greater,
    comparison.greater: comparison.less,
    comparison.less_equal: comparison.greater_equal,
    comparison.greater_equal: comparison.less_equal,
    comparison.equal: comparison.equal,
}
_TEXTS = (pt.is_string, pt.is_large_string)
_ESCAPE, _ANY, _ONE = "\\", "%", "_"


@dataclass(frozen=True, slots=True)
class Between:
    """Values from ``low`` to ``high``, both included; None is no bound."""

    low: pa.Scalar | None
    high: pa.Scalar | None


@dataclass(frozen=True, slots=True)
class OneOf:
    """Values among ``members``, which has no null and no NaN. ``has_null``: IN (..., NULL)."""

    members: pa.Array
    has_null: bool = False


@dataclass(frozen=True, slots=True)
class IsNull:
    """No value."""


@dataclass(frozen=True, slots=True)
class HasItems:
    """Lists with one of the members, or with all of them. ``has_null``: null is a member too."""

    members: pa.Array
    has_null: bool
    every: bool


@dataclass(frozen=True, slots=True)
class Contains:
    """Texts that contain every one of the pieces. ``is_all``: and that is the whole condition."""

    pieces: tuple[str, ...]


Question = Between | OneOf | IsNull | HasItems | Contains


@dataclass(frozen=True, slots=True)
class Leaf:
    """A condition on one column at the top level, and the questions that it answers to."""

    column: Column
    expression: Expression
    questions: tuple[Question, ...] = ()

    def asks(self, *kinds: type[Question]) -> Question | None:
        """Return the first question of these kinds."""
        return next((question for question in self.questions if isinstance(question, kinds)), None)

    @property
    def is_null_of_null(self) -> bool:
        """Whether the condition is null exactly where the column is."""
        return any(
            not isinstance(question, IsNull)
            and not (isinstance(question, OneOf | HasItems) and question.has_null)
            for question in self.questions
        )

    def test(self, values: pa.Array) -> tuple[Mask, Mask]:
        """Compute the condition for values: for which it is true, and for which null.

        Raises PredicateError.
        """
        columns = {self.column.path: pa.chunked_array([values], values.type)}
        try:
            answers = one_array(evaluate(self.expression, columns), len(values))
        except (pa.ArrowException, OverflowError) as error:
            raise PredicateError(first_line(error)) from error
        count = len(values)
        nulls = comparison.as_mask(pc.is_null(answers), count)
        return comparison.as_mask(answers, count), nulls


def leaf_of(expression: Expression) -> Leaf | None:
    """Return the leaf that a condition is, None if it reads several columns or a part of one."""
    paths = set(paths_of(expression))
    if len(paths) != 1:
        return None
    (path,) = paths
    column = _column_of(expression)
    if column is None or len(path) != 1:
        return None
    return Leaf(column, expression, tuple(_questions(expression)))


def merged(leaves: Sequence[Leaf]) -> Expression:
    """Return the condition that rows pass all leaves, which ask for ranges of one column."""
    if len(leaves) == 1:
        return leaves[0].expression
    expressions = tuple(leaf.expression for leaf in leaves)
    return Call("AND", comparison.all_of, expressions, pa.bool_(), folds=True)


def _all_ranges(operands: Sequence[Expression]) -> list[Question]:
    """Return the range that the ranges of all operands have in common."""
    low: pa.Scalar | None = None
    high: pa.Scalar | None = None
    for operand in operands:
        is_flat = isinstance(operand, Call) and operand.kernel is not comparison.all_of
        ranges = (
            [question for question in _questions(operand) if isinstance(question, Between)]
            if is_flat
            else []
        )
        if not ranges:
            return []
        low = _outer(low, ranges[0].low, comparison.greater)
        high = _outer(high, ranges[0].high, comparison.less)
    return [Between(low, high)]


def _outer(bound: pa.Scalar | None, other: pa.Scalar | None, before: Any) -> pa.Scalar | None:
    if bound is None or other is None:
        return other if bound is None else bound
    return bound if before(bound, other).as_py() else other


def _column_of(expression: Expression) -> Column | None:
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Column):
            return node
        if isinstance(node, Call):
            waiting += node.operands
    return None


def _questions(expression: Expression) -> list[Question]:
    if isinstance(expression, Column):
        is_flag = pt.is_boolean(expression.type)
        return [OneOf(pa.repeat(scalar_of(True), 1))] if is_flag else []
    if not isinstance(expression, Call):
        return []
    kernel, operands = expression.kernel, expression.operands
    if kernel is comparison.all_of:
        return _all_ranges(operands)
    match operands:
        case (Column() as column, Literal() as literal) if _is_comparison(kernel):
            return _compared(kernel, column, literal)
        case (Literal() as literal, Column() as column) if _is_comparison(kernel):
            return _compared(_SWAPPED[kernel], column, literal)
        case (Column(), Literal() as literal) if pt.is_nested(operands[0].type):
            return _has_item(expression, operands[0].type, literal)
        case (Column(),) if kernel is is_null:
            return [IsNull()]
        case (Column() as column,) if isinstance(kernel, partial):
            return _of_partial(kernel, column)
    return []


def _is_comparison(kernel: Any) -> bool:
    return any(kernel is swapped for swapped in _SWAPPED)


def _compared(kernel: Any, column: Column, literal: Literal) -> list[Question]:
    value = literal.scalar
    if literal.type != column.type or not value.is_valid or pt.is_nested(column.type):
        return []
    if pt.is_floating(column.type) and isnan(value.as_py()):
        return []
    if kernel is comparison.equal:
        return [OneOf(pa.repeat(value, 1))]
    is_below = kernel in (comparison.less, comparison.less_equal)
    return [Between(None, value) if is_below else Between(value, None)]


def _of_partial(kernel: partial[Any], column: Column) -> list[Question]:
    keywords = kernel.keywords
    if kernel.func is comparison.in_set:
        members = keywords["members"]
        if members.type != column.type or _has_nan(members):
            return []
        return [OneOf(members, bool(keywords["has_null"]))]
    name = kernel.func.__name__  # only what calls such functions imports their modules
    if name == "has_items":
        members = keywords["members"]
        if _has_nan(members):
            return []
        return [HasItems(members, bool(keywords["has_null"]), bool(keywords["every"]))]
    if not any(fits(column.type) for fits in _TEXTS):
        return []
    if name == "match_literal":
        pattern = keywords["pattern"]
        if keywords["function"] == "starts_with":
            return _begins(pattern, column.type) if pattern else []
        return [Contains((pattern,))] if keywords["function"] == "match_substring" else []
    if kernel.func is comparison.like and not keywords["ignore_case"]:
        return _like(keywords["pattern"], column.type)
    return []


def _has_item(expression: Call, lists: pa.DataType, literal: Literal) -> list[Question]:
    from lance_nb.table.predicate.list_functions import list_names  # needed by lists only

    is_has = expression.name in list_names("has", "contains", "element_of")
    if not is_has or not literal.scalar.is_valid:
        return []
    members = pa.repeat(literal.scalar, 1)
    if members.type != lists.value_type or _has_nan(members):
        return []
    return [HasItems(members, has_null=False, every=False)]


def _has_nan(members: pa.Array) -> bool:
    if not pt.is_floating(members.type):
        return False
    return bool(np.isnan(members.to_numpy(zero_copy_only=False)).any())


def _begins(prefix: str, kind: pa.DataType) -> list[Question]:
    """Return the range of texts that begin so; its upper end is left open where there is none."""
    codes = [ord(letter) for letter in prefix]
    last = codes[-1] + 1
    is_letter = last < 0x110000 and not 0xD800 <= last <= 0xDFFF
    high = prefix[:-1] + chr(last) if is_letter else None
    return [
        Between(scalar_of(prefix, kind), None if high is None else scalar_of(high, kind)),
        Contains((prefix,)),
    ]


def _like(pattern: pa.Scalar, kind: pa.DataType) -> list[Question]:
    if not pattern.is_valid:
        return []
    text = pattern.as_py()
    pieces, piece, position = [], "", 0
    while position < len(text):
        letter = text[position]
        if letter == _ESCAPE and position + 1 < len(text):
            position += 1
            piece += text[position]
        elif letter in (_ANY, _ONE):
            pieces.append(piece)
            piece = ""
        else:
            piece += letter
        position += 1
    pieces.append(piece)
    questions: list[Question] = []
    if len(pieces) == 1:
        return [OneOf(pa.repeat(scalar_of(piece, kind), 1))] if _ESCAPE not in text else []
    if pieces[0]:
        questions += _begins(pieces[0], kind)[:1]
    if any(pieces):
        questions.append(Contains(tuple(text for text in pieces if text)))
    return questions
