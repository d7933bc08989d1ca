"""What pylance pickles and copies, we do too, and more."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.optimize
import pyarrow as pa
import pytest

import lance_nb

pytestmark = pytest.mark.interop

OBJECTS: dict[str, Callable[[Any, Any], Any]] = {
    "dataset": lambda _, ds: ds,
    "fragment": lambda _, ds: ds.get_fragments()[0],
    "scanner": lambda _, ds: ds.scanner(filter="a > 3"),
    "metadata": lambda _, ds: ds.get_fragments()[0].metadata,
    "data file": lambda _, ds: ds.get_fragments()[0].metadata.files[0],
    "schema": lambda _, ds: ds.lance_schema,
    "transaction": lambda _, ds: ds.read_transaction(1),
    "operation": lambda m, ds: m.LanceOperation.Append([ds.get_fragments()[0].metadata]),
    "optimize": lambda _, ds: ds.optimize,
    "tags": lambda _, ds: ds.tags,
    "branches": lambda _, ds: ds.branches,
    "versions": lambda _, ds: ds.versions(),
    "stats": lambda _, ds: ds.stats,
    "plan": lambda m, ds: _compaction(m).plan(ds, {"target_rows_per_fragment": 99}),
    "task": lambda m, ds: _compaction(m).plan(ds, {"target_rows_per_fragment": 99}).tasks[0],
    "sql": lambda _, ds: ds.sql("SELECT a FROM dataset"),
}
WAYS = {
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),  # noqa: S301
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def _compaction(module: Any) -> Any:
    return lance.optimize.Compaction if module is lance else lance_nb.Compaction


def _works(way: Callable[[Any], Any], value: Any) -> bool:
    try:
        way(value)
    except (TypeError, NotImplementedError):
        return False
    return True


@pytest.mark.parametrize("name", OBJECTS)
def test_what_pylance_pickles_we_pickle(name: str, tmp_path: Path):
    opened = []
    for module in (lance, lance_nb):
        uri = f"{tmp_path}/{module.__name__}"
        module.write_dataset(pa.table({"a": range(10)}), uri)
        opened.append(module.write_dataset(pa.table({"a": range(10)}), uri, mode="append"))
    for way, function in WAYS.items():
        theirs = _works(function, OBJECTS[name](lance, opened[0]))
        ours = _works(function, OBJECTS[name](lance_nb, opened[1]))
        assert ours or not theirs, way
        assert ours, way  # every one of these, beyond pylance's


def test_a_pickled_dataset_stays_at_its_version(tmp_path: Path):
    for module in (lance, lance_nb):
        uri = f"{tmp_path}/{module.__name__}"
        dataset = module.write_dataset(pa.table({"a": range(10)}), uri)
        payload = pickle.dumps(dataset)
        module.write_dataset(pa.table({"a": range(5)}), uri, mode="append")
        again = pickle.loads(payload)  # noqa: S301
        assert (again.version, again.count_rows()) == (1, 10), module.__name__
