"""What ``import lance_nb`` offers: listed, reachable, documented, and quick to import."""

from __future__ import annotations

import inspect
import subprocess
import sys
from types import FunctionType

import pytest

import lance_nb
from lance_nb import errors

# Loaded by Python or by the names themselves; not offered to anybody.
SUBMODULES = {
    "arrow_casts", "arrow_compute",
    "code_lines", "dataset", "encodings", "errors", "explorer", "file", "format",
    "indices", "magic", "merging", "session", "shown_text", "spark", "storage", "table",
    "transactions", "writing",
    "value_classes", "version", "widgets",
}  # fmt: skip
# Read with a default: a missing list is one failure below, not the end of the whole collection.
NAMES = list(getattr(lance_nb, "__all__", []))
HEAVY = ("ipywidgets", "anywidget", "IPython", "pandas", "pyspark", "duckdb", "lance",
         "pyarrow.compute", "pyarrow.dataset", "jupyter_client", "fsspec")  # fmt: skip


def test_all_has_no_name_twice() -> None:
    assert NAMES
    assert len(set(NAMES)) == len(NAMES)


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


# Callables that take any arguments, and why.
TAKES_ANY = {
    "LanceDataset.alter_columns": "any number of alterations, as in pylance",
    "LanceDataset.create_index": "parameters of the kind of index, as in pylance",
    "LanceDataset.create_index_uncommitted": "parameters of the kind of index, as in pylance",
    "LanceDataset.create_scalar_index": "parameters of the kind of index, as in pylance",
    **{
        f"{follower}.{event}": "what later releases may tell of a fragment, as in pylance"
        for follower in (
            "FragmentWriteProgress",
            "NoopFragmentWriteProgress",
            "FileSystemFragmentWriteProgress",
        )
        for event in ("begin", "complete")
    },
}


def ours(owner: type) -> set[str]:
    """Return the public members that classes of the package define."""
    classes = [one for one in owner.__mro__ if one.__module__.startswith("lance_nb")]
    return {name for one in classes for name in vars(one) if not name.startswith("_")}


def takes_any(place: str, value: object) -> list[str]:
    """Return the place of a callable that hides arguments behind ``*args`` or ``**options``.

    What refuses every call may hide them.
    """
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
    found = signature.parameters.values()
    hides = any(one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL) for one in found)
    return [place] if hides and signature.return_annotation != "NoReturn" else []


def test_signatures_show_every_argument() -> None:
    found = []
    for name in NAMES:
        value = getattr(lance_nb, name)
        if inspect.isfunction(value):
            found += takes_any(name, value)
        elif inspect.isclass(value) and value.__module__.startswith("lance_nb"):
            if not issubclass(value, Exception):
                found += takes_any(name, value)
            for member in ours(value):
                if inspect.isroutine(getattr(value, member)):
                    found += takes_any(f"{name}.{member}", getattr(value, member))

    assert sorted(found) == sorted(TAKES_ANY)


def test_scanner_builder_lists_its_options_as_methods() -> None:
    builder = lance_nb.ScannerBuilder
    scanner = set(inspect.signature(lance_nb.LanceDataset.scanner).parameters) - {"self"}
    other_names = {"fragments", "full_text_query", "index_segments", "row_addr_allowlist",
                   "row_addr_blocklist"}  # fmt: skip

    assert scanner - other_names <= set(dir(builder))
    assert "__getattr__" not in vars(builder)
    assert inspect.signature(builder.limit).parameters["n"].default is None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"no name 'no_such_name'$"):
        _ = lance_nb.no_such_name  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"did you mean 'dataset'\?"):
        _ = lance_nb.datset  # type: ignore[attr-defined]


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


def test_import_loads_nothing_heavy_and_dataset_is_the_function() -> None:
    code = (
        f"import sys, lance_nb; print([n for n in {HEAVY!r} if n in sys.modules]);"
        "import lance_nb.dataset.refs; print(callable(lance_nb.dataset))"
    )
    first = "import lance_nb.session.session, lance_nb; print(callable(lance_nb.dataset))"
    printed = [
        subprocess.run(
            [sys.executable, "-c", one], capture_output=True, text=True, check=True, timeout=240
        ).stdout.split()
        for one in (code, first)
    ]

    assert printed == [["[]", "True"], ["True"]]
