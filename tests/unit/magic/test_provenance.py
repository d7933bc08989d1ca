"""What commits record about the notebook, the cell and the author."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.magic.provenance import SESSION_NAME, Provenance, code_hash, running_cell
from lance_nb.session import provenance as hook

ROWS = pa.table({"a": [1, 2]})
_NUMBERS = iter(range(1000))
HOSTILE = '<img src=x onerror=alert(1)>"\u202e\x00${}'


@pytest.fixture
def provenance() -> Iterator[Provenance]:
    """Provenance of its own, and none afterwards."""
    yield Provenance()
    hook.set_source(None)


@pytest.fixture
def made() -> LanceDataset:
    return lance_nb.write_dataset(ROWS, f"memory://provenance/{next(_NUMBERS)}.lance")


def _last(ds: LanceDataset) -> dict[str, str]:
    return dict(ds.history(1)[0].properties)


def _running(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], None]:
    def run(request: dict[str, Any], namespace: dict[str, Any] | None = None) -> None:
        shell = SimpleNamespace(
            kernel=SimpleNamespace(get_parent=lambda _channel: request),
            history_manager=SimpleNamespace(input_hist_raw=["", "1", "ds.delete('a = 1')"]),
            user_ns=namespace or {},
        )
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))

    return run


def test_nothing_is_recorded_until_it_is_asked_for(made: LanceDataset) -> None:
    made.insert(ROWS)

    assert _last(made) == {}
    assert hook.properties() == {}


def test_author_and_message_are_recorded_until_disabled(
    provenance: Provenance, made: LanceDataset
) -> None:
    provenance.enable("Ada", message="daily", notebook=False)
    made.insert(ROWS)
    assert _last(made)[hook.AUTHOR] == "Ada"
    assert made.history(1)[0].message == "daily"

    provenance.disable()
    made.insert(ROWS)
    assert _last(made) == {}


def test_a_commit_message_of_its_own_is_kept(provenance: Provenance, made: LanceDataset) -> None:
    provenance.enable("Ada", message="daily")

    made.insert(ROWS, commit_message="my own")

    assert made.history(1)[0].message == "my own"


def test_a_context_ends_with_its_block(provenance: Provenance, made: LanceDataset) -> None:
    provenance.enable("Ada")
    with provenance.context(message="load"):
        made.insert(ROWS)
        assert made.history(1)[0].message == "load"
        assert _last(made)[hook.AUTHOR] == "Ada"
    made.delete("a = 1")

    assert made.history(1)[0].message is None
    assert _last(made)[hook.AUTHOR] == "Ada"


def test_a_context_works_alone(provenance: Provenance, made: LanceDataset) -> None:
    with provenance.context("Grace"):
        made.insert(ROWS)
    assert _last(made)[hook.AUTHOR] == "Grace"

    made.insert(ROWS)
    assert _last(made) == {}


def test_the_running_cell_is_recorded(
    provenance: Provenance, made: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "ds.delete('a = 1')"
    monkeypatch.setenv(SESSION_NAME, "work/prices.ipynb")
    _running(monkeypatch)({"content": {"code": code}, "metadata": {"cellId": "c-7"}})
    provenance.enable("Ada")

    made.delete("a = 1")

    assert _last(made) == {
        hook.AUTHOR: "Ada",
        hook.NOTEBOOK: "work/prices.ipynb",
        hook.CELL_ID: "c-7",
        hook.EXECUTION_COUNT: "2",
        hook.CODE_SHA256: code_hash(code),
    }


def test_the_cell_can_be_left_out(
    provenance: Provenance, made: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    _running(monkeypatch)({"content": {"code": "1"}, "metadata": {"cellId": "c-7"}})
    provenance.enable("Ada", notebook=False)

    made.insert(ROWS)

    assert _last(made) == {hook.AUTHOR: "Ada"}


@pytest.mark.parametrize(
    "request_",
    [{}, {"content": None}, {"content": {"comm_id": "x"}}, {"content": {"code": 7}}],
    ids=["empty", "no content", "a widget", "no text"],
)
def test_a_request_that_is_no_cell_names_none(
    request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SESSION_NAME, raising=False)
    _running(monkeypatch)(request_)

    assert running_cell() == {}


def test_outside_of_a_notebook_no_cell_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert running_cell() == {}

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert running_cell() == {}


def test_hostile_and_long_texts_are_stored_as_text(
    provenance: Provenance, made: LanceDataset
) -> None:
    provenance.enable(HOSTILE + "\ud800" + "x" * 5000, notebook=False)

    made.insert(ROWS)

    author = lance_nb.dataset(made.uri).history(1)[0].properties[hook.AUTHOR]
    assert author.startswith(HOSTILE.encode().decode()[:8])
    assert len(author) <= hook.TEXT_CHARS_MAX
    assert "\ud800" not in author


def test_what_is_no_text_is_refused(provenance: Provenance) -> None:
    with pytest.raises(lance_nb.InvalidInputError, match="author must be text"):
        provenance.enable(7)  # type: ignore[arg-type]

    assert provenance.settings is None


def test_properties_of_the_caller_are_kept(provenance: Provenance, made: LanceDataset) -> None:
    provenance.enable("Ada", notebook=False)

    made.insert(ROWS, transaction_properties={hook.AUTHOR: "somebody", "x": "1"})

    assert _last(made) == {hook.AUTHOR: "somebody", "x": "1"}


def test_merges_tell_where_they_come_from(provenance: Provenance, made: LanceDataset) -> None:
    made.create_branch("dev").insert(ROWS)
    provenance.enable("Ada", notebook=False)

    made.branches.merge("dev")

    found = _last(made.checkout_latest())
    assert found[hook.AUTHOR] == "Ada"
    assert found["lance_nb.merge.source_branch"] == "dev"


def test_it_is_reached_from_the_package() -> None:
    assert isinstance(lance_nb.provenance, Provenance)
