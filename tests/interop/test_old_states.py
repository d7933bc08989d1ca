"""Odd states that old releases left: lance_nb reads and repairs them as pylance 14.0.2 does."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from tests.golden.copies import edited_manifest
from tests.interop.old_states import WRITES, attempt, content, describe, differences
from tests.support.old_releases import PATHS
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

STATES = {
    name: path
    for name, path in PATHS.items()
    if name.startswith(tuple(f"pylance_{one}/" for one in ("0_7_5", "0_8_0", "0_10_5", "0_16_0")))
    or name == "pylance_0_21_0/storage_class"
}
del STATES["pylance_0_7_5/vector_index"]  # below
REPAIRING = ("delete", "delete nothing", "rename", "index", "config")
ONE_ID = "pylance_0_10_5/id_of_a_dropped_column"
APPENDED = "pylance_0_10_5/id_of_a_dropped_column_appended"
MIXED = "pylance_0_16_0/mixed_files"
TWICE = "pylance_0_16_0/fragment_id_twice"

# (state, verb) -> what differs from pylance, and why.
DIFFERENT: dict[tuple[str, str], set[str]] = {
    # pylance copies versions without counts as they are; lance_nb counts.
    ("pylance_0_7_5/deletions", "restore"): {"fragments"},
    ("pylance_0_8_0/wrong_counts", "restore"): {"fragments"},
    # pylance loses the values of dictionaries when it restores.
    ("pylance_0_10_5/dictionaries", "restore"): {"outcome"},
    # pylance changes one of two ids of a 0.1 file, and then cannot read the file.
    **{(ONE_ID, verb): {"content", "fragments", "schema"} for verb in REPAIRING},
    (ONE_ID, "drop"): {"fragments"},
    ("pylance_0_10_5/ids_of_dropped_columns", "drop"): {"fragments"},
    # A file without columns leaves the fragments that change.
    ("pylance_0_10_5/dropped_columns", "delete"): {"fragments"},
    ("pylance_0_10_5/dropped_columns", "delete all"): {"highest fragment"},
    # pylance cannot delete where fragments are out of order, or write where file versions mix.
    ("pylance_0_8_0/compacted", "delete"): {"outcome"},
    ("pylance_0_8_0/compacted", "restore"): {"fragments"},
    **{(MIXED, verb): {"outcome"} for verb in (*REPAIRING, "branch")},
    # Where no id fits, lance_nb refuses; pylance writes what it cannot read.
    **{(APPENDED, verb): {"outcome"} for verb in (*REPAIRING, "drop", "branch")},
    # The ids of fragments that are gone are not given out again.
    (ONE_ID, "delete all"): {"highest fragment"},
    ("pylance_0_10_5/ids_of_dropped_columns", "delete all"): {"highest fragment"},
    # Rows of the two fragments cannot be told apart by their address: lance_nb deletes none.
    (TWICE, "delete all"): {"outcome"},
    (f"{TWICE}_in_one_version", "delete all"): {"outcome"},
    # pylance remaps the index at once; lance_nb leaves that to the fragment-reuse index.
    ("pylance_0_21_0/storage_class", "compact"): {
        "version",
        "fragments",
        "indices",
        "highest fragment",
    },
    # pylance has no branches of mixed file versions, and cannot read 2.0 files of one id.
    (TWICE, "branch"): {"outcome"},
    **{
        (f"{TWICE}_in_one_version", verb): {"content", "content as lance_nb reads it"}
        for verb in ("clean", "tag", "branch")
    },
}


# lance_nb writes no 0.1 files, so what needs new ones is tried where the files are 2.0.
ROW_VERBS = ("append", "update", "upsert", "add", "compact")
CASES = [
    (name, verb)
    for name in STATES
    for verb in WRITES
    if verb not in ROW_VERBS or name.endswith(("storage_class", "in_one_version"))
]


@pytest.mark.parametrize(("name", "verb"), CASES)
def test_the_next_version_is_that_of_pylance(name: str, verb: str) -> None:
    require_pylance()
    found = {what: (theirs, ours) for what, theirs, ours in differences(STATES[name], verb)}
    assert set(found) == DIFFERENT.get((name, verb), set()), found


UNREADABLE = (  # for pylance: mixed file versions, and 2.2 before it was settled
    "pylance_0_12_3/history_2_0", "pylance_1_0_4/many_2_2", "pylance_1_0_4/types_2_2",
)  # fmt: skip


@pytest.mark.parametrize("name", sorted(PATHS.keys() - UNREADABLE))
def test_validate_agrees(name: str) -> None:
    lance = require_pylance()
    theirs = attempt(lambda: lance.dataset(str(PATHS[name])).validate())
    ours = attempt(lambda: lance_nb.dataset(PATHS[name]).validate())
    assert isinstance(ours, Exception) == isinstance(theirs, Exception), (theirs, ours)


def test_every_difference_is_of_a_case_that_is_tested() -> None:
    assert DIFFERENT.keys() <= set(CASES)


@pytest.fixture
def copy(tmp_path: Path) -> Any:
    """Return a function that copies a state and returns where it is."""

    def make(name: str) -> str:
        target = tmp_path / f"{name.replace('/', '_')}.lance"
        shutil.copytree(PATHS[name], target)
        return str(target)

    return make


def test_a_repair_of_pylance_that_it_cannot_read_itself_is_read(copy: Any) -> None:
    lance = require_pylance()
    path = copy(ONE_ID)
    lance.dataset(path).delete("false")
    with pytest.raises(pa.ArrowInvalid, match="No page info"):
        lance.dataset(path).to_table()

    rows = lance_nb.dataset(path).to_table()
    assert rows["b"].to_pylist() == [0, 4, 8]
    assert rows["c"].to_pylist() == [0, 5, 10]


@pytest.mark.parametrize("name", ["pylance_0_10_5/ids_of_dropped_columns", ONE_ID])
def test_values_that_were_hidden_are_read_by_both_after_a_repair(copy: Any, name: str) -> None:
    lance = require_pylance()
    path = copy(name)
    assert lance_nb.dataset(path).to_table()["b"].to_pylist() == [0, 3, 6]
    lance_nb.dataset(path).delete("x = 1")

    for library in (lance, lance_nb):
        dataset = library.dataset(path)
        assert dataset.to_table()["b"].to_pylist() == [0, 8]
        assert dataset.to_table(filter="b > 4")["c"].to_pylist() == [10]
        dataset.validate()


def test_two_fragments_of_one_id_are_read_and_only_rewritten_whole(copy: Any) -> None:
    lance = require_pylance()
    path = copy(TWICE)
    theirs, ours = lance.dataset(path), lance_nb.dataset(path)
    assert [one.fragment_id for one in ours.get_fragments()] == [0, 1, 1]
    for options in ({}, {"limit": 5, "offset": 3}, {"with_row_address": True}):
        assert ours.to_table(**options).equals(theirs.to_table(**options)), options
    assert ours.to_table(filter="x > 8")["x"].to_pylist() == [9, 10, 11, 12, 13]  # pylance fails
    assert ours.take([0, 6, 12])["x"].to_pylist() == [0, 7, 13]
    for mine, other in zip(ours.get_fragments(), theirs.get_fragments(), strict=True):
        assert mine.to_table().equals(other.to_table())
        assert mine.count_rows() == other.count_rows()
    with pytest.raises(InvalidInputError, match="two fragments with id 1"):
        ours.delete("false")
    assert lance_nb.dataset(path).version == ours.version

    lance_nb.write_dataset(ours, path, mode="overwrite")
    for library in (lance, lance_nb):
        assert library.dataset(path).to_table()["x"].to_pylist() == [*range(5), *range(6, 14)]
    lance_nb.dataset(path).delete("x = 0")
    lance.dataset(path).validate()


def test_dictionaries_are_read_by_pylance_after_every_version_that_we_write(copy: Any) -> None:
    lance = require_pylance()
    path = copy("pylance_0_10_5/dictionaries")
    expected = lance.dataset(path).to_table()
    lance_nb.dataset(path).update_config({"a": "b" * 70_000})  # more than one read of a manifest
    lance_nb.dataset(path).update_config({"c": "d"})
    lance_nb.dataset(path).delete("x = 0")
    assert lance.dataset(path).to_table().equals(expected.slice(1).combine_chunks())
    assert content(lance, path) == content(lance_nb, path)
    lance.dataset(path).delete("x = 1")  # and pylance carries them on
    assert content(lance, path) == content(lance_nb, path)


def test_coverage_that_is_missing_is_left_to_pylance(copy: Any) -> None:
    """Files of vector indices are not read: what they cover stays unknown, not wrong."""
    lance = require_pylance()
    path = copy("pylance_0_7_5/vector_index")
    lance_nb.dataset(path).delete("v is null")
    ((_, _, covered, files),) = describe(path)["indices"]  # type: ignore[misc]
    assert covered is None
    assert files == [("index.idx", Path(path).rglob("index.idx").__next__().stat().st_size)]
    query = {"column": "v", "q": [0.0, 7.0, 14.0, 21.0], "k": 3}
    for place in (PATHS["pylance_0_7_5/vector_index"], path):
        with pytest.raises(ValueError, match="upgrade lance"):
            lance.dataset(place).to_table(nearest=query)
    lance.dataset(path).delete("false")
    ((_, _, covered, _),) = describe(path)["indices"]  # type: ignore[misc]
    assert covered == [0]
    assert lance.dataset(path).to_table(nearest=query).num_rows == 3


def test_a_restored_version_without_counts_is_counted(copy: Any) -> None:
    lance = require_pylance()
    path = copy("pylance_0_8_0/wrong_counts")
    wrong = lance_nb.dataset(path).version
    lance_nb.dataset(path).delete("x = 201")
    lance_nb.dataset(path, version=wrong).restore()
    for library in (lance, lance_nb):
        assert library.dataset(path).count_rows() == 96
        library.dataset(path).validate()
    fragments: Any = describe(path)["fragments"]
    assert [one[1:3] for one in fragments] == [(100, 10), (16, 12), (2, 0)]


def test_a_count_that_a_writer_of_today_gives_wrongly_is_an_error(tmp_path: Path) -> None:
    lance = require_pylance()
    path = str(tmp_path / "d.lance")
    lance.write_dataset(pa.table({"x": range(10)}), path)
    (manifest,) = Path(path, "_versions").glob("*.manifest")

    def forge(message: Any) -> None:
        fragment = lance_nb._pb.table.DataFragment.FromString(message.fragments[0])
        fragment.physical_rows = 9
        message.fragments[0] = fragment.SerializeToString()

    manifest.write_bytes(edited_manifest(manifest.read_bytes(), forge))
    with pytest.raises(lance_nb.errors.CorruptFileError, match="9 rows, as the manifest says"):
        lance_nb.dataset(path).to_table()
    assert isinstance(attempt(lambda: lance_nb.dataset(path).validate()), Exception)
