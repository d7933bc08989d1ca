from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.changes.change_summary import DiffCache
from lance_nb.explorer.changes.widget import DiffView
from lance_nb.explorer.messages import handle
from lance_nb.explorer.session import Session
from tests.support.explorer_datasets import changed_dataset, scores
from tests.support.fake_dataset import small_dataset

ENDS = {"a": {"branch": None, "version": 1}, "b": {"branch": None, "version": 7}}


@pytest.fixture(scope="module")
def dataset() -> Any:
    return changed_dataset()


@pytest.fixture(scope="module")
def session(dataset: Any) -> Session:
    return Session(dataset)


def ask(session: Session, kind: str, **args: Any) -> tuple[dict[str, Any], list[bytes]]:
    request = {"id": "1", "type": f"changes.{kind}", "args": ENDS | args}
    reply, buffers = handle(request, DiffView.request_handlers(session))
    return (reply["result"] if reply["ok"] else reply["error"]), buffers


WINDOW = {"offset": 0, "limit": 50, "first_column": 0, "num_columns": 10}


def test_numbers_then_rows_then_one_row(session: Session) -> None:
    counts, _ = ask(session, "counts")
    assert counts["chips"][0]["added"] == 77
    rows, buffers = ask(session, "rows", **WINDOW)
    assert rows["found"]["changed"] == 2
    assert len(buffers) > rows["split"] > 0
    removed, _ = ask(session, "rows", kinds=["removed"], **WINDOW)
    assert removed["kinds"] == "---"
    assert ask(session, "row", row=0)[0]["kind"] == "~"
    assert ask(session, "summary")[0]["is_finished"]


def test_levels_drift_and_files_are_answered(session: Session) -> None:
    level, _ = ask(session, "level", level="transactions", offset=0, limit=3)
    assert (level["num_rows"], len(level["places"])) == (6, 3)
    assert ask(session, "drift", first=0, count=2)[0]["num_columns"] == 3
    assert ask(session, "files", row=0)[0]["files"]


def test_a_typed_ref_comes_with_its_numbers(session: Session) -> None:
    found, _ = ask(session, "place", ref="1")
    assert found["place"] == ENDS["a"]
    assert found["counts"] == ask(session, "counts")[0]
    broken, _ = ask(session, "place", ref="1", b={"branch": None, "version": 99})
    assert broken == {"place": ENDS["a"], "counts": None}


def test_numbers_of_versions_near_a_handle_are_those_of_each(session: Session) -> None:
    near, _ = ask(session, "near", end="a", versions=[3, 99, 2])
    known = {one["version"]: one["counts"] for one in near["near"]}
    assert known.keys() <= {2, 3}
    assert known
    for version, counts in known.items():
        assert counts == ask(session, "counts", a={"branch": None, "version": version})[0]


def test_versions_passed_by_a_handle_do_not_push_out_what_was_compared(session: Session) -> None:
    compared = session.keep(DiffCache).diff((None, 1), (None, 7))
    ask(session, "near", end="b", versions=[2, 3, 4, 5, 6])
    ask(session, "near", end="a", versions=[2, 3, 4, 5, 6])
    assert session.keep(DiffCache).diff((None, 1), (None, 7)) is compared


def test_a_key_is_part_of_what_is_asked(session: Session) -> None:
    found, _ = ask(session, "counts", key=["id"])
    assert found["identity"]["label"] == "key: id"
    card, _ = ask(session, "rows", key=["label"], **WINDOW)
    assert "does not tell rows apart" in card["message"]


def test_a_typed_ref_becomes_a_place(session: Session) -> None:
    assert ask(session, "place", ref="tag:start")[0]["place"] == {"branch": None, "version": 1}
    assert "nothing" in ask(session, "place", ref="nothing")[0]["message"]


