from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.explorer.refs import merging
from lance_nb.explorer.session import Session
from tests.unit.explorer.refs.conftest import HOW, ask, other, rows, unlocked


def test_a_plan_is_committed_as_it_was_seen(session: Session) -> None:
    plan = ask(session, "plan", kind="merge", source="dev", into="main", **HOW)
    assert plan["rows"] == [20, 25]
    assert "preview" in ask(session, "merge", plan=plan["plan"] + 1, message="")["error"]
    other(session).insert(rows(60, 1))
    stale = ask(session, "merge", plan=plan["plan"], message="")
    assert "version 4 was committed after" in stale["error"]
    plan = ask(session, "plan", kind="merge", source="tag:v1", into="dev", **HOW)
    assert plan["strategy"] == "up-to-date"
    plan = ask(session, "plan", kind="merge", source="dev:3", into=None, **HOW)
    done = ask(session, "merge", plan=plan["plan"], message="all of dev")
    assert done["place"] == {"branch": None, "version": 5}
    assert done["code"]["python"].endswith(
        ".branches.merge(('dev', 3), 'main', message='all of dev')"
    )
    assert other(session).version_info(5).message == "all of dev"


def test_changes_are_picked_and_reverted(session: Session) -> None:
    plan = ask(session, "plan", kind="cherry-pick", source="dev:3", into="main", **HOW)
    ask(session, "merge", plan=plan["plan"], message="")
    assert other(session).count_rows() == 25
    plan = ask(session, "plan", kind="revert", source="3", into="main", **HOW)
    assert plan["title"] == "reverting main:3 on main:4"
    ask(session, "merge", plan=plan["plan"], message="")
    assert other(session).count_rows() == 20


@pytest.fixture
def disputed(tmp_path: Path) -> Session:
    """Main and ``dev`` that both updated rows 1 and 2, and ``dev`` one that main deleted."""
    table = pa.table(
        {
            "id": range(6),
            "v": [0] * 6,
            "when": pa.array([0] * 6, pa.timestamp("ns")),
            "tags": [["a"]] * 6,
        }
    ).cast(
        pa.schema(
            [
                pa.field("id", pa.int64()),
                pa.field("v", pa.int32(), nullable=False),
                pa.field("when", pa.timestamp("ns")),
                pa.field("tags", pa.list_(pa.string())),
            ]
        )
    )
    made = lance_nb.write_dataset(table, tmp_path / "d.lance")
    dev = made.create_branch("dev")
    for ds, value in ((made, 1), (dev, 2)):
        when = f"CAST('2024-05-0{value} 00:00:00' AS TIMESTAMP(9))"
        ds.update({"v": str(value), "when": when}, where="id IN (1, 2)")
    dev.update({"v": "9"}, where="id = 4")
    made.delete("id = 4")
    return unlocked(made)


def plan_of(session: Session, choices: Any = None, **how: Any) -> dict[str, Any]:
    given = {"kind": "merge", "source": "dev", "into": "main", **HOW, "key": "id", **how}
    return ask(session, "plan", **given, choices=choices)


def test_conflicts_are_chosen_by_all_column_row_cell_and_hand(disputed: Session) -> None:
    plan = plan_of(disputed)
    assert (plan["cells"]["total"], plan["cells"]["open"], plan["unresolved"]) == (5, 3, 1)
    lines = ask(disputed, "cells", plan=plan["plan"], first=0, count=10)["lines"]
    assert [(one["row"], one["column"]) for one in lines] == [
        ("1", "v"), ("1", "when"), ("2", "v"), ("2", "when"), ("4", None)
    ]  # fmt: skip
    refused = ask(disputed, "merge", plan=plan["plan"], message="")
    assert "3 rows changed on both sides without a choice" in refused["error"]
    choices = [
        {"row": None, "column": None, "take": "theirs"},
        {"row": None, "column": "when", "take": "ours"},
        {"row": "4", "column": None, "take": "ours"},
        {"row": "2", "column": "when", "take": "value", "value": "2030-01-02 03:04:05.000000006"},
        {"row": "1", "column": "v", "take": "value", "value": "77"},
    ]
    plan = plan_of(disputed, choices)
    assert plan["unresolved"] == 0
    assert "'1.v:=77'" in plan["code"]["python"]
    assert "--resolve when=ours" in plan["code"]["magic"]
    done = ask(disputed, "merge", plan=plan["plan"], message=plan["message"])
    assert "message" not in done["code"]["python"]
    made = other(disputed)
    found = {row["id"]: (row["v"], str(row["when"])) for row in made.to_table().to_pylist()}
    assert found == {
        0: (0, "1970-01-01 00:00:00"),
        1: (77, "2024-05-01 00:00:00"),
        2: (2, "2030-01-02 03:04:05.000000006"),
        3: (0, "1970-01-01 00:00:00"),
        5: (0, "1970-01-01 00:00:00"),
    }
    again = other(disputed).branches.plan_merge("dev", key="id")
    assert again.strategy == "up-to-date"


