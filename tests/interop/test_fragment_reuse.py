"""The fragment-reuse index as pylance writes it, and indices that stay in use through it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb._pb import index as pb
from lance_nb.format.fragment_reuse import REUSE_INDEX, details_file, inline_details
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.table.indices import read_indices
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

DIMENSION = 4


@pytest.fixture
def lance() -> Any:
    return require_pylance()


def table(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    vectors = np.random.default_rng(first).random(count * DIMENSION, np.float32)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "word": [f"word {at % 7}" for at in ids],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), DIMENSION),
        }
    )


def reuse(uri: Path) -> IndexMetadata:
    found = read_indices(lance_nb.dataset(uri).opened[1])
    (one,) = (one for one in found if one.name == REUSE_INDEX)
    return one


def rows(dataset: Any, text: str, **options: Any) -> list[int]:
    found = dataset.to_table(columns=["id"], filter=text, **options)
    return sorted(found["id"].to_pylist())


def check(dataset: Any, *texts: str) -> None:
    """Answer with the index, which has to be used, and without."""
    dataset.validate()
    for text in texts:
        assert "ScalarIndexQuery" in dataset.scanner(filter=text).explain_plan(True)
        assert rows(dataset, text) == rows(dataset, text, use_scalar_index=False)


def test_a_compaction_is_recorded_as_pylance_records_it(lance: Any, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.lance", tmp_path / "theirs.lance"
    made = lance.write_dataset(table(0, 1000), str(ours), max_rows_per_file=100)
    made.create_scalar_index("id", "BTREE")
    made.delete("id % 10 = 3 OR (id > 420 AND id < 480)")
    made.insert(table(1000, 50))
    made.insert(table(1050, 50))
    shutil.copytree(ours, theirs)
    for target in (400, 2000):
        lance.dataset(str(theirs)).optimize.compact_files(
            target_rows_per_fragment=target, defer_index_remap=True
        )
        lance_nb.dataset(ours).optimize.compact_files(target_rows_per_fragment=target)
        found, wanted = reuse(ours), reuse(theirs)
        assert found.details == wanted.details  # addresses, fragments and versions, bit by bit
        for name in ("fields", "dataset_version", "details_url", "index_version", "files"):
            assert getattr(found, name) == getattr(wanted, name), name
        assert found.fragment_ids() == wanted.fragment_ids()
        assert lance.dataset(str(ours)).version == lance.dataset(str(theirs)).version
        check(lance.dataset(str(ours)), "id = 555", "id >= 410 AND id < 490", "id > 995")
        for place in (ours, theirs):
            lance.dataset(str(place)).delete("id % 10 = 7")
    listed = [one.name for one in lance_nb.dataset(ours).describe_indices()]
    assert listed == [one.name for one in lance.dataset(str(ours)).describe_indices()]


def test_large_records_lie_in_a_file_that_both_read(lance: Any, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.lance", tmp_path / "theirs.lance"
    chance = np.random.default_rng(0).integers(0, 10, 2_000_000).astype(np.int8)
    rows_ = pa.table({"id": np.arange(len(chance)), "chance": chance})
    made = lance.write_dataset(rows_, str(ours), max_rows_per_file=500_000)
    made.create_scalar_index("id", "BTREE")
    made.delete("chance < 4")
    shutil.copytree(ours, theirs)
    lance.dataset(str(theirs)).optimize.compact_files(defer_index_remap=True)
    lance_nb.dataset(ours).optimize.compact_files()
    found, wanted = reuse(ours), reuse(theirs)
    assert details_file(found) == details_file(wanted)
    assert inline_details(found) == inline_details(wanted)
    check(lance.dataset(str(ours)), "id = 777777", "id > 1999990")
    opened = lance_nb.dataset(theirs)  # and we write on what pylance wrote
    opened.delete("id = 777777")
    assert details_file(reuse(theirs)) == details_file(wanted)
    check(lance.dataset(str(theirs)), "id >= 777770 AND id < 777780")
    assert opened.index_coverage("id_idx")["is_covered"].to_pylist() == [True]


def test_we_go_on_after_a_compaction_of_pylance_and_it_after_ours(
    lance: Any, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t.lance")
    made = lance.write_dataset(table(0, 600), uri, max_rows_per_file=50)
    made.create_scalar_index("id", "BTREE")
    made.create_scalar_index("word", "BITMAP")
    for step, engine in enumerate((lance, lance_nb, lance, lance_nb)):
        made.checkout_latest()
        made.delete(f"id % 20 = {step}")
        options = {"target_rows_per_fragment": 100 * 2**step}
        engine.dataset(uri).optimize.compact_files(**options, defer_index_remap=True)
        check(lance.dataset(uri), "id = 333", "id > 590", "word = 'word 3'")
    made.checkout_latest()
    made.optimize.optimize_indices()
    check(lance.dataset(uri), "id = 333", "word = 'word 3'")
    details = pb.FragmentReuseIndexDetails.FromString(reuse(Path(uri)).details)
    assert len(details.inline.legacy_versions) == 3  # at last there was one fragment


def test_row_addresses_are_followed_as_pylance_follows_them(lance: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    made = lance.write_dataset(table(0, 600), uri, max_rows_per_file=50)
    before = made.to_table(columns=["id"], with_row_address=True)["_rowaddr"].combine_chunks()
    asked = pa.concat_arrays([before, pa.array([7, 99 << 32, (1 << 32) + 60], pa.uint64())])
    assert lance_nb.dataset(uri).remap_row_addrs(asked) is made.remap_row_addrs(asked) is None
    made.create_scalar_index("id", "BTREE")
    for step in range(2):
        lance.dataset(uri).delete(f"id % 20 = {step} OR id > {500 - step}")
        lance_nb.dataset(uri).optimize.compact_files(target_rows_per_fragment=100 * 4**step)
    found = lance_nb.dataset(uri).remap_row_addrs(asked)
    assert found.equals(lance.dataset(uri).remap_row_addrs(asked))
    assert found.null_count == 50


def test_moves_are_forgotten_when_indices_have_been_built_anew(lance: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(table(0, 600), uri, max_rows_per_file=50).create_scalar_index("id", "BTREE")
    lance_nb.dataset(uri).optimize.compact_files()
    lance.dataset(uri).optimize.optimize_indices()
    ours = lance_nb.dataset(uri)
    assert ours.optimize.cleanup_frag_reuse_index() == 0  # its files may have old addresses
    lance.dataset(uri).create_scalar_index("id", "BTREE", replace=True)
    ours.checkout_latest()
    assert ours.optimize.cleanup_frag_reuse_index() == 1
    assert [one.name for one in lance.dataset(uri).describe_indices()] == ["id_idx"]
    check(lance.dataset(uri), "id = 333")


def test_an_index_with_a_graph_stays_readable(lance: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    made = lance.write_dataset(table(0, 600), uri, max_rows_per_file=50)
    made.create_scalar_index("id", "BTREE")
    made.create_index("vector", "IVF_HNSW_SQ", num_partitions=1)
    made.delete("id = 7")
    ours = lance_nb.dataset(uri)
    done = ours.optimize.compact_files()
    assert (done.fragments_removed, done.fragments_added) == (11, 1)
    found = lance.dataset(uri)
    check(found, "id = 333", "id < 20")
    query = {"column": "vector", "q": np.full(DIMENSION, 0.5, np.float32), "k": 10}
    plain = found.to_table(nearest=query | {"use_index": False})["id"].to_pylist()
    quick = found.scanner(nearest=query | {"refine_factor": 30, "ef": 300})
    assert "ANN" in quick.explain_plan(True)
    assert quick.to_table()["id"].to_pylist() == plain
    assert ours.optimize.compact_files(defer_index_remap=False).fragments_removed == 2
    found.checkout_latest()
    assert found.to_table(nearest=query)["id"].to_pylist() == plain
