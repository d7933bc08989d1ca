"""Data files that are missing, cut short, not files, or whose metadata lies."""

from __future__ import annotations

import os
import struct

import pytest

import lance_nb
from lance_nb._pb import encodings, encodings21
from lance_nb._pb import table as pb
from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    NotSupportedError,
    ObjectNotFoundError,
    StorageError,
)
from tests.faults.damage.mutate import column_messages, with_column_messages
from tests.faults.lies.conftest import LATEST
from tests.faults.lies.reading import bounded, edit_manifest, refused
from tests.golden.copies import edited_fragment

pytestmark = pytest.mark.slow

FOOTER = struct.Struct("<QQQIIHH4s")
FIELDS = (
    "columns",
    "column_table",
    "global_table",
    "globals",
    "num_columns",
    "major",
    "minor",
    "magic",
)


@pytest.fixture
def data_file(root):
    """The data file of the first fragment of the newest version; the manifest forgets its size."""
    names = []

    def forget(manifest):
        def change(fragment):
            fragment.files[0].file_size_bytes = 0
            names.append(fragment.files[0].path)

        manifest.fragments[0] = edited_fragment(manifest.fragments[0], change)

    edit_manifest(root, LATEST, forget)
    return root / "data" / names[0]


def read(root):
    dataset = lance_nb.dataset(root)
    assert dataset.count_rows() == 110
    return dataset.to_table()


def with_footer(data: bytes, **changes) -> bytes:
    fields = dict(zip(FIELDS, FOOTER.unpack(data[-40:]), strict=True)) | changes
    return data[:-40] + FOOTER.pack(*fields.values())


def edit_columns(path, change):
    data = path.read_bytes()
    messages = column_messages(data)
    change(messages)
    path.write_bytes(with_column_messages(data, messages))


def edit_layout(page, change):
    """Change the PageLayout of a page."""
    wrapped = encodings.Any.FromString(page.encoding.direct.encoding)
    layout = encodings21.PageLayout.FromString(wrapped.value)
    change(layout)
    wrapped.value = layout.SerializeToString()
    page.encoding.direct.encoding = wrapped.SerializeToString()


def test_a_missing_data_file_is_named_with_fragment_and_version(root, data_file):
    data_file.unlink()
    error = refused(lambda: read(root), str(data_file), "fragment 4", f"version {LATEST}")
    assert isinstance(error, ObjectNotFoundError)
    assert lance_nb.dataset(root, 2).to_table().num_rows == 70


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda _data: b"", "0 bytes"),
        (lambda data: data[: len(data) // 2], ""),
        (lambda data: data[:39], ""),
        (lambda data: data[:-1], "magic"),
        (lambda data: data[:-4] + b"PAR1", "PAR1"),
        (lambda data: with_footer(data, major=9, minor=9), "9.9"),
        (lambda data: with_footer(data, major=2, minor=3), "2.3"),
        (lambda data: with_footer(data, num_columns=2**32 - 1), "column metadata table"),
        (lambda data: with_footer(data, globals=2**32 - 1), "global buffer table"),
        (lambda data: with_footer(data, column_table=0), ""),
        (lambda data: with_footer(data, column_table=2**63), "column metadata table"),
        (lambda data: with_footer(data, global_table=2**63), "global buffer table"),
        (lambda data: with_footer(data, global_table=2**64 - 1), "global buffer table"),
        (lambda data: with_footer(data, num_columns=0), "column number below 0"),
        (lambda data: b"\0" * len(data), "magic"),
        (lambda data: b"x" + data, ""),
    ],
    ids=["empty", "half", "39 bytes", "one byte less", "parquet", "9.9", "2.3", "2^32-1 columns",
         "2^32-1 globals", "cmo 0", "cmo 2^63", "gbo 2^63", "gbo 2^64-1", "no columns", "zeros",
         "shifted"],
)  # fmt: skip
def test_a_damaged_container_is_refused_and_named(root, data_file, damage, words):
    data_file.write_bytes(damage(data_file.read_bytes()))
    error = refused(lambda: read(root), words, data_file.name)
    assert isinstance(error, (CorruptFileError, NotSupportedError))


