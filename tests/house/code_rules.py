"""Rules about what Python code may do, and where."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from tests.house.source import OLDEST_PYTHON, Source

# The place where a user must get an answer whatever happens.
BROAD_EXCEPT_ALLOWED = ("lance_nb/explorer/messages.py",)
PRINT_ALLOWED = ("notebooks/demo_data.py", "protos/compile.py")
ENVIRONMENT_ALLOWED = (
    "lance_nb/dataset/", "lance_nb/session/", "lance_nb/explorer/", "lance_nb/spark/",
    "lance_nb/magic/",
    "lance_nb/storage/aws_profile.py",  # what every tool of AWS reads, before any option
)  # fmt: skip
VALUE_CLASSES = "lance_nb/value_classes.py"
_VALUE_MODULE = "lance_nb.value_classes"
# Slow to import, and most sessions never need them.
LAZY_PACKAGES = ("pyarrow.compute", "pyarrow.dataset")
# What Python's own protocols demand in these methods, and nowhere else.
PROTOCOL_ERRORS = frozenset({"AttributeError", "IndexError", "KeyError", "StopIteration"})
CORRUPT_ERRORS = frozenset({"CorruptFileError", "corrupt", "_corrupt"})
BROAD = frozenset({"Exception", "BaseException"})
BUILTIN_ERRORS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
)
_VAGUE = re.compile(
    r"\b(?:others?|another|else|fewer|longer|shorter|smaller|larger|deeper|outside)\b|^(?:some|more)\b"
)
MARKERS = ("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")


def parses(source: Source) -> Iterator[str]:
    """Every file is valid for the oldest Python that we support."""
    if not source.path.endswith(".py"):
        return
    error = source.parsed
    if isinstance(error, SyntaxError):
        yield source.at(error.lineno or 1, f"not Python {OLDEST_PYTHON}: {error.msg}")


def no_assert(source: Source) -> Iterator[str]:
    """``python -O`` removes assertions; raise InternalError or CorruptFileError instead."""
    if not source.is_product_code:
        return
    for node in source.nodes:
        if isinstance(node, ast.Assert):
            yield source.at(node, "assert outside tests")


def no_broad_except(source: Source) -> Iterator[str]:
    """A broad except hides our own faults."""
    if not source.is_product_code or source.is_in(*BROAD_EXCEPT_ALLOWED):
        return
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler):
            if node.type is None or BROAD & _names(node.type):
                yield source.at(node, "broad except")
        elif (
            isinstance(node, ast.Call)
            and "suppress" in _names(node.func)
            and any(BROAD & _names(argument) for argument in node.args)
        ):
            yield source.at(node, "broad suppress")


def no_print(source: Source) -> Iterator[str]:
    """A library returns and raises; it does not talk."""
    if not source.is_product_code or source.is_in(*PRINT_ALLOWED):
        return
    for node in source.nodes:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
        ):
            yield source.at(node, "print")


def no_environment(source: Source) -> Iterator[str]:
    """Below the session of a dataset, everything that matters is an argument."""
    if not source.is_package_code or source.is_in(*ENVIRONMENT_ALLOWED):
        return
    for node in source.nodes:
        named = isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv"}
        imported = (
            isinstance(node, ast.ImportFrom)
            and node.module == "os"
            and any(alias.name in {"environ", "environb", "getenv"} for alias in node.names)
        )
        if named or imported:
            yield source.at(node, "environment variable read below the session")


def no_markers(source: Source) -> Iterator[str]:
    """What is left to do is an issue, where people look for it."""
    for number, line in enumerate(source.text.splitlines(), 1):
        words = line.replace(":", " ").replace("(", " ").split()
        if any(marker in words for marker in MARKERS):
            yield source.at(number, "open end in a comment; write an issue")


def lazy_packages(source: Source) -> Iterator[str]:
    """Opening a dataset must not pay for what few sessions use."""
    if not source.is_package_code:
        return
    for node in _module_level(source.tree.body):
        for name in _imported(node):
            if any(name == lazy or name.startswith(f"{lazy}.") for lazy in LAZY_PACKAGES):
                yield source.at(node, f"{name} is imported inside the function that needs it")


def own_errors_only(source: Source) -> Iterator[str]:
    """Callers catch LanceError: whatever we raise on purpose is in its tree."""
    if not source.is_package_code or source.is_in("lance_nb/errors.py"):
        return
    special = {
        id(node)
        for function in source.functions
        if function.name.startswith("__") and function.name.endswith("__")
        for node in ast.walk(function)
    }
    for node in source.nodes:
        if not isinstance(node, ast.Raise) or node.exc is None:
            continue
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        name = raised.id if isinstance(raised, ast.Name) else ""
        if name in BUILTIN_ERRORS and not (name in PROTOCOL_ERRORS and id(node) in special):
            yield source.at(node, f"raises the builtin {name}; take one from lance_nb.errors")


def found_is_said(source: Source) -> Iterator[str]:
    """An error of damaged bytes says what was found, not that it was something else."""
    if not source.is_package_code:
        return
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name not in CORRUPT_ERRORS:
            continue
        found = node.args[3:4] if name == "CorruptFileError" else node.args[1:][-1:]
        for text in (*found, *(word.value for word in node.keywords if word.arg == "found")):
            if isinstance(text, ast.Constant) and _VAGUE.search(str(text.value)):
                yield source.at(text, f"say what was found instead of {text.value!r}")


def frozen_values(source: Source) -> Iterator[str]:
    """A value is a frozen dataclass of ``value_classes``; everything else is an ordinary class."""
    if not source.is_package_code or source.is_in(VALUE_CLASSES):
        return
    for node in source.nodes:
        match node:
            case ast.ImportFrom(module="dataclasses", names=names):
                if any(alias.name in {"dataclass", "make_dataclass"} for alias in names):
                    yield source.at(node, f"from {_VALUE_MODULE} import dataclass")
            case ast.ClassDef(name=name, bases=bases, decorator_list=decorators):
                if any("AnalyzeResult" in _names(base) for base in bases):
                    continue  # a dataclass of PySpark, which is not frozen
                for decorator in decorators:
                    call = decorator if isinstance(decorator, ast.Call) else None
                    if "dataclass" not in _names(call.func if call else decorator):
                        continue
                    options = {
                        keyword.arg
                        for keyword in (call.keywords if call else [])
                        if isinstance(keyword.value, ast.Constant) and keyword.value.value is True
                    }
                    if not {"frozen", "slots"} <= options:
                        yield source.at(node, f"{name}: @dataclass(frozen=True, slots=True)")
            case ast.Attribute(value=ast.Name(id="dataclasses"), attr="dataclass"):
                yield source.at(node, f"from {_VALUE_MODULE} import dataclass")


def docstrings(source: Source) -> Iterator[str]:
    """Every module is a spec card; every public name says what it is."""
    if not source.is_product_code:
        return
    if not ast.get_docstring(source.tree):
        yield source.at(1, "module without a docstring")
    yield from _undocumented(source, source.tree.body)


def _undocumented(source: Source, body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if node.name.startswith("_") or _is_variant(node):
            continue
        if not ast.get_docstring(node):
            yield source.at(node, f"{node.name} has no docstring")
        if isinstance(node, ast.ClassDef):
            is_protocol = any("Protocol" in _names(base) for base in node.bases)
            members = [item for item in node.body if not (is_protocol and _is_stub(item))]
            yield from _undocumented(source, members)


def _is_stub(node: ast.stmt) -> bool:
    """Tell whether this only names what an implementation, which has the docstring, must offer."""
    return (
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
        and node.body[0].value.value is ...
    )


def _is_variant(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Tell whether another definition of the same name carries the docstring."""
    return any(
        _names(decorator) & {"overload", "setter", "deleter"} for decorator in node.decorator_list
    )


def _names(node: ast.AST | None) -> set[str]:
    """Return every plain or attribute name in an expression."""
    found: set[str] = set()
    for part in ast.walk(node) if node else ():
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Attribute):
            found.add(part.attr)
    return found


def _imported(node: ast.AST) -> list[str]:
    """Return the full names an import statement brings in; a relative one starts with a dot."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        start = "." * node.level + (node.module or "")
        return [start, *(f"{start}.{alias.name}" for alias in node.names)]
    return []


def _module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Walk the statements that run on import; `if TYPE_CHECKING` does not."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in _names(node.test):
            yield from _module_level(node.orelse)
            continue
        yield node
        for field in ("body", "orelse", "finalbody"):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _module_level(getattr(node, field, []))


CODE_RULES = (
    parses, no_assert, no_broad_except, no_print, no_environment, no_markers, lazy_packages,
    own_errors_only, found_is_said, frozen_values, docstrings,
)  # fmt: skip
