"""Clone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import DatasetAlreadyExistsError
from lance_nb.format.feature_flags import BASE_PATHS
from lance_nb.format.manifest import BasePath
from lance_nb.transactions.operation import Built
from lance_nb.transactions.operations.clone import Clone
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.delete import Delete
from tests.support.versions import Versions, deleted, index


def source() -> Versions:
    versions = Versions(2)
    versions.apply(CreateIndex((index("i", 0),)))
    versions.apply(Delete((deleted(versions.fragment(0), 1),)))
    return versions


def cloned(versions: Versions, clone: Clone) -> Built:
    return clone.apply(replace(versions.context(), current=None, indices=()))


def test_a_shallow_clone_refers_to_the_files_of_its_source() -> None:
    built = cloned(source(), Clone(True, None, 3, "/abs/source", "dev"))
    assert built.manifest.version == 3
    assert built.manifest.branch == "dev"
    assert built.manifest.base_paths == (BasePath(0, "/abs/source", True),)
    assert built.manifest.reader_feature_flags & BASE_PATHS
    assert {file.base_id for one in built.manifest.fragments for file in one.files} == {0}
    assert built.manifest.fragments[0].deletion_file.base_id == 0
    assert built.indices[0].base_id == 0


def test_a_clone_of_a_clone_keeps_the_older_base() -> None:
    versions = source()
    versions.built[4] = cloned(versions, Clone(True, None, 3, "/one"))
    versions.built[4] = replace(
        versions.built[4], manifest=replace(versions.built[4].manifest, version=4)
    )
    built = cloned(versions, Clone(True, "dev", 4, "/two"))
    assert [(one.id, one.path, one.name) for one in built.manifest.base_paths] == [
        (0, "/one", None),
        (1, "/two", "dev"),
    ]
    assert {file.base_id for one in built.manifest.fragments for file in one.files} == {0}


def test_a_deep_clone_has_everything_here() -> None:
    versions = source()
    versions.built[4] = cloned(versions, Clone(True, None, 3, "/one"))
    built = cloned(versions, Clone(False, None, 4, "/two"))
    assert built.manifest.base_paths == ()
    assert {file.base_id for one in built.manifest.fragments for file in one.files} == {None}
    assert not built.manifest.reader_feature_flags & BASE_PATHS


def test_it_is_the_first_version_or_nothing() -> None:
    with pytest.raises(DatasetAlreadyExistsError):
        source().apply(Clone(True, None, 3, "/abs/source"))
