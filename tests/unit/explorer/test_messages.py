from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.errors import InvalidInputError, RefNotFoundError
from lance_nb.explorer.messages import (
    MAX_JOBS,
    MAX_REQUEST_WEIGHT,
    Answer,
    Job,
    JobRunner,
    Progress,
    handle,
    integer,
    words,
)
from lance_nb.explorer.session import Session
from tests.support.fake_dataset import small_dataset

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
TYPES = ("ready", "rows", "versions", "detail", "cell", "select")
KEYS = ("branch", "version", "offset", "limit", "first_column", "num_columns", "numbers", "row")
WAIT_S = 60


def echo(args: Mapping[str, Any]) -> Answer:
    return Answer({"said": args.get("say")}, (b"bytes",))


def fail(_args: Mapping[str, Any]) -> Answer:
    raise RefNotFoundError("tag", "v9", ("v1",))


def break_down(_args: Mapping[str, Any]) -> Answer:
    raise ZeroDivisionError("ours")


HANDLERS = {"echo": echo, "fail": fail, "break": break_down}


def error_of(request: object) -> Mapping[str, str]:
    reply, buffers = handle(request, HANDLERS)
    assert buffers == []
    assert reply["ok"] is False
    return reply["error"]


def test_a_request_gets_its_answer_with_its_buffers() -> None:
    reply, buffers = handle({"id": "1", "type": "echo", "args": {"say": "hi"}}, HANDLERS)
    io = reply.pop("io")
    assert reply == {"id": "1", "ok": True, "result": {"said": "hi"}}
    assert set(io) == {"requests", "bytes", "ms"}
    assert buffers == [b"bytes"]


@pytest.mark.parametrize(
    "request_",
    [
        None,
        [],
        "ready",
        {},
        {"id": 1, "type": "echo"},
        {"id": "", "type": "echo"},
        {"id": "x" * 1000, "type": "echo"},
        {"id": "1", "type": None},
        {"id": "1", "type": "unknown"},
        {"id": "1", "type": "__class__"},
        {"id": "1", "type": "echo", "args": []},
        {"id": "1", "type": "echo", "args": {"say": "x" * 300_000}},
        {"id": "1", "type": "echo", "args": {"say": list(range(300_000))}},
    ],
)
def test_a_request_that_is_not_one_gets_a_clean_error(request_: object) -> None:
    error = error_of(request_)
    assert error["kind"] == "InvalidInputError"
    assert len(json.dumps(error)) < 4000


def test_an_error_keeps_the_id_so_that_the_browser_can_match_it() -> None:
    reply, _ = handle({"id": "7", "type": "nope"}, HANDLERS)
    assert reply["id"] == "7"


def test_an_error_of_the_engine_is_reported_in_its_own_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO"):
        error = error_of({"id": "1", "type": "fail"})
    (record,) = caplog.records
    assert (record.levelname, record.exc_info) == ("INFO", None)  # an answer, no alarm
    assert error["title"] == "No tag or branch with this name"
    assert "'v1'" in error["message"]


def test_a_fault_of_our_own_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    error = error_of({"id": "1", "type": "break"})
    assert error["kind"] == "ZeroDivisionError"
    assert "lance_nb" in error["title"]
    assert "ZeroDivisionError" in caplog.text


def test_a_request_nested_a_thousand_times_is_weighed_without_recursion() -> None:
    deep: list[Any] = []
    for _ in range(MAX_REQUEST_WEIGHT):
        deep = [deep]
    assert error_of({"id": "1", "type": "echo", "args": {"deep": deep}})


@given(JSON)
def test_any_json_at_all_gets_a_reply(request_: object) -> None:
    reply, _ = handle(request_, Session(small_dataset()).handlers())
    json.dumps(reply)


@given(st.sampled_from(TYPES), st.dictionaries(st.sampled_from(KEYS), JSON))
def test_any_arguments_at_all_get_a_reply_without_a_fault_of_ours(
    kind: str, args: dict[str, Any]
) -> None:
    request_ = {"id": "1", "type": kind, "args": args}
    reply, _ = handle(request_, Session(small_dataset()).handlers())
    json.dumps(reply)
    assert reply["ok"] or "Something went wrong inside" not in reply["error"]["title"]


def test_arguments_are_taken_with_their_limits() -> None:
    assert integer({"n": 3.0}, "n", low=0, high=3) == 3
    for value in (True, "3", 4, -1, 2.5, None, float("inf")):
        with pytest.raises(InvalidInputError):
            integer({"n": value}, "n", low=0, high=3)
    assert words({"s": "abc"}, "s", 3) == "abc"
    for value in (3, None, "abcd"):
        with pytest.raises(InvalidInputError):
            words({"s": value}, "s", 3)


class Page:
    """Hears what is sent; ``replied`` is set with the first reply."""

    def __init__(self) -> None:
        self.heard: list[Mapping[str, Any]] = []
        self.replied = threading.Event()
        self.progressed = threading.Event()

    def send(self, content: Mapping[str, Any], _buffers: list[bytes]) -> None:
        self.heard.append(content)
        (self.progressed if "progress" in content else self.replied).set()


def test_long_work_tells_its_progress_and_then_answers() -> None:
    page = Page()

    def work(progress: Progress) -> Answer:
        progress(1, 3)
        return Answer({"done": True})

    JobRunner(page.send).start("a", Job(work))
    assert page.replied.wait(WAIT_S)
    assert page.heard[0] == {"id": "a", "progress": [1, 3]}
    assert page.heard[1]["id"] == "a"
    assert page.heard[1]["result"] == {"done": True}


def test_cancelled_work_ends_at_its_next_step() -> None:
    page = Page()
    jobs = JobRunner(page.send)
    cancelled = threading.Event()

    def work(progress: Progress) -> Answer:
        progress(0, 2)
        cancelled.wait(WAIT_S)
        progress(1, 2)
        return Answer({"done": True})

    jobs.start("a", Job(work))
    assert page.progressed.wait(WAIT_S)
    assert jobs.cancel("a")
    cancelled.set()
    assert page.replied.wait(WAIT_S)
    assert page.heard[-1]["error"]["title"] == "Cancelled"
    assert not jobs.cancel("a")


def test_too_much_work_at_once_is_refused() -> None:
    page = Page()
    jobs = JobRunner(page.send)
    go = threading.Event()

    def work(progress: Progress) -> Answer:
        go.wait(WAIT_S)
        return Answer()

    for at in range(MAX_JOBS):
        jobs.start(str(at), Job(work))
    jobs.start("one more", Job(work))
    assert page.heard[0]["id"] == "one more"
    assert "in progress" in page.heard[0]["error"]["message"]
    go.set()


def test_a_page_without_threads_has_the_work_done_at_once() -> None:
    page = Page()
    JobRunner(page.send, beside=False).start("a", Job(lambda _progress: Answer({"n": 1})))
    assert page.heard[0]["result"] == {"n": 1}
