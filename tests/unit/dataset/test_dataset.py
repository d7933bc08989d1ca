from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import DatasetStats, display
from lance_nb.errors import (
    ColumnNotFoundError,
    InvalidInputError,
    RefNotFoundError,
    VersionNotFoundError,
)
from lance_nb.storage.registry import open_store
from tests.golden.big import VERSION, repeat_pages
from tests.golden.copies import NAMES, copy_to_folder, copy_to_memory, expected, refs
from tests.golden.opening import WatchedStore, open_over


def test_a_dataset_says_what_it_is(at, stores):
    dataset = at(("side", None))
    assert dataset.uri == stores["history"].uri
    assert (dataset.name, dataset.branch, dataset.version) == ("history.lance", "side", 3)
    assert dataset.latest_version == 3
    assert dataset.schema.names == ["id", "word", "value", "point"]
    assert dataset.lance_schema.names == dataset.schema.names
    assert dataset.data_storage_version == "2.2"
    assert lance_nb.dataset(stores["types_2_1"].uri).data_storage_version == "2.1"
    assert dataset.metadata == {}


def test_config_is_a_copy(at):
    found = at().config()
    assert found["lance.auto_cleanup.interval"] == "20"
    found.clear()
    assert at().config()


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_is_the_one_pylance_shows(stores, name):
    dataset = lance_nb.dataset(stores[name].uri)
    wanted = expected(name, dataset.version).select(dataset.schema.names).schema
    assert dataset.schema.equals(wanted, check_metadata=True)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_counted_from_the_manifest_alone(stores, name):
    store = WatchedStore(stores[name])
    dataset = open_over(store)
    store.forget()
    assert dataset.count_rows() == len(dataset) == expected(name, dataset.version).num_rows
    dataset.stats()
    assert not store.reads


def test_statistics_add_up(at):
    assert at(5).stats() == DatasetStats(107, 5023, 3, 3, 2, at(5).version_info(5).size_bytes, 2)
    assert at(5).stats().size_bytes > 10_000


def test_versions_are_those_of_pylance(at):
    said = refs("history")["versions"]
    for branch in ("main", "side", "team/deep"):
        found = at((branch, None)).versions()
        assert [{"version": one["version"], "metadata": one["metadata"]} for one in found] == said[
            branch
        ]
        assert set(found[0]) == {"version", "timestamp", "metadata"}
    assert at(3).version_numbers() == list(range(1, 15))


def test_history_is_newest_first_and_bounded(at):
    assert [one.version for one in at().history()] == list(range(14, 0, -1))
    assert [one.version for one in at().history(limit=3)] == [14, 13, 12]
    assert [one.version for one in at().history(limit=2, before=5)] == [4, 3]
    assert at().history(limit=0) == []
    assert at().history(before=1) == []
    assert at(("side", None)).history()[0].tags == ("on-side",)
    assert at().history()[-1].tags == ("first",)


def test_history_reads_as_many_manifests_as_it_shows_and_none_twice(stores):
    store = WatchedStore(stores["history"])
    dataset = open_over(store)
    store.forget()
    dataset.history(limit=3)
    assert sum(count for path, count in store.reads.items() if path.startswith("_versions")) == 3
    dataset.history(limit=5)
    dataset.versions()
    dataset.history()
    dataset.version_info(4)
    dataset.transaction(4)
    dataset.checkout_version(7).history()
    manifests = {path: count for path, count in store.reads.items() if path.startswith("_versions")}
    assert len(manifests) == 14
    assert sum(manifests.values()) == 15  # checking out version 7 needs all of it


def test_a_version_is_described(at):
    info = at().version_info(5)
    assert (info.version, info.operation, info.num_rows, info.num_deleted_rows) == (
        5,
        "Delete",
        107,
        5023,
    )
    with pytest.raises(VersionNotFoundError):
        at().version_info(99)


def test_the_transaction_is_that_of_this_version_unless_reported_otherwise(at):
    assert at(2).transaction().operation == "Append"
    assert at(2).transaction(9).operation == "Update"
    assert at().transaction(1).message == "the first rows"


def test_checking_out_stays_on_the_branch_for_numbers(at):
    side = at(("side", None))
    assert (side.checkout_version(2).branch, side.checkout_version(2).version) == ("side", 2)
    assert side.checkout_version("first").branch is None
    assert side.checkout_version((None, 9)).version == 9
    assert side.checkout_latest().version == 3
    assert at(3).checkout_latest().version == 14
    with pytest.raises(VersionNotFoundError, match="2-3"):
        side.checkout_version(14)
    assert side.checkout_version("main").version == 14
    with pytest.raises(RefNotFoundError):
        side.checkout_version("sidee")


def test_a_checkout_leaves_the_first_handle_as_it_was(at):
    dataset = at()
    assert dataset.checkout_version(1).count_rows() == 40
    assert dataset.version == 14


def test_latest_version_is_looked_up_each_time():
    store = copy_to_memory("history")
    newest = f"_versions/{2**64 - 1 - 14:020d}.manifest"
    data = bytes(store.read(newest))
    store.delete(newest)
    dataset = lance_nb.dataset(store.uri)
    assert (dataset.version, dataset.latest_version) == (13, 13)
    store.write(newest, data)
    assert (dataset.version, dataset.latest_version) == (13, 14)
    assert dataset.checkout_latest().version == 14


# --- rows ---------------------------------------------------------------------------------------


