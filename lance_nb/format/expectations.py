"""Expectations: conditions that the rows of a dataset should meet, kept in its table configuration.

Each expectation is one key of the configuration, so that two people who add one each do not
conflict::

    lance_nb.expectation.<name>     {"kind": "check", "sql": "score BETWEEN 0 AND 1"}
                                    {"kind": "not_null", "column": "label"}
                                    {"kind": "unique", "columns": ["id"]}
                                    {"kind": "reference", "column": "label",
                                     "uri": "s3://bucket/labels.lance", "to": "name"}
                                    {"kind": "row_count", "min": 1, "max": 1000000}
                                    {"kind": "drift", "column": "score", "max": 0.25,
                                     "against": "previous"}
    lance_nb.expectations.gate      "refuse": staging refuses commits that break one

Other readers and writers carry these keys and do not read them. A value that is not in this form is
an ``InvalidInputError`` with the key; nothing in it is executed.

Limits: ``EXPECTATIONS_MAX`` expectations of ``TEXT_CHARS_MAX`` characters each; a name has letters,
digits, ``_``, ``.`` and ``-``.
Source: our own; ``Manifest.config`` of lance.table.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

from lance_nb.errors import InvalidInputError, clip
from lance_nb.value_classes import dataclass

PREFIX = "lance_nb.expectation."
GATE = "lance_nb.expectations.gate"
REFUSE = "refuse"
PREVIOUS = "previous"
EXPECTATIONS_MAX = 500
TEXT_CHARS_MAX = 10_000

Kind = Literal["check", "not_null", "unique", "reference", "row_count", "drift"]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_NO_NAME_CHARS = re.compile(r"[^A-Za-z0-9_.]+")
_NAME_CHARS_MAX = 60
# The fields of each kind in JSON: name, attribute, type, whether it may be left out.
_FIELDS: Mapping[str, tuple[tuple[str, str, type, bool], ...]] = {
    "check": (("sql", "sql", str, False),),
    "not_null": (("column", "column", str, False),),
    "unique": (("columns", "columns", list, False),),
    "reference": (
        ("column", "column", str, False), ("uri", "uri", str, False), ("to", "to", str, False),
    ),
    "row_count": (("min", "minimum", int, True), ("max", "maximum", int, True)),
    "drift": (
        ("column", "column", str, False), ("max", "limit", float, False),
        ("against", "against", str, True),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation; which fields are used depends on ``kind``.

    ``sql``: a condition on each row. ``column``, ``columns``: what it is about. ``uri`` and ``to``:
    the dataset and the column that hold the allowed values. ``minimum`` and ``maximum``: bounds of
    the number of rows, both inclusive. ``limit``: the largest population stability index against
    the version ``against`` ("previous", or a ref).

    Examples:
        >>> ds.expectations.add_not_null("label")
        'label-is-not-null'
        >>> ds.expectations.list()["label-is-not-null"].statement
        '`label` IS NOT NULL'
        >>> one = ds.expectations.list()["label-is-not-null"]
        >>> one.key, one.to_json()
        ('lance_nb.expectation.label-is-not-null', '{"kind": "not_null", "column": "label"}')
        >>> lance_nb.Expectation.from_json(one.name, one.to_json()) == one
        True
    """

    name: str
    kind: Kind
    sql: str = ""
    column: str = ""
    columns: tuple[str, ...] = ()
    uri: str = ""
    to: str = ""
    minimum: int | None = None
    maximum: int | None = None
    limit: float = 0.0
    against: str = PREVIOUS

    @property
    def statement(self) -> str:
        """The expectation as a person would say it, close to SQL."""
        match self.kind:
            case "check":
                return self.sql
            case "not_null":
                return f"`{self.column}` IS NOT NULL"
            case "unique":
                return f"UNIQUE ({', '.join(f'`{name}`' for name in self.columns)})"
            case "reference":
                return f"`{self.column}` REFERENCES {self.uri} (`{self.to}`)"
            case "row_count":
                return _bounds_text(self.minimum, self.maximum)
            case "drift":
                return f"drift of `{self.column}` from {self.against} <= {self.limit:g}"

    @property
    def key(self) -> str:
        """The key in the table configuration."""
        return f"{PREFIX}{self.name}"

    def to_json(self) -> str:
        """Return the value in the table configuration."""
        json_object: dict[str, Any] = {"kind": self.kind}
        for name, attribute, _, _ in _FIELDS[self.kind]:
            value = getattr(self, attribute)
            if value is not None:
                json_object[name] = list(value) if isinstance(value, tuple) else value
        return json.dumps(json_object, ensure_ascii=False)

    @classmethod
    def from_json(cls, name: str, text: str) -> Expectation:
        """Read a value of the table configuration.

        Args:
            name: the name of the expectation.
            text: the value, as ``to_json`` returns it.

        Raises InvalidInputError.
        """
        return _parsed(name, text)


