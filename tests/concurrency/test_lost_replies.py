"""Every other call of each change fails with some error; all of them: make torture-replies."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from lance_nb.errors import LanceError
from tests.concurrency import lost_replies
from tests.concurrency.lost_replies import CHANGES, NAMING, LostReplies

pytestmark = [pytest.mark.slow, pytest.mark.interop]


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_reported_of_a_change_is_true(name: str, tmp_path: Path) -> None:
    replies = LostReplies(tmp_path, [name], everywhere=False)
    ends = Counter(replies.check(number) for number in range(1, len(replies.cells) + 1, 2))
    print(f"{name}: {replies.calls[name]} calls, {dict(ends)}, {replies.end_states} end states")


def test_what_is_reported_of_a_branch_is_true_when_two_calls_fail_in_a_row(tmp_path: Path) -> None:
    """The record was left behind when the next call failed too, and the outcome was "failed"."""
    replies = LostReplies(tmp_path, ["branch created"], everywhere=False, times=2)
    cells = [number for number, one in enumerate(replies.cells, 1) if one.call in NAMING]
    assert {"failed", "unknown"} <= {replies.check(number) for number in cells[::2]}


def test_a_change_that_hides_its_failure_is_found_and_its_cell_repeats_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sound = CHANGES["tag deleted"]

    def act(place: str) -> None:
        with suppress(LanceError):
            sound.act(place)

    monkeypatch.setattr(lost_replies, "CHANGES", {"tag deleted": replace(sound, act=act)})
    counts, failures = lost_replies.share(range(1, 30), lambda _: None)
    assert counts["cells"] == 29
    assert 0 < len(failures) == counts["failing"] < 29
    number = int(failures[0].split()[1].rstrip(":"))
    _, again = lost_replies.share(range(number, number + 1), lambda _: None)
    assert again[0].splitlines()[0] == failures[0].splitlines()[0]
    assert "done (None), readers see" in failures[0]
