"""Deletion files that pylance writes, and ours in their place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

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
