from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CancelledError, ColumnNotFoundError, InvalidInputError
from lance_nb.explorer.stage.actions import action_of
from lance_nb.explorer.stage.card_view import title_of
from lance_nb.explorer.stage.edit_forms import EditForm


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    table = pa.table({
        "id": range(300),
        "text": ["a river", "an old stone", "wood"] * 100,
        "v": pa.FixedSizeListArray.from_arrays(np.arange(1200).astype("f4"), 4),
    })  # fmt: skip
    return lance_nb.write_dataset(table, tmp_path / "a.lance", max_rows_per_file=100)


def quiet(done: int, total: int) -> None:
    assert min(done, total) >= 0


def test_an_index_is_built_of_the_newest_rows_when_its_card_is_committed(dataset: Any) -> None:
    form = EditForm.of("index", {"column": "text", "kind": "INVERTED"})
    assert title_of(form) == "Build an index: INVERTED on text"
    action = action_of(dataset, form, quiet)
    assert action.lines[0].startswith("INVERTED index text_idx on text: reads 300 rows, ")
    assert action.size_bytes > 0
    lance_nb.write_dataset(dataset.to_table().slice(0, 5), str(dataset.uri), mode="append")
    heard: list[tuple[int, int]] = []
    words = action.run(lambda done, total: heard.append((done, total)))
    assert words == "INVERTED index text_idx on text was built, as main:3"
    newest = lance_nb.dataset(str(dataset.uri))
    assert heard
    assert newest.describe_indices()[0].num_rows_indexed == 305
    phrase = lance_nb.PhraseQuery("old stone", "text")
    assert newest.to_table(full_text_query=phrase).num_rows == 102
    again = action_of(newest, form, quiet)
    assert "takes the place of the index text_idx" in again.lines[1]


def test_an_index_of_vectors_has_a_metric(dataset: Any) -> None:
    form = EditForm.of("index", {"column": "v", "kind": "IVF_FLAT", "metric": "cosine"})
    action_of(dataset, form, quiet).run(quiet)
    newest = lance_nb.dataset(str(dataset.uri))
    assert newest.index_statistics("v_idx")["indices"][0]["metric_type"] == "cosine"


def test_a_build_that_is_cancelled_leaves_nothing(dataset: Any) -> None:
    action = action_of(dataset, EditForm.of("index", {"column": "text", "kind": "BTREE"}), quiet)

    def stop(_done: int, _total: int) -> None:
        raise CancelledError("stopped")

    with pytest.raises(CancelledError):
        action.run(stop)
    assert lance_nb.dataset(str(dataset.uri)).version == 1
    folder = Path(str(dataset.uri)) / "_indices"
    assert not list(folder.rglob("*.lance")) if folder.exists() else True


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"column": "nope", "kind": "BTREE"}, ColumnNotFoundError),
        ({"column": "v", "kind": "BTREE"}, InvalidInputError),
        ({"column": "id", "kind": "IVF_PQ"}, InvalidInputError),
        ({"column": "text", "kind": "INVERTED", "metric": "l2"}, InvalidInputError),
        ({"column": "id", "kind": "SECRET"}, InvalidInputError),
    ],
)
def test_what_cannot_be_built_is_refused(
    dataset: Any, args: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        action_of(dataset, EditForm.of("index", args), quiet)
