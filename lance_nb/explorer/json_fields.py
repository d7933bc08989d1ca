"""Values whose JSON form, as the browser gets it, has their fields by their names."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any


class JsonFields:
    """Gives a dataclass ``to_json``; values inside of it are given theirs."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON-able values."""
        return json_of_fields(self)


def json_of_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON-able values.

    ``dataclasses.asdict`` would copy every field by way of ``deepcopy``, and a screen holds
    hundreds of values.
    """
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return value.to_json() if hasattr(value, "to_json") else json_of_fields(value)
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value
