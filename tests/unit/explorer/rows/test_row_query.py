from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.code_lines import Python
from lance_nb.errors import (
    CancelledError,
    ColumnNotFoundError,
    InvalidInputError,
    NotSupportedError,
    PredicateError,
)
from lance_nb.explorer import source
from lance_nb.explorer.rows import grid_rows as grid_rows_module
from lance_nb.explorer.rows import row_order
from lance_nb.explorer.rows.grid_rows import filter_cost, grid_rows
from lance_nb.explorer.rows.nearest_rows import NearestQuery, nearest_rows, recall_words
from lance_nb.explorer.rows.row_order import DISTANCE, SortOrder, filtered_rows, sorted_rows
from lance_nb.explorer.rows.row_query import SYSTEM_COLUMNS, RowQuery, query_code, query_of
from lance_nb.explorer.rows.widget import grid_request_of
from lance_nb.explorer.session import RowOrderCache
from tests.support.explorer_datasets import worn_dataset
from tests.support.fake_dataset import small_dataset

NO_CODE = Python("None")


def quiet(done: int, total: int) -> None:
    assert 0 <= done <= total


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Four fragments of 25 rows, some deleted; every fragment is a group of its own."""
    monkeypatch.setattr(source, "GROUP_ROWS", 1)
    rng = np.random.default_rng(3)
    x = rng.permutation(100).astype(float)
    x[[3, 50]] = np.nan
    table = pa.table({
        "x": pa.array([None if at % 10 == 9 else value for at, value in enumerate(x)]),
        "name": [f"n{at % 7}" for at in range(100)],
        "v": pa.FixedSizeListArray.from_arrays(rng.normal(size=400).astype("f4"), 4),
        "who": [{"a": 1}] * 100,
    })  # fmt: skip
    found = lance_nb.write_dataset(table, tmp_path / "a.lance", max_rows_per_file=25)
    found.delete("x > 90")
    return found


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("where", [None, "name <> 'n3'"])
@pytest.mark.parametrize("most", [1000, 20])
def test_rows_come_in_the_order_of_a_column(
    dataset: Any, ascending: bool, where: str | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_order, "MAX_ORDERED", most)
    found = sorted_rows(dataset, [SortOrder("x", ascending)], where, quiet)
    values = dataset.to_table(["x"], filter=where)["x"].to_pylist()
    numbers = (one for one in values if one is not None and not np.isnan(one))
    plain = sorted(numbers, reverse=not ascending)
    shown = found.rows(dataset, ["x"], 0, 1000)["x"].to_pylist()
    assert shown[: len(plain)] == plain[:most]
    assert found.scanned == len(values)
    assert found.num_rows == min(most, len(values))
    if most > 100:
        assert [one for one in shown[len(plain) :] if one is None] == [None] * values.count(None)
        assert shown[-1] is None


def test_equal_values_keep_the_order_of_the_scan(dataset: Any) -> None:
    found = sorted_rows(dataset, [SortOrder("name", True)], None, quiet)
    rows = found.rows(dataset, ["name", "_rowid"], 0, 100)
    ids = [row["_rowid"] for row in rows.to_pylist() if row["name"] == "n2"]
    assert ids == sorted(ids)
    assert found.rows(dataset, ["x"], 95, 10).num_rows == found.num_rows - min(95, found.num_rows)


def test_what_has_no_order_is_refused(dataset: Any) -> None:
    with pytest.raises(NotSupportedError, match="no order"):
        sorted_rows(dataset, [SortOrder("who", True)], None, quiet)
    with pytest.raises(ColumnNotFoundError):
        sorted_rows(dataset, [SortOrder("nope", True)], None, quiet)


def test_work_ends_where_it_tells_its_progress(dataset: Any) -> None:
    def end(done: int, _total: int) -> None:
        if done:
            raise CancelledError("ended")

    like = NearestQuery("v", dataset.take([0])["v"][0], NO_CODE)
    for work in (
        lambda: sorted_rows(dataset, [SortOrder("x", True)], None, end),
        lambda: nearest_rows(dataset, like, None, end),
        lambda: filtered_rows(dataset, "x > 3", end),
    ):
        with pytest.raises(CancelledError):
            work()


@pytest.mark.parametrize("where", [None, "name <> 'n3'"])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_neighbours_are_those_of_an_exact_search(
    dataset: Any, where: str | None, metric: str
) -> None:
    query = dataset.take([7])["v"][0]
    found = nearest_rows(dataset, NearestQuery("v", query, NO_CODE, 12, metric), where, quiet)
    nearest = {"column": "v", "q": np.array(query.as_py(), "f4"), "k": 12, "metric": metric}
    expected = dataset.scanner(["_rowid"], where, nearest=nearest, prefilter=True).to_table()
    assert found.ids.tolist() == expected["_rowid"].to_pylist()
    shown = found.rows(dataset, [DISTANCE, "name"], 2, 3)
    assert shown[DISTANCE].to_pylist() == expected[DISTANCE].to_pylist()[2:5]
    assert found.rows(dataset, [DISTANCE], 0, 2).num_rows == 2


def test_a_search_that_cannot_be_made_is_refused(dataset: Any) -> None:
    row = dataset.take([0])
    with pytest.raises(NotSupportedError, match="vectors"):
        nearest_rows(dataset, NearestQuery("name", row["name"][0], NO_CODE), None, quiet)
    with pytest.raises(InvalidInputError, match="metric"):
        nearest_rows(dataset, NearestQuery("v", row["v"][0], NO_CODE, 5, "<b>"), None, quiet)
    with pytest.raises(InvalidInputError, match="no vector"):
        nearest_rows(
            dataset, NearestQuery("v", pa.scalar(None, row["v"].type), NO_CODE), None, quiet
        )


def test_rows_that_pass_are_read_from_their_own_fragments(dataset: Any) -> None:
    where = "name = 'n3' or x < 20"
    found = filtered_rows(dataset, where, quiet)
    everything = dataset.to_table(["x", "name"], filter=where)
    assert found.num_rows == everything.num_rows == dataset.count_rows(where)
    for offset in range(found.num_rows + 2):
        page = found.rows(dataset, ["x", "name"], offset, 7)
        assert page.equals(everything.slice(offset, 7)) or str(page) == str(
            everything.slice(offset, 7)
        )
    with pytest.raises(PredicateError):
        filtered_rows(dataset, "x <<< 3", quiet)
    assert filtered_rows(dataset, "x > 1000", quiet).num_rows == 0


def test_rows_are_counted_among_those_that_pass(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "d.lance")
    query = RowQuery("id % 2 = 1", system=True)
    assert query.names(dataset) == ["id", "vector", "double", *SYSTEM_COLUMNS]
    rows = query.rows(dataset, ["id", "_rowaddr"], 50, 2)
    assert rows.to_pydict() == {"id": [131, 133], "_rowaddr": [(1 << 32) + 31, (1 << 32) + 33]}


def test_the_lines_of_code_show_the_same_rows(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "it's.lance")
    query = RowQuery("id < 5 AND id <> 3", system=True)
    code = query_code(dataset, query)
    found = eval(code["python"], {"lance_nb": lance_nb})  # noqa: S307 -- ours, not a user's
    assert found["id"].to_pylist() == [0, 1, 2, 4]
    assert found.schema.names[-4:] == list(SYSTEM_COLUMNS)
    assert code["magic"] == "%lance head main:6 --where 'id < 5 AND id <> 3'"


@pytest.mark.parametrize(
    "args", [{"filter": 7}, {"filter": "x" * 20_000}, {"system": "yes"}, {"filter": ["id"]}]
)
def test_what_is_no_lens_is_refused(args: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        query_of(args)


def test_blank_filters_are_none() -> None:
    assert query_of({"filter": "  "}) == query_of({}) == RowQuery()


def table() -> pa.Table:
    return pa.table({"id": range(4000), "name": ["x"] * 4000, "s": [{"a b": 1}] * 4000})


def test_newer_files_decode_the_columns_of_the_filter_for_every_row(tmp_path: Path) -> None:
    dataset = lance_nb.write_dataset(table(), tmp_path / "a.lance", max_rows_per_file=1000)
    found = filter_cost(dataset, "id > 10 AND s.`a b` = 1")
    assert found.to_json() == {"columns": ["id", "s.a b"], "rows": 4000, "skipped": None,
                               "fragments": 4}  # fmt: skip


def test_pages_of_the_oldest_files_are_skipped(tmp_path: Path) -> None:
    lance = pytest.importorskip("lance")
    path = tmp_path / "old.lance"
    numbers = pa.table({"id": range(4000)})
    lance.write_dataset(numbers, path, data_storage_version="legacy", max_rows_per_group=500)
    found = filter_cost(lance_nb.dataset(path), "id < 700")
    assert (found.rows, found.skipped) == (1000, 3000)


def test_a_wrong_filter_is_refused(tmp_path: Path) -> None:
    dataset = lance_nb.write_dataset(table(), tmp_path / "a.lance")
    with pytest.raises(PredicateError):
        filter_cost(dataset, "id <<< 3")


def quiet_grid_look(_done: int, _total: int) -> None:
    """Nobody is told."""


@pytest.fixture
def dataset_grid_look(tmp_path: Path) -> Any:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(range(400), pa.float32()), 4)
    table = pa.table({"id": range(100), "v": vectors})
    return lance_nb.write_dataset(table, tmp_path / "a.lance")


def run(line: str) -> pa.Table:
    """Run the line that a person copies."""
    return eval(line, {"lance_nb": lance_nb})  # noqa: S307


def test_an_order_says_over_how_many_rows_and_its_code_gives_the_same(
    dataset_grid_look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = grid_request_of(
        {"order": [{"column": "id", "ascending": False}], "filter": "id < 50"}, RowOrderCache()
    )
    found = grid_rows(dataset_grid_look, look, quiet_grid_look)
    assert (found.words, found.num_rows) == ("sorted over 50 rows", 50)
    shown = found.query.rows(dataset_grid_look, ["id"], 0, 3)
    assert shown["id"].to_pylist() == [49, 48, 47]
    assert run(found.code["python"])["id"].to_pylist()[:3] == [49, 48, 47]
    monkeypatch.setattr(row_order, "MAX_ORDERED", 10)
    assert (
        grid_rows(dataset_grid_look, look, quiet_grid_look).words
        == "sorted over 50 rows; the first 10 are shown"
    )


def test_neighbours_have_a_distance_first_and_code(dataset_grid_look: Any) -> None:
    kept = RowOrderCache()
    code = Python(f"lance_nb.dataset({dataset_grid_look.uri!r}).take([7])['v'][0].as_py()")
    key = kept.keep_vector(NearestQuery("v", dataset_grid_look.take([7])["v"][0], code))
    look = grid_request_of(
        {"near": {"like": key, "k": 3, "metric": "l2"}, "filter": "id > 7"}, kept
    )
    found = grid_rows(dataset_grid_look, look, quiet_grid_look)
    assert found.words.startswith("3 rows nearest by l2, exact, of those that pass, in ")
    assert found.query.names(dataset_grid_look) == ["_distance", "id", "v"]
    assert run(found.code["python"])["id"].to_pylist() == [8, 9, 10]
    assert found.query.rows(dataset_grid_look, ["id"], 0, 9)["id"].to_pylist() == [8, 9, 10]


def test_neighbours_that_are_known_from_before_name_their_index_too(
    dataset_grid_look: Any,
) -> None:
    ds = dataset_grid_look.create_index("v", "IVF_FLAT", "v_idx", metric="l2", num_partitions=2)
    kept = RowOrderCache()
    key = kept.keep_vector(NearestQuery("v", ds.take([7])["v"][0], Python("vector")))
    look = grid_request_of({"near": {"like": key, "k": 3, "metric": "l2"}}, kept)
    found = grid_rows(ds, look, quiet_grid_look)
    again = replace(look, query=replace(look.query, order=found.query.order))
    assert "v_idx" in found.words
    assert "v_idx" in grid_rows(ds, again, quiet_grid_look).words


def test_a_filter_tells_what_it_reads(dataset_grid_look: Any) -> None:
    found = grid_rows(
        dataset_grid_look, grid_request_of({"filter": "id < 5"}, RowOrderCache()), quiet_grid_look
    )
    assert (found.num_rows, found.reads.columns, found.words) == (5, ("id",), "")
    plain = grid_rows(
        small_dataset(), grid_request_of({"filter": "id < 5"}, RowOrderCache()), quiet_grid_look
    )
    assert (plain.num_rows, plain.reads) == (5, None)


@pytest.mark.parametrize(
    "args",
    [
        {"order": 5}, {"order": [{"column": 3, "ascending": True}]}, {"order": [{"column": "x"}]},
        {"order": [{"column": "x", "ascending": True}] * 2}, {"order": [4]},
        {"order": [{"column": str(at), "ascending": True} for at in range(17)]},
        {"choice": []}, {"choice": {"pinned": "a"}}, {"choice": {"shown": [3]}},
        {"near": []}, {"near": {"like": "v1", "k": 3, "metric": "l2"}},
        {"near": {"like": "v1", "k": 0, "metric": "l2"}}, {"near": {"like": None, "k": 3}},
    ],
)  # fmt: skip
def test_nonsense_is_refused(args: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        grid_request_of(args, RowOrderCache())


def test_rows_that_a_view_chose_are_shown_alone(dataset: Any) -> None:
    ids = dataset.to_table(columns=["x"], with_row_id=True)["_rowid"].to_numpy()
    kept, place = RowOrderCache(), (None, dataset.version)
    chosen = ids[[70, 3, 41, 3]]
    args = {"version": dataset.version, "within": {"rows": kept.keep_rows(place, chosen)}}

    def seen(**more: Any) -> list[int]:
        found = grid_rows(dataset, grid_request_of(args | more, kept), quiet)
        return found.query.rows(dataset, ["_rowid"], 0, 10)["_rowid"].to_pylist()

    assert seen() == ids[[3, 41, 70]].tolist()
    expected = dataset.take_rows(ids[[3, 41, 70]].tolist(), ["name", "x"])
    where = f"name = '{expected['name'][1].as_py()}'"
    names = expected["name"].to_pylist()
    assert seen(filter=where) == [
        one for one, name in zip(ids[[3, 41, 70]], names, strict=True) if name == names[1]
    ]
    order = [{"column": "name", "ascending": False}]
    places = sorted(range(3), key=lambda at: names[at], reverse=True)
    assert seen(order=order) == ids[[3, 41, 70]][places].tolist()
    found = grid_rows(dataset, grid_request_of(args, kept), quiet)
    assert found.words == "3 rows of 3 chosen"
    code = found.code["python"]
    assert eval(code, {"lance_nb": lance_nb, "ds": dataset}).num_rows == 3  # noqa: S307
    none = kept.keep_rows(place, ids[:0])
    assert seen(within={"rows": none}) == []
    gone = kept.keep_rows(place, np.array([2**40], np.uint64))
    assert seen(within={"rows": gone}) == []


def test_rows_chosen_in_another_version_or_forgotten_are_refused(dataset: Any) -> None:
    kept = RowOrderCache()
    key = kept.keep_rows((None, 1), np.array([1], np.uint64))
    with pytest.raises(InvalidInputError, match="chosen in another version"):
        grid_request_of({"version": 2, "within": {"rows": key}}, kept)
    for rows in ("s99", "o1"):
        with pytest.raises(InvalidInputError, match="no longer cached"):
            grid_request_of({"version": 1, "within": {"rows": rows}}, kept)
    with pytest.raises(InvalidInputError, match="within must be an object"):
        grid_request_of({"version": 1, "within": "s1"}, kept)


@pytest.mark.parametrize("most", [1000, 20, 7])
def test_rows_come_in_the_order_of_several_columns(
    dataset: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_order, "MAX_ORDERED", most)
    order = [SortOrder("name", True), SortOrder("x", False)]
    found = sorted_rows(dataset, order, None, quiet)
    shown = found.rows(dataset, ["name", "x"], 0, 1000)
    frame = dataset.to_table(["name", "x"]).to_pandas()
    expected = frame.sort_values(["name", "x"], ascending=[True, False], kind="stable")
    assert shown["name"].to_pylist() == expected["name"].tolist()[:most]
    numbers = [None if one is None or np.isnan(one) else one for one in shown["x"].to_pylist()]
    assert numbers == [None if np.isnan(one) else one for one in expected["x"][:most]]


def test_chosen_columns_have_code_that_gives_the_same(dataset_grid_look: Any) -> None:
    kept = RowOrderCache()
    args = {"choice": {"pinned": ["v"], "hidden": ["nope"]}, "filter": "id < 5"}
    found = grid_rows(dataset_grid_look, grid_request_of(args, kept), quiet_grid_look)
    assert (found.num_columns, found.num_pinned) == (2, 1)
    assert run(found.code["python"]).column_names == ["v", "id"]
    assert found.query.rows(dataset_grid_look, ["v", "id"], 0, 9).num_rows == 5
    only = grid_request_of({"choice": {"shown": ["id"]}, "system": True}, kept)
    found = grid_rows(dataset_grid_look, only, quiet_grid_look)
    assert found.query.names(dataset_grid_look) == ["id"]


def test_the_code_of_many_columns_names_those_left_out(tmp_path: Path) -> None:
    wide = pa.table({f"c{at}": [at] for at in range(40)})
    dataset = lance_nb.write_dataset(wide, tmp_path / "wide.lance")
    args = {"choice": {"pinned": ["c7"], "hidden": ["c1", "c2"]}, "system": True}
    found = grid_rows(dataset, grid_request_of(args, RowOrderCache()), quiet)
    assert len(found.code["python"]) - len(dataset.uri) < 250
    names = run(found.code["python"]).column_names
    assert set(names) == set(found.query.names(dataset))
    assert names[0] == "c7"


def test_neighbours_come_from_an_index_of_the_metric_and_its_recall_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = np.random.default_rng(4).normal(size=(600, 8)).astype(np.float32)
    table = pa.table({"id": range(600), "v": pa.FixedSizeListArray.from_arrays(
        pa.array(vectors.ravel()), 8)})  # fmt: skip
    made = lance_nb.write_dataset(table, str(tmp_path / "indexed.lance"))
    made.create_index("v", "IVF_FLAT", num_partitions=4, metric="cosine")
    code = Python(f"lance_nb.dataset({made.uri!r}).take([7])['v'][0].as_py()")
    kept = RowOrderCache()
    near = {"like": kept.keep_vector(NearestQuery("v", made.take([7])["v"][0], code)), "k": 5}

    def look(**how: Any) -> Any:
        asked = grid_request_of({"near": near | how, "filter": "id < 500"}, kept)
        return grid_rows(made, asked, quiet_grid_look)

    by_index = look(metric="cosine")
    assert by_index.words.startswith("5 rows nearest by cosine, by the index v_idx, of those that")
    assert "use_index" not in by_index.code["python"]
    exact = look(metric="cosine", exact=True)
    assert exact.words.startswith("5 rows nearest by cosine, exact,")
    assert by_index.index is exact.index is None  # there is one already
    for found in (by_index, exact):
        shown = found.query.rows(made, ["id"], 0, 5)["id"].to_pylist()
        assert shown[0] == 7
        assert run(found.code["python"])["id"].to_pylist() == shown
    missing = look(metric="l2")
    assert "exact" in missing.words  # the index is of another metric
    assert missing.to_json()["index"] == {"column": "v", "kind": "IVF_FLAT", "metric": "l2"}
    with monkeypatch.context() as many:
        many.setattr(grid_rows_module, "QUANTIZED_ROWS", 600)
        assert look(metric="dot").index == {"column": "v", "kind": "IVF_PQ", "metric": "dot"}
    whole = pa.scalar([1] * 8, pa.list_(pa.int8(), 8))  # no index holds such vectors
    of_bytes = NearestQuery("v", whole, NO_CODE)
    assert grid_rows_module._index_of_vectors(made, of_bytes) is None
    asked = grid_request_of({"near": near | {"metric": "cosine"}}, kept)
    said = recall_words(made, asked.nearest, None, quiet_grid_look)
    assert re.match(r"the index v_idx finds \d of the 5 nearest \(recall \d+%\): \d+ ms", said)
    asked = grid_request_of({"near": near | {"metric": "l2"}}, kept)
    with pytest.raises(InvalidInputError, match="no index"):
        recall_words(made, asked.nearest, None, quiet_grid_look)
