from __future__ import annotations

import pytest

from lance_nb.explorer.drawing import (
    MAX_IMAGE_BYTES,
    MAX_PARTS,
    Panel,
    fitted,
    svg_of,
    width_of,
    wrapped,
)
from lance_nb.explorer.media import media_of
from tests.support.markup_payloads import PAYLOADS
from tests.support.pictures import check_picture, parsed, texts_of

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (8).to_bytes(4, "big") * 2


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_a_hostile_text_stays_text_wherever_it_stands(payload: str) -> None:
    panel = Panel(payload)
    panel.heading(payload)
    panel.paragraph(payload)
    panel.text(1, 2, payload)
    panel.rect(1, 2, 3, 4, "ink", tip=payload)
    check_picture(svg_of(payload, [panel]))


def test_characters_that_xml_refuses_are_replaced() -> None:
    panel = Panel("a\ufffeb\uffffc\x00d\ud800e")
    panel.heading()
    assert "a\ufffdb\ufffdc" in " ".join(texts_of(svg_of("x\ufffe", [panel])))


def test_a_picture_says_what_it_shows_and_has_a_background_of_its_own() -> None:
    panel = Panel("Rows")
    panel.heading("3 of 7")
    root = parsed(svg_of("RowGrid of a.lance at main:1", [panel]))
    found = {one.tag.rpartition("}")[2]: one for one in root}
    assert root.get("role") == "img"
    assert root.get("aria-label") == "RowGrid of a.lance at main:1" == found["title"].text
    assert found["desc"].text == "Rows; 3 of 7"
    assert found["rect"].get("fill") == "#ffffff"
    assert float(root.get("height", 0)) > panel.height


@pytest.mark.parametrize(
    "words", ["a plain name", "W" * 300, "i" * 300, "漢字" * 80, "x", "", "👩‍👩‍👧" * 40]
)
def test_texts_are_cut_to_their_room(words: str) -> None:
    shown = fitted(words, 90)
    assert width_of(shown) <= 90
    assert shown == words or shown.endswith("…")
    if width_of(words) <= 90:
        assert shown == words


def test_prose_is_broken_between_words_and_ends_after_some_lines() -> None:
    lines = wrapped("one two three four five six", 80, 3)
    assert " ".join(lines) == "one two three four five six"
    assert all(width_of(line) <= 80 for line in lines)
    assert len(wrapped("word " * 500, 200, 4)) == 4
    assert wrapped("word " * 500, 200, 4)[-1].endswith("…")


def test_images_and_elements_are_bounded() -> None:
    panel = Panel("Images")
    large = PNG + b"\0" * (MAX_IMAGE_BYTES // 2)
    media = media_of(large, len(large))
    assert panel.image(0, 0, 40, media, large)
    assert not panel.image(0, 0, 40, media, large)  # no room for another
    for _ in range(2 * MAX_PARTS):
        panel.rect(0, 0, 1, 1, "ink")
    svg = svg_of("Images", [panel])
    check_picture(svg)
    assert svg.count("<rect") <= MAX_PARTS + 1
    assert len(svg) < 400_000


def test_only_what_begins_as_an_image_is_drawn_as_one() -> None:
    panel = Panel("Images")
    svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='x()'/>"
    assert not panel.image(0, 0, 40, media_of(svg, len(svg)), svg)


def test_marks_are_set_off_and_cut_with_their_text() -> None:
    panel = Panel("")
    panel.text(0, 0, "a <heron> & heron", marks=[(3, 8), (12, 17)])
    panel.text(0, 0, "a long heronry", width=62, marks=[(7, 14)])
    panel.text(0, 0, "می\u200cخواهم", marks=[(3, 8)])  # a joiner stands before the word
    panel.text(0, 0, "a\u200bheron", marks=[(2, 7)])  # written out, so that places are others
    svg = svg_of("", [panel])
    root = check_picture(svg)
    marked = [one.text for one in root.iter("{http://www.w3.org/2000/svg}tspan")]
    assert marked[:2] == ["heron", "heron"]
    assert marked[2] == "h…"
    assert marked[3:] == ["خواهم"]
    assert texts_of(svg)[0] == "a <heron> & heron"
    assert texts_of(svg)[2:] == ["می\u200cخواهم", "a⟨U+200B⟩heron"]
