"""What views ask of large datasets: no answer is large, and no request looks at every fragment."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.messages import handle
from lance_nb.explorer.session import Session
from lance_nb.explorer.widget import HeaderHandlers
from lance_nb.format.fragment import Fragment
from lance_nb.storage.base import Listing
from lance_nb.storage.registry import open_store
from tests.golden.opening import WatchedStore, open_over

ANSWER_BYTES_MAX = 1_000_000
FRAGMENTS = 2000
WINDOW = {"first_column": 0, "num_columns": 40}
PAGE = {"kinds": None, "offset": 0, "limit": 100}


def ask(session: Session, kind: str, **args: Any) -> int:
    """Ask, and return how many bytes the answer has."""
    handlers = (
        session.handlers()
        | session.keep(HeaderHandlers).handlers()
        | Explorer.request_handlers(session)
    )
    reply, buffers = handle({"id": "1", "type": kind, "args": args}, handlers)
    assert reply["ok"], reply
    return len(json.dumps(reply)) + sum(map(len, buffers))


def requests_of(newest: int, rows: int) -> list[tuple[str, dict[str, Any]]]:
    here = {"branch": None, "version": newest}
    ends = {"a": {"branch": None, "version": newest - 1}, "b": here, "key": None}
    levels = ("schema", "transactions", "fragments", "deletions", "indices", "config")
    return [
        ("rows", here | WINDOW | {"offset": rows - 200, "limit": 100}),
        ("rows.profile", here | {"first": 0, "count": 16, "num_rows": rows}),
        ("rows.row", here | {"row": rows - 1}),
        ("changes.counts", ends),
        ("changes.near", ends | {"end": "a", "versions": [newest - 1]}),
        ("changes.rows", ends | PAGE | WINDOW),
        *(("changes.level", ends | PAGE | {"level": level}) for level in levels),
        ("changes.drift", ends | {"first": 0, "count": 4, "exact": False}),
        ("storage.map", here | {"first": 0, "stop": 2**52}),
        ("storage.health", here),
        ("detail", here),
        ("news", {"latest": newest, "mark": ""}),
    ]


@pytest.fixture(scope="module")
def many_fragments() -> str:
    uri = f"memory://large-{uuid4().hex}/d.lance"
    dataset = lance_nb.write_dataset(pa.table({"id": range(1000), "x": [0.5] * 1000}), uri)
    one = dataset.get_fragments()[0].metadata
    for count in (FRAGMENTS - 11, 10):
        operation = lance_nb.LanceOperation.Append([one] * count)
        dataset = lance_nb.LanceDataset.commit(uri, operation, read_version=dataset.version)
    return uri


@pytest.mark.parametrize(
    ("kind", "args"), [pytest.param(*one, id=f"{at} {one[0]}") for at, one in
                       enumerate(requests_of(3, 1000 * FRAGMENTS))],
)  # fmt: skip
def test_of_many_fragments_few_are_looked_at(
    many_fragments: str, monkeypatch: pytest.MonkeyPatch, kind: str, args: dict[str, Any]
) -> None:
    decoded: list[object] = []
    from_bytes = Fragment.from_bytes
    monkeypatch.setattr(
        Fragment, "from_bytes", lambda *given: decoded.append(given) or from_bytes(*given)
    )
    session = Session(lance_nb.dataset(many_fragments))
    assert ask(session, kind, **args) < ANSWER_BYTES_MAX
    assert len(decoded) < 200


def test_of_many_columns_answers_are_windows() -> None:
    uri = f"memory://large-{uuid4().hex}/d.lance"
    columns = {f"column {at}": ["some text", "another"] for at in range(600)}
    lance_nb.write_dataset(pa.table(columns), uri)
    lance_nb.dataset(uri).update({"column 1": "'changed'"}, where="`column 0` = 'another'")
    session = Session(lance_nb.dataset(uri))
    screen = session.screen(Explorer.parts)
    assert len(screen["rows"]["page"]["columns"]) <= 64
    for kind, args in requests_of(2, 2):
        if kind not in ("rows", "rows.row"):
            assert ask(session, kind, **args) < ANSWER_BYTES_MAX


class _Listed(WatchedStore):
    """A store that counts listings of files as well."""

    def list(self, prefix: str) -> Listing:
        self._log.listed[prefix] += 1
        return self._store.list(prefix)


def test_of_many_branches_a_screen_lists_each_folder_of_names_a_few_times() -> None:
    uri = f"memory://large-{uuid4().hex}/d.lance"
    dataset = lance_nb.write_dataset(pa.table({"id": [1]}), uri)
    for at in range(8):
        dataset.create_branch(f"branch-{at}")
        dataset.tags.create(f"tag-{at}", 1)
    store = _Listed(open_store(uri))
    session = Session(open_over(store))
    store.forget()
    screen = session.screen(Explorer.parts)
    assert len(screen["timeline"]["lanes"]) == 6
    assert store.listed["_refs/branches"] == 1
    assert store.listed["_refs/tags"] == 3  # the flags, the card, the detail
    assert store.listed["_versions"] == 1  # the numbers; bars are made of them


def test_going_to_another_version_lists_the_versions_once() -> None:
    uri = f"memory://large-{uuid4().hex}/d.lance"
    dataset = lance_nb.write_dataset(pa.table({"id": [1]}), uri)
    for at in range(40):
        dataset.update_config({"n": str(at)})
    store = _Listed(open_store(uri))
    session = Session(open_over(store))
    session.screen(Explorer.parts)
    store.forget()
    session.stand((None, 40))
    session.screen(Explorer.parts)
    assert store.listed["_versions"] == 1
    read = {path for path in store.reads if path.startswith("_versions")}
    assert len(read) == 1  # the one that is shown; bars are remembered
