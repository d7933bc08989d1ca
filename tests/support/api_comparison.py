"""Compare the public API of pylance with that of ``lance_nb``, by ``inspect.signature``.

Every public name of pylance's modules is looked up in the package ``lance_nb`` itself. Classes are
compared member by member, callables parameter by parameter: name, kind, position and default.

A *place* names what is compared: ``write_dataset``, ``LanceDataset.take``, and for one parameter
``LanceDataset.take(columns)``. ``LanceDataset(uri)`` is a parameter of the constructor.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib
import inspect
import sys
import types
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lance_nb
from tests.support.requirements import require_pylance

# Modules of pylance in the order in which they are read: an object counts where it is found first.
MODULES = (
    "lance", "lance.dataset", "lance.fragment", "lance.file", "lance.schema", "lance.blob",
    "lance.optimize", "lance.progress", "lance.udf", "lance.commit", "lance.arrow", "lance.bitmap",
    "lance.vector", "lance.util", "lance.types", "lance.query", "lance.sampler", "lance.indices",
    "lance.debug", "lance.tracing", "lance.log", "lance.mem_wal", "lance.pydantic",
    "lance.namespace", "lance.hf", "lance.otel", "lance.torch",
)  # fmt: skip
# Modules that are no API of the dataset, and why their names are not counted.
NOT_COMPARED = {
    "lance.torch.*": "submodules need PyTorch to be imported",
    "lance.dependencies": "lazy imports of optional packages, internal to pylance",
    "lance.download": "a command that downloads language models for pylance's tokenizers",
    "lance.lance": "the native module: its public names are counted where they are re-exported",
}
# Where the modules of pylance get what is written in Rust.
_NATIVE = ("lance", "lance.lance")
# Variables of pylance's own modules: loggers and type variables.
_INTERNAL = {"LOGGER", "T"}
_BY_KEYWORD = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
# Classes whose members count: pylance's own, native ones among them, and those of pyarrow that
# its datasets, fragments and scanners derive from.
_COMPARED_BASES = ("lance", "_lib", "builtins", "pyarrow._dataset")
# Members that every exception, enumeration, dict and tuple has are not pylance's.
_FOREIGN = (BaseException, enum.Enum, dict, tuple, str, int, object)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A public name or parameter of the reference, and what is wrong with ours (None: nothing).

    ``cause`` is the place that is missing: the entry itself, or the class or function around it.
    """

    place: str
    is_parameter: bool
    problem: str | None = None
    cause: str | None = None


@contextmanager
def without_tqdm() -> Iterator[None]:
    """Let ``lance.vector`` be imported: it needs a progress bar that is not installed."""
    if importlib.util.find_spec("tqdm") is not None:
        yield
        return
    stand_in, submodule = types.ModuleType("tqdm"), types.ModuleType("tqdm.auto")
    submodule.tqdm = None  # type: ignore[attr-defined]
    sys.modules.update({"tqdm": stand_in, "tqdm.auto": submodule})
    try:
        yield
    finally:
        del sys.modules["tqdm"], sys.modules["tqdm.auto"]


def reference_names() -> dict[str, tuple[str, Any]]:
    """Return the public names of pylance: name to (module, value). Modules do not count."""
    require_pylance()
    found: dict[str, tuple[str, Any]] = {}
    with without_tqdm():
        for name in MODULES:
            module = importlib.import_module(name)
            for public in _public_names(module):
                value = getattr(module, public)
                if not inspect.ismodule(value):
                    found.setdefault(public, (name, value))
    return found


def _public_names(module: types.ModuleType) -> list[str]:
    """List what a module declares: in ``__all__``, by its own statements, or as native code."""
    found = set(getattr(module, "__all__", []))
    for statement in ast.parse(inspect.getsource(module)).body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(statement.name)
        elif isinstance(statement, ast.Assign):
            found |= {one.id for one in statement.targets if isinstance(one, ast.Name)}
        elif isinstance(statement, ast.ImportFrom) and statement.module in _NATIVE:
            found |= {one.asname or one.name for one in statement.names}
    hidden = {name for name in found if name.startswith("_") and name != "__version__"}
    return sorted(found - hidden - _INTERNAL)


class _Missing:
    """Stands for what ours do not have."""


_MISSING = _Missing()


def compare() -> list[Entry]:
    """Compare everything; one entry for every public name and every parameter of pylance."""
    return [
        entry
        for name, (_, theirs) in reference_names().items()
        for entry in _compared(name, theirs, getattr(lance_nb, name, _MISSING), None)
    ]


