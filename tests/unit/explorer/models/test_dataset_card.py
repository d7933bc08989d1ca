from __future__ import annotations

import json

from lance_nb.explorer.models.dataset_card import dataset_card
from tests.unit.explorer.fakes import FakeDataset, FakeVersion, rows, small_dataset


def test_the_card_says_what_is_looked_at_first() -> None:
    card = dataset_card(small_dataset())
    assert (card.name, card.label, card.latest, card.tags) == ("fake.lance", "main:4", 4, ())
    assert {fact.key: fact.value for fact in card.facts} == {
        "rows": "25",
        "columns": "2",
        "size": "3.4 MB",
        "fragments": "1",
        "deleted": "26.5 %",
        "format": "2.2",
    }


def test_a_branch_and_an_older_version_are_named() -> None:
    dev = dataset_card(small_dataset().checkout_version(("dev", 2)))
    assert (dev.label, dev.latest) == ("dev:2", 3)
    assert dataset_card(small_dataset().checkout_version(2)).tags == ("v1",)


def test_an_unknown_size_is_said_to_be_unknown() -> None:
    version = FakeVersion(1, rows(0), size_bytes=None)
    facts = dataset_card(FakeDataset({None: {1: version}})).to_json()["facts"]
    assert [fact["value"] for fact in facts][:4] == ["0", "2", "unknown", "1"]
    json.dumps(facts)
