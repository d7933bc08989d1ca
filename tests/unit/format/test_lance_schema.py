"""Schemas with field ids, as users hold them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lance_nb.errors import ArgumentError
from lance_nb.format.lance_schema import LanceSchema
from lance_nb.format.schema import Schema

ARROW = pa.schema(
    [pa.field("a", pa.int64(), nullable=False), pa.field("s", pa.struct([("x", pa.string())]))],
    {"k": "v"},
)


def test_an_arrow_schema_gets_field_ids_and_comes_back() -> None:
    made = LanceSchema.from_pyarrow(ARROW)

    assert made.names == ["a", "s"]
    assert [one.id for one in made.tree.walk()] == [0, 1, 2]
    assert made.to_pyarrow().equals(ARROW, check_metadata=True)


def test_any_kind_of_schema_is_taken() -> None:
    made = LanceSchema.from_pyarrow(ARROW)

    assert LanceSchema.of(made) is made
    assert LanceSchema.of(Schema.from_arrow(ARROW)) == LanceSchema.of(ARROW) == made


@pytest.mark.parametrize("other", [None, "a", pa.field("a", pa.int8()), {"a": pa.int8()}], ids=repr)
def test_what_is_no_schema_is_refused(other: Any) -> None:
    for take in (LanceSchema.from_pyarrow, LanceSchema.of):
        with pytest.raises(ArgumentError, match=r"pyarrow\.Schema, not"):
            take(other)