def _compared(place: str, theirs: Any, ours: Any, cause: str | None) -> Iterator[Entry]:
    if ours is _MISSING and cause is None:
        cause = place
    problem = None if cause is None else "missing"
    if cause is None and callable(theirs) != callable(ours) and not inspect.isclass(theirs):
        problem = "a method on one side, a value on the other"
    yield Entry(place, is_parameter=False, problem=problem, cause=cause)
    if callable(theirs):
        yield from _compared_parameters(place, theirs, ours, cause)
    if inspect.isclass(theirs):
        for name in members(theirs):
            mine = _MISSING if cause is not None else _member(ours, name)
            yield from _compared(f"{place}.{name}", _member(theirs, name), mine, cause)


def refuses(value: Any) -> bool:
    """Tell whether every call raises an error, whatever the arguments."""
    try:
        return inspect.signature(value).return_annotation == "NoReturn"
    except (TypeError, ValueError):
        return False


def _compared_parameters(place: str, theirs: Any, ours: Any, cause: str | None) -> Iterator[Entry]:
    wanted = parameters(theirs) or {}
    offered = None if cause is not None or refuses(ours) else parameters(ours)
    named = [one for one in wanted.values() if one.kind not in _BY_KEYWORD]
    for position, one in enumerate(named):
        if one.name.startswith("_"):
            continue
        problem = None if offered is None else difference(position, one, offered)
        if cause is not None:
            problem = "missing"
        where = f"{place}({one.name})"
        yield Entry(where, is_parameter=True, problem=problem, cause=cause)


def difference(
    position: int, wanted: inspect.Parameter, offered: dict[str, inspect.Parameter]
) -> str | None:
    """Say what is wrong with our parameter; ``position`` is that of the reference."""
    mine = offered.get(wanted.name)
    positional = [one.name for one in offered.values() if one.kind in _POSITIONAL]
    if mine is None:
        if wanted.kind is wanted.POSITIONAL_ONLY and position < len(positional):
            return None
        return "missing"
    if wanted.kind in _POSITIONAL:
        if mine.name not in positional:
            return "taken by keyword only"
        if positional.index(mine.name) != position:
            return f"at position {positional.index(mine.name)} instead of {position}"
    if wanted.kind is not wanted.POSITIONAL_ONLY and mine.kind is mine.POSITIONAL_ONLY:
        return "taken by position only"
    if wanted.default is wanted.empty:
        return None
    if mine.default is mine.empty:
        return f"required, and the reference has the default {wanted.default!r}"
    if not _are_equal(mine.default, wanted.default):
        return f"default {mine.default!r} instead of {wanted.default!r}"
    return None


def _are_equal(mine: Any, theirs: Any) -> bool:
    if "factory" in repr(theirs) and mine == ():
        return True  # an empty list of a value that does not change
    if type(theirs).__module__.startswith("lance") or "factory" in repr(theirs):
        return repr(mine).rpartition(".")[2] == repr(theirs).rpartition(".")[2]
    return bool(mine == theirs)


def parameters(value: Any) -> dict[str, inspect.Parameter] | None:
    """Return the parameters of a callable without ``self``, None where it has no signature."""
    try:
        found = dict(inspect.signature(value).parameters)
    except (ValueError, TypeError):
        return None
    found.pop("self", None)
    found.pop("cls", None)
    return found


def members(owner: type) -> list[str]:
    """Return the public methods, properties and fields of a class, in the order of the alphabet."""
    foreign = {name for base in _FOREIGN if issubclass(owner, base) for name in dir(base)}
    if typing.is_typeddict(owner):
        return sorted(owner.__annotations__)
    found = {name for name in dir(owner) if not name.startswith("_")}
    if dataclasses.is_dataclass(owner):
        found |= {one.name for one in dataclasses.fields(owner) if not one.name.startswith("_")}
    inherited = {
        name
        for base in inspect.getmro(owner)
        if not base.__module__.startswith(_COMPARED_BASES)
        for name in vars(base)
    }
    own = {
        name
        for base in inspect.getmro(owner)
        if base.__module__.startswith(_COMPARED_BASES)
        for name in vars(base)
    }
    return sorted(found - foreign - (inherited - own))


def _member(owner: Any, name: str) -> Any:
    """Return a member: a function for a method, a placeholder for what is no callable."""
    if not inspect.isclass(owner):
        return getattr(owner, name, _MISSING)
    fields = getattr(owner, "__dataclass_fields__", {})
    annotated = {key for base in owner.__mro__ for key in vars(base).get("__annotations__", {})}
    try:
        static = inspect.getattr_static(owner, name)
    except AttributeError:
        return None if name in fields or name in annotated else _MISSING
    if isinstance(static, staticmethod | classmethod) or inspect.isroutine(static):
        return getattr(owner, name)
    return static if inspect.isclass(static) else None
