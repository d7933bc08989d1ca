"""pylance cleans up between any two steps of a job, a stage or a verb: nothing is lost.

``cleanup_old_versions(older_than=0, delete_unverified=True)``, which removes every file that the
newest version does not name, runs before one of the store operations of a change, alone or right
after an append of pylance, which makes the read version an old one. Then the change has happened as
a whole, or it ended in an error of ours and the newest version is that of before; pylance reads it
either way.

Not part of it: the two writes after the check of the new files, the ``.txn`` file and the manifest
(see transactions/file_presence.py), and the second version of a compaction or an index.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from lance_nb.errors import LanceError
from lance_nb.storage.local import LocalStore
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

SCALE = float(os.environ.get("LANCE_NB_TEST_SCALE", "1"))
STEPS = max(round(3 * SCALE), 1)  # of each verb and schedule; there are up to 25
SEED = int(os.environ.get("LANCE_NB_TEST_SEED", random.randrange(2**32)))
ROWS = pa.table({"id": range(120), "name": [f"n{number % 5}" for number in range(120)]})
THEIRS = ROWS.slice(0, 20)
NEW = pa.table({"id": range(100, 140), "name": ["new"] * 40})
OPERATIONS = (
    "read", "read_ranges", "size", "list", "list_names", "write", "write_new", "write_if_absent",
    "create", "exists", "write_unsynced",
)  # fmt: skip
AFTER_THE_CHECK = ("write_unsynced", "write_if_absent")
"""A file that is removed between the check and the manifest is not noticed."""
ON: dict[str, Any] = {"engine": "local"}

Verb = Callable[[str, str], object]  # of a dataset and a Parquet file


def staged(edit: Callable[[Any], object]) -> Verb:
    def run(uri: str, _source: str) -> None:
        stage = lance_nb.dataset(uri).stage()
        edit(stage)
        stage.preview()
        stage.commit()

    return run


VERBS: dict[str, Verb] = {
    "job append": lambda uri, source: spark.append(uri, source, **ON),
    "job overwrite": lambda uri, source: spark.write(source, uri, "overwrite", **ON),
    "job replace": lambda uri, source: spark.write(
        source, uri, "overwrite", where="id >= 100", **ON
    ),
    "job delete": lambda uri, _: spark.delete(uri, "id % 3 = 0", **ON),
    "job update": lambda uri, _: spark.update(uri, {"name": "'x'"}, "id % 3 = 0", **ON),
    "job upsert": lambda uri, _: spark.upsert(uri, NEW, "id", **ON),
    "job backfill": lambda uri, _: spark.backfill(uri, {"twice": "id * 2"}, **ON),
    "job compact": lambda uri, _: spark.compact(uri, **ON),
    "job index": lambda uri, _: spark.create_scalar_index(uri, "id", **ON),
    "stage append": staged(lambda stage: stage.append(NEW)),
    "stage upsert": staged(lambda stage: stage.upsert(NEW, "id")),
    "stage rows": staged(lambda stage: stage.append(NEW).delete("id < 7")),
    "stage column": staged(lambda stage: stage.add_columns({"twice": "id * 2"})),
    "stage overwrite": staged(lambda stage: stage.overwrite(NEW)),
    "append": lambda uri, _: lance_nb.dataset(uri).insert(NEW),
    "update": lambda uri, _: lance_nb.dataset(uri).update({"name": "'x'"}, "id % 3 = 0"),
    "delete": lambda uri, _: lance_nb.dataset(uri).delete("id % 3 = 0"),
    "compact": lambda uri, _: lance_nb.dataset(uri).optimize.compact_files(),
    "index": lambda uri, _: lance_nb.dataset(uri).create_scalar_index("id", "BTREE"),
}


@contextmanager
def intercepted(before: Callable[[str], None]) -> Iterator[None]:
    """Call a function with the name of every operation on a local store, one at a time."""
    lock = threading.RLock()

    def wrapped(name: str, operation: Any) -> Any:
        def call(store: LocalStore, *args: Any, **options: Any) -> Any:
            with lock:
                before(name)
            return operation(store, *args, **options)

        return call

    with ExitStack() as stack:
        for name in OPERATIONS:
            operation = wrapped(name, getattr(LocalStore, name))
            stack.enter_context(mock.patch.object(LocalStore, name, operation))
        yield


def content(uri: str) -> tuple[list[str], list[str]]:
    """Read the newest version with pylance: its rows in no order, and its columns."""
    table = require_pylance().dataset(uri).to_table()
    return sorted(map(str, table.to_pylist())), table.schema.names


class Schedules:
    """Runs a verb on fresh copies of a dataset, with a clean-up before one operation."""

    def __init__(self, folder: Path, verb: Verb) -> None:
        self._folder = folder
        self._verb = verb
        self._source = str(folder / "more.parquet")
        self._copies = 0
        parquet.write_table(NEW, self._source)
        dataset = lance_nb.write_dataset(ROWS, str(folder / "base"), max_rows_per_file=30)
        dataset.delete("id = 5")

    def fresh(self) -> str:
        return self.copy(self._folder / "base")

    def copy(self, dataset: str | Path) -> str:
        self._copies += 1
        return str(shutil.copytree(dataset, self._folder / f"copy{self._copies}"))

    def change(self, uri: str) -> None:
        self._verb(uri, self._source)

    def operations(self) -> tuple[list[str], str]:
        """Return the operations of the verb, and the dataset that it has changed."""
        uri, names = self.fresh(), []
        with intercepted(names.append):
            self.change(uri)
        return names, uri

    def run(self, step: int, *, appends: bool) -> tuple[str, LanceError | None]:
        """Clean up before the operation of that number, after an append if it ``appends``."""
        uri, count = self.fresh(), 0
        lance = require_pylance()

        def before(_name: str) -> None:
            nonlocal count
            count += 1
            if count == step + 1:
                if appends:
                    lance.write_dataset(THEIRS, uri, mode="append")
                lance.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True)

        with intercepted(before):
            try:
                self.change(uri)
            except LanceError as error:
                return uri, error
        return uri, None


@pytest.mark.parametrize("name", VERBS)
def test_a_clean_up_of_pylance_loses_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    warnings.simplefilter("ignore")
    print(f"seed {SEED}")
    schedules = Schedules(tmp_path, VERBS[name])
    append = partial(require_pylance().write_dataset, THEIRS, mode="append")
    operations, changed = schedules.operations()
    unchanged, first, last = schedules.fresh(), schedules.fresh(), schedules.copy(changed)
    schedules.change(append(first).uri)
    append(last)
    done = {False: [content(changed)], True: [content(first), content(last)]}
    failed = {False: content(unchanged), True: content(append(unchanged).uri)}
    steps = [at for at, one in enumerate(operations) if one not in AFTER_THE_CHECK]
    chance = random.Random(f"{SEED} {name}")
    outcomes: Counter[str] = Counter()
    for appends in (False, True):
        for step in sorted(chance.sample(steps, min(STEPS, len(steps)))):
            uri, error = schedules.run(step, appends=appends)
            shown = f"{name}, step {step} ({operations[step]}), {appends=}: {error!r}"
            expected = done[appends] if error is None else [failed[appends]]
            assert content(uri) in expected, shown
            outcomes[type(error).__name__] += 1
    print(dict(outcomes))
