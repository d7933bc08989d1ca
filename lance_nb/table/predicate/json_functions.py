"""Functions of JSON columns: json_extract, json_exists, json_get, json_get_int, json_array_length.

Paths are those of JSONPath without branches: ``$.a.b``, ``$["a b"]``, ``$.items[0]``,
``[last]``, ``[*]`` (several finds come as an array); ``$.`` may be left out. ``json_get`` takes one
key or one position and may be nested. A value of another kind than asked for is converted as
pylance converts it (``"12"`` is 12, 1.5 is 2, true is 1) or refused.

Limits: each distinct document of a window is parsed once, in Python: it has no shape that Arrow
could use. Not supported: filters, ranges and ``..`` in paths. On purpose unlike pylance, whose
``json_get`` gives JSONB bytes: ours gives a JSON column, which shows as text.
Source: documentation of Lance on JSON; results compared with pylance 14.0.2.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.coercion import plain
from lance_nb.table.predicate.expression import Expression, Value, call, per_distinct
from lance_nb.table.predicate.string_functions import Binder, literal_of

_EXTENSION = "arrow.json"
_STEP = re.compile(r"""\.?(?:(\w+)|\["([^"]*)"\]|\['([^']*)'\]|\[(\d+|last|\*)\])""")
Steps = tuple[str | int, ...]
_LAST, _EVERY = "[last]", "[*]"
_NOTHING = object()


def _document(expression: Expression, *, name: str) -> Expression:
    type_ = expression.type
    if not isinstance(type_, pa.BaseExtensionType) or type_.extension_name != _EXTENSION:
        raise PredicateError(f"{name} needs a JSON column, not {type_}")
    return plain(expression)


def _steps(path: Any, *, name: str) -> Steps:
    """Read a path. Raises PredicateError for one that is none."""
    unread = str(path).removeprefix("$") if isinstance(path, str) else "["
    steps: list[str | int] = []
    while unread:
        match = _STEP.match(unread)
        if match is None:
            raise PredicateError(f"{name}: {path!r} is no path; paths are like '$.a.b[0]'")
        key, double, single, place = match.groups()
        if place is None:
            steps.append(next(group for group in (key, double, single) if group is not None))
        else:
            steps.append(int(place) if place.isdigit() else f"[{place}]")
        unread = unread[match.end() :]
    return tuple(steps)


def _parsed(text: str) -> Any:
    """Parse a document; releases before JSON columns stored any text as JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise pa.ArrowInvalid(f"{text[:40]!r} is not JSON: {exc}") from exc


def _found(value: Any, steps: Steps) -> Iterator[Any]:
    """Yield what a path leads to."""
    if not steps:
        yield value
        return
    step, later_steps = steps[0], steps[1:]
    if step == _EVERY:
        for element in value if isinstance(value, list) else [value]:
            yield from _found(element, later_steps)
    elif isinstance(value, list) and (step == _LAST or isinstance(step, int)):
        place = len(value) - 1 if step == _LAST else int(step)
        if 0 <= place < len(value):
            yield from _found(value[place], later_steps)
    elif isinstance(value, dict) and step in value:
        yield from _found(value[str(step)], later_steps)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _extract(text: str, steps: Steps) -> str | None:
    values = list(_found(_parsed(text), steps))
    return None if not values else _text(values[0] if len(values) == 1 else values)


def _exists(text: str, steps: Steps) -> bool:
    return next(_found(_parsed(text), steps), _NOTHING) is not _NOTHING


def _array_length(text: str, steps: Steps) -> int | None:
    value = next(_found(_parsed(text), steps), _NOTHING)
    if isinstance(value, list):
        return len(value)
    return None if value is _NOTHING else 0


def _as_text(value: Any) -> str:
    if isinstance(value, dict | list):
        raise pa.ArrowInvalid("a JSON array or object is no text; use json_extract")
    return value if isinstance(value, str) else _text(value)


def _as_int(value: Any) -> int:
    if isinstance(value, float) and math.isfinite(value):
        return int(math.copysign(math.floor(abs(value) + 0.5), value))
    try:
        return int(value.strip() if isinstance(value, str) else value)
    except (TypeError, ValueError) as exc:
        raise pa.ArrowInvalid(f"the JSON value {_text(value)} is no whole number") from exc


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as exc:
        raise pa.ArrowInvalid(f"the JSON value {_text(value)} is not a number") from exc


def _as_bool(value: Any) -> bool:
    words = {"true": True, "false": False}
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    if not isinstance(value, bool):
        raise pa.ArrowInvalid(f"the JSON value {_text(value)} is neither true nor false")
    return value


def _of_path(function: Callable[..., Any], type_: pa.DataType) -> Binder:
    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        steps = _steps(literal_of(operands[1], name=name), name=name)
        kernel = per_distinct(lambda text: function(text, steps), type_)
        return call(name, kernel, _document(operands[0], name=name))

    return bind


def _contains(name: str, operands: Sequence[Expression]) -> Expression:
    steps = _steps(literal_of(operands[1], name=name), name=name)
    element = literal_of(operands[2], name=name)
    text = element if isinstance(element, str) else _text(element)

    def has(document: str) -> bool:
        value = next(_found(_parsed(document), steps), None)
        if not isinstance(value, list):
            return False
        return any(not isinstance(item, dict | list) and _as_text(item) == text for item in value)

    return call(name, per_distinct(has, pa.bool_()), _document(operands[0], name=name))


def _key(operand: Expression, *, name: str) -> str | int:
    key = literal_of(operand, name=name)
    if not isinstance(key, str | int):
        raise PredicateError(f"{name} needs a key or a position as a literal")
    return key


def _step_into(value: Any, key: str | int) -> Any:
    if isinstance(value, list) and str(key).isdigit():
        return value[int(key)] if int(key) < len(value) else _NOTHING
    return value.get(str(key), _NOTHING) if isinstance(value, dict) else _NOTHING


def _get(name: str, operands: Sequence[Expression]) -> Expression:
    key = _key(operands[1], name=name)

    def kernel(rows: Value) -> Value:
        def pick(text: str) -> str | None:
            value = _step_into(_parsed(text), key)
            return None if value is _NOTHING else _text(value)

        result = per_distinct(pick, pa.string())(rows)
        type_ = pa.json_(pa.string())
        if isinstance(result, pa.Scalar):
            return pa.ExtensionScalar.from_storage(type_, result)
        return pa.ExtensionArray.from_storage(type_, result)

    return call(name, kernel, _document(operands[0], name=name))


def _get_as(convert: Callable[[Any], Any], type_: pa.DataType) -> Binder:
    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        key = _key(operands[1], name=name)

        def pick(text: str) -> Any:
            value = _step_into(_parsed(text), key)
            return None if value is _NOTHING or value is None else convert(value)

        return call(name, per_distinct(pick, type_), _document(operands[0], name=name))

    return bind


# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    "json_extract": (_of_path(_extract, pa.string()), 2, 2),
    "json_exists": (_of_path(_exists, pa.bool_()), 2, 2),
    "json_array_length": (_of_path(_array_length, pa.int64()), 2, 2),
    "json_array_contains": (_contains, 3, 3),
    "json_get": (_get, 2, 2),
    "json_get_string": (_get_as(_as_text, pa.string()), 2, 2),
    "json_get_int": (_get_as(_as_int, pa.int64()), 2, 2),
    "json_get_float": (_get_as(_as_float, pa.float64()), 2, 2),
    "json_get_bool": (_get_as(_as_bool, pa.bool_()), 2, 2),
}
