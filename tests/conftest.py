"""Settings for the whole test run: a clean environment and one Hypothesis profile."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.examples import load_profile
from tests.support.tiers import in_part, left_out

load_profile()

# With this package jsonschema checks the addresses in a schema. To import it takes five seconds of
# processor, it builds 38 grammars; without it jsonschema and all that use it work as well.
sys.modules.setdefault("rfc3987_syntax", None)

# A developer's credentials and proxies must neither help a test nor be used by one; and IPython
# warns of an active environment that is not the one it runs in.
SCRUBBED_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", "LANCE_", "VIRTUAL_ENV")


@pytest.fixture(autouse=True, scope="session")
def clean_environment() -> Iterator[None]:
    """Hide what would make a test depend on whose machine it runs on."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(SCRUBBED_PREFIXES):
                patch.delenv(name)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option by which processes share a tier without talking to each other."""
    parser.addoption("--part", help="run a part of the test files: 1/2 is the first half of them")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files unread, and folders, that hold no test of the tier or of the part asked for."""
    tier, part = config.getoption("markexpr"), config.getoption("part")
    if tier and left_out(collection_path, tier):
        return True
    is_test = collection_path.name.startswith("test_") and collection_path.is_file()
    return True if part and is_test and not in_part(collection_path, tier, part) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why a test had to run again: its last try tells only of itself."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.write_sep("_", f"run again: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext[-3000:])
        for title, text in report.sections:
            terminalreporter.write_line(f"{title}: {text[-3000:]}")


def pytest_collection_finish() -> None:
    """Leave ten thousand collected tests, and what they imported, out of Python's collections."""
    gc.collect()
    gc.freeze()
