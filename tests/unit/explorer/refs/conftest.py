"""A dataset with a branch and a tag, and the requests of its tab."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.explorer.messages import handle
from lance_nb.explorer.registry import RefsManager
from lance_nb.explorer.session import Session

HOW = {"strategy": "auto", "on_conflict": "fail", "copy": False, "key": ""}


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": range(first, first + count)})


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Main with three versions, ``dev`` from the second with one more, a tag on the first."""
    dataset = lance_nb.write_dataset(rows(0, 10), tmp_path / "d.lance")
    dataset.insert(rows(10, 5))
    dataset.tags.create("v1", 1)
    dataset.create_branch("dev").insert(rows(20, 5))
    dataset.insert(rows(30, 5))
    return unlocked(dataset)


def unlocked(dataset: Any) -> Session:
    made = Session(lance_nb.dataset(dataset.uri))
    made.lock(locked=False)
    return made


def ask(session: Session, what: str, **args: Any) -> dict[str, Any]:
    request = {"id": "1", "type": f"refs.{what}", "args": args}
    reply, _ = handle(request, RefsManager.request_handlers(session))
    found: dict[str, Any] = reply["result"] if reply["ok"] else {"error": reply["error"]["message"]}
    return found


def other(session: Session) -> Any:
    """Return the dataset as somebody else has it."""
    return lance_nb.dataset(session.dataset.uri)
