"""Run the compiled loops on sound, mutated and random input under AddressSanitizer.

    python -m tests.faults kernels 200000 [seed] [--seconds 900]

Builds the extension with AddressSanitizer and UndefinedBehaviorSanitizer into a temporary folder
(needs gcc), and runs itself again with that build. Half of the cases compare both forms of a loop,
as tests/property/encodings does; the others call a loop again with what such a case called it with,
but for sizes, positions and numbers that fit nothing. Each seed stands for one case. Ends with 1 at
the first finding, which the sanitizer prints.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from tests.faults import command
from tests.house.source import ROOT

NAME = "lance_nb.encodings.kernels._compiled"
SOURCE = ROOT / "lance_nb/encodings/kernels/_compiled.pyx"
FLAGS = "-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
EDGES = (-(1 << 63), -(1 << 40), -1, 0, 1, 2, 1 << 31, 1 << 62, (1 << 63) - 1)
# Arguments that our own code has built, and that the loop does not check, by their place.
TRUSTED = {"encode_fsst": {3, 4, 5, 6, 7}}
Rng = np.random.Generator


def main(arguments: list[str]) -> int:
    """Run from the command line; return the exit code."""
    parser = command.parser_of("kernels", "cases", 200_000)
    parser.add_argument("--built", type=Path, help="the extension, built with sanitizers")
    options = parser.parse_args(arguments)
    if options.built is None:
        return _run_sanitized(options)
    _load(options.built)
    _run(options.size, options.seed, options.seconds)
    return 0


def _run_sanitized(options: argparse.Namespace) -> int:
    """Build the extension with sanitizers and run the cases with it, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder))
        libraries = [_library("libasan.so"), _library("libubsan.so")]
        environment = os.environ | {
            "LD_PRELOAD": " ".join(libraries),
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "PYTHONMALLOC": "malloc",
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "OPENBLAS_NUM_THREADS": "1",
        }
        words = ["-m", "tests.faults", "kernels", str(options.size), str(options.seed)]
        words += ["--seconds", str(options.seconds), "--built", str(built)]
        return subprocess.run(
            [sys.executable, *words], env=environment, cwd=ROOT, check=False
        ).returncode


def build(folder: Path) -> Path:
    """Compile the extension with sanitizers into a folder; return its path."""
    code = (
        "import sys\n"
        "from setuptools import Extension, setup\n"
        "from Cython.Build import cythonize\n"
        "name, source, folder = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)\n"
        "loops = Extension(name, [source])\n"
        "setup(name='loops', ext_modules=cythonize([loops], build_dir=folder, force=True))\n"
    )
    command = [
        sys.executable, "-W", "ignore", "-c", code, NAME, SOURCE, folder,
        "--quiet", "build_ext", "--build-lib", folder, "--build-temp", folder,
    ]  # fmt: skip
    environment = os.environ | {"CFLAGS": FLAGS, "LDFLAGS": "-fsanitize=address,undefined"}
    subprocess.run(command, env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (built,) = folder.rglob("_compiled*.so")
    return built


def _library(name: str) -> str:
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _load(built: Path) -> None:
    """Let ``compiled`` find this build instead of the one that is installed."""
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(built))
    spec = importlib.util.spec_from_file_location(NAME, built, loader=loader)
    if spec is None:
        raise SystemExit(f"{built} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[NAME] = module


class Recorder:
    """The extension, whose calls are written down: the loop, and copies of its arguments."""

    def __init__(self, loops: Any) -> None:
        self._loops = loops
        self.calls: list[tuple[str, list[Any]]] = []

    def __getattr__(self, name: str) -> Any:
        loop = getattr(self._loops, name)

        def call(*arguments: Any) -> Any:
            copies = [part.copy() if isinstance(part, np.ndarray) else part for part in arguments]
            self.calls.append((name, copies))
            return loop(*arguments)

        return call


def _run(cases: int, seed: int, seconds: float) -> None:
    from lance_nb.encodings.kernels import compiled
    from tests.property.encodings.loop_cases import CASES, outcome
    from tests.support import compiled_forms
    from tests.support.compiled_forms import Form

    built = compiled.loops
    if built is not sys.modules[NAME]:
        raise SystemExit("the sanitized build is not in use")
    names = list(CASES)
    counts: Counter[str] = Counter()
    began = time.monotonic()
    for number in range(seed, seed + cases):
        if time.monotonic() - began > seconds:
            break
        rng = np.random.default_rng(number)
        name = names[number // 2 % len(names)]
        print(f"case {number}: {name}", end="\r", flush=True)  # the last line, if it crashes
        run = CASES[name](rng)
        if number % 2:
            if outcome(Form.COMPILED, run) != outcome(Form.NUMPY, run):
                raise SystemExit(f"case {number}: the forms of {name!r} differ")
            counts[name] += 1
            continue
        recorder = Recorder(built)
        compiled_forms._BUILT = recorder
        outcome(Form.COMPILED, run)
        compiled_forms._BUILT = built
        for loop, arguments in recorder.calls:
            try:
                getattr(built, loop)(*damaged(loop, arguments, rng))
            except (ValueError, TypeError, OverflowError):
                counts["refused by type"] += 1
            counts[f"{loop}, damaged"] += 1
    for name, count in sorted(counts.items()):
        print(f"{count:9,} {name}")
    print(f"seeds {seed} to {number}, no finding")


def damaged(loop: str, arguments: list[Any], rng: Rng) -> list[Any]:
    """Return arguments of a loop of which one to three fit nothing."""
    places = [at for at in range(len(arguments)) if at not in TRUSTED.get(loop, ())]
    changed = list(arguments)
    for at in rng.choice(places, int(rng.choice([1, 1, 2, 3]))):
        changed[at] = _other(changed[at], rng)
    return changed


def _other(value: Any, rng: Rng) -> Any:
    if isinstance(value, np.ndarray):
        return _other_size(value, rng) if rng.random() < 0.5 else _other_values(value, rng)
    if isinstance(value, int) and not isinstance(value, bool):
        usual = (value - 1, value + 1, 0, 1, 2, 4, 8, 16, 64, *rng.integers(-3, 300, 3).tolist())
        return int(usual[rng.integers(len(usual))])
    return value


def _other_size(array: np.ndarray, rng: Rng) -> np.ndarray:
    sizes = [max(0, size + int(rng.choice([-8, -1, 0, 1, 8]))) for size in array.shape]
    if rng.random() < 0.2:
        sizes[0] = int(rng.integers(0, array.shape[0] + 1))
    changed = np.zeros(sizes, array.dtype)
    common = tuple(slice(0, min(pair)) for pair in zip(sizes, array.shape, strict=True))
    changed[common] = array[common]
    return changed


def _other_values(array: np.ndarray, rng: Rng) -> np.ndarray:
    changed = array.copy()
    flat = changed.reshape(-1)
    if not flat.size:
        return changed
    chosen = rng.integers(0, flat.size, int(rng.choice([1, 1, 3, flat.size])))
    if array.dtype.kind == "f":
        flat[chosen] = rng.choice([0.0, -1.0, np.inf, np.nan, 1e30], chosen.size)
    else:
        near = int(flat[chosen[0]])
        values = [*EDGES, near - 1, near + 1, near * 2, flat.size, int(rng.integers(0, 256))]
        words = np.array(values, dtype=object) % (1 << (8 * array.itemsize))
        unsigned = np.array([int(word) for word in words], f"u{array.itemsize}").view(array.dtype)
        flat[chosen] = rng.choice(unsigned, chosen.size)
    return changed
