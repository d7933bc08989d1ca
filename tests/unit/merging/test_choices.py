from __future__ import annotations

from datetime import date

import pytest

from lance_nb.merging.choices import CellChoice, parse_choice, row_text


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        (CellChoice("theirs"), "theirs"),
        (CellChoice("ours", column="price"), "price=ours"),
        (CellChoice("base", row=12), "12.=base"),
        (CellChoice("ours", row="a.b", column="c"), '"a.b".c=ours'),
        (CellChoice("ours", row=(1, "x"), column="c"), '[1, "x"].c=ours'),
        (CellChoice("value", row=12, column="price", value=9.5), "12.price:=9.5"),
        (CellChoice("value", row=12, column="note", value="=ours"), '12.note:="=ours"'),
        (CellChoice("value", row=12, column="note"), "12.note:=null"),
        (CellChoice("ours", column="12.price"), "null.12.price=ours"),
        (CellChoice("ours", column="null.x"), "null.null.x=ours"),
    ],
)
def test_the_text_of_a_choice_is_read_as_that_choice(choice: CellChoice, text: str) -> None:
    assert str(choice) == text
    assert parse_choice(text) == choice


def test_rows_are_named_by_what_json_has_of_them() -> None:
    assert row_text(date(2024, 5, 1)) == row_text("2024-05-01")
    assert row_text((1, "x")) == row_text([1, "x"])
