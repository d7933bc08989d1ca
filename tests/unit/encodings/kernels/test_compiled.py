"""When loops are compiled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lance_nb.encodings.kernels import compiled
from lance_nb.encodings.kernels.compiled import COST_SECONDS, Mode, forced, kernel


@pytest.fixture(autouse=True)
def fresh_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_state", compiled._State())


def test_little_work_never_pays() -> None:
    assert kernel("decode_fsst", COST_SECONDS / 100) is None


def test_missed_savings_add_up_until_they_pay() -> None:
    found = [kernel("decode_fsst", COST_SECONDS / 4) for _ in range(6)]
    assert found[:3] == [None] * 3
    assert all(loop is not None for loop in found[3:])
    assert kernel("decode_fsst", 0.0) is found[-1]


def test_one_big_piece_of_work_pays_at_once() -> None:
    assert kernel("decode_fsst", COST_SECONDS) is not None


def test_never_means_never() -> None:
    with forced(Mode.NEVER):
        assert kernel("decode_fsst", 1e9) is None
    assert kernel("decode_fsst", 0.0) is None


def test_without_numba_numpy_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with forced(Mode.ALWAYS):
        assert kernel("unpack_bits", 1.0) is None


def test_without_a_folder_to_cache_in_it_is_compiled_anyway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numba = pytest.importorskip("numba")
    plain = numba.njit

    def picky(*args, **options):
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return plain(*args, **options)

    monkeypatch.setattr(numba, "njit", picky)
    with forced(Mode.ALWAYS):
        loop = kernel("decode_fsst", 0.0)
    assert loop is not None
    out = np.zeros(1, np.uint64)
    loop(np.zeros(1, np.uint8), np.array([7], np.uint64), np.ones(1, np.uint8), out)
    assert out[0] == 7


def test_importing_the_codecs_does_not_import_numba_or_compute() -> None:
    code = (
        "import sys; import lance_nb.encodings.registry;"
        "print([m for m in ('numba', 'pyarrow.compute', 'lz4', 'zstandard') if m in sys.modules])"
    )
    root = Path(compiled.__file__).parents[3]
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, check=True, cwd=root)
    assert found.stdout.strip() == b"[]"
