"""Measure the size and shape of the source: ``python -m tests.house.measures``.

Prints one table: files and lines by kind, vague names, longest functions, circles of imports
(imports inside functions counted too), the files that run for common operations, modules that
write HTML or SVG, targets of make, bytes of the documents in the root. ``--json FILE`` also writes
the numbers, so that two states can be compared.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.house.name_rules import count_vague_names
from tests.house.source import GENERATED_PREFIX, ROOT, Source, repository_sources

LONGEST = 5
POSITIONS_MAX = 4
JS_LINES_MAX = 150
ROOT_DOCUMENTS = (
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md",
    "Makefile",
)  # fmt: skip
_MARKUP = re.compile(r"<(?:svg|html|!doctype)\b", re.IGNORECASE)
_LONG_FUNCTION = re.compile(r"file=([^,]+),line=(\d+).*?too many lines \((\d+)\)")


def measure() -> dict[str, Any]:
    """Return every number, by name."""
    sources = repository_sources()
    package = [s for s in sources if s.is_package_code and not s.is_in(GENERATED_PREFIX)]
    scripts = [s for s in sources if s.path.startswith("lance_nb/") and s.path.endswith(".js")]
    tests = [s for s in sources if s.path.startswith("tests/") and s.path.endswith((".py", ".js"))]
    vague = count_vague_names(sources)
    return {
        "Python files of the package": len(package),
        **{f"Python lines, {kind}": n for kind, n in line_kinds(package).items()},
        "JavaScript files": len(scripts),
        "JavaScript lines": _lines(scripts),
        "test lines": _lines(tests),
        "functions": sum(len(source.functions) for source in package),
        "functions with vague names": sum(n for key, n in vague.items() if "(js)" not in key),
        "JavaScript declarations with vague names": sum(
            n for key, n in vague.items() if "(js)" in key
        ),
        "vague names by folder": {key: n for key, n in sorted(vague.items()) if n},
        "longest Python functions": longest_functions(package),
        f"JavaScript functions above {JS_LINES_MAX} lines": long_scripts(),
        f"calls with more than {POSITIONS_MAX} arguments by position": calls_by_position(package),
        "modules in circles of imports": import_circles(package),
        "modules that write HTML or SVG": sorted(
            source.path for source in package if _MARKUP.search(source.text)
        ),
        "files that run": files_that_run(),
        "targets of make": len(
            re.findall(r"^[\w-]+:.*##", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        ),
        "bytes of root documents": {
            name: (ROOT / name).stat().st_size for name in ROOT_DOCUMENTS if (ROOT / name).exists()
        },
    }


def line_kinds(sources: Iterable[Source]) -> Counter[str]:
    """Count lines of Python by what stands on them: all, code, docstring, comment or blank."""
    counts: Counter[str] = Counter()
    for source in sources:
        lines = source.text.splitlines()
        docstrings: set[int] = set()
        for node in source.nodes:
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0] if node.body else None
                if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                    docstrings.update(range(first.lineno, (first.end_lineno or 0) + 1))
        comments = {
            token.start[0]
            for token in tokenize.generate_tokens(io.StringIO(source.text).readline)
            if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
        }
        blank = {n for n, line in enumerate(lines, 1) if not line.strip()} - docstrings
        counts["all"] += len(lines)
        counts["docstring"] += len(docstrings)
        counts["comment"] += len(comments)
        counts["blank"] += len(blank)
        counts["code"] += len(lines) - len(docstrings) - len(comments) - len(blank)
    return counts


def longest_functions(sources: Iterable[Source]) -> list[str]:
    """Return the longest functions, docstrings included, as ``lines path:name``."""
    spans = [
        ((function.end_lineno or 0) - function.lineno + 1, f"{source.path}:{function.name}")
        for source in sources
        for function in source.functions
    ]
    return [f"{size} {name}" for size, name in sorted(spans, reverse=True)[:LONGEST]]


def long_scripts() -> list[str] | str:
    """Return the browser functions that Biome finds too long, the longest first."""
    biome = ROOT / "tests/js/node_modules/.bin/biome"
    if not biome.exists():
        return "not measured: run `make lint` once, which installs Biome"
    with tempfile.TemporaryDirectory() as folder:
        rule = {"level": "warn", "options": {"maxLines": JS_LINES_MAX}}
        config = {
            "root": True,
            "linter": {
                "rules": {
                    "recommended": False,
                    "complexity": {"noExcessiveLinesPerFunction": rule},
                }
            },
        }
        (Path(folder) / "biome.json").write_text(json.dumps(config), "utf-8")
        result = subprocess.run(
            [biome, "lint", f"--config-path={folder}", "--max-diagnostics=none",
             "--reporter=github", ROOT / "lance_nb/explorer"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    functions = _LONG_FUNCTION.findall(result.stdout + result.stderr)
    return [
        f"{size} {Path(path).name}:{line}"
        for path, line, size in sorted(functions, key=lambda function: -int(function[2]))
    ]


def import_circles(sources: Iterable[Source]) -> list[list[str]]:
    """Return groups of modules that import each other, imports inside functions included."""
    names = {
        source.path[:-3].replace("/", ".").removesuffix(".__init__"): source for source in sources
    }
    graph = {name: _imported(source, name, names) - {name} for name, source in names.items()}
    return sorted((sorted(group) for group in _components(graph) if len(group) > 1), key=len)[::-1]


def calls_by_position(sources: Iterable[Source]) -> int:
    """Count calls with more than four arguments that are passed by position."""
    return sum(
        isinstance(node, ast.Call)
        and sum(not isinstance(argument, ast.Starred) for argument in node.args) > POSITIONS_MAX
        for source in sources
        for node in source.nodes
    )


def files_that_run() -> dict[str, int | str]:
    """Count the files of the package in which code runs for each operation, on a small dataset."""
    with tempfile.TemporaryDirectory() as folder:
        uri = str(Path(folder) / "small.lance")
        return {name: _count_files(operation) for name, operation in _operations(uri).items()}


def _operations(uri: str) -> dict[str, Callable[[], object]]:
    import pyarrow as pa
    from pyarrow import parquet

    import lance_nb
    from lance_nb import spark
    from lance_nb.explorer.app import Explorer

    rows = pa.table({"id": list(range(100)), "text": [str(n) for n in range(100)]})

    def upsert() -> object:
        builder = lance_nb.dataset(uri).merge_insert("id")
        return builder.when_matched_update_all().when_not_matched_insert_all().execute(rows[:5])

    def append_by_tasks() -> object:  # in this process: the way of Spark but for its workers
        parquet.write_table(rows, f"{uri}.parquet")
        return spark.append(uri, f"{uri}.parquet", engine="local", journal=False)

    def page() -> object:
        return Explorer(lance_nb.dataset(uri))

    return {
        "write_dataset": lambda: lance_nb.write_dataset(rows, uri),
        "open": lambda: lance_nb.dataset(uri),
        "to_table": lambda: lance_nb.dataset(uri).to_table(),
        "delete": lambda: lance_nb.dataset(uri).delete("id = 3"),
        "upsert": upsert,
        "one Spark append": append_by_tasks,
        "explorer with its first page": page,
    }


def _count_files(operation: Callable[[], object]) -> int:
    paths: set[str] = set()

    def note(frame: Any, event: str, _argument: object) -> None:
        # The body of a module runs once per process, whoever imports it.
        if event == "call" and frame.f_code.co_name != "<module>":
            paths.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        operation()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # typeshed lacks that None ends it
    return sum("/lance_nb/" in path for path in paths)


def _imported(source: Source, name: str, known: dict[str, Source]) -> set[str]:
    targets: set[str] = set()
    guarded = {
        id(child)
        for node in source.nodes
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for child in ast.walk(node)
    }
    for node in source.nodes:
        if id(node) in guarded:
            continue
        if isinstance(node, ast.Import):
            targets.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names} & known.keys()
            targets.update(submodules or {node.module})
    return targets & known.keys()


def _components(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components (Tarjan 1972), without recursion."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []
    for root, first_targets in graph.items():
        if root in order:
            continue
        order[root] = low[root] = len(order)
        stack.append(root)
        work = [(root, iter(sorted(first_targets)))]
        while work:
            node, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    position = stack.index(node)
                    components.append(stack[position:])
                    del stack[position:]
            elif target not in order:
                order[target] = low[target] = len(order)
                stack.append(target)
                work.append((target, iter(sorted(graph[target]))))
            elif target in stack:
                low[node] = min(low[node], order[target])
    return components


def _lines(sources: Iterable[Source]) -> int:
    return sum(len(source.text.splitlines()) for source in sources)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {number}" for key, number in value.items())
    if not isinstance(value, list):
        return str(value)
    items = [" ".join(item) if isinstance(item, list) else item for item in value]
    return "".join([str(len(items)), *(f"\n    {item}" for item in items)])


def main() -> None:
    """Print the numbers, one name a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    arguments = parser.parse_args()
    numbers = measure()
    for name, value in numbers.items():
        print(f"{name}: {_shown(value)}")
    if arguments.json:
        arguments.json.write_text(json.dumps(numbers, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
