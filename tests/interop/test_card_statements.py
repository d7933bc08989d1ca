"""Generated cards of the Stage tab: what a card says is what its commit then did.

The dataset is pylance's, and pylance counts afterwards: rows by their ids, files and their bytes in
the folder. ``LANCE_NB_TEST_SCALE=20`` tries 320 cards.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.stage.card import COMMITTED, READY, ProgressReporter
from lance_nb.explorer.stage.card_view import card_json
from lance_nb.explorer.stage.edit_execution import BY_ROWS
from lance_nb.explorer.stage.edit_forms import EditForm
from lance_nb.explorer.stage.staging_area import staging_area_of
from tests.support.examples import SCALE

pytestmark = pytest.mark.interop

SEED = 31
NUM_CARDS = round(16 * SCALE)
WRITTEN = ("data", "_deletions")


def _rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "v": pa.array(ids, pa.int64()),
            "t": [f"row {one}" for one in ids],
        }
    )


def _dataset(rng: random.Random, folder: Path) -> Path:
    """Write some fragments, some of them with deleted rows."""
    path = folder / "d.lance"
    size = rng.choice((7, 20))
    made = lance.write_dataset(
        _rows(0, rng.choice((20, 60))),
        path,
        max_rows_per_file=size,
        enable_stable_row_ids=rng.random() < 0.5,
    )
    for _ in range(rng.choice((0, 1, 2))):
        made.delete(_some(rng))
    return path


def _some(rng: random.Random) -> str:
    first = rng.randrange(0, 60)
    return rng.choice(
        (f"id = {first}", f"id >= {first} AND id < {first + 9}", f"id % 7 = {first % 7}", "id < 20")
    )


def _card(rng: random.Random) -> tuple[str, dict[str, Any]]:
    verb = rng.choice(
        ("append", "delete", "delete", "update", "update", "upsert", "upsert", "overwrite",
         "add_column", "rename_column", "cast_column", "drop_columns", "restore", "compact")
    )  # fmt: skip
    return verb, {
        "append": {"source": "more"},
        "delete": {"where": _some(rng)},
        "update": {"set": {"v": "v + 1000"}, "where": _some(rng)},
        "upsert": {"source": "more", "on": ["id"]},
        "overwrite": {"source": "more"},
        "add_column": {"name": "w", "sql": "v * 2"},
        "rename_column": {"column": "v", "name": "n"},
        "cast_column": {"column": "v", "type": "int32"},
        "drop_columns": {"columns": ["t"]},
        "restore": {"version": "1"},
        "compact": {"target_rows_per_fragment": rng.choice((10, 1000))},
    }[verb]


def _files(path: Path) -> dict[str, int]:
    return {
        str(one.relative_to(path)): one.stat().st_size
        for folder in WRITTEN
        for one in (path / folder).rglob("*")
        if one.is_file()
    }


def _by_id(path: Path) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in lance.dataset(path).to_table().to_pylist()}


def _try(rng: random.Random, path: Path) -> str:
    before, files = _by_id(path), _files(path)
    verb, args = _card(rng)
    more = _rows(rng.choice((15, 100)) if verb == "upsert" else 100, 12)
    more = more.set_column(1, "v", pa.array([9000] * 12, pa.int64()))
    ds = lance_nb.dataset(path)
    area, reporter = staging_area_of(ds), ProgressReporter()
    try:
        card = area.add(ds, EditForm.of(verb, args), {"more": more}, reporter)
    except InvalidInputError as error:
        if "no fragments need compaction" not in str(error):
            raise
        return "nothing to compact"
    said = f"{verb} {args} {card_json(card)['facts']}"
    assert card.state == READY, said
    assert card.where.name == "local", said
    plan, is_tasks = card.where.plan, verb not in BY_ROWS
    if plan is not None and is_tasks and reporter.now.total:
        assert reporter.now.total == card.where.num_tasks == len(plan.tasks), said
    preview = card.preview
    assert preview is not None
    area.commit(card.id, None, ProgressReporter(), card.review.typed if card.review else "")
    assert card.state == COMMITTED, f"{said}: {card.problem}"

    made = lance.dataset(path)
    made.validate()
    after, new = _by_id(path), _files(path)
    written = {name: size for name, size in new.items() if name not in files}
    assert set(files) <= set(new), said
    assert sum(written.values()) == preview.num_bytes_written, f"{said}: {written}"
    by_folder = Counter(name.partition("/")[0] for name in written)
    assert (preview.num_files, preview.num_deletion_files) == (
        by_folder["data"], by_folder["_deletions"]
    ), said  # fmt: skip
    assert (preview.num_rows_before, preview.num_rows_after) == (len(before), len(after)), said
    assert preview.num_rows_after == made.count_rows(), said
    if verb == "overwrite":  # every row is another one, whatever its id
        gone, added, changed = len(before), len(after), 0
    else:
        gone, added = len(before.keys() - after.keys()), len(after.keys() - before.keys())
        both = before.keys() & after.keys()
        changed = sum(before[one]["v"] != after[one].get("v", before[one]["v"]) for one in both)
    counts = (preview.num_removed_rows, preview.num_inserted_rows, preview.num_updated_rows)
    if verb in ("append", "delete", "update", "upsert", "overwrite"):
        assert counts == (gone, added, changed), said
    facts = {one["label"]: one["value"] for one in card_json(card)["facts"]}
    assert facts["rows"] == f"{text.count(len(before))} → {text.count(len(after))}", said
    if preview.num_bytes_written:
        size = text.size(preview.num_bytes_written)
        assert any(size in value for value in facts.values()), said
    return verb


def test_what_a_card_says_is_what_its_commit_did(tmp_path: Path) -> None:
    verbs: Counter[str] = Counter()
    for number in range(NUM_CARDS):
        rng = random.Random(SEED + number)
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            verbs[_try(rng, _dataset(rng, folder))] += 1
        except AssertionError as error:
            raise AssertionError(f"seed {SEED + number}: {error}") from error
    print(f"seeds {SEED} to {SEED + NUM_CARDS - 1}: {dict(verbs)}")
    assert len(verbs) > 4
