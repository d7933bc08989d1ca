"""Generated pairs of operations: what a stage forecasts is what its commit then does.

The dataset and half of the concurrent commits are pylance's. ``LANCE_NB_TEST_SCALE=13`` tries more
than 300 pairs.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset.staging import Stage
from lance_nb.errors import LanceError, RetryableCommitConflictError
from tests.support.examples import SCALE

pytestmark = pytest.mark.interop

SEED = 20
NUM_PAIRS = round(24 * SCALE)
STAGED = (
    "append", "delete", "delete", "update", "update", "upsert", "both", "overwrite", "restore",
    "compact", "add", "drop",
)  # fmt: skip
STRICT = ("retryable", "incompatible")


def _rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(ids, pa.int64())})


def _some(rng: random.Random) -> str:
    """A predicate for a few rows, most often in the first fragments, so that pairs meet."""
    first = rng.choice((0, 1, 2, 4, 6, 8, 9, 30))
    return rng.choice((f"id = {first}", f"id >= {first} AND id < {first + rng.choice((2, 3, 10))}"))


def _stage(rng: random.Random, ds: lance_nb.LanceDataset) -> tuple[str, Stage]:
    made = ds.stage()
    kind = rng.choice(STAGED)
    if kind == "append":
        return kind, made.append(_rows(1000, 3))
    if kind == "delete":
        return kind, made.delete(_some(rng))
    if kind == "update":
        return kind, made.update({"v": "v + 100"}, where=_some(rng))
    if kind == "upsert":
        return kind, made.upsert(_rows(rng.choice((0, 7, 1000)), 3), on="id")
    if kind == "both":
        return kind, made.append(_rows(2000, 2)).delete(_some(rng))
    if kind == "overwrite":
        return kind, made.overwrite(_rows(0, 4))
    if kind == "restore":
        return kind, made.restore(1)
    if kind == "compact":
        return kind, made.compact(target_rows_per_fragment=100)
    if kind == "add":
        return kind, made.add_columns({"w": "v + 1"})
    return kind, made.drop_columns(["t"])


def _concurrent(rng: random.Random, uri: str) -> str:
    kinds: dict[str, Callable[[], object]] = {}
    theirs, ours = lance.dataset(uri), lance_nb.dataset(uri)
    one = theirs if rng.random() < 0.5 else ours
    some, first = _some(rng), rng.choice((0, 8, 1000))
    kinds["append"] = lambda: one.insert(_rows(3000, 2))
    kinds["delete"] = lambda: one.delete(some)
    kinds["update"] = lambda: one.update({"v": "v - 1"}, where=some)
    kinds["upsert"] = lambda: (
        one.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(_rows(first, 2))
    )
    kinds["compact"] = lambda: one.optimize.compact_files(target_rows_per_fragment=100)
    kinds["overwrite"] = lambda: lance.write_dataset(_rows(0, 5), uri, mode="overwrite")
    kinds["restore"] = lambda: lance_nb.dataset(uri).checkout_version(1).restore()
    kinds["add"] = lambda: one.add_columns({f"n{theirs.version}": "v * 2"})
    kinds["drop"] = lambda: one.drop_columns(["t"])
    kinds["config"] = lambda: one.update_config({"k": str(first)})
    weights = [2, 6, 6, 3, 2, 1, 1, 1, 1, 1]
    (kind,) = rng.choices(list(kinds), weights)
    try:
        kinds[kind]()
    except (LanceError, OSError, ValueError, KeyError):
        kind += " (refused)"
    return kind


def _commit(stage: Stage) -> tuple[int, LanceError | None]:
    try:
        return stage.commit(), None
    except LanceError as error:
        return 0, error


def _pair(rng: random.Random, uri: str) -> str:
    """Stage, let others commit, compare the forecast with the commit; return what came of it."""
    table = _rows(0, 30).append_column("t", pa.array([str(one) for one in range(30)]))
    lance.write_dataset(table, uri, max_rows_per_file=10, enable_stable_row_ids=rng.random() < 0.5)
    if rng.random() < 0.5:
        lance.dataset(uri).delete("id = 5")
    try:
        kind, stage = _stage(rng, lance_nb.dataset(uri))
        before = stage.preview()
    except LanceError:
        return "not staged"
    others = [_concurrent(rng, uri) for _ in range(rng.choice((1, 1, 2)))]
    forecast = stage.meetings()
    verdicts = [one.verdict for one in forecast]
    said = f"{kind} after {', '.join(others)}: {forecast}"
    strict = [one for one in verdicts if one in STRICT]
    read, rows = stage.read_version, lance.dataset(uri).count_rows()
    made, error = _commit(stage)
    if error is not None:
        is_retryable = isinstance(error, RetryableCommitConflictError)
        outcome = "retryable" if is_retryable else "incompatible"
        assert strict[:1] == [outcome], f"{said}\n{error}"
        return outcome
    assert not strict, said
    assert made > read
    now = lance.dataset(uri)
    now.validate()
    if kind in ("append", "delete", "both", "update"):
        assert now.count_rows() - rows == before.num_rows_after - before.num_rows_before, said
    return "rebased" if verdicts else "alone"


def test_a_forecast_and_the_commit_agree(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    outcomes = Counter(_pair(rng, str(tmp_path / f"{number}")) for number in range(NUM_PAIRS))
    print(f"seed {SEED}, {NUM_PAIRS} pairs: {dict(outcomes)}")
    assert {"rebased", "retryable"} <= outcomes.keys()
    assert outcomes["not staged"] < NUM_PAIRS / 5


@pytest.mark.parametrize("stable", [False, True])
def test_rows_in_conflict_are_named(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(_rows(0, 30), uri, max_rows_per_file=10, enable_stable_row_ids=stable)
    stage = lance_nb.dataset(uri).stage().delete("id > 10 AND id < 14")
    lance.dataset(uri).delete("id = 15")
    lance.dataset(uri).update({"v": "0"}, where="id IN (12, 13, 25)")
    first, second = stage.meetings()
    assert (first.verdict, first.overlap) == (
        "rebasable", "both change fragment 1, in different rows",
    )  # fmt: skip
    ids = lance.dataset(uri).checkout_version(1).to_table(filter="id IN (12, 13)", with_row_id=True)
    assert second.verdict == "retryable"
    assert second.num_rows == 2
    assert second.rows == tuple(f"row id {one}" for one in ids["_rowid"].to_pylist())
    assert f"{second.rows[0]}, {second.rows[1]}" in str(stage.preview())
    with pytest.raises(RetryableCommitConflictError):
        stage.commit()


def test_rows_are_named_by_their_primary_key(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    key = {"lance-schema:unenforced-primary-key": "true"}
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False, metadata=key), pa.field("v", pa.int64())]
    )
    lance.write_dataset(_rows(0, 30).cast(schema), uri)
    stage = lance_nb.dataset(uri).stage().delete("v < 20")
    lance.dataset(uri).delete("id >= 4 AND id < 18")
    (met,) = stage.meetings()
    assert (met.num_rows, len(met.rows)) == (14, 10)
    assert met.rows[:2] == ("id = 4", "id = 5")


@pytest.mark.parametrize("kind", sorted(set(STAGED) - {"overwrite", "restore", "drop"}))
def test_files_bytes_and_rows_are_those_of_the_commit(tmp_path: Path, kind: str) -> None:
    uri = tmp_path / "t"
    table = _rows(0, 30).append_column("t", pa.array(["t"] * 30))
    lance.write_dataset(table, uri, max_rows_per_file=10)
    rng = random.Random(SEED)
    before = _sizes(uri)
    while True:  # until the random stage is of this kind
        made, stage = _stage(rng, lance_nb.dataset(uri))
        if made == kind:
            break
        stage.discard()
    seen = stage.preview()
    stage.commit()
    new = {path: size for path, size in _sizes(uri).items() if path not in before}
    data = [size for path, size in new.items() if path.startswith("data/")]
    deletions = [size for path, size in new.items() if path.startswith("_deletions/")]
    assert (seen.num_files, seen.size_bytes) == (len(data), sum(data))
    assert (seen.num_deletion_files, seen.deletion_bytes) == (len(deletions), sum(deletions))
    assert seen.num_rows_after == lance.dataset(uri).count_rows()


def _sizes(uri: Path) -> dict[str, int]:
    files = (one for name in ("data", "_deletions") for one in (uri / name).rglob("*"))
    return {str(one.relative_to(uri)): one.stat().st_size for one in files if one.is_file()}
