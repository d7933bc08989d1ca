from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from lance_nb.explorer.jobs import MAX_JOBS, Jobs
from lance_nb.explorer.messages import Answer, Job, Progress

WAIT_S = 60


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

    Jobs(page.send).start("a", Job(work))
    assert page.replied.wait(WAIT_S)
    assert page.heard[0] == {"id": "a", "progress": [1, 3]}
    assert page.heard[1]["id"] == "a"
    assert page.heard[1]["result"] == {"done": True}


def test_cancelled_work_ends_at_its_next_step() -> None:
    page = Page()
    jobs = Jobs(page.send)
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
    jobs = Jobs(page.send)
    go = threading.Event()

    def work(progress: Progress) -> Answer:
        go.wait(WAIT_S)
        return Answer()

    for at in range(MAX_JOBS):
        jobs.start(str(at), Job(work))
    jobs.start("one more", Job(work))
    assert page.heard[0]["id"] == "one more"
    assert "under way" in page.heard[0]["error"]["message"]
    go.set()


def test_a_page_without_threads_has_the_work_done_at_once() -> None:
    page = Page()
    Jobs(page.send, beside=False).start("a", Job(lambda _progress: Answer({"n": 1})))
    assert page.heard[0]["result"] == {"n": 1}
