from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import ColumnNotFoundError, InvalidInputError, PredicateError
from lance_nb.explorer import cells
from lance_nb.explorer.rows import full_text_search
from lance_nb.explorer.rows.full_text_search import (
    SCORE,
    SearchRequest,
    plan_search,
    telling_words,
    terms_of,
    utf16_places,
)
from lance_nb.explorer.rows.grid_rows import GridRequest, grid_rows
from lance_nb.explorer.rows.row_order import SortOrder
from lance_nb.explorer.rows.row_page import Window, row_page
from lance_nb.explorer.rows.row_query import RowQuery
from tests.support.fake_dataset import one_table

TEXTS = [
    "The old River bank", "a driver waits", "stone and river, river", None,
    "Über den FLUSS", "an old stone", "river-bank", "我爱北京天安门",
]  # fmt: skip


def quiet(done: int, total: int) -> None:
    assert 0 <= done <= total


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    """Two columns of texts, in two fragments."""
    table = pa.table({
        "id": range(8),
        "text": TEXTS,
        "note": pa.array(["x", "river", "y", "z", "x", "old", "x", "x"]).dictionary_encode(),
        "tags": [["river"], [], None, ["a"], [], [], [], []],
    })  # fmt: skip
    return lance_nb.write_dataset(table, tmp_path / "a.lance", max_rows_per_file=4)


def found(dataset: Any, written: str, **more: Any) -> tuple[list[int], Any]:
    search = SearchRequest(written, more.pop("columns", None), more.pop("any_word", False))
    query = RowQuery(more.pop("filter", None))
    rows = grid_rows(dataset, GridRequest(query, search=search, **more), quiet)
    page = rows.query.rows(dataset, ["id"], 0, 100)
    return page["id"].to_pylist(), rows


WORDS = {
    "river": [0, 1, 2, 6], "RIVER old": [0], "old river bank": [0], "drive": [],
    '"river bank"': [0, 6], "river-bank": [0, 6], '"bank river"': [], "über": [4],
    "fluss": [4], "北京": [7], '"old': [0, 5], "RIVER river": [0, 1, 2, 6],
}  # fmt: skip


def test_without_an_index_every_text_is_scanned_for_whole_words(dataset: Any) -> None:
    for written, ids in WORDS.items():
        shown, rows = found(dataset, written)
        assert (written, shown, rows.num_rows) == (written, ids, len(ids))
        assert "every text scanned, no index, so no score" in rows.words
        assert rows.query.names(dataset) == dataset.schema.names
        made = dataset.to_table(filter=rows.query.filter)
        assert made["id"].to_pylist() == ids
    made = eval(rows.code["python"], {"lance_nb": lance_nb})  # noqa: S307
    assert made["id"].to_pylist() == WORDS["river"]


def test_any_word_or_one_column_may_be_enough(dataset: Any) -> None:
    assert found(dataset, "fluss driver", any_word=True)[0] == [1, 4]
    assert found(dataset, "river", columns=("note",))[0] == [1]
    assert found(dataset, "river old", columns=("note", "text"), any_word=True)[0] == [
        0, 1, 2, 5, 6,
    ]  # fmt: skip


def test_a_scan_combines_with_filters_orders_and_chosen_rows(dataset: Any) -> None:
    assert found(dataset, "river", filter="id > 1 OR id = 0")[0] == [0, 2, 6]
    order = (SortOrder("id", ascending=False),)
    shown, rows = found(dataset, "river", order=order)
    assert shown == [6, 2, 1, 0]
    assert rows.query.search is not None
    within = dataset.to_table(["_rowid"], filter="id < 3")["_rowid"].to_numpy().astype(np.uint64)
    assert found(dataset, "river", within=within)[0] == [0, 1, 2]
    with pytest.raises(PredicateError):
        found(dataset, "river", filter="id > 1) OR (id = 0")


def test_an_index_ranks_rows_and_gives_their_scores(dataset: Any) -> None:
    dataset.create_scalar_index("text", "INVERTED")
    shown, rows = found(dataset, "river")
    assert shown[0] == 2  # it has the word twice
    assert sorted(shown) == [0, 2, 6]
    assert "3 rows by the index text_idx on text, in " in rows.words
    assert "not searched, no index: note, tags" not in rows.words  # a list cannot be scanned
    assert "not searched, no index: note" in rows.words
    assert rows.query.names(dataset)[0] == SCORE
    page = rows.query.rows(dataset, [SCORE, "id"], 0, 10)
    judge = dataset.to_table(full_text_query={"query": "river", "columns": ["text"]})
    assert page[SCORE].to_pylist() == judge[SCORE].to_pylist()
    made = eval(rows.code["python"], {"lance_nb": lance_nb})  # noqa: S307
    assert made["id"].to_pylist() == shown
    assert rows.code["magic"] == "%lance search river --in text"
    assert found(dataset, "rivers running")[0] == []
    assert sorted(found(dataset, "rivers running", any_word=True)[0]) == [0, 2, 6]
    assert found(dataset, "river old")[0] == [0]
    assert found(dataset, "river", filter="id > 2")[0] == [6]
    order = (SortOrder("id", ascending=False),)
    shown, rows = found(dataset, "river", order=order)
    assert shown == [6, 2, 0]
    assert "sorted by id, not by score" in rows.words
    within = dataset.to_table(["_rowid"], filter="id < 3")["_rowid"].to_numpy().astype(np.uint64)
    assert found(dataset, "river", within=within)[0] == [2, 0]
    every, rows = found(dataset, "river", columns=())
    assert every == [0, 1, 2, 6]
    assert "no index" in rows.words


