"""Expressions of filters in statements: what both compute is computed by the same code.

An expression becomes a function of DuckDB's, which it calls for some 2,000 rows at a time. One on
the columns of a scan is also computed for whole batches of it (``ComputingScan``), some ten times
faster. DuckDB takes these values where ``IS_COMPUTED`` holds; it does not in batches with a value
that cannot be computed: there DuckDB calls the function for the rows that need it, if any do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from inspect import Parameter, Signature
from typing import Any

import pyarrow as pa

from lance_nb import arrow_compute as pc
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

COMPUTED_PREFIX = "lance_expression_"
IS_COMPUTED = f"{COMPUTED_PREFIX}known"


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

    @property
    def field(self) -> pa.Field:
        """The column that a scan adds for the expression."""
        return pa.field(self.name, _carrier(self.expression.type))

    def values_in(self, batch: pa.RecordBatch) -> pa.Array:
        """Compute the expression for the rows of a scan. Raises PredicateError."""
        operands = []
        for path, _ in self.paths:
            column = batch.column(path[0].partition(".")[2])
            operands.append(pc.struct_field(column, list(path[1:])) if path[1:] else column)
        return self._values(operands)

    def _values(self, operands: Sequence[Any]) -> pa.Array:
        try:
            columns = {
                path: pa.chunked_array([converted(one_array(column), type_)])
                for (path, type_), column in zip(self.paths, operands, strict=True)
            }
            result = one_array(evaluate_needed(self.expression, columns), len(operands[0]))
            return converted(result, _carrier(self.expression.type))
        except (pa.ArrowException, OverflowError) as exc:
            raise PredicateError(f"{self.text}: {first_line(exc)}") from exc

    def _kernel(self) -> Callable[..., pa.Array]:
        def kernel(*values: Any) -> pa.Array:
            return self._values(values)

        # DuckDB counts the parameters of the signature.
        names = [f"column_{number}" for number in range(len(self.paths))]
        kernel.__signature__ = Signature(  # type: ignore[attr-defined]
            [Parameter(name, Parameter.POSITIONAL_ONLY) for name in names]
        )
        return kernel


@dataclass(frozen=True, slots=True)
class ComputingScan:
    """A scan whose rows have the values of functions as columns, and whether they are computed."""

    scan: Any
    functions: Sequence[RowFunction]

    def to_reader(self) -> pa.RecordBatchReader:
        """Read the rows."""
        reader = self.scan.to_reader()
        fields = [function.field for function in self.functions]
        schema = pa.schema(
            [*reader.schema, *fields, (IS_COMPUTED, pa.bool_())], reader.schema.metadata
        )
        return pa.RecordBatchReader.from_batches(schema, self._computed(reader, schema))

    def _computed(
        self, reader: pa.RecordBatchReader, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        for batch in reader:
            try:
                values = [function.values_in(batch) for function in self.functions]
                is_computed = True
            except PredicateError:  # an error only if DuckDB finds that a row needs the value
                values = [pa.nulls(len(batch), function.field.type) for function in self.functions]
                is_computed = False
            flags = pa.repeat(pa.scalar(is_computed), len(batch))
            yield pa.RecordBatch.from_arrays([*batch.columns, *values, flags], schema=schema)


def _carrier(type_: pa.DataType) -> pa.DataType:
    carrier = carrier_of(type_)
    if carrier is None:
        raise PredicateError(f"{type_} cannot be used in a statement")
    return carrier
