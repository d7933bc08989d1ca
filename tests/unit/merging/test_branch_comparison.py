from __future__ import annotations

from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import RefNotFoundError


def _rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64())})


@pytest.fixture
def main() -> Any:
    return lance_nb.write_dataset(_rows(0, 10), f"memory://{uuid4().hex}/d.lance")


def _standing(main: Any, source: str = "dev", into: str = "main") -> tuple[int, int, str, Any]:
    found = main.branches.compare(source, into)
    merged = None if found.merged is None else found.merged.version
    return found.ahead, found.behind, found.status, merged


def test_ahead_and_behind_know_what_was_merged(main: Any) -> None:
    dev = main.create_branch("dev")
    assert _standing(main) == (0, 0, "identical", None)
    dev.insert(_rows(100, 1))
    dev.insert(_rows(110, 1))
    main.delete("id = 1")
    assert _standing(main) == (2, 1, "diverged", None)
    main.branches.merge("dev")  # main:3 holds dev:3
    assert _standing(main) == (0, 1, "behind", 3)
    assert _standing(main, "main", "dev") == (1, 0, "ahead", None)
    dev.insert(_rows(120, 1))
    plan = main.branches.plan_merge("dev")
    assert (plan.base.branch, plan.base.version) == ("dev", 3), "it starts from the last merge"
    assert len(plan.source_transactions) == 1
    plan.commit()
    assert _standing(main) == (0, 1, "behind", 4)
    back = dev.branches.merge("main", "dev")
    assert (back.base.branch, back.base.version) == ("dev", 4)
    assert _standing(main)[:3] == (0, 0, "identical")
    ids = [lance_nb.dataset(main.uri).checkout_version((name, None)).to_table()["id"].to_pylist()
           for name in (None, "dev")]  # fmt: skip
    assert sorted(ids[0]) == sorted(ids[1]) == [0, *range(2, 10), 100, 110, 120]


def test_branches_of_branches_and_versions_are_compared(main: Any) -> None:
    dev = main.create_branch("dev")
    dev.insert(_rows(100, 1))
    deep = dev.create_branch("deep")
    deep.insert(_rows(200, 1))
    dev.insert(_rows(110, 1))
    assert _standing(main, "deep", "dev") == (1, 1, "diverged", None)
    assert _standing(main, "deep", "main") == (2, 0, "ahead", None)
    found = main.branches.compare(("dev", 2))
    assert (found.source.version, found.target.branch, found.ahead) == (2, None, 1)
    with pytest.raises(RefNotFoundError):
        main.branches.compare("nope")
