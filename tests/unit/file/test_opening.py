from __future__ import annotations

from pathlib import Path

import pytest

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.legacy_reader import LegacyReader
from lance_nb.file.opening import open_data_file
from lance_nb.file.reader import FileReader
from tests.support.legacy_files import example
from tests.support.reading import BytesStore

GOLDEN = Path(__file__).parents[2] / "hostile" / "golden"


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
