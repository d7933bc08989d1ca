"""URL schemes of manifest stores."""

from __future__ import annotations

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.transactions.external.registry import STORES, open_external
from lance_nb.transactions.external.stores.sqlite import SqliteManifestStore


def test_a_scheme_opens_its_store():
    assert isinstance(open_external("sqlite:///x.db", {}), SqliteManifestStore)
    assert {"sqlite", "redis", "postgresql", "dynamodb"} <= set(STORES)


@pytest.mark.parametrize("url", ["", "x", "http://x"])
def test_others_are_refused(url: str):
    with pytest.raises(InvalidInputError, match="known: "):
        open_external(url, {})