def test_the_start_of_the_column_metadata_is_not_needed(root, data_file):
    expected = read(root)
    data_file.write_bytes(with_footer(data_file.read_bytes(), columns=2**63))
    with bounded():
        assert read(root).equals(expected)


@pytest.mark.parametrize("place", [2**63, 2**64 - 1, 2**40])
@pytest.mark.parametrize("table", ["columns", "globals"])
def test_a_table_entry_behind_the_file_is_refused(root, data_file, place, table):
    data = bytearray(data_file.read_bytes())
    at = FOOTER.unpack(data[-40:])[1 if table == "columns" else 2]
    data[at : at + 8] = struct.pack("<Q", place)
    data_file.write_bytes(bytes(data))

    def change(fragment):
        fragment.physical_rows = 0  # not recorded, as old writers did: the file is asked

    if table == "columns":
        refused(lambda: read(root), data_file.name)
        return
    edit_manifest(root, LATEST, lambda one: one.fragments.__setitem__(
        0, edited_fragment(one.fragments[0], change)))  # fmt: skip
    refused(lambda: lance_nb.dataset(root).count_rows(), data_file.name)


@pytest.mark.parametrize("size", [2**60, 2**40, 2**64 - 1, 2**31, 10**6])
def test_a_page_buffer_larger_than_the_file_is_refused(root, data_file, size):
    def change(messages):
        messages[0].pages[0].buffer_sizes[-1] = size

    edit_columns(data_file, change)
    refused(lambda: read(root), data_file.name, "column 'id'")


@pytest.mark.parametrize("offset", [2**60, 2**64 - 1, 10**6])
def test_a_page_buffer_behind_the_file_is_refused(root, data_file, offset):
    def change(messages):
        messages[0].pages[0].buffer_offsets[0] = offset

    edit_columns(data_file, change)
    refused(lambda: read(root), data_file.name, "column 'id'")


@pytest.mark.parametrize("length", [2**31, 2**60, 2**64 - 1, 0, 106, 108])
def test_a_page_with_another_number_of_rows_is_refused(root, data_file, length):
    edit_columns(data_file, lambda messages: setattr(messages[0].pages[0], "length", length))
    refused(lambda: read(root), data_file.name, "column 'id'")


def test_a_page_repeated_a_hundred_thousand_times_is_refused(root, data_file):
    def change(messages):
        page = messages[0].pages[0]
        messages[0].pages.extend([page] * 100_000)

    edit_columns(data_file, change)
    refused(lambda: read(root), data_file.name, "107 rows")


def test_a_column_without_pages_is_refused(root, data_file):
    edit_columns(data_file, lambda messages: messages[0].ClearField("pages"))
    refused(lambda: read(root), data_file.name, "0 rows")


@pytest.mark.parametrize("arm", ["page", "column"])
def test_a_missing_encoding_is_refused(root, data_file, arm):
    def change(messages):
        (messages[0].pages[0] if arm == "page" else messages[0]).ClearField("encoding")

    edit_columns(data_file, change)
    refused(lambda: read(root), data_file.name)


@pytest.mark.parametrize(
    "url", ["", "/evil.Type", "type.googleapis.com/x", "/lance.encodings.ArrayEncoding"]
)
def test_an_encoding_of_another_kind_is_refused(root, data_file, url):
    def change(messages):
        for page in messages[0].pages:
            wrapped = encodings.Any.FromString(page.encoding.direct.encoding)
            wrapped.type_url = url
            page.encoding.direct.encoding = wrapped.SerializeToString()

    edit_columns(data_file, change)
    refused(lambda: read(root), "column 'id'")


@pytest.mark.parametrize("raw", [b"\xff" * 20, b"", b"\x08"], ids=repr)
def test_an_encoding_of_random_bytes_is_refused(root, data_file, raw):
    def change(messages):
        messages[0].pages[0].encoding.direct.encoding = raw

    edit_columns(data_file, change)
    refused(lambda: read(root))


