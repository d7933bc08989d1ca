"""What the names in a part of a statement mean: tables with their columns, aliases, group keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

import pyarrow as pa

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.expression import Column, Expression, Path, child
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class ResultField:
    """A column of a result: its name, and its type where that is known.

    ``duckdb_name`` is what DuckDB calls it, where that is not its name.
    """

    name: str
    type: pa.DataType | None
    duckdb_name: str | None = None


class Relation:
    """A table of FROM. ``fields`` is None where its columns are not known.

    ``merged`` are the columns that USING takes from another table, so that ``*`` lists them once.
    ``scan`` is the name of the scan that can compute expressions on its columns, if one can.
    """

    def __init__(
        self, qualifier: str, fields: list[ResultField] | None, merged: frozenset[str] = frozenset()
    ) -> None:
        self.qualifier = qualifier
        self.fields = fields
        self.merged = merged
        self.is_hidden = False
        self.scan: str | None = None

    def find(self, name: str) -> ResultField | None:
        """Return the column of a name, else the first that differs in case only."""
        fields = self.fields or []
        exact = [column for column in fields if column.name == name]
        near = [column for column in fields if column.name.lower() == name.lower()]
        return next(iter(exact or near), None)


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that the expressions of one SELECT may use.

    ``keys`` are the group keys by their signature; None outside of groups.
    """

    parent: Scope | None = None
    tables: Mapping[str, list[ResultField] | None] = field(default_factory=dict)
    relations: list[Relation] = field(default_factory=list)
    aliases: dict[str, pa.DataType | None] = field(default_factory=dict)
    keys: dict[str, Any] | None = None

    def grouped(self, keys: dict[str, Any]) -> Scope:
        """Return the scope of what is computed from groups."""
        return Scope(self.parent, self.tables, self.relations, aliases=self.aliases, keys=keys)

    def of_rows(self) -> Scope:
        """Return the scope of what aggregates are computed from."""
        return Scope(self.parent, self.tables, self.relations, self.aliases)

    def resolve(self, node: Any) -> tuple[Relation | None, ResultField, list[str]]:
        """Return the table and the column of a name, and the fields of structs that follow.

        The table is None for an alias. Raises PredicateError for what is not known.
        """
        parts = [part.name for part in node.parts]
        if len(parts) > 1:
            for relation in self.relations:
                column = relation.find(parts[1])
                if relation.qualifier.lower() == parts[0].lower() and column is not None:
                    return relation, column, parts[2:]
        matches = [
            (relation, column)
            for relation in self.relations
            if (column := relation.find(parts[0])) is not None
            and parts[0].lower() not in relation.merged
        ]
        if len(matches) == 1:
            return (*matches[0], parts[1:])
        if matches or any(relation.fields is None for relation in self.relations):
            raise PredicateError(f"column {parts[0]!r} is not of one table")
        if parts[0].lower() in self.aliases:
            alias = ResultField(parts[0], self.aliases[parts[0].lower()])
            return None, alias, parts[1:]
        if self.parent is not None:
            return self.parent.resolve(node)
        raise PredicateError(f"no column named {parts[0]!r}")

    def column_of(self, node: Any) -> Expression:
        """Bind a column. Raises PredicateError where it or its type is not known."""
        relation, column, parts = self.resolve(node)
        if column.type is None:
            raise PredicateError(f"the type of {column.name!r} is not known")
        number = self._number_of(relation)
        bound: Expression = Column((f"{number}.{column.name}",), column.type)
        for part in parts:
            bound = child(bound, part)
        return bound

    def _number_of(self, relation: Relation | None) -> int:
        """Return a number that tells this table from all others that are seen from here."""
        return 0 if relation is None else id(relation)

    def scan_of(self, paths: Iterable[Path]) -> str | None:
        """Return the scan that all columns are of, where it is the only table; else None.

        What is computed from groups is none of a scan.
        """
        if self.keys is not None or len(self.relations) != 1:
            return None
        number = str(self._number_of(self.relations[0]))
        is_own = all(path[0].partition(".")[0] == number for path in paths)
        return self.relations[0].scan if is_own else None

    def name_of(self, node: Any) -> str:
        """Return the name of a column with that of its table, as pylance writes it."""
        try:
            relation, column, parts = self.resolve(node)
        except PredicateError:
            return ".".join(part.name for part in node.parts)
        qualifier = "" if relation is None or not relation.qualifier else f"{relation.qualifier}."
        return f"{qualifier}{column.name}" + "".join(f"[{part}]" for part in parts)

    def signature_of(self, node: Any) -> str:
        """Return a text that is the same for expressions that mean the same."""
        from sqlglot import exp

        def renamed(part: Any) -> Any:
            if not isinstance(part, exp.Column):
                return part
            try:
                relation, column, parts = self.resolve(part)
            except PredicateError:
                return part
            path = (str(self._number_of(relation)), column.name, *parts)
            return exp.Identifier(this="\0".join(path), quoted=True)

        return str(node.unnest().copy().transform(renamed).sql(dialect="duckdb"))
