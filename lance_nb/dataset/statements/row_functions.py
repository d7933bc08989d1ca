"""Expressions of filters as functions of DuckDB: what both compute is computed by the same code."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import pyarrow as pa

from lance_nb.dataset.statements.carriers import carrier_of, converted, duckdb_type
from lance_nb.errors import PredicateError
from lance_nb.table.predicate.expression import (
    Expression,
    Path,
    evaluate_needed,
    first_line,
    one_array,
)
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class RowFunction:
    """An expression on columns, as a function that a statement calls by its name."""

    name: str
    text: str
    expression: Expression
    paths: tuple[tuple[Path, pa.DataType], ...]

    @property
    def is_carried(self) -> bool:
        """Whether DuckDB has types for all operands and the result."""
        types = [self.expression.type, *(type_ for _, type_ in self.paths)]
        return all(carrier_of(type_) is not None for type_ in types)

    def register(self, connection: Any) -> None:
        """Make the function known to a connection."""
        parameters = [duckdb_type(_carrier(type_)) for _, type_ in self.paths]
        result = duckdb_type(_carrier(self.expression.type))
        connection.create_function(
            self.name, self._kernel(), parameters, result, type="arrow", null_handling="special"
        )

    def _kernel(self) -> Callable[..., pa.Array]:
        carrier = _carrier(self.expression.type)

        def kernel(*values: Any) -> pa.Array:
            try:
                columns = {
                    path: pa.chunked_array([converted(one_array(column), type_)])
                    for (path, type_), column in zip(self.paths, values, strict=True)
                }
                result = one_array(evaluate_needed(self.expression, columns), len(values[0]))
                return converted(result, carrier)
            except (pa.ArrowException, OverflowError) as exc:
                raise PredicateError(f"{self.text}: {first_line(exc)}") from exc

        # DuckDB counts the parameters of the signature.
        names = [f"column_{number}" for number in range(len(self.paths))]
        kernel.__signature__ = Signature(  # type: ignore[attr-defined]
            [Parameter(name, Parameter.POSITIONAL_ONLY) for name in names]
        )
        return kernel


def _carrier(type_: pa.DataType) -> pa.DataType:
    carrier = carrier_of(type_)
    if carrier is None:
        raise PredicateError(f"{type_} cannot be used in a statement")
    return carrier