def test_the_line_of_code_does_the_same_merge(disputed: Session) -> None:
    choices = [
        {"row": None, "column": None, "take": "base"},
        {"row": "1", "column": "when", "take": "value", "value": "2031-01-01"},
    ]
    code = plan_of(disputed, choices)["code"]["python"].replace(", dry_run=True", "")
    eval(code, {"lance_nb": lance_nb})  # noqa: S307 - the line is ours
    shown = {row["id"]: row for row in other(disputed).to_table().to_pylist()}
    assert (shown[1]["v"], str(shown[1]["when"])) == (0, "2031-01-01 00:00:00")
    assert sorted(shown) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("column", "text", "shown", "problem"),
    [
        ("v", " 12 ", "12", ""),
        ("v", "1.5", None, "'1.5' is no value of column 'v', which is int32"),
        ("v", "3000000000", None, "is no value of column 'v'"),
        ("v", None, None, "column 'v' takes no nulls"),
        ("when", None, None, ""),
        ("when", "2024-05-01", "2024-05-01T00:00:00", ""),
        ("when", "tomorrow", None, "'tomorrow' is no value"),
        ("tags", '["x", "y"]', '["x", "y"]', ""),
        ("tags", "[1", None, "is no value of column 'tags'"),
    ],
)
def test_a_value_written_by_hand_is_checked(
    disputed: Session, column: str, text: str | None, shown: str | None, problem: str
) -> None:
    plan = plan_of(disputed)
    found = ask(disputed, "value", plan=plan["plan"], column=column, text=text)
    assert (found["shown"] or "").startswith(shown or "")
    assert bool(found["problem"]) == bool(problem)
    assert problem in found["problem"]


def test_choices_that_make_no_sense_are_refused(
    disputed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(disputed)
    for choice, problem in [
        ({"row": "1", "column": "v", "take": "mine"}, "take is one of"),
        ({"row": "9", "column": "v", "take": "ours"}, "row id = 9 is not in conflict"),
        ({"row": "[1", "column": "v", "take": "ours"}, "is no row"),
        ({"row": None, "column": "x", "take": "ours"}, "no column 'x'"),
        ({"row": None, "column": "v", "take": "value", "value": "1"}, "give row and column"),
        ({"row": "1", "column": "v", "take": "value", "value": "x"}, "is no value of column"),
        ("ours", "a choice must be"),
    ]:
        assert problem in plan_of(disputed, [choice])["error"]
    monkeypatch.setattr(merging, "MAX_CHOICES", 1)
    both = [{"row": None, "column": None, "take": "ours"}] * 2
    assert "at most 1 choices" in plan_of(disputed, both)["error"]
    assert (
        "newer preview" in ask(disputed, "cells", plan=plan["plan"] + 1, first=0, count=1)["error"]
    )
    whole = plan_of(disputed, on_conflict="ours")
    assert whole["cells"] is None
    assert "no table" in ask(disputed, "cells", plan=whole["plan"], first=0, count=1)["error"]


def test_a_value_is_checked_while_a_newer_preview_is_on_its_way(disputed: Session) -> None:
    seen = plan_of(disputed)["plan"]
    choices = [{"row": "1", "column": "v", "take": "ours"}]
    newest = plan_of(disputed, choices)["plan"]  # the browser has not got it yet
    assert newest == seen + 1
    assert ask(disputed, "value", plan=seen, column="v", text="12")["shown"] == "12"
    assert len(ask(disputed, "cells", plan=seen, first=0, count=10)["lines"]) == 5
    # What was seen is what is committed, so that is refused.
    assert "newer preview" in ask(disputed, "merge", plan=seen, message="")["error"]
    for ahead in (newest + 1, 0):
        assert "newer preview" in ask(disputed, "value", plan=ahead, column="v", text="1")["error"]
    # So has one of the same versions that is asked for otherwise.
    plan_of(disputed, on_conflict="ours")
    for before in (seen, newest):
        assert "newer preview" in ask(disputed, "cells", plan=before, first=0, count=1)["error"]
    newest = plan_of(disputed)["plan"]
    # A preview of other versions has other columns and other cells.
    other(disputed).checkout_version(("dev", None)).update({"v": "5"}, where="id = 0")
    last = plan_of(disputed)["plan"]
    assert "newer preview" in ask(disputed, "value", plan=newest, column="v", text="1")["error"]
    assert ask(disputed, "value", plan=last, column="v", text="1")["shown"] == "1"


def test_picked_and_reverted_changes_have_the_same_table(disputed: Session) -> None:
    how = {"kind": "cherry-pick", "source": "dev:2", "into": "main"}
    choices = [{"row": "1", "column": "v", "take": "theirs"},
               {"row": None, "column": None, "take": "ours"}]  # fmt: skip
    plan = plan_of(disputed, **how)
    assert (plan["cells"]["total"], plan["cells"]["open"]) == (4, 2)
    plan = plan_of(disputed, choices, **how)
    assert "resolve=['1.v=theirs', 'ours']" in plan["code"]["python"]
    ask(disputed, "merge", plan=plan["plan"], message="")
    main = other(disputed)
    assert main.to_table(filter="id IN (1, 2)").sort_by("id")["v"].to_pylist() == [2, 1]

    main.update({"v": "50"}, where="id = 2")
    how = {"kind": "revert", "source": "2", "into": "main"}
    plan = plan_of(disputed, **how)
    open_rows = ask(disputed, "cells", plan=plan["plan"], first=0, count=10)["lines"]
    assert [(one["row"], one["column"]) for one in open_rows] == [("1", "v"), ("2", "v")]
    choices = [{"row": "2", "column": "v", "take": "ours"},
               {"row": "1", "column": "v", "take": "value", "value": "5"}]  # fmt: skip
    plan = plan_of(disputed, choices, **how)
    ask(disputed, "merge", plan=plan["plan"], message="")
    shown = {
        row["id"]: (row["v"], row["when"].year) for row in other(disputed).to_table().to_pylist()
    }
    assert (shown[1], shown[2]) == ((5, 1970), (50, 1970))


def test_a_refused_fast_forward_offers_a_merge(session: Session) -> None:
    plan = ask(session, "plan", kind="merge", source="dev", into="main", **{
        **HOW, "strategy": "fast-forward"
    })  # fmt: skip
    assert plan["refusal"].startswith("main has new versions since the merge base")
    assert plan["offers"] == [{"label": "Merge with a new version", "set": {"strategy": "auto"}}]
    assert plan["strategy"] == "replay"
