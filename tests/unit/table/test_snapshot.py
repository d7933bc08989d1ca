"""A snapshot is immutable, shares open files, and knows the file version to write."""

from __future__ import annotations

import dataclasses

import pytest

from lance_nb.format.feature_flags import V2_FORMAT
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.manifest import DataStorageFormat, Manifest
from lance_nb.format.schema import Schema
from lance_nb.session.session import Session
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import storage_version
from tests.golden.opening import WatchedStore


def test_a_snapshot_knows_its_version_and_branch(at):
    assert (at(5).version, at(5).branch) == (5, None)
    assert (at(("side", None)).version, at(("side", None)).branch) == (3, "side")


def test_a_snapshot_cannot_be_changed(at):
    with pytest.raises(dataclasses.FrozenInstanceError):
        at(5).branch = "other"


def test_versions_of_one_session_share_open_files(history):
    session = Session(WatchedStore(history))
    first, second = session.load(Target(None, 1)), session.load(Target(None, 2))
    assert first.files is second.files
    assert first.deletions is second.deletions


def manifest(*versions: tuple[int, int], said: str | None = None, flags: int = 0) -> Manifest:
    files = tuple(DataFile(f"{i}.lance", (), (), *one) for i, one in enumerate(versions))
    raw = [Fragment(0, (), 1).to_bytes(), Fragment(1, files, 1).to_bytes()]
    return Manifest(
        1,
        Schema(()),
        FragmentList(raw),
        writer_feature_flags=flags,
        data_format=None if said is None else DataStorageFormat("lance", said),
    )


def test_what_the_manifest_says_counts() -> None:
    assert storage_version(manifest((2, 1), said="2.0")) == "2.0"


@pytest.mark.parametrize(
    ("recorded", "version"),
    [((0, 0), "0.1"), ((0, 2), "0.1"), ((0, 3), "2.0"), ((2, 0), "2.0"), ((2, 1), "2.1")],
)
def test_the_first_file_tells_it_otherwise(recorded: tuple[int, int], version: str) -> None:
    assert storage_version(manifest(recorded)) == version


def test_without_files_the_flag_of_2024_tells_it() -> None:
    assert storage_version(manifest()) == "0.1"
    assert storage_version(manifest(flags=V2_FORMAT)) == "2.2"


@pytest.mark.parametrize(
    ("recorded", "version"), [((0, 2), "0.1"), ((0, 3), "2.0"), ((2, 0), "2.0"), ((2, 2), "2.2")]
)
def test_later_files_contradict_a_manifest_that_says_0_1(
    recorded: tuple[int, int], version: str
) -> None:
    assert storage_version(manifest(recorded, said="0.1")) == version


def test_a_dataset_without_files_is_what_its_manifest_says() -> None:
    assert storage_version(manifest(said="0.1", flags=V2_FORMAT)) == "0.1"
