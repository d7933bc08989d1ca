"""Cases of fixed seeds; the long form: ``python -m tests.faults differential``."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
SHARES = 4  # so that workers share the time
CASES = 14  # of each
FIRST = 500_000


@pytest.mark.parametrize("share", range(SHARES))
def test_both_libraries_agree_on_the_cases_of_fixed_seeds(share: int) -> None:
    require_pylance()
    from tests.faults.differential.run import minimal, play_seed, script

    checks = 0
    for seed in range(FIRST + share * CASES, FIRST + (share + 1) * CASES):
        steps, finding = play_seed(seed)
        checks += sum(1 + len(step.reads) for step in steps)
        if finding is not None:
            shown = script(seed, *minimal(steps, finding))
            pytest.fail(f"{shown}\nmore cases: python -m tests.faults differential")
    assert checks > 4 * CASES


def _raw(documents: pa.Array, kind: pa.DataType) -> pa.Array:
    return documents.cast(kind)


def _one_off(vector: Any, positions: Any) -> Any:
    import numpy as np

    from lance_nb.table import deletions

    return positions + np.searchsorted(deletions._live_before(vector), positions, side="left")


@pytest.mark.parametrize(("place", "planted"), [
    ("lance_nb.file.columns._json_texts", _raw),
    ("lance_nb.table.deletions.physical_rows", _one_off),
])  # fmt: skip
def test_a_planted_defect_is_found_and_made_small(
    place: str, planted: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_pylance()
    from tests.faults.differential.run import minimal, play_seed, script

    seed, found = FIRST, None
    with monkeypatch.context() as patch:
        patch.setattr(place, planted)
        while found is None:
            assert seed < FIRST + 400, "nothing was found"
            steps, found = play_seed(seed)
            seed += 1
        small, last = minimal(steps, found, 2.0)
        assert len(repr(small)) <= len(repr(tuple(steps)))
        text = script(seed - 1, small, last)
        exec(text, {})  # noqa: S102
        assert last.code in capsys.readouterr().out
    exec(text, {})  # noqa: S102
    assert capsys.readouterr().out == "no difference\n"


def test_a_case_is_made_as_small_as_it_can_be() -> None:
    require_pylance()
    from tests.faults.differential.play import Step
    from tests.faults.differential.shrinking import shrunk
    from tests.faults.differential.values import Column, Rows

    nested = pa.struct([("a", pa.list_(pa.int64())), ("b", pa.bool_())])
    columns = (Column("x", nested, "runs", 0.2, 7), Column("y", pa.int8(), "many", 0.9, 8))
    steps = [
        Step("ours", "lance.write_dataset(t, uri, max_rows_per_file=5)", Rows(40, columns), ("r",)),
        Step("ours", "ds.delete('uid = 1')"),
        Step("pylance", "ds.insert(t)", Rows(9, columns, 40), ("ds.to_table(limit=3)", "len(ds)")),
    ]

    def fails(candidate: tuple[Step, ...]) -> bool:
        rows = [step.rows for step in candidate if step.rows is not None]
        names = {column.name for one in rows for column in one.columns}
        return "x" in names and rows[0].count >= 7 and any("len(ds)" in s.reads for s in candidate)

    small = shrunk(steps, fails, 30.0)
    assert small == (
        Step("pylance", "lance.write_dataset(t, uri)",
             Rows(7, (Column("x", pa.int32(), "constant"),), None, key=False), ("len(ds)",)),
    )  # fmt: skip


def test_a_seed_always_makes_the_same_case() -> None:
    require_pylance()
    from tests.faults.differential.run import play_seed

    first, second = (play_seed(FIRST + 1)[0] for _ in range(2))
    assert repr(first) == repr(second)
    assert [step.rows and step.rows.table().num_rows for step in first]
