from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.explorer import text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\nb\tc", "a↵b⇥c"),
        ("\x00\x7f", "⟨U+0000⟩⟨U+007F⟩"),
        ("abc\u202edef", "abc⟨U+202E⟩def"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("\ufeffbom", "⟨U+FEFF⟩bom"),
        ("plain – ünïcode 日本 🙂", "plain – ünïcode 日本 🙂"),
        ("\U000e0041", "⟨U+E0041⟩"),
    ],
)
def test_characters_that_cannot_be_seen_are_shown(raw: str, shown: str) -> None:
    assert text.visible(raw) == shown


@given(st.text())
def test_visible_text_stays_as_it_is_when_shown_again(raw: str) -> None:
    once = text.visible(raw)
    assert text.visible(once) == once


def test_names_and_lines_are_bounded() -> None:
    assert len(text.name("x" * 10_000)) <= 2 * text.NAME_CHARS
    assert len(text.line("\u202e" * 100_000)) <= 2 * text.LINE_CHARS
    assert text.cut("abcdef", 4) == "abc…"


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [
        (0, "0 B"),
        (406, "406 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (3_400_000, "3.4 MB"),
        (999_600, "1.0 MB"),
        (99_600, "100 KB"),
        (5 * 10**18, "5000 PB"),
    ],
)
def test_sizes_have_three_digits_and_a_unit(size_bytes: int, shown: str) -> None:
    assert text.size(size_bytes) == shown


def test_a_share_that_is_not_nothing_never_reads_as_nothing() -> None:
    assert text.share(0, 100) == "0 %"
    assert text.share(1, 1_000_000) == "< 0.1 %"
    assert text.share(21, 1000) == "2.1 %"
    assert text.share(0, 0) == "0 %"


def test_moments_are_shown_in_utc() -> None:
    zone = timezone(timedelta(hours=2))
    assert text.moment(datetime(2026, 1, 1, 2, tzinfo=zone)) == "2026-01-01 00:00:00 UTC"
    assert text.moment(None) == "time unknown"
    assert text.milliseconds(None) is None


def test_a_ref_always_names_its_branch() -> None:
    assert text.ref_label(None, 3) == "main:3"
    assert text.ref_label("dev", 3) == "dev:3"
    assert text.plural(1, "row") == "1 row"
    assert text.plural(1204, "row") == "1,204 rows"
