"""Verbs for indices."""

from __future__ import annotations

import pytest

from tests.unit.magic.conftest import Lance


def test_an_index_is_created_listed_extended_described_and_dropped(lance: Lance, uri: str) -> None:
    lance(f"open {uri}")
    assert "no index" in lance("index").picture.text
    made = lance("index create id").picture.text
    assert "Created index id_idx" in made
    assert "BTree on id" in made
    assert "id_idx" in lance("index list").picture.text
    assert "Every index covers all rows" in lance("index optimize").picture.text
    assert "index: 'id_idx'" in lance("explain 'id = 3'").picture.text
    assert "num_indexed_rows" in lance("index stats id_idx").picture.text
    lance("index create id --type ZONEMAP --name id_idx --replace")
    assert "ZoneMap" in lance("index").picture.text
    lance("index optimize id_idx --retrain")
    assert "Dropped index id_idx" in lance("index drop id_idx").picture.text
    assert "no index" in lance("index").picture.text


@pytest.mark.parametrize("action", ["create", "drop", "stats"])
def test_what_is_missing_is_named(lance: Lance, uri: str, action: str) -> None:
    lance(f"open {uri}")
    with pytest.raises(Exception, match=f"index {action} needs"):
        lance(f"index {action}")
