"""Run test files again and again, each time in a fork that has the packages imported already.

A process that imports pytest, pyarrow, numpy and hypothesis anew for each mutant spends most of its
time on that. This one imports them once and forks; lance_nb and the tests are imported in the fork.

Protocol, one JSON value a line: ``{"tests": [...], "timeout": seconds, "trace": file or null}`` in,
the outcome out. With ``trace`` the file tells afterwards which test functions run each line.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

MEMORY_BYTES_MAX = 24 << 30  # of address space: Arrow and numpy reserve much more than they use
_POLL_SECONDS = 0.01


class LinesByTest:
    """A plugin of pytest that records which test functions run each line of the engine."""

    def __init__(self) -> None:
        import coverage

        self._coverage = coverage.Coverage(data_file=None, include=[f"{Path.cwd()}/lance_nb/*"])
        self._coverage.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Count what runs from here on for a test, whatever its parameters are."""
        self._coverage.switch_context(nodeid.partition("[")[0])

    def save(self, target: str) -> None:
        """Write ``{path: {line: [numbers of tests]}}`` and the names of the tests as JSON."""
        self._coverage.stop()
        data = self._coverage.get_data()
        numbers: dict[str, int] = {}
        lines: dict[str, dict[int, list[int]]] = {}
        for path in data.measured_files():
            by_line = data.contexts_by_lineno(path).items()
            lines[os.path.relpath(path)] = {
                line: [numbers.setdefault(name, len(numbers)) for name in names if name]
                for line, names in by_line
            }
        Path(target).write_text(json.dumps({"tests": list(numbers), "lines": lines}))


def run(tests: list[str], timeout: float, trace: str | None = None) -> str:
    """Run tests until one fails; return ``survived``, ``killed``, ``timeout`` or ``error``."""
    child = os.fork()
    if not child:
        _run_here(tests, trace)
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return {0: "survived", 4: "error"}.get(code, "killed")
        time.sleep(_POLL_SECONDS)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def _run_here(tests: list[str], trace: str | None) -> None:
    """Run the tests in this process, which is a fork, and end it with pytest's status."""
    import pytest

    status = 1  # a test that ends the process was not meant to
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        with open(os.devnull, "r+") as nowhere:  # noqa: PTH123
            for number in range(3):
                os.dup2(nowhere.fileno(), number)
        plugins: list[Any] = [LinesByTest()] if trace else []
        status = pytest.main(
            ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:rerunfailures",
             "-W", "ignore::pytest.PytestAssertRewriteWarning",  # hypothesis is imported already
             "-m", "(not slow or mutants) and not interop and not ui and not spark", *tests],
            plugins,
        )  # fmt: skip
        if trace:
            plugins[0].save(trace)
    finally:
        os._exit(int(status))


def main() -> None:
    """Answer requests until standard input ends."""
    import hypothesis  # noqa: F401 - these imports are what forks share
    import numpy.random  # noqa: F401
    import pyarrow.compute
    import pyarrow.dataset  # noqa: F401
    import pytest  # noqa: F401
    import sqlglot  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(run(**request)), flush=True)


if __name__ == "__main__":
    main()
