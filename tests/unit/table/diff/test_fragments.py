"""Fragments of two versions, matched by their ids."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lance_nb.format.fragment_list import FragmentList
from lance_nb.table.diff.fragments import match_fragments


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
