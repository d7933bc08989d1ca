"""Bind a syntax tree of sqlglot to the columns of a dataset: calls, operators, casts, CASE.

What conditions consist of is bound by ``condition_binder``, in the same way: one method per kind of
node, found by the node's key.

pylance reads operators itself, and leaves to DataFusion all that stands inside of a call. There,
and in what pylance reads in no other place (CASE, lists in brackets, EXTRACT ...), ``TIMESTAMP``
counts nanoseconds, outside of it microseconds; an int64 that becomes a timestamp of nanoseconds
counts seconds there.

On purpose unlike pylance, which refuses it: a literal beyond the years that nanoseconds reach
(1677 to 2262) counts microseconds.

Not supported: subqueries, aggregates, window functions, and functions that are in none
of the tables of this folder; nothing here can read a file or another table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.arrow_compute import scalar_of
from lance_nb.errors import PredicateError
from lance_nb.table.predicate import (
    comparison,
    list_functions,
    list_results,
    number_functions,
    string_functions,
    time_functions,
)
from lance_nb.table.predicate.arithmetic import arithmetic, shift
from lance_nb.table.predicate.casts import try_cast_kernel
from lance_nb.table.predicate.coercion import cast, fit_literal, plain, plain_for_cast, unify
from lance_nb.table.predicate.condition_binder import ConditionBinder, place_of
from lance_nb.table.predicate.expression import (
    Call,
    Column,
    Expression,
    Literal,
    Names,
    call,
    child,
)
from lance_nb.table.predicate.functions import call_of
from lance_nb.table.predicate.logic import in_members
from lance_nb.table.predicate.sql_text import Bulk, sql_of
from lance_nb.table.predicate.type_names import type_of

_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "intdiv": "/"}
_SHIFTS = {"bitwiseleftshift": "shift_left", "bitwiserightshift": "shift_right"}
_INSTEAD = {
    "similarto": "use regexp_like(text, pattern)",
    "regexpilike": "use regexp_like(text, pattern, 'i')",
    "any": "use IN (...), or array_has(list, value)",
    "slice": "use array_slice(list, first, last)",
    "attimezone": "use to_local_time(timestamp), or a cast",
    "exists": "subqueries are not read; query the dataset with SQL (ds.sql)",
    "if": "use CASE WHEN ... THEN ... ELSE ... END",
}
_HAS = frozenset(list_functions.list_names("has", "contains", "element_of"))
# A list that an expression makes of its operands.
_NEW_LISTS = ("a list in brackets", "make_array", "make_list")
_OF_DATAFUSION = frozenset({
    "anonymous", "array", "case", "extract", "substring", "strposition", "trim",
})  # fmt: skip
_WORDS_AS_CALLS = ("current_date", "current_timestamp")


def bind_sql(tree: Any, bulks: Mapping[str, Bulk], names: Names) -> Expression:
    """Bind a tree; ``bulks`` are the lists that were cut out of the text.

    Raises PredicateError, which names what is wrong and where.
    """
    return Binder(bulks, names).bind(tree)


class Binder(ConditionBinder):
    """Binds the nodes of one tree of sqlglot.

    ``nanoseconds``: the tree is bound as the operands of a call are, see above.
    """

    def __init__(
        self, bulks: Mapping[str, Bulk], names: Names, *, nanoseconds: bool = False
    ) -> None:
        super().__init__(bulks, names)
        self._nanoseconds = nanoseconds

    def bind(self, node: Any) -> Expression:
        """Bind one node. Raises PredicateError."""
        outside = self._nanoseconds
        self._nanoseconds = outside or node.key in _OF_DATAFUSION
        try:
            return super().bind(node)
        finally:
            self._nanoseconds = outside

    def bind_other(self, key: str, node: Any) -> Expression:
        """Bind operators between values, which share their methods. Raises PredicateError."""
        if key in _ARITHMETIC:
            left, right = self.bind(node.this), self.bind(node.expression)
            return arithmetic(_ARITHMETIC[key], left, right)
        if key in _SHIFTS:
            return shift(_SHIFTS[key], self.bind(node.this), self.bind(node.expression))
        hint = f"; {_INSTEAD[key]}" if key in _INSTEAD else ""
        raise PredicateError(f"{sql_of(node)} cannot be used in an expression{hint}")

    def _bind_column(self, node: Any) -> Expression:
        parts = node.parts
        if len(parts) == 1 and not parts[0].args.get("quoted"):
            word = parts[0].name.lower()
            if word in _WORDS_AS_CALLS and parts[0].name not in self.names.schema.names:
                return call_of(word, [])
        return super()._bind_column(node)

    def _bind_hexstring(self, node: Any) -> Expression:
        digits = str(node.this)
        try:
            return Literal(scalar_of(bytes.fromhex("0" * (len(digits) % 2) + digits)))
        except ValueError as exc:
            raise PredicateError(f"{digits!r} is no hexadecimal number") from exc

    def _bind_array(self, node: Any) -> Expression:
        values = [self.bind(expression) for expression in node.expressions]
        literals = [value for value in values if isinstance(value, Literal)]
        if len(literals) < len(values):
            return list_results.make_array("a list in brackets", values)
        return list_functions.literal_list(literals)

    def _bind_dot(self, node: Any) -> Expression:
        return child(self.bind(node.this), node.expression.name, place=place_of(node.expression))

    def _bind_bracket(self, node: Any) -> Expression:
        parent = self.bind(node.this)
        if len(node.expressions) != 1:
            raise PredicateError(f"{sql_of(node)}: expected one field or one position in brackets")
        key = self.bind(node.expressions[0])
        if isinstance(key, Literal) and pt.is_string(key.type):
            return child(parent, key.scalar.as_py())
        return list_functions.element_at("an element", [parent, key])

    def _bind_escape(self, node: Any) -> Expression:
        return self._bind_like(node.this, str(node.expression.this))

    def _bind_dpipe(self, node: Any) -> Expression:
        return string_functions.joined("||", self.bind(node.this), self.bind(node.expression))

    def _bind_cast(self, node: Any) -> Expression:
        value, type_ = self.bind(node.this), self._type_of(node)
        if isinstance(value, Literal) and pt.is_decimal(type_) and value.digits:
            value = fit_literal(value, type_)
        value = plain_for_cast(value, type_)
        if not self._nanoseconds or not pt.is_timestamp(type_) or type_.unit != "ns":
            return cast(value, type_)
        if pt.is_int64(value.type):
            value = cast(value, pa.timestamp("s", type_.tz))
        try:
            return cast(value, type_)
        except PredicateError:
            coarser = type_of(node.args["to"], node)
            if coarser == type_ or not isinstance(value, Literal):
                raise
            return cast(value, coarser)

    def _type_of(self, node: Any) -> pa.DataType:
        return type_of(node.args["to"], node, nanoseconds=self._nanoseconds)

    def _bind_trycast(self, node: Any) -> Expression:
        type_ = self._type_of(node)
        value = plain_for_cast(self.bind(node.this), type_)
        return call(f"TRY_CAST to {type_}", try_cast_kernel(type_), value)

    def _bind_case(self, node: Any) -> Expression:
        branches = []
        for branch in node.args["ifs"]:
            if node.this is None:
                test = self.boolean(branch.this)
            else:
                operands = unify(self.bind(node.this), self.bind(branch.this))
                test = call("CASE", comparison.equal, *operands)
            branches.append((test, self.bind(branch.args["true"])))
        default = node.args.get("default")
        otherwise = Literal(scalar_of(None)) if default is None else self.bind(default)
        return number_functions.choose("CASE", branches, otherwise)

    def _bind_anonymous(self, node: Any) -> Expression:
        name = str(node.this).lower()
        operands = [self.bind(expression) for expression in node.expressions]
        if name in _HAS and len(operands) == 2:
            listed, element = operands
            if isinstance(listed, Literal) and not isinstance(element, Literal):
                return _in_list(name, listed, element)
            if isinstance(listed, Call) and listed.name in _NEW_LISTS:
                # DataFusion plans it as IN, which takes both zeros for one.
                return in_members(plain(element), listed.operands)
        return call_of(name, operands)

    def _bind_substring(self, node: Any) -> Expression:
        parts = (node.this, node.args.get("start"), node.args.get("length"))
        return call_of("substr", [self.bind(part) for part in parts if part is not None])

    def _bind_strposition(self, node: Any) -> Expression:
        return call_of("strpos", [self.bind(node.this), self.bind(node.args["substr"])])

    def _bind_trim(self, node: Any) -> Expression:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
            str(node.args.get("position")), "btrim"
        )
        parts = (node.this, node.expression)
        return call_of(name, [self.bind(part) for part in parts if part])

    def _bind_interval(self, node: Any) -> Expression:
        unit = node.args.get("unit")
        return time_functions.interval(str(node.this.name), str(unit.name) if unit else "")

    def _bind_extract(self, node: Any) -> Expression:
        field = Literal(scalar_of(str(node.this.this).lower()))
        return time_functions.date_part("extract", [field, self.bind(node.expression)])


def _in_list(name: str, listed: Literal, element: Expression) -> Expression:
    """Bind array_has of a list of literals as IN; none is found in an empty list."""
    if not listed.scalar.is_valid:
        return Literal(scalar_of(None, pa.bool_()))
    list_functions.list_of(listed, name=name)
    values = listed.scalar.values
    if not len(values):
        return Literal(scalar_of(False))
    members = [Literal(value if value.is_valid else scalar_of(None)) for value in values]
    return in_members(plain(element), members, is_column=isinstance(element, Column))
