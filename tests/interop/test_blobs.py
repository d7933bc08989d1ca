"""Blob columns that pylance wrote: descriptions by scan, payloads as files."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

SMALL, LARGE, HUGE = 5, 100_000, 5_000_000  # inline, packed sidecar, dedicated sidecar in 2.2


def write(path: Path, version: str) -> tuple[object, list[bytes | None]]:
    lance = require_pylance()
    pick = random.Random(7)
    sizes = [SMALL, None, 0, LARGE, HUGE, 70_000] * 3
    payloads = [None if size is None else pick.randbytes(size) for size in sizes]
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), blob])
    table = pa.table([range(len(sizes)), pa.array(payloads, pa.large_binary())], schema=schema)
    dataset = lance.write_dataset(
        table, str(path), data_storage_version=version, max_rows_per_file=7
    )
    dataset.delete("id = 3")
    del payloads[3]
    return lance.dataset(str(path)), payloads


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_scans_and_takes_return_the_descriptions_that_pylance_returns(
    tmp_path: Path, version: str
) -> None:
    theirs, _ = write(tmp_path, version)
    ours = lance_nb.dataset(tmp_path)

    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.to_table().schema.equals(theirs.to_table().schema, check_metadata=True)
    assert ours.to_table().equals(theirs.to_table())
    assert ours.take([4, 0, 4], ["blob"]).equals(theirs.take([4, 0, 4], ["blob"]))


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_payloads_are_read_back_whole(tmp_path: Path, version: str) -> None:
    _, payloads = write(tmp_path, version)

    files = lance_nb.dataset(tmp_path).take_blobs("blob", indices=range(len(payloads)))

    assert [None if file is None else file.readall() for file in files] == payloads


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_a_blob_file_reads_like_any_other_file(tmp_path: Path, version: str) -> None:
    _, payloads = write(tmp_path, version)
    position = next(at for at, one in enumerate(payloads) if one and len(one) == HUGE)
    expected = payloads[position] or b""

    (file,) = lance_nb.dataset(tmp_path).take_blobs("blob", indices=[position])

    assert file is not None
    assert file.size() == HUGE
    assert file.seek(-10, io.SEEK_END) == HUGE - 10
    assert file.read(100) == expected[-10:]
    file.seek(1000)
    assert file.read(16) == expected[1000:1016]
    assert file.tell() == 1016
    assert file.read_range(HUGE - 3, 100) == expected[-3:]
    assert io.BufferedReader(file).read(4) == expected[1016:1020]
    file.close()
    with pytest.raises(InvalidInputError, match="closed"):
        file.readall()


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_rows_that_do_not_exist_are_refused_as_pylance_does(tmp_path: Path, stable: bool) -> None:
    lance = require_pylance()
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    payloads = pa.array([bytes(one) for one in range(6)], pa.large_binary())
    table = pa.table([range(6), payloads], schema=pa.schema([("id", pa.int64()), blob]))
    lance.write_dataset(
        table, str(tmp_path), enable_stable_row_ids=stable, max_rows_per_file=3
    ).delete("id = 1 OR id = 4")
    theirs, ours = lance.dataset(str(tmp_path)), lance_nb.dataset(tmp_path)
    second = 3 if stable else 1 << 32
    cases: list[tuple[dict[str, list[int]], list[int] | None]] = [
        ({"ids": [0, 2]}, [0, 2]),
        ({"ids": [2, 0, 2, second]}, [2, 0, 2, 3]),
        ({"addresses": [(1 << 32) + 2, 0, 0]}, [5, 0, 0]),
        ({"indices": [3, 0, 3]}, [5, 0, 5]),
        ({"ids": []}, []),
        ({"ids": [0, 1, 2]}, None),  # deleted
        ({"ids": [0, 77]}, None),  # never there
        ({"ids": [second + 1]}, None),
        ({"addresses": [0, 1]}, None),
        ({"addresses": [3]}, None),
        ({"addresses": [9 << 32]}, None),
        ({"indices": [0, 4]}, None),
    ]
    for given, expected in cases:
        for dataset in (theirs, ours):
            if expected is not None:
                assert [one.size() for one in dataset.take_blobs("b", **given)] == expected
                assert [len(one) for _, one in dataset.read_blobs("b", **given)] == expected
                continue
            for read in (dataset.take_blobs, dataset.read_blobs):
                with pytest.raises((ValueError, NotImplementedError)):
                    read("b", **given)
    with pytest.raises(InvalidInputError, match=r"has row id 1 \(1 of 3 requested\)"):
        ours.take_blobs("b", ids=[0, 1, 2])
    with pytest.raises(InvalidInputError, match=r"has row address 1 \(1 of 1 requested\)"):
        ours.read_blob_ranges("b", [(1, 0, 0)], selector="addresses")


def test_other_columns_hold_no_blobs(tmp_path: Path) -> None:
    write(tmp_path, "2.2")

    with pytest.raises(InvalidInputError, match="holds no blobs"):
        lance_nb.dataset(tmp_path).take_blobs("id", indices=[0])
