"""The examples in the docstrings of the dataset API run as they stand."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb

OWNERS = [
    "BlobFile", "Bitmap", "DatasetOptimizer", "LanceDataset", "LanceFileReader", "LanceFileSession",
    "LanceFragment", "LanceScanner", "MergeInsertBuilder", "ScannerBuilder", "Session",
    "StorageOptionsAccessor", "dataset", "write_dataset", "write_fragments",
]  # fmt: skip


def examples() -> dict[str, str]:
    """Return the code behind "Example::" of every public class, method and function."""
    places: dict[str, Any] = {}
    for name in OWNERS:
        places[name] = owner = getattr(lance_nb, name)
        if inspect.isclass(owner):
            for member, value in vars(owner).items():
                if not member.startswith("_"):
                    places[f"{name}.{member}"] = value
    found = {}
    for place, value in places.items():
        text = inspect.getdoc(value) or ""
        _, separator, code = text.partition("Example::\n")
        if separator:
            block = re.match(r"(?:\n*(?: {4}.*|))*", code)
            found[place] = textwrap.dedent(block.group() if block else "").strip()
    return found


EXAMPLES = examples()


@pytest.fixture
def names(tmp_path: Path) -> dict[str, Any]:
    """Values of the names that the examples use."""
    blob = pa.field("image", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), blob])
    rows = pa.table([pa.array(range(10)), pa.array([b"0123456789abcdefgh"] * 10)], schema=schema)
    uri = str(tmp_path / "examples.lance")
    ds = lance_nb.write_dataset(rows, uri, data_storage_version="2.1")
    path = f"{uri}/data/{ds.get_fragments()[0].data_files()[0].path}"
    return {
        "ds": ds, "uri": uri, "rows": rows, "path": path, "pa": pa, "lance_nb": lance_nb,
        "ScannerBuilder": lance_nb.ScannerBuilder,
    }  # fmt: skip


def test_the_methods_that_are_used_most_have_an_example() -> None:
    wanted = {"to_table", "to_batches", "scanner", "take_blobs", "head", "count_rows", "insert",
              "commit", "commit_batch", "create_scalar_index"}  # fmt: skip

    assert {f"LanceDataset.{name}" for name in wanted} <= set(EXAMPLES)
    assert len(EXAMPLES) > 25
    assert all(EXAMPLES.values())


@pytest.mark.parametrize("place", EXAMPLES)
def test_an_example_runs(place: str, names: dict[str, Any]) -> None:
    code = EXAMPLES[place]
    if place in ("dataset", "write_dataset", "write_fragments", "LanceFragment.create"):
        names["rows"] = names["rows"].select(["id"])
        if place == "write_dataset":
            names["uri"] += ".new"
        elif place != "dataset":
            names["uri"] += ".ids"
            names["ds"] = lance_nb.write_dataset(names["rows"], names["uri"])
    if place.startswith("StorageOptionsAccessor"):
        code = code.replace('storage_options={"anon": True}', 'storage_options={"a": "b"}')

    exec(compile(code, place, "exec"), names)  # noqa: S102 - our own docstrings
