"""Blobs as callers have them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import InvalidInputError, SchemaMismatchError
from lance_nb.file.blob_values import Payloads, check_one_form, fit_blobs
from lance_nb.format.blob_fields import BLOB_INPUT


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_binary_is_data(kind: pa.DataType):
    fitted = fit_blobs(pa.array([b"a", None], kind), "b")
    assert fitted.type == BLOB_INPUT
    assert fitted.to_pylist() == [
        {"data": b"a", "uri": None, "position": None, "size": None},
        None,
    ]


def test_structs_may_have_fewer_fields():
    kind = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
    fitted = fit_blobs(pa.array([{"data": b"a"}, {"uri": "x:y"}, None], kind).slice(1), "b")
    assert [row and row["uri"] for row in fitted.to_pylist()] == ["x:y", None]


@pytest.mark.parametrize(
    "array",
    [pa.array([1]), pa.array([{"data": "text"}]), pa.array([{"what": b"x"}])],
    ids=["number", "text", "other field"],
)
def test_other_types_are_refused(array: pa.Array):
    with pytest.raises(SchemaMismatchError, match="'b'"):
        fit_blobs(array, "b")


def test_payloads_are_ranges():
    array = pa.array([b"skipped", b"ab", None, b"", b"cde"], pa.large_binary()).slice(1)
    payloads = Payloads.of(array)
    assert payloads.sizes.tolist() == [2, 0, 0, 3]
    assert [bytes(one) for one in payloads.pieces()] == [b"ab", b"", b"", b"cde"]
    assert [bytes(one) for one in payloads.chosen(np.array([3])).pieces()] == [b"cde"]
    assert Payloads.of(array.slice(0, 0)).pieces() == []


@pytest.mark.parametrize(("data", "problem"), [(True, "both"), (False, "neither")])
def test_a_value_has_one_form(data: bool, problem: str):
    has = np.array([True, data])
    with pytest.raises(InvalidInputError, match=f"value 1.*{problem}"):
        check_one_form(has, np.array([False, data]), np.zeros(2, bool), "b")
    check_one_form(has, np.array([False, data]), np.array([False, True]), "b")
