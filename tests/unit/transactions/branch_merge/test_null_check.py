"""A column that takes no nulls on one side, and rows of the other that may lack a value."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_nb

ROWS = pa.table({"id": pa.array(range(4), pa.int64()), "x": [1.0, 2.0, 3.0, 4.0]})


@pytest.mark.parametrize(("added", "conflicts"), [(False, 0), (True, 1)])
def test_rows_added_beside_a_column_without_nulls_are_told(added: bool, conflicts: int) -> None:
    place = f"memory://null-check/{added}"
    main = lance_nb.write_dataset(ROWS, place)
    dev = main.create_branch("dev")
    dev.alter_columns({"path": "x", "nullable": False})
    if added:
        main.insert(ROWS)
    plan = main.branches.plan_merge("dev")
    found = [one for one in plan.conflicts if "takes no nulls" in one.text]
    assert len(found) == conflicts
    if added:
        assert "'x'" in found[0].text
        assert "4 rows" in found[0].text