def _bounds_text(minimum: int | None, maximum: int | None) -> str:
    if minimum is not None and maximum is not None:
        return f"count(*) BETWEEN {minimum} AND {maximum}"
    return f"count(*) >= {minimum}" if maximum is None else f"count(*) <= {maximum}"


def _parsed(name: str, text: str) -> Expectation:
    if len(text) > TEXT_CHARS_MAX:
        raise _unreadable(name, f"it is longer than {TEXT_CHARS_MAX:,} characters")
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(name, f"it is not JSON: {error}") from error
    if not isinstance(parsed, dict) or parsed.get("kind") not in get_args(Kind):
        raise _unreadable(name, f"'kind' must be one of {', '.join(get_args(Kind))}")
    kind: Kind = parsed["kind"]
    fields = _FIELDS[kind]
    unknown = set(parsed) - {"kind", *(field[0] for field in fields)}
    if unknown:
        raise _unreadable(name, f"unknown fields {sorted(unknown)!r:.200}")
    values = {}
    for field, attribute, type_, is_optional in fields:
        value = parsed.get(field)
        if value is None and is_optional:
            continue
        values[attribute] = _value(name, field, value, type_)
    return checked(Expectation(check_name(name), kind, **values))


def _value(name: str, field: str, value: Any, type_: type) -> Any:
    if type_ is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < 2**53 else math.inf
    if not isinstance(value, type_) or isinstance(value, bool):
        raise _unreadable(name, f"{field!r} must be {_TYPE_NAMES[type_]}, not {value!r:.80}")
    if isinstance(value, list):
        if not all(isinstance(text, str) for text in value):
            raise _unreadable(name, f"{field!r} must be a list of texts")
        return tuple(value)
    return value


_TYPE_NAMES = {str: "a text", list: "a list of texts", int: "an integer", float: "a number"}


def _unreadable(name: str, problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"expectation {name!r:.140} in the table configuration cannot be read: {problem}; "
        "remove it with ds.expectations.remove, and add it again"
    )


def check_name(name: str) -> str:
    """Return a name that may be given to an expectation. Raises InvalidInputError."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInputError(
            f"{name!r:.140} is no name for an expectation: use up to 100 letters, digits, '_', '.' "
            "and '-', and begin with a letter, a digit or '_'"
        )
    return name


def checked(expectation: Expectation) -> Expectation:
    """Return the expectation if its values make sense. Raises InvalidInputError."""
    name = expectation.name
    if len(expectation.to_json()) > TEXT_CHARS_MAX:
        raise InvalidInputError(
            f"expectation {name!r} is longer than {TEXT_CHARS_MAX:,} characters"
        )
    if expectation.kind == "check" and not expectation.sql.strip():
        raise InvalidInputError(f"expectation {name!r}: the condition is empty")
    if expectation.kind == "unique" and (
        not expectation.columns or len(set(expectation.columns)) < len(expectation.columns)
    ):
        raise InvalidInputError(f"expectation {name!r}: name one or more different columns")
    if expectation.kind == "row_count":
        bounds = [
            bound for bound in (expectation.minimum, expectation.maximum) if bound is not None
        ]
        if not bounds or min(bounds) < 0 or bounds != sorted(bounds):
            raise InvalidInputError(
                f"expectation {name!r}: give a minimum, a maximum or both, at least 0 and the "
                "minimum not above the maximum"
            )
    if expectation.kind == "drift" and not (
        math.isfinite(expectation.limit) and expectation.limit > 0
    ):
        raise InvalidInputError(f"expectation {name!r}: the limit must be a number above 0")
    return expectation


def free_name(statement: str, taken: Mapping[str, Any] | set[str]) -> str:
    """Return a name made of a statement that is not taken."""
    words = _NO_NAME_CHARS.sub("-", statement.lower()).strip("-.")[:_NAME_CHARS_MAX].strip("-.")
    base = words or "expectation"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name


@dataclass(frozen=True, slots=True)
class ConfiguredExpectations:
    """What a table configuration holds. ``problems``: why a value cannot be read, by name."""

    expectations: Mapping[str, Expectation]
    problems: Mapping[str, str]
    is_gated: bool

    @classmethod
    def of(cls, config: Mapping[str, str]) -> ConfiguredExpectations:
        """Read the expectations of a table configuration, in the order of their names."""
        expectations: dict[str, Expectation] = {}
        problems: dict[str, str] = {}
        keys = sorted(key for key in config if key.startswith(PREFIX))
        for number, key in enumerate(keys):
            name = key.removeprefix(PREFIX)
            if number >= EXPECTATIONS_MAX:
                problems[name] = f"only the first {EXPECTATIONS_MAX} expectations are read"
                continue
            try:
                expectations[name] = Expectation.from_json(name, config[key])
            except InvalidInputError as error:
                problems[name] = clip(str(error))
        return cls(expectations, problems, config.get(GATE) == REFUSE)
