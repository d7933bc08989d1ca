"""Names of the package that nothing uses: functions, classes, methods, fields and constants.

A name is alive if the package, a notebook or a document mentions it outside of its own definition:
in code, or in a string that is an expression (names that are looked up). A private name of a module
is alive if its module mentions it, or another one imports it. Tests and docstrings do not keep a
name alive. Also alive are what a decorator with arguments registers, what is looked up by a prefix
(``f"_bind_{...}"``), and the members of classes that ``lance_nb`` exports.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from tests.house.source import Source

# Methods and attributes that other libraries look up.
CALLED_BY_OTHERS = {
    "_ipython_display_": "IPython",
    "_repr_html_": "IPython",
    "do_GET": "http.server",
    "do_POST": "http.server",
    "getDefaultReadLimit": "PySpark",
    "initialOffset": "PySpark",
    "latestOffset": "PySpark",
    "log_message": "http.server",
    "prepareForTriggerAvailableNow": "PySpark",
    "protocol_version": "http.server",
    "reportLatestOffset": "PySpark",
    "streamReader": "PySpark",
    "streamWriter": "PySpark",
}
# Part of a value that a public method returns or takes, or looked up by a name that is computed.
USED_BY_NAME = frozenset({
    "BatchInfo.batch_index",
    "CacheSession",
    "CopyProgress",
    "DiffCounts",
    "IndexSegment",
    "MergeClauseBuilder",
    "MergePlan",
    "RowsFound.to_compare",
    "_Parser._fixedsizebinary",
    "_Parser._fixedsizelist",
    "_Parser._time32",
    "_Parser._time64",
    "clear",  # what is in memory, between tests
    "mime_bundle",
})  # fmt: skip
_WORD = re.compile(r"[A-Za-z_]\w*")
_PREFIX = re.compile(r"_[a-z_]*_|on_")
_TEXT_SUFFIXES = (".ipynb", ".md", ".pyx")
_CACHES = frozenset({"cache", "lru_cache", "dataclass", "deprecated"})


def dead_names(sources: Iterable[Source], public: Iterable[str]) -> Iterator[str]:
    """Yield the definitions that nothing mentions; ``public`` are the exported names."""
    sources = [source for source in sources if not source.path.startswith("tests/")]
    public = set(public)
    mentions: Counter[str] = Counter()
    uses: set[tuple[str, str]] = set()
    texts: set[str] = set()
    for source in sources:
        if source.path.endswith(".py"):
            mentions.update(_mentions(source.nodes))
            uses.update(_uses(source.nodes))
            texts.update(_texts(source.nodes))
        elif source.path.endswith(_TEXT_SUFFIXES):
            texts.update(_WORD.findall(source.text))
    prefixes = tuple(text for text in texts if _PREFIX.fullmatch(text))
    for source in sources:
        if not source.is_package_code:
            continue
        module = source.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        own = Counter(_mentions(source.nodes))
        for node, name, owner in _definitions(source.tree):
            full_name = f"{owner}.{name}" if owner else name
            if {name, owner} & public or name in texts or {owner, full_name} & USED_BY_NAME:
                continue
            if name.startswith(("__", *prefixes)) or name in CALLED_BY_OTHERS:
                continue
            count = mentions[name] if owner else own[name] + ((module, name) in uses)
            if count <= Counter(_mentions(ast.walk(node)))[name]:
                yield source.at(node, f"{full_name} is never used")


def _definitions(tree: ast.Module) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield what a module defines at its level and that of its classes: node, name, class."""
    bodies: list[tuple[list[ast.stmt], str]] = [(tree.body, "")]
    while bodies:
        statements, owner = bodies.pop()
        for node in statements:
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    if not any(_registers(decorator) for decorator in node.decorator_list):
                        yield node, name, owner
                case ast.ClassDef(name=name):
                    yield node, name, owner
                    bodies.append((node.body, name))
                case ast.If() | ast.Try():
                    bodies.extend([(node.body, owner), (node.orelse, owner)])
                case ast.Assign(targets=targets):
                    for target in targets:
                        names = [part for part in ast.walk(target) if isinstance(part, ast.Name)]
                        yield from ((part, part.id, owner) for part in names)
                case ast.AnnAssign(target=ast.Name(id=name)):
                    yield node.target, name, owner


def _registers(decorator: ast.expr) -> bool:
    match decorator:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name not in _CACHES
    return False


def _mentions(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield each mention of a name in code."""
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.keyword(arg=str(name)) | ast.Attribute(attr=name):
                yield name
            case ast.MatchClass(kwd_attrs=names) | ast.Global(names=names):
                yield from names


def _uses(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield what is taken from a module: the module, and the name."""
    modules: dict[str, str] = {}
    for node in nodes:
        match node:
            case ast.ImportFrom(module=str(module), names=aliases):
                for alias in aliases:
                    modules[alias.asname or alias.name] = f"{module}.{alias.name}"
                    yield module, alias.name
            case ast.Import(names=aliases):
                for alias in aliases:
                    modules[alias.asname or alias.name] = alias.name
    for node in nodes:
        if isinstance(node, ast.Attribute):
            module = modules.get(ast.unparse(node.value))
            if module:
                yield module, node.attr


def _texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the words of strings that are names or types, and no sentence."""
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)) if len(text) < 200:
                if " " not in text or " | " in text:
                    yield from _WORD.findall(text)
