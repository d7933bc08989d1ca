from __future__ import annotations

import json
from dataclasses import replace

from lance_nb.errors import CorruptFileError
from lance_nb.explorer.models.version_detail import MAX_FACTS, dataset_card, version_detail
from tests.unit.explorer.fakes import FakeDataset, FakeTransaction, FakeVersion, rows, small_dataset


def detail_of(version: FakeVersion) -> dict[str, object]:
    shown = version_detail(FakeDataset({None: {version.version: version}})).to_json()
    json.dumps(shown)
    return shown


def test_a_version_tells_its_operation_counts_schema_and_transaction() -> None:
    detail = version_detail(small_dataset().checkout_version(2))
    assert (detail.label, detail.operation, detail.tags) == ("main:2", "Append", ("v1",))
    assert detail.description == "appends 2 rows in 1 fragment"
    assert {entry.label: entry.value for entry in detail.counts}["rows"] == "30"
    assert [line.name for line in detail.schema.lines] == ["id", "text"]
    assert [(entry.label, entry.value) for entry in detail.transaction] == [
        ("read version", "1"),
        ("transaction", "7f0c"),
        ("fragments[0].id", "1"),
        ("fragments[0].rows", "2"),
    ]


def test_a_version_without_a_transaction_says_so() -> None:
    detail = detail_of(FakeVersion(1, rows(1), operation=None))
    assert detail["operation"] == "operation not recorded"
    assert detail["transaction"] == []
    assert detail["properties"] == []


def test_a_damaged_transaction_leaves_the_rest_readable() -> None:
    class Damaged(FakeDataset):
        def transaction(self, version: int) -> FakeTransaction | None:
            raise CorruptFileError("_transactions/1.txn", 8, "a message", "nothing")

    detail = version_detail(Damaged({None: {1: FakeVersion(1, rows(3))}}))
    assert "cannot be read" in detail.description
    assert detail.counts[0].value == "3"


def test_long_lists_and_deep_values_are_bounded() -> None:
    deep: dict[str, object] = {}
    for _ in range(50):
        deep = {"in": deep}
    details = {"ids": list(range(10_000)), "deep": deep, "nothing": [], "none": None}
    details |= {f"k{at}": "v" * 10_000 for at in range(500)}
    shown = detail_of(FakeVersion(1, rows(1), transaction=FakeTransaction(details=details)))
    assert isinstance(shown["transaction"], list)
    assert len(shown["transaction"]) <= MAX_FACTS + 2
    assert len(json.dumps(shown)) < 60_000


def test_properties_are_shown_with_the_message() -> None:
    version = replace(FakeVersion(1, rows(1)), message="first", properties={"who": "me"})
    shown = detail_of(version)
    assert shown["message"] == "first"
    assert shown["properties"] == [{"label": "who", "value": "me"}]


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
