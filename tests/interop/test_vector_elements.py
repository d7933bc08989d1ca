"""Vector indices of every kind and element type, handed from one engine to the other.

One engine builds an index, either engine extends it by appended rows, and both search it over all
partitions: a refined search has to name the rows of the exact search, and without refinement both
engines have to name the same rows (of the kinds that both read by their codes). Native code panics
over a codebook of another type, so each cell runs in a child process, and a signal is reported as
one. Kinds that only pylance builds are run where ``LANCE_NB_TEST_SCALE`` is above 1.
"""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.interop.matrix import SCALE
from tests.support.requirements import require_pylance

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # pylance's own
]

DIMENSION, PARTITIONS = 16, 2
# Those that pylance 14.0.2 accepts: no int8, and uint8 only by hamming.
FLOATS = ("float16", "float32", "float64")
PARAMETERS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {}, "IVF_PQ": {"num_sub_vectors": 4}, "IVF_SQ": {}, "IVF_HNSW_FLAT": {},
    "IVF_HNSW_PQ": {"num_sub_vectors": 4}, "IVF_HNSW_SQ": {}, "IVF_RQ": {},
}  # fmt: skip
BUILT_HERE = ("IVF_FLAT", "IVF_PQ", "IVF_SQ")
CELLS = [(kind, width) for kind in PARAMETERS for width in FLOATS] + [("IVF_FLAT", "uint8")]
SMALL = [cell for cell in CELLS if cell[0] in BUILT_HERE]


def rows(count: int, width: str, first: int) -> pa.Table:
    rng = np.random.default_rng(first)
    numbers = (
        rng.normal(size=(count, DIMENSION))
        if width != "uint8"
        else rng.integers(0, 256, (count, DIMENSION))
    )
    flat = pa.array(numbers.astype(width).reshape(-1))
    vectors = pa.FixedSizeListArray.from_arrays(flat, DIMENSION)
    return pa.table({"id": np.arange(first, first + count), "v": vectors})


def found_ids(dataset: Any, search: dict[str, Any]) -> list[int]:
    ids: list[int] = dataset.to_table(["id"], nearest=search)["id"].to_pylist()
    return ids


def compare_searches(path: str, kind: str, width: str, where: object) -> list[str]:
    """Return the differences between both engines and the exact search."""
    metric = "hamming" if width == "uint8" else "l2"
    differences = []
    values = rows(400, width, 0)["v"].chunk(0).values.to_numpy(zero_copy_only=False)
    query = values.reshape(-1, DIMENSION)[7]
    search = {"column": "v", "q": query, "k": 5, "metric": metric, "nprobes": PARTITIONS}
    exact = found_ids(lance_nb.dataset(path), {**search, "use_index": False})
    for name, engine in (("pylance", require_pylance()), ("lance_nb", lance_nb)):
        ids = found_ids(engine.dataset(path), {**search, "refine_factor": 100})
        if ids != exact:
            differences.append(f"{where}: {name} finds {ids}, the exact search {exact}")
    if kind in BUILT_HERE and width != "uint8":  # many bytes are equally far
        mine, other = (
            found_ids(engine.dataset(path), search) for engine in (lance_nb, require_pylance())
        )
        if mine != other:
            differences.append(f"{where}: unrefined, lance_nb finds {mine}, pylance {other}")
    return differences


def check_cell(folder: str, kind: str, width: str) -> list[str]:
    """Return the differences of one cell: every builder, and every engine that extends."""
    engines: dict[str, Any] = {"pylance": require_pylance(), "lance_nb": lance_nb}
    builders = engines if kind in BUILT_HERE else ["pylance"]
    metric = "hamming" if width == "uint8" else "l2"
    differences = []
    for builder, extender in itertools.product(builders, engines):
        where = kind, width, builder, extender
        path = f"{folder}/{builder}-{extender}"
        dataset = engines[builder].write_dataset(rows(400, width, 0), path)
        dataset.create_index(
            "v", kind, metric=metric, num_partitions=PARTITIONS, **PARAMETERS[kind]
        )
        differences += compare_searches(path, kind, width, (*where, "built"))
        engines[extender].write_dataset(rows(150, width, 1000), path, mode="append")
        if extender == "pylance" or kind in BUILT_HERE:
            engines[extender].dataset(path).optimize.optimize_indices()
        differences += compare_searches(path, kind, width, (*where, "extended"))
        engines["pylance"].dataset(path).optimize.optimize_indices(num_indices_to_merge=10)
        differences += compare_searches(path, kind, width, (*where, "merged by pylance"))
    return differences


@pytest.mark.parametrize(("kind", "width"), CELLS if SCALE > 1 else SMALL)
def test_each_engine_searches_and_extends_the_index_of_the_other(
    tmp_path: Path, kind: str, width: str
) -> None:
    require_pylance()
    command = [sys.executable, "-W", "ignore", "-m", __name__, str(tmp_path), kind, width]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if result.returncode < 0:
        pytest.fail(f"{kind} of {width}: {signal.Signals(-result.returncode).name}")
    assert result.returncode == 0, result.stderr[-2000:]
    assert json.loads(result.stdout.splitlines()[-1]) == []


if __name__ == "__main__":
    print(json.dumps(check_cell(*sys.argv[1:4])))
