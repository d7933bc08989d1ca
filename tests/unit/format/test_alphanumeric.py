from __future__ import annotations

import re

import pytest

from lance_nb.format.alphanumeric import ALPHANUMERIC_CLASS, RANGES, is_alphanumeric


@pytest.mark.parametrize(
    "character",
    ["a", "é", "5", "²", "Ⅷ", "ⓐ", "\u093f", "\u0345", "\U00011f02", "\U0001ccf0", "\U00033479"],
    ids=ascii,
)
def test_letters_signs_and_numbers_are_alphanumeric(character: str) -> None:
    assert is_alphanumeric(character)


@pytest.mark.parametrize(
    "character",
    [
        "",
        " ",
        "\n",
        "\0",
        "/",
        "\\",
        "%",
        "-",
        "\u0301",
        "\u093c",
        "\u200d",
        "\ufffd",
        "\U0010ffff",
    ],
    ids=ascii,
)
def test_marks_signs_and_separators_are_not(character: str) -> None:
    assert not character or not is_alphanumeric(character)


def test_ranges_are_in_order_and_hold_no_ascii() -> None:
    ends = [end for bounds in RANGES for end in bounds]
    assert ends == sorted(ends)
    assert ends[0] > 127


def test_the_class_matches_what_the_ranges_hold() -> None:
    pattern = re.compile(f"[{ALPHANUMERIC_CLASS}]")
    for first, last in RANGES:
        for code in (first - 1, first, last, last + 1):
            is_inside = any(low <= code <= high for low, high in RANGES)
            assert bool(pattern.fullmatch(chr(code))) is is_inside
