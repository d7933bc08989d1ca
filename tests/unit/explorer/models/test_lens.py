from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models.lens import SYSTEM_COLUMNS, Lens, lens_code, lens_of
from tests.unit.explorer.stored_datasets import worn_dataset


def test_rows_are_counted_among_those_that_pass(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "d.lance")
    lens = Lens("id % 2 = 1", system=True)
    assert lens.names(dataset) == ["id", "vector", "double", *SYSTEM_COLUMNS]
    rows = lens.rows(dataset, ["id", "_rowaddr"], 50, 2)
    assert rows.to_pydict() == {"id": [131, 133], "_rowaddr": [(1 << 32) + 31, (1 << 32) + 33]}


def test_the_lines_of_code_show_the_same_rows(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "it's.lance")
    lens = Lens("id < 5 AND id <> 3", system=True)
    code = lens_code(dataset, lens)
    found = eval(code["python"], {"lance_nb": lance_nb})  # noqa: S307 -- ours, not a user's
    assert found["id"].to_pylist() == [0, 1, 2, 4]
    assert found.schema.names[-4:] == list(SYSTEM_COLUMNS)
    assert code["magic"] == "%lance head main:6 --where 'id < 5 AND id <> 3'"


@pytest.mark.parametrize(
    "args", [{"filter": 7}, {"filter": "x" * 3000}, {"system": "yes"}, {"filter": ["id"]}]
)
def test_what_is_no_lens_is_refused(args: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        lens_of(args)


def test_blank_filters_are_none() -> None:
    assert lens_of({"filter": "  "}) == lens_of({}) == Lens()
