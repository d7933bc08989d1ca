from __future__ import annotations

from typing import Any

import pytest

from lance_nb.explorer.biography import Biography
from lance_nb.explorer.messages import handle
from lance_nb.explorer.session import Session
from tests.unit.explorer.fakes import small_dataset
from tests.unit.explorer.stored_datasets import changed_dataset


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(changed_dataset())


def ask(session: Session, kind: str, **args: Any) -> dict[str, Any]:
    request = {"id": "1", "type": f"biography.{kind}", "args": {"version": 7} | args}
    reply, _ = handle(request, session.keep(Biography).handlers())
    return reply["result"] if reply["ok"] else reply["error"]


def test_a_row_of_the_grid_is_found_and_followed(session: Session) -> None:
    found = ask(session, "find", row=0, filter="id = 5")
    assert found["row_id"] == "5"
    place = {name: found[name] for name in ("fragment", "offset")}
    life = ask(session, "steps", upto=2, **place)
    assert [one["event"] for one in life["steps"]] == ["moved", "extended"]
    assert ask(session, "steps", upto=9, key=["id"], **place)["label"] == "key: id"


def test_columns_of_a_key_are_found_by_name(session: Session) -> None:
    found = ask(session, "keys", text="L")
    assert [one["name"] for one in found["columns"]] == ["label", "half"]


@pytest.mark.parametrize(
    ("kind", "args", "words"),
    [
        ("find", {"row": 10**6}, "no such row"),
        ("find", {"row": -1}, "row must be"),
        ("steps", {"fragment": 2**32, "offset": 0, "upto": 1}, "fragment must be"),
        ("steps", {"fragment": 0, "offset": 0, "upto": 10**6}, "upto must be"),
        ("steps", {"fragment": 0, "offset": 0, "upto": 1, "key": "id"}, "key must be"),
        ("steps", {"fragment": 77, "offset": 0, "upto": 1}, "known to have a row"),
        ("keys", {"text": 7}, "text must be"),
    ],
)
def test_requests_that_make_no_sense_are_refused(
    session: Session, kind: str, args: dict[str, Any], words: str
) -> None:
    assert words in ask(session, kind, **args)["message"]


def test_a_dataset_without_history_says_so() -> None:
    found = ask(Session(small_dataset()), "steps", version=4, fragment=0, offset=0, upto=1)
    assert "cannot be compared" in found["message"]