def test_a_layout_without_an_arm_is_refused(root, data_file):
    edit_columns(
        data_file,
        lambda messages: edit_layout(messages[0].pages[0], lambda layout: layout.Clear()),
    )
    error = refused(lambda: read(root), "column 'id'")
    assert isinstance(error, NotSupportedError)


def test_a_layout_as_deep_as_the_parser_allows_is_refused(root, data_file):
    def nest(layout):
        encoding = layout.mini_block_layout.value_compression
        inner = encodings21.CompressiveEncoding()
        inner.flat.bits_per_value = 32
        for _ in range(40):
            outer = encodings21.CompressiveEncoding()
            outer.general.values.CopyFrom(inner)
            inner = outer
        encoding.CopyFrom(inner)

    edit_columns(data_file, lambda messages: edit_layout(messages[0].pages[0], nest))
    refused(lambda: read(root), "column 'id'")


@pytest.mark.parametrize("kind", ["fifo", "folder", "socket-like link", "dangling link", "loop"])
def test_what_is_not_a_regular_file_is_refused_without_waiting(root, data_file, kind):
    data_file.unlink()
    if kind == "fifo":
        os.mkfifo(data_file)
    elif kind == "folder":
        data_file.mkdir()
    else:
        targets = {
            "socket-like link": "/dev/zero",
            "dangling link": "nowhere",
            "loop": data_file.name,
        }
        data_file.symlink_to(targets[kind])
    error = refused(lambda: read(root), data_file.name)
    if kind == "socket-like link":  # it leaves the dataset, and is refused for that first
        assert isinstance(error, InvalidInputError)
        bases = ["/dev"]
        reading = lambda: lance_nb.dataset(root, allow_bases=bases).to_table()
        error = refused(reading, "not a regular file")
    assert isinstance(error, (StorageError, ObjectNotFoundError))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_data_file_without_permission_is_refused(root, data_file):
    data_file.chmod(0)
    error = refused(lambda: read(root), data_file.name, "ermission")
    assert isinstance(error, StorageError)


@pytest.mark.parametrize("kind", ["arrow", "bin"])
@pytest.mark.parametrize(
    "damage",
    [lambda _data: b"", lambda data: data[: len(data) // 2], lambda data: b"\0" * len(data),
     lambda data: b"\xff" * len(data), lambda data: data + b"\0" * 9, lambda data: data[:-1]],
    ids=["empty", "half", "zeros", "ones", "longer", "one byte less"],
)  # fmt: skip
def test_a_damaged_deletion_file_is_refused_and_named(root, kind, damage):
    path = next((root / "_deletions").glob(f"?-{3 if kind == 'arrow' else 4}-*.{kind}"), None)
    path = path or next((root / "_deletions").glob(f"0-2-*.{kind}"))
    version = int(path.name.split("-")[1]) + 1
    expected = lance_nb.dataset(root, version).to_table()
    path.write_bytes(damage(path.read_bytes()))
    with bounded():
        try:
            assert lance_nb.dataset(root, version).to_table().equals(expected)
        except lance_nb.LanceError as error:
            assert path.name in str(error)  # noqa: PT017
        else:
            assert damage(b"1234") != b"", "an empty deletion file was read"


def test_a_pipe_instead_of_a_deletion_file_is_refused(root):
    path = next((root / "_deletions").glob("0-2-*.arrow"))
    path.unlink()
    os.mkfifo(path)
    refused(lambda: lance_nb.dataset(root, 3).to_table(), path.name)


def test_a_manifest_with_many_fragments_on_one_file_is_read_as_it_says(root):
    def change(manifest):
        template = manifest.fragments[1]
        manifest.ClearField("fragments")
        for at in range(2000):
            fragment = pb.DataFragment.FromString(template)
            fragment.id = at
            manifest.fragments.append(fragment.SerializeToString())

    edit_manifest(root, LATEST, change)
    with bounded():
        assert lance_nb.dataset(root).head(7).num_rows == 7
        assert lance_nb.dataset(root).to_table(["id"], offset=5990).num_rows == 10
