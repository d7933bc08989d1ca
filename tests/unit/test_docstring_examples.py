"""Public docstrings are complete: every argument, only errors that exist, an example that runs."""

from __future__ import annotations

import builtins
import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import errors

# No example, and why; a class stands for its members too.
WITHOUT_EXAMPLE = {
    "BFloat16Array.from_numpy": "needs ml_dtypes, which tests do not install",
    "BFloat16Array.to_numpy": "needs ml_dtypes, which tests do not install",
    "BatchUDFCheckpoint.get_batch": "called by add_columns, with batches of its own",
    "BatchUDFCheckpoint.insert_batch": "called by add_columns, with batches of its own",
    "DataFile.field_ids": "deprecated in pylance, and a warning here",
    "Explorer.display_live": "called by the display of values",
    "Explorer.live_bundle": "called by the notebook",
    "Explorer.picture": "called by the notebook",
    "FragmentMetadata.data_files": "deprecated in pylance, and a warning here",
    "PandasBFloat16Array": "the interface of pandas' extension arrays, which pandas describes",
    "load_ipython_extension": "called by %load_ext",
    "unload_ipython_extension": "called by %unload_ext",
}
# Between modules of the package; not for callers.
INTERNAL = {"from_pb", "to_pb", "of", "from_opened", "opened", "request_handlers"}
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Place(NamedTuple):
    """A public name, its value, and the class that it is a member of."""

    name: str
    value: Any
    owner: type | None = None

    @property
    def function(self) -> Any:
        """The function behind a property or a class method."""
        value = self.value
        if isinstance(value, property):
            return value.fget
        return getattr(value, "__func__", value)

    @property
    def text(self) -> str:
        return inspect.getdoc(self.function) or ""


def is_ours(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).startswith("lance_nb")


def members(name: str, owner: type) -> Iterator[Place]:
    seen = set()
    for one in owner.__mro__:
        if not is_ours(one):
            continue
        for member, value in vars(one).items():
            wanted = inspect.isfunction(value) or isinstance(
                value, property | staticmethod | classmethod
            )
            if wanted and not member.startswith("_") and member not in seen:
                seen.add(member)
                yield Place(f"{name}.{member}", value, owner)


def places() -> list[Place]:
    """List the public functions and classes, and the members of classes; without errors."""
    listed = []
    for name in lance_nb.__all__:
        value = getattr(lance_nb, name)
        if inspect.isclass(value) and is_ours(value):
            if not issubclass(value, BaseException):
                listed += [Place(name, value), *members(name, value)]
        elif inspect.isfunction(value):
            listed.append(Place(name, value))
    return listed


PLACES = places()
BY_NAME = {place.name: place for place in PLACES}


def excepted(place: Place) -> bool:
    owner, _, member = place.name.rpartition(".")
    return bool({owner, place.name} & set(WITHOUT_EXAMPLE)) or member in INTERNAL


def only_refuses(place: Place) -> bool:
    """Tell whether a call always raises, as the annotation says."""
    if getattr(place.function, "__annotations__", {}).get("return") == "NoReturn":
        return True
    return "``to_scanner`` raises NotSupportedError" in place.text


def has_no_effect(place: Place) -> bool:
    return place.text.startswith("Do nothing")


