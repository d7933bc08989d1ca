"""Reviews of branches that pylance wrote; pylance ignores the comments, and keeps them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_nb


@pytest.mark.parametrize("stable", [False, True])
def test_pylance_ignores_comments_and_keeps_them(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "a.lance")
    table = pa.table({"id": range(10), "name": [f"n{n}" for n in range(10)]})
    theirs = lance.write_dataset(table, uri, enable_stable_row_ids=stable)
    branch = theirs.create_branch("dev")
    branch.update({"name": "'other'"}, where="id = 2")
    branch.delete("id = 7")
    branch.insert(pa.table({"id": [20], "name": ["new"]}))
    theirs.insert(table.slice(0, 1))
    review = lance_nb.dataset(uri).branches.review("dev")
    review.approve("Fine.", author="ada")
    counts = review.diff.counts
    assert (counts.rows_before, counts.rows_after) == (10, 10)
    assert "other" in review.to_html()
    opened = lance.dataset(uri)
    assert list(opened.branches.list()) == ["dev"]
    assert opened.tags.list() == {}
    opened.tags.create("v1", 1)
    options = {"delete_unverified": True, "error_if_tagged_old_versions": False}
    opened.cleanup_old_versions(timedelta(0), **options)
    lance_nb.dataset(uri).cleanup_old_versions(timedelta(0), **options)
    assert lance_nb.dataset(uri).branches.review("dev").is_approved
    assert lance_nb.dataset(uri).verify().ok
    opened.branches.delete("dev")
    (kept,) = lance_nb.dataset(uri).branches.reviews()
    assert (kept.branch, kept.num_comments, kept.is_deleted) == ("dev", 1, True)
