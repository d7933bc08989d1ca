"""The requests of searches by an index on an object store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.benchmarks.object_store import Bench, delaying_proxy
from tests.support.requirements import require_pylance
from tests.support.servers import moto_server

pytestmark = pytest.mark.interop
ROWS = 40_000
KIND = "kind = 'k3'"


def test_searches_need_few_requests(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).permutation(ROWS)
    kinds = [f"k{number % 9}" for number in range(ROWS)]
    table = pa.table({"id": range(ROWS), "n": numbers, "kind": kinds})
    made: Any = require_pylance().write_dataset(
        table, str(tmp_path / "d"), max_rows_per_file=ROWS // 4
    )
    made.create_scalar_index("n", "BTREE")
    made.create_scalar_index("kind", "BITMAP")
    with moto_server() as endpoint, delaying_proxy(endpoint, 0) as proxy:
        uri = Bench(endpoint, proxy, tmp_path / "d").shared
        dataset = lance_nb.dataset(
            uri,
            storage_options={
                "aws_access_key_id": "test", "aws_secret_access_key": "testtest",
                "aws_endpoint": f"http://127.0.0.1:{proxy.port}", "aws_region": "us-east-1",
                "allow_http": "true",
            },
        )  # fmt: skip

        def requests(search: Callable[[], object]) -> int:
            proxy.requests.clear()
            search()
            return proxy.requests.total()

        def lookup(number: int) -> int:
            wanted = f"n = {number}"
            return requests(lambda: dataset.to_table(["id"], filter=wanted).to_pylist())

        assert requests(lambda: dataset.count_rows(KIND)) <= 6  # the index, opened, and a set
        assert requests(lambda: dataset.count_rows(KIND)) <= 1
        lookups = [lookup(number) for number in range(0, ROWS, 3001)]
        assert lookups[0] <= 10
        # When every data file is open: two columns of a page of the index, and the row.
        assert 1 <= max(lookups[-3:]) <= 4, lookups
