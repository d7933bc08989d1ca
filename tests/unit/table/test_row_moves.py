"""Row addresses followed through compactions."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.format.fragment import Fragment
from lance_nb.format.fragment_reuse import REUSE_INDEX, MovedGroup, with_entry
from lance_nb.table.row_moves import remap_row_addrs
from lance_nb.transactions.operations.create_index import CreateIndex
from tests.support.versions import index


def compacted(place: str) -> lance_nb.LanceDataset:
    made = lance_nb.write_dataset(pa.table({"id": range(10)}), place, max_rows_per_file=2)
    tree = index("tree", 0, covers=(0, 1, 2, 3, 4))
    made._change(CreateIndex((tree,)))
    made.delete("id = 3")
    made.optimize.compact_files(target_rows_per_fragment=4)
    made.optimize.compact_files()
    return made


def test_addresses_lead_to_the_same_rows() -> None:
    made = compacted("memory://moves/1")
    asked = pa.array([at // 2 << 32 | at % 2 for at in range(10)] + [None, 77 << 32], pa.uint64())
    found = made.remap_row_addrs(asked).to_pylist()
    now = made.to_table(with_row_address=True)
    places = dict(zip(now["id"].to_pylist(), now["_rowaddr"].to_pylist(), strict=True))
    assert found == [places.get(at) for at in range(10)] + [None, 77 << 32]
    with pytest.raises(InvalidInputError, match="uint64"):
        made.remap_row_addrs(pa.array(["a"]))


def test_without_the_index_there_is_nothing_to_follow() -> None:
    made = lance_nb.write_dataset(pa.table({"id": [1]}), "memory://moves/2")
    assert made.remap_row_addrs(pa.array([0], pa.uint64())) is None


@pytest.mark.parametrize("rows", [b"", b"\\x01", (0).to_bytes(8, "little")])
def test_a_damaged_map_is_said_to_be_damaged(rows: bytes) -> None:
    made = lance_nb.write_dataset(pa.table({"id": [1]}), f"memory://moves/{rows.hex() or 3}")
    group = MovedGroup(rows, (Fragment(0, (), 2),), (Fragment(9, (), 2),))
    reuse = replace(index(REUSE_INDEX, kind="FragmentReuse"), details=with_entry(b"", 1, [group]))
    made._change(CreateIndex((reuse,)))
    with pytest.raises(CorruptFileError):
        remap_row_addrs(made.opened[1], pa.array([0], pa.uint64()))
