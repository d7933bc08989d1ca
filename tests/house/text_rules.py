"""Rules about text of a dataset where it could act: lines to run, logs, warnings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.source import Source

LINES = "lance_nb/code_lines.py"
# The text before a value: a call that is not closed yet, or a line of the magic.
_OPEN_LINE = re.compile(
    r"%lance \S[^`]*$|\b(?:lance_nb|lance|ds|pa|pyarrow|stage)\.[\w.]+\([^()]*$"
)
_PLACEHOLDER = re.compile(r"%(?:[-\d.,]*)([a-zA-Z])")
_SHOWN = frozenset({"visible", "visible_lines"})
_LEVELS = frozenset({"debug", "info", "warning", "error", "critical", "exception", "log"})


def lines_in_one_place(source: Source) -> Iterator[str]:
    """A line that a person may run is written by ``code_lines``, which lets no value be code."""
    if not source.is_package_code or source.path == LINES:
        return
    for node in source.nodes:
        if not isinstance(node, ast.JoinedStr):
            continue
        for before, value in zip(node.values, node.values[1:], strict=False):
            if not isinstance(before, ast.Constant) or not isinstance(value, ast.FormattedValue):
                continue
            if _OPEN_LINE.search(str(before.value)):
                yield source.at(node, "a line to run with a value in it: write it by code_lines")


def logs_are_shown_text(source: Source) -> Iterator[str]:
    """What a record of a log says as ``%s`` goes through ``shown_text``."""
    if not source.is_package_code:
        return
    for node in source.nodes:
        if not isinstance(node, ast.Call) or not _is_log(node) or not node.args:
            continue
        form = node.args[0]
        if not isinstance(form, ast.Constant):
            yield source.at(node, "a log record needs a constant with placeholders")
            continue
        kinds = _PLACEHOLDER.findall(str(form.value).replace("%%", ""))
        for kind, value in zip(kinds, node.args[1:], strict=False):
            if kind == "s" and not _is_shown(value):
                yield source.at(node, "text in a log: visible(...), or %r")
        if any(one.arg == "exc_info" for one in node.keywords):
            yield source.at(node, "a trace in a log: visible_lines(...)")


def warnings_are_shown_text(source: Source) -> Iterator[str]:
    """What a warning says is ours, or quoted."""
    if not source.is_package_code:
        return
    for node in source.nodes:
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != "warnings.warn":
            continue
        for one in ast.walk(node.args[0]):
            if isinstance(one, ast.FormattedValue) and not _is_quoted(one):
                yield source.at(node, "text in a warning: {...!r}")


def _is_log(node: ast.Call) -> bool:
    return (
        isinstance(node.func, ast.Attribute)
        and node.func.attr in _LEVELS
        and ast.unparse(node.func.value) in {"_log", "logging", "log", "logger"}
    )


def _is_shown(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in _SHOWN
    return isinstance(value, ast.Attribute) and value.attr == "__name__"


def _is_quoted(value: ast.FormattedValue) -> bool:
    is_ours = isinstance(value.value, ast.Name) and value.value.id.isupper()
    return is_ours or value.conversion == ord("r")


TEXT_RULES = (lines_in_one_place, logs_are_shown_text, warnings_are_shown_text)
