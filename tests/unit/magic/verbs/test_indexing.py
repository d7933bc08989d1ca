"""Verbs for indices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from IPython.core.error import UsageError

import lance_nb
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


def test_settings_of_a_kind_are_given_one_by_one(lance: Lance, tmp_path: Path) -> None:
    values = np.random.default_rng(2).random(1200, np.float32)
    data = {"text": ["a fox"] * 300, "v": pa.FixedSizeListArray.from_arrays(pa.array(values), 4)}
    ds = lance_nb.write_dataset(pa.table(data), tmp_path / "d.lance")
    lance(f"open {ds.uri}")
    with pytest.raises(UsageError, match="num_sub_vectors is required"):
        lance("index create v --type IVF_PQ")
    options = "--set num_sub_vectors=2 --set metric=cosine --set num_partitions=3"
    assert "IVF_PQ on v" in lance(f"index create v --type IVF_PQ {options}").picture.text
    lance("index create text --type INVERTED --set with_position=true --set language=French")
    made = lance_nb.dataset(ds.uri)
    (vectors,) = made.index_statistics("v_idx")["segments"]
    assert (vectors["metric_type"], vectors["num_partitions"]) == ("cosine", 3)
    (texts,) = made.index_statistics("text_idx")["segments"]
    assert (texts["params"]["language"], texts["params"]["with_position"]) == ("French", True)
    for wrong in ("x", "replace=true", "a b=1", "progress_callback=1"):
        with pytest.raises(UsageError, match="--set takes a setting of the kind"):
            lance(f"index create v --type IVF_PQ --set '{wrong}'")


@pytest.mark.parametrize("action", ["create", "drop", "stats"])
def test_what_is_missing_is_named(lance: Lance, uri: str, action: str) -> None:
    lance(f"open {uri}")
    with pytest.raises(Exception, match=f"index {action} needs"):
        lance(f"index {action}")
