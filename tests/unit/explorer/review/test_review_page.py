from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.reviews import Review
from tests.support.written_tables import make, rows, uri

__all__ = ["make", "rows", "uri"]

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u202e"


def png(red: int) -> bytes:
    """A picture of one colour."""
    raw = b"".join(b"\0" + bytes((red, 60, 40)) * 8 for _ in range(8))
    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


@pytest.fixture
def review(make: Callable[..., LanceDataset]) -> Review:
    table = pa.table(
        {
            "id": range(6),
            HOSTILE: [f"the quick brown fox {n}" for n in range(6)],
            "image": [png(200)] * 3 + [b"<svg onload=alert(3)>"] * 3,
        }
    )
    dataset = make(table, enable_stable_row_ids=True)
    dataset.expectations.add("id < 9", name="small")
    branch = dataset.create_branch("dev")
    changed = pa.table(
        {
            "id": [1, 9],
            HOSTILE: ["the slow brown fox 1", HOSTILE],
            "image": [png(30), b"<svg onload=alert(3)>"],
        }
    )
    branch.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        changed
    )
    branch.delete("id = 4")
    return dataset.branches.review("dev")


class Tags(HTMLParser):
    """The tags of a page, and the attributes of its images."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.sources: list[str] = []
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.sources += [value or "" for name, value in attrs if name == "src"]


def test_the_page_shows_what_changed(review: Review, tmp_path: Path) -> None:
    first = review.comment("Where from?", author="ada")
    review.comment("Camera 2.", reply_to=first.id, author="bob")
    page = review.to_html(tmp_path / "review.html")
    assert (tmp_path / "review.html").read_text("utf-8") == page
    assert "the <del>quick</del> brown fox 1" in page
    assert "the <ins>slow</ins> brown fox 1" in page
    assert page.count("data:image/png;base64,") == 2  # old and new, side by side
    assert "Rows added: 1 row" in page
    assert "Rows removed: 1 row" in page
    assert '<td class="fail">fail</td><td>id &lt; 9</td>' in page
    assert '<div class="say reply"><b>bob</b>' in page
    assert "Drift" in page


def test_hostile_texts_become_no_markup(review: Review) -> None:
    review.comment(HOSTILE, author=HOSTILE[:60])
    for page in (review.to_html(), review._repr_html_()):
        tags = Tags(page)
        assert "script" not in tags.seen
        assert "svg" not in tags.seen
        assert not {one for one in tags.attributes if one.startswith("on") or one == "style"}
        assert all(one.startswith("data:image/png;base64,") for one in tags.sources)
        assert "\x1b" not in page
        assert "\u202e" not in page


def test_the_policy_allows_the_style_and_nothing_else(review: Review) -> None:
    page = review.to_html()
    policy = page.partition('content="')[2].partition('"')[0]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy
    assert "unsafe" not in policy
    assert "http" not in page.partition("</head>")[0].replace("http-equiv", "")


def test_what_cannot_be_compared_says_why(make: Callable[..., LanceDataset]) -> None:
    dataset = make()
    dataset.create_branch("dev")
    page = dataset.branches.review("dev").to_html()
    assert "nothing differs" in page
    assert "No row has changed values." in page
    assert "No comments yet." in page
