"""Parse simple conditions without sqlglot, which takes longer to import than most filters take.

The grammar is a part of the one in ``sql_text``::

    condition := all_of {OR all_of}          all_of := test {AND test}
    test      := NOT test | (condition) | operand [comparison]
    comparison := (= | <> | != | < | <= | > | >=) operand | IS [NOT] NULL
                | [NOT] IN (literal, ...) | [NOT] LIKE string | [NOT] BETWEEN literal AND literal
    operand   := value {% value}             value := name[.name[.name]] | literal

Names are ASCII words or stand in backticks; strings hold no quote and no backslash; numbers begin
with a digit; TRUE and FALSE are literals. The tree has the same nodes as sqlglot's, as far as the
binder looks at them. Everything else gives None, and sqlglot reads the text: what is not written in
this grammar, words that sqlglot reads in a way of their own, and all errors, so that there is one
form of each message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from lance_nb.errors import PredicateError
from lance_nb.value_classes import dataclass

TOKENS_MAX = 1_000
DEPTH_MAX = 30

_NAME = r"(?:[A-Za-z_][A-Za-z0-9_]*|`[^`\\\x00-\x1f]+`)"
_TOKEN = re.compile(
    rf"""[ \t\r\n]*(?:
    (?P<name>{_NAME}(?:\.{_NAME}){{0,2}})(?![\w.`"'\[:\\])
    |(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w.])
    |(?P<string>'[^'"\\\x00-\x1f]*'|"[^'"\\\x00-\x1f]*")(?!['"])
    |(?P<bulk>:lance_nb_bulk_[0-9]+)(?!\w)
    |(?P<sign><>|!=|<=|>=|[=<>(),%](?![=<>]))
    |(?P<end>\Z))""",
    re.VERBOSE,
)
# Each of them is read as something else than a name in some place where the grammar has a name.
# tests/unit/table/predicate/test_simple_sql.py looks for more among the keywords of sqlglot.
NOT_NAMES = frozenset({
    "AND", "ANY", "ARRAY", "AS", "BETWEEN", "CASE", "CURRENT_DATE", "CURRENT_TIMESTAMP",
    "DISTINCT", "ELSE", "END", "FALSE", "FOR", "FROM", "ILIKE", "IN", "INTERVAL", "IS", "LIKE",
    "LIST", "MAP", "NOT", "NOTNULL", "NULL", "NULLABLE", "OBJECT", "OR", "RANGE", "SELECT",
    "STRUCT", "THEN", "TRUE", "WHEN",
})  # fmt: skip
_COMPARISONS = {
    "=": "eq", "<>": "neq", "!=": "neq", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte",
}  # fmt: skip
_Token = tuple[str, str, int]  # kind, text, place in the text


@dataclass(frozen=True, slots=True)
class Node:
    """A node with the names and attributes that the binder reads of sqlglot's nodes."""

    key: str
    this: Any = None
    expression: Any = None
    expressions: tuple[Node, ...] = ()
    args: dict[str, Any] = field(default_factory=dict)
    parts: tuple[Node, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)
    is_string: bool = False

    @property
    def name(self) -> str:
        """Text of a part of a name."""
        return str(self.this)

    def walk(self) -> Iterator[Node]:
        """Yield the node, for a message that nobody sees: sqlglot reads such a text again."""
        yield self

    def sql(self) -> str:
        """Name the kind of node."""
        return self.key


def parse_simple(text: str) -> Node | None:
    """Return the tree of a condition, None where sqlglot has to read it."""
    tokens: list[_Token] = []
    place = 0
    while len(tokens) < TOKENS_MAX:
        match = _TOKEN.match(text, place)
        if match is None:
            return None
        kind = str(match.lastgroup)
        tokens.append((kind, match[kind], match.start(kind)))
        if kind == "end":
            break
        place = match.end()
    else:
        return None
    try:
        return _Parser(tokens).condition_to_the_end()
    except PredicateError:
        return None


class _Parser:
    """Reads tokens from left to right, one method per rule of the grammar."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self._depth = 0

    def condition_to_the_end(self) -> Node:
        """Read the whole text. Raises PredicateError."""
        condition = self._condition()
        if self._tokens[self._index][0] != "end":
            raise _not_simple()
        return condition

    def _condition(self) -> Node:
        return self._chain("OR", lambda: self._chain("AND", self._test))

    def _chain(self, word: str, operand: Callable[[], Node]) -> Node:
        node = operand()
        while self._accepts(word):
            node = Node(word.lower(), node, operand())
        return node

    def _test(self) -> Node:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise _not_simple()
        if self._accepts("NOT"):
            node = Node("not", self._test())
        elif self._accepts("("):
            node = Node("paren", self._condition())
            self._expect(")")
        else:
            node = self._comparison()
        self._depth -= 1
        return node

    def _comparison(self) -> Node:
        left = self._operand()
        kind, sign, _ = self._tokens[self._index]
        if kind == "sign" and sign in _COMPARISONS:
            self._index += 1
            return Node(_COMPARISONS[sign], left, self._operand())
        if self._accepts("IS"):
            negated = self._accepts("NOT")
            self._expect("NULL")
            return _negated(Node("is", left, Node("null")), negated)
        negated = self._accepts("NOT")
        if self._accepts("IN"):
            self._expect("(")
            members = [self._member()]
            while self._accepts(","):
                members.append(self._member())
            self._expect(")")
            return _negated(Node("in", left, expressions=tuple(members)), negated)
        if self._accepts("LIKE"):
            pattern = self._literal()
            if not pattern.is_string:
                raise _not_simple()
            return _negated(Node("like", left, pattern), negated)
        if self._accepts("BETWEEN"):
            low = self._literal()
            self._expect("AND")
            ends = {"low": low, "high": self._literal()}
            return _negated(Node("between", left, args=ends), negated)
        if negated:
            raise _not_simple()
        return left

    def _operand(self) -> Node:
        node = self._value()
        while self._accepts("%"):
            node = Node("mod", node, self._value())
        return node

    def _value(self) -> Node:
        kind, text, place = self._tokens[self._index]
        if kind != "name" or text.upper() in {"TRUE", "FALSE"}:
            return self._literal()
        self._index += 1
        words = re.findall(_NAME, text)
        quoted = [word.startswith("`") for word in words]
        if any(not q and w.upper() in NOT_NAMES for q, w in zip(quoted, words, strict=True)):
            raise _not_simple()
        names = [word.strip("`") for word in words]
        parts = (
            Node("identifier", name, args={"quoted": q}, meta={"start": place})
            for q, name in zip(quoted, names, strict=True)
        )
        return Node("column", parts=tuple(parts))

    def _member(self) -> Node:
        kind, text, _ = self._tokens[self._index]
        if kind != "bulk":
            return self._literal()
        self._index += 1
        return Node("placeholder", text[1:])

    def _literal(self) -> Node:
        kind, text, _ = self._tokens[self._index]
        self._index += 1
        if kind == "string":
            return Node("literal", text[1:-1], is_string=True)
        if kind == "number":
            digits = Node("literal", text.lstrip("-"))
            return Node("neg", digits) if text[0] == "-" else digits
        if kind == "name" and text.upper() in {"TRUE", "FALSE"}:
            return Node("boolean", text.upper() == "TRUE")
        raise _not_simple()

    def _accepts(self, word: str) -> bool:
        """Go past a word or a sign if it is the next token."""
        kind, text, _ = self._tokens[self._index]
        if kind not in {"name", "sign"} or text.upper() != word:
            return False
        self._index += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._accepts(word):
            raise _not_simple()


def _not_simple() -> PredicateError:
    return PredicateError("not a simple condition")  # nobody sees it: sqlglot reads the text


def _negated(node: Node, negated: bool) -> Node:
    return Node("not", node) if negated else node
