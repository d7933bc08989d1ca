from __future__ import annotations

import pickle
import shutil

import pytest

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import NotFoundError
from lance_nb.spark.place import Place
from tests.unit.spark.conftest import rows


def test_a_dataset_made_anew_is_another_one(dataset: LanceDataset) -> None:
    old = Place.of(dataset)
    assert old.dataset().count_rows() == 100
    shutil.rmtree(dataset.uri)
    made = lance_nb.write_dataset(rows(0, 7), dataset.uri)
    for number in range(2, dataset.version + 1):
        made.update_config({"version": str(number)})
    assert made.version == old.version
    new = pickle.loads(pickle.dumps(Place.of(made)))  # noqa: S301
    assert new.dataset().to_table() == rows(0, 7)
    with pytest.raises(NotFoundError, match=r"deleted and made anew.*plan again"):
        old.check()


def test_what_was_planned_is_not_committed_to_a_dataset_made_anew(dataset: LanceDataset) -> None:
    plan = spark.plan_delete(dataset, "id < 50")
    results = spark.run_edits(plan, engine="local")
    shutil.rmtree(dataset.uri)
    made = lance_nb.write_dataset(rows(0, 7), dataset.uri)
    for number in range(2, dataset.version + 1):
        made.update_config({"version": str(number)})
    with pytest.raises(NotFoundError, match="deleted and made anew"):
        plan.commit(results)
    assert lance_nb.dataset(dataset.uri).to_table() == rows(0, 7)
