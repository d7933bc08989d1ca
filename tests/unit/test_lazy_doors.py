"""``import lance_nb`` is cheap; the notebook interface is behind doors that open on first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lance_nb

HEAVY = ("IPython", "ipywidgets", "anywidget", "pandas", "pyspark", "duckdb", "lance",
         "pyarrow.compute", "pyarrow.dataset", "jupyter_client", "fsspec")  # fmt: skip


def run(code: str) -> str:
    """Run Python code in a process of its own and return what it printed."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_package_loads_nothing_heavy():
    loaded = run(f"import sys, lance_nb; print([one for one in {HEAVY!r} if one in sys.modules])")
    assert loaded == "[]"


def test_reading_a_dataset_loads_nothing_of_the_notebook(tmp_path):
    from tests.golden.copies import copy_to_folder

    root = copy_to_folder("history", tmp_path)
    code = (
        "import sys, lance_nb; dataset = lance_nb.dataset(sys.argv[1] if len(sys.argv) > 1 else "
        f"{str(root)!r}); dataset.to_table(); dataset.history(); repr(dataset); "
        "print([one for one in ('IPython', 'ipywidgets', 'anywidget', 'pyspark', 'pandas') "
        "if one in sys.modules])"
    )
    assert run(code) == "[]"


def test_every_public_name_is_listed_and_there():
    for name in lance_nb.__all__:
        assert name in dir(lance_nb)
        assert getattr(lance_nb, name) is not None


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'lance_nb' has no attribute 'nope'"):
        _ = lance_nb.nope


def test_a_door_opens_once_and_stays_open():
    code = (
        "import sys, lance_nb; before = 'lance_nb.explorer.app' in sys.modules; "
        "first = lance_nb.explore; print(before, first is lance_nb.explore, "
        "'explore' in vars(lance_nb))"
    )
    assert run(code) == "False True True"


def test_the_function_and_not_the_module_is_called_dataset():
    assert callable(lance_nb.dataset)
    assert (
        run("import lance_nb.dataset.session, lance_nb; print(callable(lance_nb.dataset))")
        == "True"
    )