def test_what_an_index_cannot_do_is_scanned_and_said(
    dataset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.create_scalar_index("text", "INVERTED")
    shown, rows = found(dataset, '"river bank"')
    assert shown == [0, 6]
    assert "the index text_idx holds no positions, which phrases need" in rows.words
    dataset.create_scalar_index("text", "INVERTED", with_position=True, replace=True)
    shown, rows = found(dataset, '"river bank"')
    assert sorted(shown) == [0, 6]
    assert rows.query.found_by == SCORE
    with pytest.raises(InvalidInputError, match="leaves these words out"):
        found(dataset, "the")
    assert found(dataset, "the river", filter="id = 0")[0] == [0]

    def refuse(_parameters: Any) -> None:
        raise lance_nb.errors.NotSupportedError("no such stems")

    monkeypatch.setattr(full_text_search, "Tokenizer", refuse)
    shown, rows = found(dataset, "river")
    assert shown == [0, 1, 2, 6]
    assert "text_idx cannot be used: no such stems" in rows.words


def test_several_indices_are_searched_together(dataset: Any) -> None:
    plain = dataset.to_table().set_column(2, "note", pa.array(["x", "old"] * 4))
    several = lance_nb.write_dataset(plain, str(dataset.uri), mode="overwrite")
    for name in ("text", "note"):
        several.create_scalar_index(name, "INVERTED", with_position=True)
    shown, rows = found(several, "river old")
    assert shown[0] == 0  # both words are in one text
    assert sorted(shown) == [0]
    assert "note_idx" in rows.words
    made = eval(rows.code["python"], {"lance_nb": lance_nb})  # noqa: S307
    assert made["id"].to_pylist() == shown
    assert sorted(found(several, 'waits "old river"', any_word=True)[0]) == [0, 1]
    mixed, rows = found(several, 'waits "a driver"')
    assert mixed == [1]
    assert rows.code["magic"].startswith("#")


def test_words_are_marked_where_the_browser_counts_them(dataset: Any) -> None:
    search = plan_search(dataset, SearchRequest('river "old stone"'))
    assert search.excerpt("text", "a RIVER", 240) == ("a RIVER", [2, 7])
    shown, marks = search.excerpt("text", "word " * 100 + "old stone " + "z" * 400, 240)
    assert shown.startswith("…word word word old stone zz")
    assert len(shown) == 240
    assert shown[marks[0] : marks[1]] == "old stone"
    assert search.excerpt("text", "none of it", 6) == ("none …", [])
    assert search.places("id", "river") == []
    assert utf16_places("😀 river", [(2, 7)]) == [3, 8]
    dataset.create_scalar_index("text", "INVERTED")
    search = plan_search(dataset, SearchRequest("rivers"))
    assert search.excerpt("text", "all Rivers, river", 240)[1] == [4, 10, 12, 17]
    rows = grid_rows(dataset, GridRequest(RowQuery(), search=SearchRequest("river")), quiet)
    page = row_page(dataset, Window(), query=rows.query)
    texts = next(one for one in page.to_json()["columns"] if one["name"] == "text")
    assert texts["marks"]["0"] == [10, 15, 17, 22]
    assert "marks" not in page.to_json()["columns"][0]


def test_what_cannot_be_searched_is_refused(dataset: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match="letters or digits"):
        terms_of('  "" --')
    with pytest.raises(InvalidInputError, match="at most 32"):
        terms_of(" ".join(map(str, range(33))))
    with pytest.raises(ColumnNotFoundError):
        found(dataset, "a", columns=("nope",))
    with pytest.raises(InvalidInputError, match="only texts are searched"):
        found(dataset, "a", columns=("id",))
    with pytest.raises(InvalidInputError, match="only texts are searched"):
        found(dataset, "a", columns=("tags",))
    with pytest.raises(InvalidInputError, match="no column of texts"):
        plan_search(one_table(pa.table({"id": [1]})), SearchRequest("a"))
    monkeypatch.setattr(full_text_search, "MAX_CONDITION_CHARS", 100)
    with pytest.raises(InvalidInputError, match="choose a column"):
        found(dataset, "river stone")


def test_telling_words_are_frequent_here_and_rare_elsewhere(dataset: Any) -> None:
    written = "The old river, old bank and a waterfall"
    assert telling_words(dataset, "text", written) == ["waterfall", "river", "bank", "old"]
    dataset.create_scalar_index("text", "INVERTED")
    # Twice here; bank and river are in others, waterfall is in none.
    assert telling_words(dataset, "text", written) == ["old", "bank", "river"]
    many = " ".join(f"w{at} river" for at in range(20))
    assert len(telling_words(dataset, "note", many)) == full_text_search.MAX_TELLING
    for nothing in ("", "the and", "--"):
        with pytest.raises(InvalidInputError, match="no words to search for"):
            telling_words(dataset, "note", nothing)


def test_a_scan_reads_a_bounded_number_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_text_search, "MAX_SCANNED", 2)
    many = one_table(pa.table({name: ["river"] for name in "abc"}))
    search = plan_search(many, SearchRequest("river"))
    assert search.columns == ("a", "b")
    assert search.remarks == ("the first 2 of 3 columns of texts",)
    assert cells.text_columns(pa.schema({"a": pa.large_string(), "b": pa.binary()})) == ["a"]
