from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb import BatchUDF
from lance_nb.dataset.verbs.udf_columns import FunctionColumns


@pytest.fixture
def made(make):
    """Ten rows in one fragment, those in the middle deleted."""
    made = make()
    made.delete("id >= 3 AND id < 7")
    return made


def values(made, function, schema=None, batch_size=2):
    return FunctionColumns(made.opened[1], BatchUDF(function, schema), ["id"], batch_size)


def test_a_function_sees_live_rows_and_its_values_fill_all(made):
    seen = []

    def name(batch):
        seen.append(batch["id"].to_pylist())
        return pa.record_batch({"n": batch["id"]})

    columns = values(made, name)
    (fragment,) = made.opened[1].manifest.fragments
    assert columns.schema.names == ["n"]
    batches = list(columns.batches(fragment))
    assert seen == [[0, 1], [2], [7], [8, 9]]  # the first was not computed twice
    found = [one for batch in batches for one in batch["n"].to_pylist()]
    assert len(found) == 10
    assert [found[at] for at in (0, 1, 2, 7, 8, 9)] == [0, 1, 2, 7, 8, 9]
    assert None not in found


def test_deleted_rows_before_any_live_one_are_null(make):
    made = make()
    made.delete("id < 4")
    columns = values(made, lambda batch: pa.record_batch({"n": batch["id"]}))
    (fragment,) = made.opened[1].manifest.fragments
    found = [one for batch in columns.batches(fragment) for one in batch["n"].to_pylist()]
    assert found == [None] * 4 + [4, 5, 6, 7, 8, 9]


def test_without_a_checkpoint_nothing_is_known(made):
    columns = values(made, lambda batch: batch)
    (fragment,) = made.opened[1].manifest.fragments
    assert not columns.is_checkpointed
    columns.keep_fragment(fragment)
    assert columns.known_fragment(fragment, made.lance_schema.tree) is None
