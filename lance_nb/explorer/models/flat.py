"""The fields of a value as a dict, one level deep.

``dataclasses.asdict`` copies every field by way of ``deepcopy``. A screen holds hundreds of small
values whose fields are numbers, texts and tuples of them: these need no copy.

Limits: a field that is itself such a value, or a list of them, stays what it is.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

_names: dict[type, tuple[str, ...]] = {}


def flat(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass instance by name, in their order."""
    kind = type(value)
    if kind not in _names:
        _names[kind] = tuple(field.name for field in fields(kind))
    return {name: getattr(value, name) for name in _names[kind]}
