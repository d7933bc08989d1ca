"""Cards of the stage whose work runs on Spark; pylance reads what they commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CancelledError, LanceError, PredicateError
from lance_nb.explorer.stage.card import PLANNED, READY, ProgressReporter
from lance_nb.explorer.stage.card_view import card_json
from lance_nb.explorer.stage.edit_forms import EditForm
from lance_nb.explorer.stage.row_sources import variable_choices
from lance_nb.explorer.stage.staging_area import staging_area_of
from tests.spark.data import MARKS
from tests.support.requirements import require_pylance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = MARKS


def test_cards_run_on_spark_and_are_committed_here(session: SparkSession, tmp_path: Path) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "a.lance")
    data = pa.table({"id": range(100), "price": [float(one) for one in range(100)]})
    lance.write_dataset(data, uri, max_rows_per_file=25)
    dataset = lance_nb.dataset(uri)
    frame = session.range(100, 130).selectExpr("id", "cast(id as double) as price")
    names: dict[str, Any] = {"frame": frame, "spark": session}
    assert variable_choices(names, dataset.schema)[0]["text"] == "stays on Spark"
    area, told = staging_area_of(dataset), ProgressReporter("commit")
    card = area.add(dataset, EditForm.of("append", {"source": "frame"}), names, ProgressReporter())
    assert (card.state, card.where.name) == (PLANNED, "spark")
    area.commit(card.id, "from Spark", told)
    assert (card.version, told.now.engine, told.now.rows) == (2, "spark", 30)
    gone = area.add(
        dataset, EditForm.of("delete", {"where": "id < 10"}, "spark"), names, ProgressReporter()
    )
    area.prepare(gone.id, ProgressReporter())
    assert gone.state == READY
    assert gone.preview is not None
    assert gone.preview.num_rows_after == 120
    area.commit(gone.id, None, ProgressReporter())
    found = lance.dataset(uri)
    assert (found.version, found.count_rows()) == (3, 120)
    assert sorted(found.to_table()["id"].to_pylist()) == list(range(10, 130))


def test_every_other_heavy_card_runs_on_spark_too(session: SparkSession, tmp_path: Path) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "b.lance")
    data = pa.table({"id": range(100), "price": [float(one) for one in range(100)]})
    lance.write_dataset(data, uri, max_rows_per_file=25)
    changed = session.range(95, 105).selectExpr("id", "cast(-1 as double) as price")
    names: dict[str, Any] = {"changed": changed, "held": data.slice(0, 2), "spark": session}
    area = staging_area_of(lance_nb.dataset(uri))
    for verb, args, rows in (
        ("update", {"set": {"price": "0"}, "where": "id < 10"}, 10),
        ("upsert", {"source": "held", "on": ["id"]}, 2),
        ("upsert", {"source": "changed", "on": ["id"]}, 5),
        # rows of column files: deleted ones have a place there too
        ("add_column", {"name": "twice", "sql": "price * 2"}, 122),
        ("cast_column", {"column": "price", "type": "float32"}, 122),
        ("compact", {"target_rows_per_fragment": 1000}, 105),
    ):
        told = ProgressReporter("commit")
        form = EditForm.of(verb, args, "spark")
        card = area.add(lance_nb.dataset(uri), form, names, ProgressReporter())
        shown = card_json(card)["where"]
        assert (card.state, shown["name"], shown["movable"]) == (PLANNED, "spark", True)
        code = card_json(card)["code"]["python"]
        assert code.endswith("engine='spark')") or verb == "cast_column"  # has no verb on Spark
        area.commit(card.id, f"{verb} on Spark", told)
        assert card.problem is None
        assert (told.now.engine, told.now.rows) == ("spark", rows)
        assert told.now.done == told.now.total > 0
        assert lance_nb.dataset(uri).version_info(card.version or 0).message == f"{verb} on Spark"
    found = lance.dataset(uri)
    found.validate()
    table = found.to_table().sort_by("id")
    assert table["id"].to_pylist() == list(range(105))
    assert table["price"].to_pylist()[:3] == [0.0, 1.0, 0.0]
    assert table["price"].to_pylist()[94:97] == [94.0, -1.0, -1.0]
    assert table.schema.field("price").type == pa.float32()
    assert len(found.get_fragments()) == 1


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("append", {"source": "frame"}),
        ("delete", {"where": "id % 9 = 2"}),
        ("update", {"set": {"price": "price + 1"}, "where": "id < 30"}),
        ("upsert", {"source": "frame", "on": ["id"]}),
        ("add_column", {"name": "twice", "sql": "price * 2"}),
        ("compact", {"target_rows_per_fragment": 1000}),
    ],
)
def test_what_a_prepared_card_says_is_what_its_commit_does(
    session: SparkSession, tmp_path: Path, verb: str, args: dict[str, Any]
) -> None:
    lance = require_pylance()
    path = tmp_path / "d.lance"
    data = pa.table({"id": range(100), "price": [float(one) for one in range(100)]})
    lance.write_dataset(data, path, max_rows_per_file=25).delete("id IN (3, 30, 31, 99)")
    before = lance.dataset(path).count_rows()
    files = sizes(path)
    dataset = lance_nb.dataset(path)
    frame = session.range(90, 120).selectExpr("id", "cast(-1 as double) as price")
    area = staging_area_of(dataset)
    form = EditForm.of(verb, args, "spark")
    card = area.add(dataset, form, {"frame": frame, "spark": session}, ProgressReporter())
    assert card.where.name == "spark"
    area.prepare(card.id, ProgressReporter())
    said, preview = f"{verb} {card_json(card)['facts']}", card.preview
    assert card.state == READY
    assert preview is not None
    area.commit(card.id, None, ProgressReporter())
    written = {name: size for name, size in sizes(path).items() if name not in files}
    assert preview.num_bytes_written == sum(written.values()), said
    assert preview.num_files == sum(name.startswith("data/") for name in written), said
    found = lance.dataset(path)
    found.validate()
    assert (preview.num_rows_before, preview.num_rows_after) == (before, found.count_rows()), said


def sizes(path: Path) -> dict[str, int]:
    """Return the bytes of every data and deletion file."""
    return {
        str(one.relative_to(path)): one.stat().st_size
        for folder in ("data", "_deletions")
        for one in (path / folder).rglob("*")
        if one.is_file()
    }


def test_a_card_on_spark_fails_and_is_cancelled_without_a_trace(
    session: SparkSession, tmp_path: Path
) -> None:
    uri = str(tmp_path / "c.lance")
    made = lance_nb.write_dataset(pa.table({"id": range(900)}), uri)
    names: dict[str, Any] = {"spark": session}
    area = staging_area_of(made)
    form = EditForm.of("cast_column", {"column": "id", "type": "int8"}, "spark")
    card = area.add(made, form, names, ProgressReporter())
    with pytest.raises(PredicateError, match="not in range"):
        area.prepare(card.id, ProgressReporter())
    assert card.state == PLANNED
    area.remove(card.id)

    def cancelled(_done: int, _total: int) -> None:
        raise CancelledError("cancelled")

    card = area.add(
        made, EditForm.of("delete", {"where": "id < 5"}, "spark"), names, ProgressReporter()
    )
    with pytest.raises(LanceError):
        area.commit(card.id, None, ProgressReporter("commit", cancelled))
    assert card.state == PLANNED
    assert lance_nb.dataset(uri).version == 1
    area.commit(card.id, None, ProgressReporter())
    assert lance_nb.dataset(uri).count_rows() == 895