@pytest.mark.parametrize(
    ("kind", "args", "words"),
    [
        ("counts", {"a": None}, "a must be a version"),
        ("counts", {"a": {"branch": None, "version": 99}}, "99"),
        ("rows", WINDOW | {"limit": 10**6}, "limit must be"),
        ("rows", WINDOW | {"kinds": ["moved"]}, "kinds must be"),
        ("level", {"level": "nothing", "offset": 0, "limit": 1}, "level must be"),
        ("drift", {"first": 0, "count": 10**6}, "count must be"),
        ("row", {"row": 99}, "row 99"),
        ("near", {"end": "c", "versions": [1]}, "end must be"),
        ("near", {"end": "a", "versions": list(range(1000))}, "versions a list"),
    ],
)
def test_requests_that_make_no_sense_are_refused(
    session: Session, kind: str, args: dict[str, Any], words: str
) -> None:
    assert words in ask(session, kind, **args)[0]["message"]


def test_it_compares_what_it_was_given(dataset: Any) -> None:
    older = dataset.checkout_version(1)
    pair = DiffView(older, dataset, key="id")
    assert pair.screen["compare"] == {"a": {"branch": None, "version": 1}, "key": ["id"]}
    assert pair.dataset.version == 7
    value = DiffView(dataset.diff(("dev", 5), 6))
    assert value.screen["compare"]["a"] == {"branch": "dev", "version": 5}
    assert value.dataset.version == 6
    assert DiffView(dataset.uri).screen["compare"] == {"a": None, "key": None}


def test_what_cannot_be_compared_is_refused(dataset: Any) -> None:
    other = lance_nb.write_dataset(scores(3), "memory://changes/other.lance")
    with pytest.raises(InvalidInputError, match="are different datasets"):
        DiffView(other, dataset)
    found, _ = ask(Session(small_dataset()), "counts", b={"branch": None, "version": 4})
    assert "cannot be compared" in found["message"]


def test_pictures_of_a_change_come_as_they_are_and_as_they_were() -> None:
    uri = "memory://changes/pictures.lance"
    old, new = (b"GIF89a" + bytes([size, 0, size, 0]) + bytes(20) for size in (2, 9))
    table = pa.table({"note": ["a", "b", "c"], "photo": [old, old, None], "id": [1, 2, 3]})
    dataset = lance_nb.write_dataset(table, uri, enable_stable_row_ids=True)
    dataset.merge_insert("id").when_matched_update_all().execute(
        table.slice(1, 1).set_column(1, "photo", pa.array([new], pa.binary()))
    )
    session = Session(lance_nb.dataset(uri))
    ends: dict[str, Any] = {"b": {"branch": None, "version": 2}}
    page, _ = ask(session, "rows", **ends, **WINDOW)
    # The key, the picture, then the others: as in the grid of rows.
    assert [column["name"] for column in page["page"]["columns"]] == ["id", "photo", "note"]
    assert (page["page"]["columns"][1]["pictures"], page["old"]["columns"][0]["pictures"]) == (
        "1",
        "1",
    )
    for is_old, image in ((False, new), (True, old)):
        found, buffers = ask(session, "thumbs", **ends, row=0, count=12, column=1, old=is_old)
        assert [(thumb["at"], thumb["width"]) for thumb in found["thumbs"]] == [(0, image[6])]
        assert buffers == [image]
    assert ask(session, "thumbs", **ends, row=0, count=1, column=2)[0] == {"thumbs": []}
    assert ask(session, "thumbs", **ends, row=5, count=1, column=1, old=True)[0] == {"thumbs": []}
    assert "column 3" in ask(session, "thumbs", **ends, row=0, count=1, column=3)[0]["message"]
    assert "count" in ask(session, "thumbs", **ends, row=0, count=13, column=1)[0]["message"]
    row, _ = ask(session, "row", **ends, row=0)
    assert row["columns"] == [0, 1, 2]
    assert row["nodes"][1]["text"] == "GIF 9 × 9 · 30 B"
    assert row["old"]["1"]["text"] == "GIF 2 × 2 · 30 B"
