from __future__ import annotations

import base64
from html.parser import HTMLParser

import pyarrow as pa
import pytest

from lance_nb.errors import CorruptFileError, DatasetNotFoundError
from lance_nb.explorer.session import Session
from lance_nb.explorer.static_rendering import (
    StaticRendering,
    render_error,
    render_parts,
    render_table,
)
from lance_nb.explorer.table_images import table_images
from tests.support.fake_dataset import (
    hostile_dataset,
    many_versions,
    one_table,
    rows,
    small_dataset,
)
from tests.support.markup_payloads import PAYLOADS


def picture_of(session: Session, parts: tuple[str, ...]) -> StaticRendering:
    session.screen(parts)
    return render_parts(session.parts.values())


PARTS = ("card", "timeline", "rows", "detail")
OURS = {"details", "summary", "b", "p", "table", "thead", "tbody", "tr", "th", "td"}


class Elements(HTMLParser):
    """What a browser would make of the HTML."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.other: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    def handle_decl(self, decl: str) -> None:
        self.other.append(decl)

    def unknown_decl(self, data: str) -> None:
        self.other.append(data)


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_no_name_and_no_value_becomes_markup(payload: str) -> None:
    dataset = hostile_dataset(payload)
    for view in (dataset, dataset.checkout_version((payload, None))):
        picture = picture_of(Session(view), PARTS)
        found = Elements(picture.html)
        assert set(found.tags) <= OURS
        assert set(found.attributes) <= {("open", None), ("style", "text-align:left")}
        assert found.other == []
        assert "\u202e" not in picture.text


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_no_error_text_becomes_markup(payload: str) -> None:
    error = CorruptFileError(payload, 1, payload, payload)
    error.add_note(payload)
    found = Elements(render_error(error).html)
    assert set(found.tags) <= OURS
    assert found.other == []


def test_there_are_forty_payloads() -> None:
    assert len(set(PAYLOADS)) == 40


def test_the_picture_shows_header_versions_and_rows() -> None:
    picture = picture_of(Session(small_dataset()), PARTS)
    assert "fake.lance · main:4" in picture.text
    assert "25 rows" in picture.text
    assert "4 (shown)" in picture.text
    assert "drop five" in picture.text
    assert "row 7" in picture.text
    assert "17 more rows" in picture.text
    assert "<table>" in picture.html


def test_the_picture_of_an_older_version_shows_the_versions_around_it() -> None:
    old = many_versions(1000).checkout_version((None, 500))
    picture = picture_of(Session(old), ("timeline",))
    assert "500 (shown)" in picture.text


def test_pictures_stay_small_whatever_is_in_the_dataset() -> None:
    wide = one_table(pa.table({f"c{at}": ["x" * 9000] * 50 for at in range(500)}))
    assert len(picture_of(Session(wide), PARTS).html) < 20_000
    assert len(picture_of(Session(many_versions(5000)), PARTS).html) < 20_000


def test_an_empty_dataset_and_an_error_have_a_picture() -> None:
    empty = picture_of(Session(one_table(rows(0))), PARTS)
    assert "This version has no rows." in empty.text
    error = render_error(DatasetNotFoundError("/no/where"))
    assert "No dataset found" in error.html
    assert "What to do" in error.text


@pytest.mark.parametrize("payload", [*PAYLOADS[:6], '" onload="alert(1)'])
def test_a_picture_stands_in_the_table_and_its_text_beside_it(payload: str) -> None:
    gif = b"GIF89a" + bytes([2, 0, 2, 0]) + payload.encode()
    images = table_images([pa.array([1]), pa.array([gif])])
    picture = render_table("Rows", (), (("id", "photo"), [("1", payload)]), images=images)
    elements = Elements(picture.html)
    assert set(elements.tags) - OURS == {"img"}
    attributes = dict(elements.attributes)
    assert attributes["src"] == f"data:image/gif;base64,{base64.b64encode(gif).decode()}"
    assert set(attributes) - {"open", "style"} == {"src", "alt", "title", "height"}