def test_rows_are_read_in_every_form(at):
    whole = expected("history", 9)
    dataset = at(9)
    assert dataset.to_table().equals(whole)
    assert pa.Table.from_batches(dataset.to_batches()).equals(whole)
    assert dataset.scanner().to_reader().read_all().equals(whole)
    assert pa.table(dataset).equals(whole)
    assert pa.RecordBatchReader.from_stream(dataset).read_all().equals(whole)
    assert dataset.head(7).equals(whole.slice(0, 7))
    assert dataset.head(0).num_rows == 0
    assert dataset.head(10**9).num_rows == 107
    assert dataset.take([3, 1]).equals(whole.take([3, 1]))


def test_row_ids_and_addresses_come_last(at):
    names = at(9).to_table(["id"], with_row_address=True, with_row_id=True).column_names
    assert names == ["id", "_rowid", "_rowaddr"]


def test_unknown_columns_are_refused_before_anything_is_read(stores):
    store = WatchedStore(stores["history"])
    dataset = open_over(store, 2)
    store.forget()
    for read in (dataset.to_table, dataset.to_batches, lambda columns: dataset.take([0], columns)):
        with pytest.raises(ColumnNotFoundError, match="'id', 'word', 'value', 'point'"):
            read(["nope"])
    assert not store.reads


@pytest.mark.parametrize("options", [{"limit": -1}, {"offset": -1}])
def test_negative_windows_are_refused_where_they_are_given(at, options):
    with pytest.raises(InvalidInputError):
        at(9).scanner(**options)


def test_a_sample_is_repeatable_and_without_repeats(at):
    dataset = at(9)
    first = dataset.sample(30, ["id"], seed=4)
    assert first.equals(dataset.sample(30, ["id"], seed=4))
    every = dataset.sample(107, ["id"], randomize_order=False)
    assert every["id"].to_pylist() == expected("history", 9)["id"].to_pylist()
    assert dataset.sample(0).num_rows == 0
    for number in (-1, 108):
        with pytest.raises(InvalidInputError, match=f"cannot sample {number} of 107 rows"):
            dataset.sample(number)


def test_fragments_are_listed_and_found(at):
    dataset = at(9)
    assert [one.fragment_id for one in dataset.get_fragments()] == [0, 1, 2, 3]
    assert dataset.get_fragment(2).fragment_id == 2
    assert dataset.get_fragment(99) is None
    assert at(11).get_fragment(0) is None


# --- display ------------------------------------------------------------------------------------


def test_a_repr_names_place_branch_and_version(at, stores):
    assert repr(at(2)) == f"<lance_nb.LanceDataset {stores['history'].uri!r} at main:2>"
    assert repr(at(("team/deep", 4))).endswith("at team/deep:4>")


def test_the_picture_comes_from_the_renderer_that_is_installed(at):
    installed = list(display._renderers)
    dataset = at(2)
    try:
        display.set_renderer(lambda value: {"text/plain": repr(value)})
        assert dataset._repr_mimebundle_() == {"text/plain": repr(dataset)}
        display.set_renderer(None)
        assert dataset._repr_mimebundle_() is None
    finally:
        display.set_renderer(installed[0] if installed else None)


# --- ten million rows ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ten_million(tmp_path_factory):
    """10,120,000 rows of mini-block pages on disk, in a file of a few hundred kilobytes."""
    root = copy_to_folder("history", tmp_path_factory.mktemp("big"))
    return root, repeat_pages(root, 2000)


@pytest.fixture
def decoded(monkeypatch):
    """The number of values decoded from pages, counted while the test runs."""
    from lance_nb.file import page_reader

    counted = []
    decode = page_reader._decode

    def counting(source, run, buffers, finish):
        def counted_and_finished(page, num_rows):
            counted.append(page.values.num_values)
            return finish(page, num_rows)

        return decode(source, run, buffers, counted_and_finished)

    monkeypatch.setattr(page_reader, "_decode", counting)
    return counted


@pytest.mark.parametrize("offset", [0, 100, 5000, 5_000_000, 9_999_900, 10_119_900])
@pytest.mark.parametrize("remote", [False, True], ids=["mapped", "ranges"])
def test_a_preview_of_ten_million_rows_decodes_what_it_shows(ten_million, decoded, offset, remote):
    root, _ = ten_million
    store = WatchedStore(open_store(root), remote=remote)
    dataset = open_over(store, VERSION)
    found = dataset.to_table(["id"], offset=offset, limit=100)
    assert found["id"].to_pylist() == [(offset + row) % 5060 for row in range(100)]
    assert sum(decoded) == 100
    store.forget()
    dataset.to_table(["id"], offset=offset, limit=100)
    assert remote is False or store.num_bytes < 20_000
    assert sum(store.reads.values()) <= 2


def test_a_batch_of_ten_million_rows_decodes_one_window(ten_million, decoded):
    root, rows = ten_million
    dataset = lance_nb.dataset(root, VERSION)
    assert dataset.count_rows() == rows
    first = next(dataset.to_batches(["id"]))
    assert first.num_rows == 8192
    assert sum(decoded) <= 1 << 20


def test_taking_three_of_ten_million_rows_decodes_three(ten_million, decoded):
    root, rows = ten_million
    dataset = lance_nb.dataset(root, VERSION)
    found = dataset.take(np.array([rows - 1, 0, 7_000_000]), ["id"])
    assert found["id"].to_pylist() == [5059, 0, 7_000_000 % 5060]
    assert sum(decoded) == 3


def test_columns_that_no_file_holds_cost_nothing_to_preview(ten_million, decoded):
    root, _ = ten_million
    assert lance_nb.dataset(root, VERSION).head(100, columns=["word"])["word"].null_count == 100
    assert not decoded
