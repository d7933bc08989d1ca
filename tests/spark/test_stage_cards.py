"""Cards of the stage whose work runs on Spark; pylance reads what they commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import lance_nb
from lance_nb.explorer.staging.card import PLANNED, READY
from lance_nb.explorer.staging.deck import deck_of
from lance_nb.explorer.staging.rows import offered
from lance_nb.explorer.staging.teller import Teller
from lance_nb.explorer.staging.wishes import Wish
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
    assert offered(names, dataset.schema)[0]["text"] == "stays on Spark"
    deck, told = deck_of(dataset), Teller("commit")
    card = deck.add(dataset, Wish.of("append", {"source": "frame"}), names, Teller())
    assert (card.state, card.where.name) == (PLANNED, "spark")
    deck.commit(card.id, "from Spark", told)
    assert (card.version, told.now.engine, told.now.rows) == (2, "spark", 30)
    gone = deck.add(dataset, Wish.of("delete", {"where": "id < 10"}, "spark"), names, Teller())
    deck.prepare(gone.id, Teller())
    assert gone.state == READY
    assert gone.preview is not None
    assert gone.preview.num_rows_after == 120
    deck.commit(gone.id, None, Teller())
    found = lance.dataset(uri)
    assert (found.version, found.count_rows()) == (3, 120)
    assert sorted(found.to_table()["id"].to_pylist()) == list(range(10, 130))
