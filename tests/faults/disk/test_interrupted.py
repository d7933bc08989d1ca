"""Ctrl-C in the middle of a long verb: the dataset is as before or as after, never in between.

The interrupt comes at moments spread over the time that the verb takes, from the first to the last.
Afterwards pylance and we read the same rows, and the verb can simply be done again.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

# An interrupt may come between the opening of a file and its `with`, or inside a destructor: Python
# itself then closes what was open and says so, in any program; what is tested here is the dataset.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROWS, INTERRUPTS = 12_000, 5
Verb = Callable[[Any, dict[str, Any]], Any]


def table(first: int, count: int) -> pa.Table:
    """Rows of text and numbers, which take a while to write."""
    ids = np.arange(first, first + count)
    text = pa.array([f"text {one * 7919}" for one in ids], pa.string())
    return pa.table({"id": ids, "n": ids % 97, "text": text})


def batches() -> Iterator[pa.RecordBatch]:
    for number in range(12):
        yield from table(100_000 + number * 1000, 1000).to_batches()


def append(dataset: Any, options: dict[str, Any]) -> None:
    reader = pa.RecordBatchReader.from_batches(table(0, 0).schema, batches())
    lance_nb.write_dataset(reader, dataset.uri, mode="append", max_rows_per_file=2000, **options)


def overwrite(dataset: Any, options: dict[str, Any]) -> None:
    dataset.insert(batches(), mode="overwrite", max_rows_per_file=2000, **options)


def delete(dataset: Any, options: dict[str, Any]) -> None:
    dataset.delete("n % 3 = 1")


def update(dataset: Any, options: dict[str, Any]) -> None:
    dataset.update({"text": "concat(text, '!')", "n": "n + 1"}, where="n < 60", **options)


def update_columns(dataset: Any, options: dict[str, Any]) -> None:
    dataset.update({"n": "n + 1"}, where="n < 60", mode="columns", **options)


def upsert(dataset: Any, options: dict[str, Any]) -> None:
    builder = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.execute(table(ROWS // 2, ROWS), **options)


def add(dataset: Any, options: dict[str, Any]) -> None:
    dataset.add_columns({"loud": "upper(text)", "more": "n * 2"}, **options)


def cast(dataset: Any, options: dict[str, Any]) -> None:
    dataset.alter_columns({"path": "text", "data_type": pa.large_string()}, **options)


def compact(dataset: Any, options: dict[str, Any]) -> None:
    dataset.optimize.compact_files(target_rows_per_fragment=5000, **options)


def clean_up(dataset: Any, options: dict[str, Any]) -> None:
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True, **options)


VERBS: dict[str, Verb] = {
    one.__name__: one
    for one in (
        append,
        overwrite,
        delete,
        update,
        update_columns,
        upsert,
        add,
        cast,
        compact,
        clean_up,
    )
}
TELL = {
    "append",
    "overwrite",
    "update",
    "update_columns",
    "upsert",
    "add",
    "cast",
    "compact",
    "clean_up",
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many fragments, some deleted rows, several versions."""
    path = tmp_path_factory.mktemp("interrupted") / "t.lance"
    made = lance_nb.write_dataset(table(0, ROWS), path, max_rows_per_file=1000)
    for number in range(6):
        made.delete(f"n = {number}")
    made.insert(table(50_000, 20))
    return path


def interrupted_after(seconds: float, change: Callable[[], object]) -> None:
    """Make a change; raise KeyboardInterrupt in it, as Ctrl-C does, unless it is done by then."""
    armed = True

    def interrupt(*_: object) -> None:
        if armed:  # once the change is done, nothing here may be interrupted any more
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-4))
        change()
        armed = False
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.interop
@pytest.mark.parametrize("verb", VERBS)
def test_an_interrupt_leaves_the_dataset_as_before_or_as_after(
    verb: str, source: Path, tmp_path: Path
) -> None:
    lance = require_pylance()
    place = copied(source, tmp_path / "whole.lance")
    before = lance.dataset(place).to_table()
    VERBS[verb](lance_nb.dataset(place), {})
    again = copied(source, tmp_path / "timed.lance")
    began = time.perf_counter()
    VERBS[verb](lance_nb.dataset(again), {})
    seconds = time.perf_counter() - began
    after = lance.dataset(place).to_table()
    moments = [seconds * (number + 0.5) / INTERRUPTS for number in range(INTERRUPTS)]
    stopped = False
    for number, moment in enumerate(moments):
        place = copied(source, tmp_path / f"{number}.lance")
        dataset = lance_nb.dataset(place)
        version = dataset.version
        interrupted_after(moment, lambda dataset=dataset: VERBS[verb](dataset, {}))
        found = lance.dataset(place)
        found.validate()
        stopped |= found.version == version
        assert found.to_table().equals(before if found.version == version else after)
        assert lance_nb.dataset(place).to_table().equals(found.to_table())
        for one in found.versions():
            lance.dataset(place, one["version"]).to_table()
        VERBS[verb](lance_nb.dataset(place), {}) if found.version == version else None
        assert lance.dataset(place).to_table().equals(after)
        if moment == moments[-1] and not stopped:  # a busy machine made the measured time too long
            moments.append(moment / INTERRUPTS)


def copied(source: Path, place: Path) -> str:
    shutil.copytree(source, place)
    return str(place)


@pytest.mark.parametrize("verb", sorted(TELL))
def test_progress_never_goes_back_and_ends_at_the_total(
    verb: str, source: Path, tmp_path: Path
) -> None:
    told: list[tuple[int, ...]] = []

    def progress(*parts: Any) -> None:
        told.append(tuple(parts))

    place = copied(source, tmp_path / "t.lance")
    VERBS[verb](lance_nb.dataset(place), {"progress": progress})
    assert told
    if verb in ("append", "overwrite"):  # a stream does not say how much is to come
        numbers = [one.num_rows for (one,) in told]
        assert numbers == sorted(numbers)
        assert numbers[-1] == ROWS
        return
    done, totals = zip(*told, strict=True)
    assert list(done) == sorted(done)
    assert list(totals) == sorted(totals)  # what is to do may turn out to be more
    assert all(one <= total for one, total in told)
    assert done[-1] == totals[-1] > 0
    assert len(done) > 1


@pytest.mark.parametrize("verb", sorted(TELL))
def test_an_interrupt_from_a_progress_callback_changes_nothing(
    verb: str, source: Path, tmp_path: Path
) -> None:
    def progress(*parts: Any) -> None:
        raise KeyboardInterrupt

    place = copied(source, tmp_path / "t.lance")
    before = lance_nb.dataset(place)
    rows = before.to_table()
    with pytest.raises(KeyboardInterrupt):
        VERBS[verb](lance_nb.dataset(place), {"progress": progress})
    after = lance_nb.dataset(place)
    assert after.version == before.version
    assert after.to_table().equals(rows)
