"""Deletion files that pylance writes, and ours in their place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import LanceError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DeletionFileType, Fragment
from lance_nb.format.layout import latest_version
from lance_nb.format.manifest import parse_manifest
from lance_nb.storage.base import Store
from lance_nb.storage.registry import open_store
from tests.support.manifests import flipped
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

PREDICATES = {
    DeletionFileType.ARROW: "id % 97 = 3",
    DeletionFileType.BITMAP: "id % 3 > 0",
}


def deletions(store: Store) -> Iterator[tuple[Fragment, str, bytes]]:
    name = latest_version(store.list_names("_versions"))
    for one in parse_manifest(store.read(name.path), name.path).fragments:
        if one.deletion_file is not None:
            path = one.deletion_file.location(one.id)
            yield one, path, bytes(store.read(path))


@pytest.fixture(params=list(DeletionFileType), ids=lambda kind: kind.value)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    lance = require_pylance()
    path = tmp_path / "d"
    dataset = lance.write_dataset(pa.table({"id": range(20_000)}), path, max_rows_per_file=9000)
    dataset.delete(PREDICATES[request.param])
    kinds = {one.deletion_file.file_type for one, _, _ in deletions(open_store(path))}
    assert request.param in kinds
    return path


def test_the_rows_left_are_those_pylance_reads(root: Path):
    lance = require_pylance()
    store = open_store(root)
    found = {one.id: (one, data) for one, _, data in deletions(store)}
    for theirs in lance.dataset(root).get_fragments():
        one, data = found[theirs.fragment_id]
        vector = DeletionVector.from_bytes(
            data,
            one.deletion_file.file_type,
            physical_rows=one.physical_rows,
            num_deleted_rows=one.deletion_file.num_deleted_rows,
        )
        left = theirs.to_table()["id"].to_pylist()
        assert (np.flatnonzero(~vector.to_mask(one.physical_rows)) + 9000 * one.id).tolist() == left


def test_pylance_reads_our_bytes_in_place_of_its_own(root: Path):
    lance = require_pylance()
    store = open_store(root)
    expected = lance.dataset(root).to_table()
    for one, path, data in list(deletions(store)):
        kind = one.deletion_file.file_type
        vector = DeletionVector.from_bytes(data, kind, physical_rows=one.physical_rows)
        ours = vector.to_bytes(kind)
        if kind is DeletionFileType.BITMAP:
            assert ours == data
        store.write(path, ours)
    assert lance.dataset(root).to_table().equals(expected)


def test_damage_of_real_files_never_escapes(root: Path):
    for one, _, data in deletions(open_store(root)):
        for what, broken in flipped(data, 100, seed=one.id):
            try:
                DeletionVector.from_bytes(
                    broken, one.deletion_file.file_type, physical_rows=one.physical_rows
                )
            except LanceError:
                continue
            except Exception as error:
                raise AssertionError(f"{what} escaped as {type(error).__name__}") from error


SMALL_FRAGMENTS = 60  # of 20 rows; two of 9,000 rows come behind them


def mixed(path: Path, stable: bool) -> pa.Table:
    """Write with pylance: small and large fragments, both kinds of files, an update in between."""
    lance = require_pylance()
    small = 20 * SMALL_FRAGMENTS
    table = pa.table({"id": range(small + 18_000), "v": np.arange(small + 18_000) / 2})
    options = {"enable_stable_row_ids": stable}
    lance.write_dataset(table[:small], path, max_rows_per_file=20, **options)
    lance.write_dataset(table[small:], path, max_rows_per_file=9000, mode="append", **options)
    dataset = lance.dataset(path)
    dataset.delete(f"id % 7 = 3 OR (id >= {small} AND id % 3 > 0)")
    dataset.update({"v": "v + 1"}, where="id % 11 = 5")
    dataset.delete("id % 13 = 1")
    kinds = {one.deletion_file.file_type for one, _, _ in deletions(open_store(path))}
    assert kinds == set(DeletionFileType)
    return table


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def mixed_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    mixed(tmp_path / "d", request.param)
    return tmp_path / "d"


READS = {
    "scan": lambda ds: ds.to_table(),
    "row ids": lambda ds: ds.to_table(columns=["id"], with_row_id=True, with_row_address=True),
    "offset": lambda ds: ds.to_table(offset=701, limit=900),
    "late offset": lambda ds: ds.to_table(offset=1200),
    "few": lambda ds: ds.to_table(filter="id % 5 = 0 AND v < 300", limit=70),
    "filter": lambda ds: ds.to_table(filter="id % 10 < 4", with_row_id=True),
    "range": lambda ds: ds.to_table(filter="id BETWEEN 390 AND 1500"),
    "take": lambda ds: ds.take(list(range(0, ds.count_rows(), 3))),
    "batches": lambda ds: pa.Table.from_batches(list(ds.to_batches(batch_size=64))),
    "fragments": lambda ds: pa.concat_tables([each.to_table() for each in ds.get_fragments()]),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_every_read_of_many_deletion_files_is_that_of_pylance(mixed_path: Path, read):
    lance = require_pylance()
    ours, theirs = lance_nb.dataset(mixed_path), lance.dataset(mixed_path)
    assert read(ours).equals(read(theirs))
    assert read(ours).equals(read(theirs)), "from the caches"
    assert ours.count_rows() == theirs.count_rows()
    for condition in ("v < 250", "id % 7 = 3", "id % 2 = 0"):
        assert ours.count_rows(filter=condition) == theirs.count_rows(filter=condition)


def test_an_index_over_many_deletion_files_finds_what_pylance_finds(mixed_path: Path):
    lance = require_pylance()
    lance.dataset(mixed_path).create_scalar_index("id", "BTREE")
    lance.dataset(mixed_path).delete("id % 17 = 2")
    ours, theirs = lance_nb.dataset(mixed_path), lance.dataset(mixed_path)
    for condition in ("id IN (4, 5, 44, 700, 1203, 9000)", "id BETWEEN 390 AND 1500", "id = 2"):
        for use_index in (True, False):
            options = {"filter": condition, "use_scalar_index": use_index, "with_row_id": True}
            found = ours.to_table(**options).sort_by("id")
            assert found.equals(theirs.to_table(**options).sort_by("id"))
            assert ours.count_rows(filter=condition) == found.num_rows


@pytest.mark.parametrize("kind", list(DeletionFileType), ids=lambda kind: kind.value)
def test_a_damaged_file_among_many_is_an_error_or_changes_nothing(tmp_path: Path, kind):
    mixed(tmp_path / "d", stable=False)
    store = open_store(tmp_path / "d")
    expected = lance_nb.dataset(tmp_path / "d").to_table()
    fragment, path, data = next(
        found for found in deletions(store) if found[0].deletion_file.file_type is kind
    )
    refused: list[str] = []
    for what, broken in flipped(data, 60, seed=7):
        store.write(path, broken)
        dataset = lance_nb.dataset(tmp_path / "d")
        try:
            table = dataset.to_table()
        except LanceError as error:
            refused.append(str(error))
            with pytest.raises(LanceError):
                dataset.count_rows(filter="v >= 0")
            continue
        # A file of as many other rows of the fragment is no damage that can be seen.
        rows = DeletionVector.from_bytes(broken, kind, physical_rows=fragment.physical_rows)
        assert len(rows) == fragment.deletion_file.num_deleted_rows, what
        assert table.num_rows == expected.num_rows == dataset.count_rows(filter="v >= 0"), what
    assert len(refused) > 5
    assert all(path in message for message in refused)
