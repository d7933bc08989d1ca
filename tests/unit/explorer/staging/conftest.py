"""A dataset in memory, and a deck for it, each test its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.explorer.staging.card import Card
from lance_nb.explorer.staging.deck import Deck, deck_of
from lance_nb.explorer.staging.teller import Teller
from lance_nb.explorer.staging.wishes import Wish

_NUMBERS = count()
MORE = pa.table({"id": [100, 101], "price": [1.0, 2.0]})


@pytest.fixture
def dataset() -> LanceDataset:
    data = pa.table({"id": range(20), "price": [float(one) for one in range(20)]})
    uri = f"memory://staging/{next(_NUMBERS)}.lance"
    return lance_nb.write_dataset(data, uri, max_rows_per_file=10)


@pytest.fixture
def deck(dataset: LanceDataset) -> Deck:
    return deck_of(dataset)


@pytest.fixture
def add(dataset: LanceDataset, deck: Deck) -> Callable[..., Card]:
    def staged(verb: str, engine: str = "auto", **args: Any) -> Card:
        return deck.add(dataset, Wish.of(verb, args, engine), {"more": MORE}, Teller())

    return staged


@pytest.fixture
def newest(dataset: LanceDataset) -> Callable[[], LanceDataset]:
    return lambda: lance_nb.dataset(dataset.uri)
