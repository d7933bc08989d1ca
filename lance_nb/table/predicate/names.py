"""Names in an expression to columns of the dataset: nested fields, row columns, near misses.

A name is taken literally first; one without backticks also matches a top-level column that differs
in case only, as in pylance. Fields of structs follow after dots or as ``['field']``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.expression import Column, Expression, Value, call
from lance_nb.table.projection import ROW_COLUMNS

_SHOWN_MAX = 12


@dataclass(frozen=True, slots=True)
class Names:
    """The columns that an expression may use: those of a schema, and the row columns."""

    schema: pa.Schema

    def resolve(self, parts: Sequence[str], *, quoted: bool, place: str = "") -> Expression:
        """Return the column of a dotted name. Raises PredicateError with the nearest name."""
        name = self._top(parts[0], quoted=quoted, place=place)
        if name in ROW_COLUMNS and name not in self.schema.names:
            found: Expression = Column((name,), pa.uint64())
        else:
            found = Column((name,), self.schema.field(name).type)
        for part in parts[1:]:
            found = child(found, part, place=place)
        return found

    def _top(self, name: str, *, quoted: bool, place: str) -> str:
        names = self.schema.names
        if name in names or name in ROW_COLUMNS:
            return name
        near = [one for one in names if one.lower() == name.lower()]
        if near and not quoted:
            return str(near[0])
        close = near or get_close_matches(name, names, 1, 0.5)
        hint = f"; did you mean {close[0]!r}?" if close else f"; columns: {_listed(names)}"
        raise PredicateError(f"no column named {name!r}{place}{hint}")


def child(parent: Expression, name: str, *, place: str = "") -> Expression:
    """Return the field of a struct. Raises PredicateError with the nearest name."""
    type_ = parent.type
    if not pt.is_struct(type_):
        shown = ".".join(parent.path) if isinstance(parent, Column) else "the value"
        raise PredicateError(f"{shown!r} is {type_} and has no field {name!r}{place}")
    names = [type_.field(number).name for number in range(type_.num_fields)]
    if name not in names:
        near = [one for one in names if one.lower() == name.lower()]
        close = near or get_close_matches(name, names, 1, 0.5)
        hint = f"; did you mean {close[0]!r}?" if close else f"; fields: {_listed(names)}"
        raise PredicateError(f"no field {name!r} in the struct{place}{hint}")
    number = names.index(name)
    if isinstance(parent, Column):
        return Column((*parent.path, name), type_.field(number).type)

    def kernel(value: Value) -> Value:
        import pyarrow.compute as pc

        return pc.struct_field(value, [number])

    return call(f"field {name!r}", kernel, parent)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return ", ".join(repr(name) for name in names[:_SHOWN_MAX]) + more
