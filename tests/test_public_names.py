"""What ``import lance_nb`` offers: listed, reachable, documented, and quick to import."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest

import lance_nb
from lance_nb import errors

# Loaded by Python or by the names themselves; not offered to anybody.
SUBMODULES = {
    "dataset", "encodings", "errors", "explorer", "file", "format", "magic", "spark", "storage",
    "table", "transactions", "widgets",
}  # fmt: skip
# Read with a default: a missing list is one failure below, not the end of the whole collection.
NAMES = list(getattr(lance_nb, "__all__", []))
HEAVY = ("ipywidgets", "anywidget", "IPython", "pandas", "pyspark", "numba", "duckdb", "lance")


def test_all_is_sorted_and_has_no_name_twice() -> None:
    assert NAMES
    assert sorted(set(NAMES)) == NAMES


def test_all_lists_every_public_name_and_no_other() -> None:
    bound = {
        name
        for name, value in vars(lance_nb).items()
        if not name.startswith("_") and not (name in SUBMODULES and inspect.ismodule(value))
    }
    listed = {name for name in NAMES if not name.startswith("_")}

    assert bound - listed == set()
    assert listed <= set(dir(lance_nb))


@pytest.mark.parametrize("name", NAMES)
def test_public_name_exists_and_is_documented(name: str) -> None:
    value = getattr(lance_nb, name)

    if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
        assert (inspect.getdoc(value) or "").strip()


@pytest.mark.parametrize("name", NAMES)
def test_public_methods_are_documented(name: str) -> None:
    value = getattr(lance_nb, name)
    if not inspect.isclass(value) or not value.__module__.startswith("lance_nb"):
        return
    methods = {
        method: member
        for owner in inspect.getmro(value)
        if owner.__module__.startswith("lance_nb")
        for method, member in vars(owner).items()
        if not method.startswith("_") and isinstance(member, FunctionType | property | classmethod)
    }

    assert [method for method, member in methods.items() if not inspect.getdoc(member)] == []


@pytest.mark.parametrize("name", NAMES)
def test_examples_of_public_names_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = getattr(lance_nb, name)
    if not inspect.isclass(value) and not inspect.isfunction(value):
        return
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    lines: list[str] = []
    for example in doctest.DocTestFinder(recurse=True).find(value, name, globs={}):
        runner.run(example, out=lines.append)

    assert lines == []


def test_dataset_is_the_function_whatever_is_imported_first() -> None:
    code = "import lance_nb.dataset.refs; import lance_nb; print(callable(lance_nb.dataset))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )

    assert done.stdout.strip() == "True"


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = lance_nb.no_such_name  # type: ignore[attr-defined]


def test_every_error_is_reachable_and_under_one_root() -> None:
    tree = [
        value
        for name, value in vars(errors).items()
        if inspect.isclass(value)
        and issubclass(value, Exception)
        and not name.startswith("_")
        and value.__module__ == errors.__name__
    ]

    assert [error.__name__ for error in tree if not issubclass(error, errors.LanceError)] == []


def test_import_loads_nothing_heavy() -> None:
    code = f"import sys, lance_nb; print([n for n in {HEAVY!r} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )

    assert done.stdout.strip() == "[]"
