"""Manifest files that are cut short, framed wrongly, or not manifests at all."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

import lance_nb
from lance_nb.errors import CorruptFileError, NotSupportedError, StorageError
from tests.faults.lies.conftest import LATEST
from tests.faults.lies.reading import (
    edit_manifest,
    manifest_path,
    read_everything,
    refused,
)
from tests.golden.copies import framed


def rewrite(root: Path, change) -> Path:
    path = manifest_path(root, LATEST)
    path.write_bytes(change(path.read_bytes()))
    return path


@pytest.mark.parametrize(
    ("cut", "words"),
    [
        (lambda _data: b"", "0 bytes"),
        (lambda data: data[: len(data) // 2], "magic"),
        (lambda data: data[:-1], "magic"),
        (lambda data: data[:15], "15 bytes"),
        (lambda data: data[-16:], "16 bytes"),
        (lambda data: data[1:], "manifest"),
        (lambda data: b"\0" * len(data), "magic"),
        (lambda data: data + b"\0", "magic"),
    ],
    ids=["empty", "half", "one byte less", "15 bytes", "footer only", "shifted", "zeros", "longer"],
)
def test_a_damaged_newest_manifest_is_refused_and_names_its_file(root, cut, words):
    path = rewrite(root, cut)
    error = refused(lambda: read_everything(root), words, str(path))
    assert isinstance(error, CorruptFileError)


def test_the_versions_before_a_damaged_one_stay_readable(root):
    rewrite(root, lambda _data: b"")
    assert lance_nb.dataset(root, LATEST - 1).to_table().num_rows == 110
    assert lance_nb.dataset(root, "first").count_rows() == 40


def test_an_error_about_the_newest_manifest_says_how_to_open_the_one_before(root):
    rewrite(root, lambda data: data[:100])
    refused(lambda: lance_nb.dataset(root), f"version={LATEST - 1}")


def test_bad_magic_is_refused(root):
    rewrite(root, lambda data: data[:-4] + b"LANE")
    refused(lambda: read_everything(root), "LANE", "LANC")


def test_a_footer_of_an_unknown_major_version_is_refused(root):
    rewrite(root, lambda data: data[:-8] + struct.pack("<HH", 99, 2) + b"LANC")
    refused(lambda: read_everything(root), "99.2", "0.2")


@pytest.mark.parametrize("position", [2**64 - 1, 2**63, 2**40, "end"])
def test_a_manifest_position_behind_the_file_is_refused(root, position):
    def change(data: bytes) -> bytes:
        at = len(data) - 17 if position == "end" else position
        return data[:-16] + struct.pack("<Q", at) + data[-8:]

    rewrite(root, change)
    refused(lambda: read_everything(root), "position")


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0x80000000, 0, 1])
def test_a_wrong_length_before_the_manifest_is_refused(root, length):
    def change(data: bytes) -> bytes:
        (position,) = struct.unpack("<Q", data[-16:-8])
        return data[:position] + struct.pack("<I", length) + data[position + 4 :]

    rewrite(root, change)
    refused(lambda: read_everything(root), f"{length} bytes")


def test_bytes_that_are_no_message_are_refused(root):
    rewrite(root, lambda _data: framed(b"", b"\xff" * 200))
    refused(lambda: read_everything(root), "Manifest message")


def test_an_empty_message_is_refused(root):
    rewrite(root, lambda _data: framed(b"", b""))
    refused(lambda: read_everything(root), f"version {LATEST}", "version 0")


def test_a_manifest_under_the_name_of_another_version_is_refused(root):
    edit_manifest(root, LATEST, lambda one: setattr(one, "version", 3))
    refused(lambda: read_everything(root), f"version {LATEST}", "version 3")


@pytest.mark.parametrize("field", ["index_section", "transaction_section"])
@pytest.mark.parametrize("offset", [2**64 - 1, 2**40, 10**6])
def test_a_section_behind_the_file_is_refused(root, field, offset):
    edit_manifest(root, LATEST, lambda one: setattr(one, field, offset))
    refused(lambda: read_everything(root), "section")


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_a_section_that_starts_inside_another_is_refused(root, offset):
    edit_manifest(root, 2, lambda one: setattr(one, "transaction_section", offset))
    refused(lambda: read_everything(root, version=2))


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "..", "a/../../../x.txn", "x\0.txn", "%2e%2e/x"]
)
def test_a_transaction_file_outside_of_the_dataset_is_not_opened(root, name):
    def change(manifest):
        manifest.ClearField("transaction_section")
        manifest.ClearField("transaction_section_deprecated")
        manifest.transaction_file = name

    edit_manifest(root, LATEST, change)
    refused(lambda: read_everything(root), "leaves the dataset")


def test_a_commit_time_that_no_calendar_has_is_refused(root):
    edit_manifest(root, LATEST, lambda one: setattr(one.timestamp, "seconds", 2**62))
    refused(lambda: read_everything(root), "time")


@pytest.mark.parametrize("bit", [6, 9, 12, 13, 16, 17, 40, 63])
def test_an_unknown_reader_flag_is_refused_by_name(root, bit):
    def change(manifest):
        manifest.reader_feature_flags |= 1 << bit
        manifest.writer_feature_flags |= 1 << bit

    edit_manifest(root, LATEST, change)
    error = refused(lambda: read_everything(root), hex(1 << bit)[2:4])
    assert isinstance(error, NotSupportedError)


@pytest.mark.parametrize("bit", [17, 40, 63])
def test_an_unknown_writer_flag_does_not_hinder_reading(root, bit):
    expected = read_everything(root)
    edit_manifest(root, LATEST, lambda one: setattr(one, "writer_feature_flags", 1 << bit))
    assert read_everything(root).equals(expected)


def test_both_naming_schemes_in_one_folder_are_refused(root):
    (root / "_versions" / "4.manifest").write_bytes(manifest_path(root, 4).read_bytes())
    refused(lambda: read_everything(root), "V1", "V2")


def test_stray_files_among_the_versions_are_ignored(root):
    expected = read_everything(root)
    newest = manifest_path(root, LATEST)
    for name in ("x", ".tmp123", f"{newest.name}#1", "-1.manifest", "1e3.manifest", "d7.manifest"):
        (root / "_versions" / name).write_bytes(b"junk")
    (root / "_versions" / f"{2**64 - 1 - 99:020d}.manifest").mkdir()
    assert read_everything(root).equals(expected)


@pytest.mark.parametrize(
    "hint",
    [b"", b"junk", b'{"version": 99}', b'{"version": -1}', b'{"version": 18446744073709551615}',
     b'{"version": "x"}', b"[" * 100_000, b'{"version": 1}', b"\xff\xfe", b"x" * 5_000_000],
    ids=["empty", "junk", "ahead", "negative", "huge", "text", "deep", "behind", "bytes", "5 MB"],
)  # fmt: skip
def test_the_hint_file_is_never_trusted(root, hint):
    (root / "_versions" / "latest_version_hint.json").write_bytes(hint)
    assert lance_nb.dataset(root).version == LATEST


def test_a_pipe_instead_of_a_manifest_does_not_hang(root):
    path = manifest_path(root, LATEST)
    path.unlink()
    os.mkfifo(path)
    assert lance_nb.dataset(root).version == LATEST - 1
    error = refused(lambda: lance_nb.dataset(root, LATEST), "not a regular file")
    assert isinstance(error, StorageError)


def test_a_folder_of_versions_that_is_a_file_is_no_dataset(root):
    versions = root / "_versions"
    versions.rename(root / "elsewhere")
    versions.write_bytes(b"")
    refused(lambda: lance_nb.dataset(root), "no Lance dataset")
