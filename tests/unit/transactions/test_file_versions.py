"""The version of data files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import Fragment
from lance_nb.format.manifest import DataStorageFormat
from lance_nb.transactions.file_versions import storage_format, version_text
from tests.support.versions import minimal_manifest, new_fragment


def of(*file_version: int) -> Fragment:
    fragment = new_fragment()
    major, minor = file_version
    file = replace(fragment.files[0], file_major_version=major, file_minor_version=minor)
    return replace(fragment, files=[file])


def test_asked_for_found_kept_or_default() -> None:
    before = replace(minimal_manifest(), data_format=DataStorageFormat("lance", "2.0"))
    assert storage_format([], "2.1", before).version == "2.1"
    assert storage_format([of(2, 1)], None, before).version == "2.1"
    assert storage_format([], None, before).version == "2.0"
    assert storage_format([], None, replace(before, data_format=None)).version == "2.2"


@pytest.mark.parametrize(
    ("stored", "text"), [((0, 3), "2.0"), ((2, 0), "2.0"), ((0, 1), "0.1"), ((2, 2), "2.2")]
)
def test_names_of_versions(stored: tuple[int, int], text: str) -> None:
    assert version_text(stored) == text


def test_files_of_several_versions_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"of one version, and are 2\.1, 2\.2"):
        storage_format([of(2, 1), of(2, 2)], None, minimal_manifest())
