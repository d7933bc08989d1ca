"""``import lance_nb`` is cheap; the notebook interface is behind doors that open on first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lance_nb


def run(code: str) -> str:
    """Run Python code in a process of its own and return what it printed."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_public_name_is_listed_and_there():
    for name in lance_nb.__all__:
        assert name in dir(lance_nb)
        assert getattr(lance_nb, name) is not None


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="lance_nb has no name 'nope'"):
        _ = lance_nb.nope


@pytest.mark.slow
def test_a_door_opens_once_and_stays_open():
    code = (
        "import sys, lance_nb; before = 'lance_nb.explorer.app' in sys.modules; "
        "first = lance_nb.explore; print(before, first is lance_nb.explore, "
        "'explore' in vars(lance_nb))"
    )
    assert run(code) == "False True True"
