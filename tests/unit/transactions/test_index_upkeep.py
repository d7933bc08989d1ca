"""What indices cover after a change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.merged_logs import merged_logs
from lance_nb.transactions.index_upkeep import (
    cover_moved,
    cover_rewritten,
    prune_fields,
    record_merged_logs,
    remap,
    retain_useful,
)
from lance_nb.transactions.manifest_building import Draft
from tests.support.sample_operations import LOG, log_index
from tests.support.versions import Versions, index


def draft(*indices: IndexMetadata, fragments: int = 3) -> Draft:
    versions = Versions(fragments)
    made = Draft(versions.context(), versions.manifest)
    made.indices = list(indices)
    return made


def covered(made: Draft) -> dict[str, list[int]]:
    return {one.name: sorted(one.fragment_ids() or ()) for one in made.indices}


def test_only_indices_on_the_fields_are_pruned() -> None:
    carries = replace(index("carries", 1), covering_fields=(0,))
    made = draft(index("a", 0), index("b", 1), carries)
    prune_fields(made, {1}, {0})
    assert covered(made) == {"a": [0, 2], "b": [0, 1, 2], "carries": [0, 2]}
    prune_fields(made, {0}, set())
    assert covered(made)["a"] == [0, 2]


def test_moved_rows_are_covered_if_all_their_sources_were() -> None:
    made = draft(
        index("whole", 0, kind="Bitmap"),
        index("part", 0, covers=(0,), kind="Bitmap"),
        index("changed", 1, kind="Bitmap"),
        index("addresses", 0, kind="BTree"),
        replace(index("silent", 0, kind="Bitmap"), fragment_bitmap=b""),
    )
    cover_moved(made, {7}, {0, 1}, {1})
    assert covered(made) == {
        "whole": [0, 1, 2, 7],
        "part": [0],
        "changed": [0, 1, 2],
        "addresses": [0, 1, 2],
        "silent": [],
    }


def test_successors_are_covered_where_rows_are_known_by_id() -> None:
    made = draft(index("ids", 0, kind="Vector"), index("addresses", 0), index("mapped", 0))
    cover_rewritten(made, [({0, 1}, {8})], {made.indices[2].uuid})
    assert covered(made) == {"ids": [2, 8], "addresses": [2], "mapped": [0, 1, 2]}


def test_a_remapped_copy_takes_the_place() -> None:
    made = draft(index("i", 0))
    new_id = "11111111-1111-1111-1111-111111111111"
    remap(made, [({0, 1}, {8}), ({5}, {9})], made.indices[0].uuid, new_id, ())
    assert (made.indices[0].uuid, covered(made)) == (new_id, {"i": [2, 8]})
    remap(made, [], "gone", new_id, ())
    made.indices = [replace(index("i", 0), fragment_bitmap=b"")]
    with pytest.raises(InvalidInputError, match="does not say"):
        remap(made, [], made.indices[0].uuid, new_id, ())


def test_of_several_parts_those_that_cover_something_stay() -> None:
    old, new = (
        replace(index(name, 0, covers=at), name="i") for name, at in (("o", (9,)), ("n", (1,)))
    )
    made = draft(old, new)
    retain_useful(made)
    assert made.indices == [new]


def test_of_parts_that_cover_nothing_the_oldest_stays() -> None:
    parts = [replace(index(str(at), 0, covers=()), name="i", dataset_version=at) for at in (5, 3)]
    made = draft(*parts)
    retain_useful(made)
    assert made.indices == [parts[1]]
    made = draft(replace(index("v", 0, covers=(), kind="Vector")))
    retain_useful(made)
    assert made.indices == []


def test_the_index_is_changed_in_its_place_and_belongs_to_the_new_version() -> None:
    versions = Versions(1)
    draft = Draft(versions.context(), versions.manifest)
    draft.indices = [index("before", 0), *log_index().added, index("behind", 0)]
    record_merged_logs(draft, [LOG])
    assert [one.name for one in draft.indices] == ["before", "__lance_mem_wal", "behind"]
    assert merged_logs(draft.indices[1].details) == (LOG,)
    assert draft.indices[1].dataset_version == 2
