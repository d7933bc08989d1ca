"""Which schemes can create exclusively."""

from __future__ import annotations

import pytest

from lance_nb.storage.exclusive.registry import STRATEGIES, strategy_for
from lance_nb.storage.registry import STORES


@pytest.mark.parametrize("scheme", ["s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"])
def test_object_stores_have_a_strategy(scheme: str):
    assert strategy_for(scheme) is not None
    assert scheme in STORES


def test_web_servers_and_unknown_schemes_have_none():
    assert strategy_for("https") is None
    assert strategy_for("sftp") is None
    assert set(STRATEGIES) < set(STORES)
