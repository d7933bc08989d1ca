"""DataOverlay."""

from __future__ import annotations

import pytest

from lance_nb._pb import transaction as pb
from lance_nb.errors import NotSupportedError
from lance_nb.transactions.operations.data_overlay import DataOverlay
from tests.support.versions import Versions


def test_it_is_carried_and_never_applied() -> None:
    message = pb.Transaction.DataOverlay(groups=[pb.Transaction.DataOverlayGroup(fragment_id=3)])
    operation = DataOverlay.from_pb(message)
    assert operation.to_pb() == message
    assert operation.describe() == "overlay cells in 1 fragment"
    with pytest.raises(NotSupportedError, match="overlays"):
        Versions(1).apply(operation)
