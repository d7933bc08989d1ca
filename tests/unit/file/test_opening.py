from __future__ import annotations

from pathlib import Path

import pytest

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.opening import RecentFiles, open_data_file
from lance_nb.file.reader import FileReader
from lance_nb.file.source import FileSource
from lance_nb.file.v0_1_reader import LegacyReader
from lance_nb.storage.local import LocalStore
from tests.support.legacy_files import example
from tests.support.reading import BytesStore

GOLDEN = Path(__file__).parents[2] / "faults" / "damage" / "golden"


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_the_footer_chooses_the_reader(version: str) -> None:
    data = (GOLDEN / f"numbers-{version}.lance").read_bytes()
    reader = open_data_file(BytesStore(data), "a.lance", len(data))

    assert isinstance(reader, FileReader)
    assert ".".join(map(str, reader.file_version)) == version


@pytest.mark.parametrize("minor", [0, 1, 2])
def test_old_files_have_a_reader_of_their_own(minor: int) -> None:
    data = example()
    data = data[:-6] + bytes([minor, 0]) + data[-4:]

    if minor == 0:
        with pytest.raises(NotSupportedError, match=r"0\.0"):
            open_data_file(BytesStore(data), "a.lance")
    else:
        assert isinstance(open_data_file(BytesStore(data), "a.lance"), LegacyReader)


def test_other_versions_are_refused_by_name() -> None:
    data = (GOLDEN / "numbers-2.2.lance").read_bytes()

    with pytest.raises(NotSupportedError, match=r"2\.3"):
        open_data_file(BytesStore(data[:-8] + b"\x02\x00\x03\x00LANC"), "a.lance")
    with pytest.raises(NotSupportedError, match=r"9\.9"):
        open_data_file(BytesStore(data[:-8] + b"\x09\x00\x09\x00LANC"), "a.lance")


def test_sizes_and_magic_are_checked() -> None:
    data = (GOLDEN / "numbers-2.2.lance").read_bytes()

    with pytest.raises(CorruptFileError, match="as the manifest says"):
        open_data_file(BytesStore(data), "a.lance", len(data) + 1)
    with pytest.raises(CorruptFileError, match="magic"):
        open_data_file(BytesStore(data[:-1] + b"X"), "a.lance")
    with pytest.raises(CorruptFileError):
        open_data_file(BytesStore(b"LANC"), "a.lance")


def test_sizes_of_old_files_are_not_believed() -> None:
    data = example()

    assert open_data_file(BytesStore(data), "a.lance", len(data) - 9).num_rows


@pytest.fixture
def local(tmp_path: Path) -> LocalStore:
    (tmp_path / "a.lance").write_bytes((GOLDEN / "numbers-2.2.lance").read_bytes())
    return LocalStore(str(tmp_path))


def test_a_local_file_that_was_open_is_not_opened_again(local: LocalStore) -> None:
    first = open_data_file(local, "a.lance")
    assert open_data_file(LocalStore(local.uri), "a.lance", first.size_bytes) is first
    with pytest.raises(CorruptFileError, match="as the manifest says"):
        open_data_file(local, "a.lance", first.size_bytes + 1)


def test_a_file_that_was_replaced_is_opened_anew(local: LocalStore) -> None:
    first = open_data_file(local, "a.lance")
    local.write("a.lance", (GOLDEN / "numbers-2.1.lance").read_bytes())
    assert open_data_file(local, "a.lance").file_version == (2, 1)
    assert first.file_version == (2, 2)
    local.write("a.lance", b"x" * first.size_bytes)
    with pytest.raises(CorruptFileError):
        open_data_file(local, "a.lance")


def test_only_some_files_are_remembered(local: LocalStore) -> None:
    recent = RecentFiles(2)
    readers = {}
    for name in ("a", "b", "c"):
        local.write(name, (GOLDEN / "numbers-2.2.lance").read_bytes())
        source = FileSource(local, name)
        readers[name] = FileReader(local, name, 0, source)
        recent.put(local.uri, source, readers[name])
    assert recent.get(local.uri, FileSource(local, "a")) is None
    assert recent.get(local.uri, FileSource(local, "c")) is readers["c"]
    assert recent.get("elsewhere", FileSource(local, "c")) is None


def test_files_of_stores_that_cannot_map_are_not_remembered() -> None:
    data = (GOLDEN / "numbers-2.2.lance").read_bytes()
    store = BytesStore(data, mapped=False)
    assert open_data_file(store, "a.lance") is not open_data_file(store, "a.lance")
