"""Fragments of two versions, matched by their ids.

Fragments that differ, read in windows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lance_nb.format.fragment_list import FragmentList
from lance_nb.table.diff.fragments import fragment_changes, match_fragments


def test_an_id_that_several_fragments_have_matches_none(make) -> None:
    """Releases up to 0.16 left such versions; it ended in an IndexError."""
    ds = make()
    (_, a), (_, b) = ds.opened, ds.checkout_version(1).opened
    raw = list(b.manifest.fragments.raw)
    b = replace(b, manifest=replace(b.manifest, fragments=FragmentList([*raw, raw[1], raw[1]])))
    found = match_fragments(a, b)
    assert found.num_equal == 1
    assert np.array_equal(found.only_a, [1])
    assert np.array_equal(found.only_b, [1, 2, 3])


def test_windows_are_parts_of_the_whole(past) -> None:
    diff = past().diff(1, 3)
    found = fragment_changes(diff.ends, diff.match)
    whole = found.table().to_pylist()

    assert whole == diff.fragments.to_pylist()
    assert [one["change"] for one in whole] == ["changed", "changed", "added", "added"]
    parts = [found.table(at, at + 1).to_pylist()[0] for at in range(found.num_fragments)]
    assert parts == whole
    assert found.table(3, 99).num_rows == 1


def test_kinds_are_chosen_and_files_belong_to_their_fragment(past) -> None:
    diff = past().diff(6, 7)

    added = fragment_changes(diff.ends, diff.match, ["added"])
    removed = fragment_changes(diff.ends, diff.match, ["removed"])
    none = fragment_changes(diff.ends, diff.match, ["changed"])

    assert (added.num_fragments, removed.num_fragments, none.num_fragments) == (1, 4, 0)
    assert none.table().num_rows == none.files().num_rows == 0
    (file,) = added.files(0, 1).to_pylist()
    assert (file["change"], file["columns"]) == ("added", ["id", "u", "t", "w"])
    assert len(removed.files(1, 2)) == len(removed.table(1, 2).to_pylist()) * 2
