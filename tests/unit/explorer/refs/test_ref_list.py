from __future__ import annotations

from typing import Any

import pytest

from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.explorer.refs.ref_list import (
    MAX_LINES,
    RefBook,
    RefQuery,
    branch_heads,
    note_of,
    ref_book,
    ref_page,
)
from tests.support.explorer_samples import branch, tag
from tests.support.fake_dataset import FakeRefs, small_dataset
from tests.support.markup_payloads import PAYLOADS

BOOK = RefBook(
    tags={"v2": tag(None, 2, 3), "v10": tag(None, 10, 1, 9), "Exp": tag("exp", 4, 2)},
    branches={
        "exp": branch(None, 3, 200),
        "exp/deep": branch("exp", 4, 300, note="try"),
        "alpha": branch(None, 1, 100),
    },
)


def names(query: RefQuery) -> list[Any]:
    return [line["name"] for line in ref_page(BOOK, query).lines]


def test_main_is_on_top_and_the_others_are_in_order() -> None:
    assert names(RefQuery("branch")) == [None, "alpha", "exp", "exp/deep"]
    assert names(RefQuery("branch", descending=True)) == [None, "exp/deep", "exp", "alpha"]
    assert names(RefQuery("branch", sort="fork")) == [None, "alpha", "exp", "exp/deep"]
    assert names(RefQuery("branch", sort="created", descending=True))[1] == "exp/deep"
    assert names(RefQuery("branch", sort="refs", descending=True))[1] == "exp"


def test_tags_are_in_the_order_asked_for() -> None:
    assert names(RefQuery("tag")) == ["Exp", "v10", "v2"]
    assert names(RefQuery("tag", sort="place")) == ["v2", "v10", "Exp"]
    assert names(RefQuery("tag", sort="created")) == ["v10", "Exp", "v2"]
    assert names(RefQuery("tag", sort="updated", descending=True))[0] == "v10"
    with pytest.raises(InvalidInputError, match="sort must be one of name, place"):
        ref_page(BOOK, RefQuery("tag", sort="refs"))


def test_what_is_typed_is_looked_for_in_names_and_places() -> None:
    assert names(RefQuery("branch", "EXP")) == ["exp", "exp/deep"]
    assert names(RefQuery("branch", "main:3")) == ["exp"]
    assert names(RefQuery("branch", "ma")) == [None, "alpha", "exp"]
    assert names(RefQuery("tag", "exp:4")) == ["Exp"]
    assert names(RefQuery("tag", "nothing")) == []


def test_a_page_is_a_window_with_the_counts_of_all() -> None:
    page = ref_page(BOOK, RefQuery("branch", first=1, count=2))
    assert (page.branches, page.tags, page.matching, page.first) == (4, 3, 4, 1)
    assert [line["name"] for line in page.lines] == ["alpha", "exp"]
    line = ref_page(BOOK, RefQuery("branch")).lines[2]
    assert (line["tags"], line["children"], line["fork"]["label"]) == (1, 1, "main:3")
    many = RefBook({f"t{at}": tag(None, 1) for at in range(1000)}, {})
    assert len(ref_page(many, RefQuery("tag", count=10**6)).lines) == MAX_LINES
    assert ref_page(many, RefQuery("tag", first=10**6)).lines == ()


def test_heads_are_described_with_what_happened_since_the_fork() -> None:
    dataset = small_dataset()
    book = ref_book(dataset)
    main, dev, gone = branch_heads(dataset, book, [None, "dev", "gone"])
    assert (main["version"], main["ahead"], main["behind"]) == (4, None, None)
    assert (dev["version"], dev["ahead"], dev["behind"]) == (3, 1, 2)
    assert dev["rows"] == dataset.checkout_version(("dev", 3)).count_rows()
    assert "gone" in gone["problem"]


def test_a_damaged_tag_does_not_hide_the_others() -> None:
    class Damaged(FakeRefs):
        def list(self) -> dict[str, dict[str, Any]]:
            raise CorruptFileError("_refs/tags/bad.json", None, "a JSON object", "{")

        def readable(self) -> dict[str, dict[str, Any]]:
            return {"v1": tag(None, 1)}

        def names(self) -> list[str]:
            return ["bad", "v1"]

    dataset = small_dataset()
    dataset.tags = Damaged({})
    book = ref_book(dataset)
    assert (list(book.tags), book.damaged) == (["v1"], 1)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_names_and_notes_are_bounded_texts_on_one_line(payload: str) -> None:
    book = RefBook(
        {payload: tag(payload, 1)}, {payload * 50: branch(payload, 1, 1, key=payload * 99)}
    )
    (shown,) = ref_page(book, RefQuery("tag")).lines
    assert shown["name"] == payload  # for requests
    line = ref_page(book, RefQuery("branch")).lines[1]
    for words in (shown["label"], shown["place"]["label"], line["label"], line["note"]):
        assert len(words) < 450
        assert not set(words) & set("\x00\u202e\u202c\u200b\ufeff\n")


def test_a_note_goes_before_other_metadata() -> None:
    assert note_of({"metadata": {"a": "1", "note": "good"}}) == "good"
    assert note_of({"metadata": {"a": "1", "b": "2"}}) == "a: 1 · b: 2"
    assert note_of({}) == ""


def test_an_unfinished_branch_is_marked() -> None:
    half = branch(None, 3) | {"is_unfinished": True}
    book = RefBook({}, {"half": half, "whole": branch(None, 3)})
    lines = ref_page(book, RefQuery("branch")).lines
    assert [one["unfinished"] for one in lines] == [False, True, False]
