"""Datasets of pylance on a Hugging Face hub, as huggingface_hub reads them; the hub is ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tests.support.hub_server import hub_server

pytestmark = pytest.mark.interop

REPOSITORY = "owner/pictures"
CODE = """
import json, sys
import lance_nb

folder = "hf://datasets/owner/pictures"
explorer = lance_nb.explore(f"{folder}/photos.lance")
assert explorer.error is None, explorer.error
ds = explorer.dataset
print(json.dumps({
    "versions": [one["version"] for one in ds.versions()],
    "rows": ds.to_table(filter="id > 97").to_pylist(),
    "old": lance_nb.dataset(f"{folder}/photos.lance", version=1).count_rows(),
    "nothing": type(lance_nb.explore(f"{folder}/nothing.lance").error).__name__,
    "tables": lance_nb.database(folder).table_names(),
}))
"""


def test_a_dataset_of_the_hub_is_explored(tmp_path: Path) -> None:
    for mode, first, count in (("create", 0, 100), ("append", 100, 5)):
        ids = range(first, first + count)
        rows = pa.table({"id": ids, "text": [f"x{one}" for one in ids]})
        lance.write_dataset(rows, tmp_path / "photos.lance", mode=mode)
    expected = lance.dataset(tmp_path / "photos.lance").to_table(filter="id > 97").to_pylist()

    with hub_server(REPOSITORY, tmp_path) as (address, asked):
        settings = {"HF_ENDPOINT": address, "HF_HUB_DISABLE_TELEMETRY": "1"}
        done = subprocess.run(
            [sys.executable, "-c", CODE], env=os.environ | settings, capture_output=True,
            text=True, timeout=120, check=False,
        )  # fmt: skip

    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == {
        "versions": [1, 2],
        "rows": expected,
        "old": 100,
        "nothing": "DatasetNotFoundError",
        "tables": ["photos"],
    }
    assert all("/datasets/owner/pictures" in one for one in asked)