def has_example(place: Place) -> bool:
    """Tell whether a place has an example, or appears in the one of its class."""
    if ">>>" in place.text:
        return True
    if place.owner is None:
        return False
    member = place.name.rpartition(".")[2]
    examples = "\n".join(doctest.script_from_examples(inspect.getdoc(place.owner) or "").split())
    return re.search(rf"\.{member}\b", examples) is not None


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the names that examples may use, and make the datasets behind them."""
    monkeypatch.chdir(tmp_path)
    return example_names()


def example_names() -> dict[str, Any]:
    """Write two datasets into the current folder.

    ``ds``: ten rows in two fragments of five, with stable row ids. ``photos``: two rows with a
    blob each. ``rows``: two more rows for ``ds``.
    """
    vectors = pa.list_(pa.float32(), 2)
    schema = pa.schema([("id", pa.int64()), ("label", pa.string()), ("vector", vectors)])

    def numbered(ids: range) -> pa.Table:
        values = [{"id": n, "label": "ab"[n % 2], "vector": [n, 0.0]} for n in ids]
        return pa.Table.from_pylist(values, schema=schema)

    uri = "points.lance"
    ds = lance_nb.write_dataset(
        numbered(range(10)), uri, max_rows_per_file=5, enable_stable_row_ids=True
    )
    blob = pa.field("image", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    images = pa.table(
        [pa.array([0, 1]), pa.array([b"first photo", b"second photo"])],
        schema=pa.schema([pa.field("id", pa.int64()), blob]),
    )
    photos = lance_nb.write_dataset(images, "photos.lance", data_storage_version="2.1")
    return {
        "ds": ds, "uri": uri, "photos": photos, "rows": numbered(range(10, 12)), "pa": pa,
        "lance_nb": lance_nb,
    }  # fmt: skip


@pytest.mark.parametrize("name", [place.name for place in PLACES if ">>>" in place.text])
def test_an_example_runs_and_prints_what_it_says(name: str, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(BY_NAME[name].text, names, name, None, 0)
    lines: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=lines.append)

    assert not lines, "".join(lines)


def test_every_public_name_has_an_example() -> None:
    examined = [
        place
        for place in PLACES
        if not (excepted(place) or only_refuses(place) or has_no_effect(place))
    ]

    assert {place.name for place in examined if not has_example(place)} == set()


def test_exceptions_are_still_needed() -> None:
    assert {name for name in WITHOUT_EXAMPLE if has_example(BY_NAME[name])} == set()


def described(place: Place, seen: set[str]) -> str:
    """Return a docstring with those that it refers to for its arguments."""
    seen.add(place.name)
    text = place.text + (inspect.getdoc(place.owner) or "" if place.owner else "")
    for named in re.findall(r"``([\w.]+)", place.text):
        for name in (f"{place.name.partition('.')[0]}.{named}", f"LanceDataset.{named}", named):
            other = BY_NAME.get(name.removeprefix("lance_nb."))
            if other is not None and other.name not in seen:
                text += described(other, seen)
        if named == "pyarrow.Table.to_pandas":
            text += " ".join(inspect.signature(pa.Table.to_pandas).parameters)
    return text


def unnamed_arguments(place: Place) -> set[str]:
    """Return the arguments that neither a docstring nor those it refers to describe."""
    if excepted(place) or only_refuses(place) or has_no_effect(place):
        return set()
    text = described(place, set())
    arguments = set(inspect.signature(place.function).parameters) - {"self", "cls", "kwargs"}
    return {one for one in arguments if not re.search(rf"\b{one}\b", text)}


def test_every_argument_is_described() -> None:
    functions = [place for place in PLACES if inspect.isfunction(place.function)]
    unnamed = {place.name: unnamed_arguments(place) for place in functions}

    assert {name: found for name, found in unnamed.items() if found} == {}


def test_errors_that_are_named_exist() -> None:
    known = set(dir(errors)) | set(dir(builtins))
    named = {place.name: set(re.findall(r"\b[A-Z]\w*Error\b", place.text)) for place in PLACES}

    assert {name: found - known for name, found in named.items() if found - known} == {}


def test_a_docstring_without_an_example_is_found() -> None:
    def documented() -> None:
        """Do nothing at all.

        >>> 1
        1
        """

    def undocumented(argument: int) -> None:
        """Return something."""

    assert has_example(Place("documented", documented))
    assert not has_example(Place("undocumented", undocumented))
    assert unnamed_arguments(Place("undocumented", undocumented)) == {"argument"}
