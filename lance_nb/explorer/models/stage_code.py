"""A card as the lines of code that do the same, in Python and as ``%lance``.

Limits: a verb that ``%lance`` lacks has the line that shows what is staged.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from lance_nb.explorer.models import text
from lance_nb.explorer.staging.rows import STREAMED
from lance_nb.explorer.staging.wishes import IN_CODE, VECTOR, Wish

MAX_CHARS = 2000
# What reads a file of rows, by its ending: as table_files does.
_READERS = {
    ".parquet": "pyarrow.parquet.read_table",
    ".csv": "pyarrow.csv.read_csv",
    ".json": "pyarrow.json.read_json",
    ".jsonl": "pyarrow.json.read_json",
    ".arrow": "pyarrow.feather.read_table",
    ".feather": "pyarrow.feather.read_table",
}


def stage_code(wish: Wish, message: str = "") -> dict[str, str]:
    """Return ``{python, magic}``; ``ds`` is the dataset at the newest version of its branch."""
    said = f"{message!r}" if message else ""
    python = _ACTIONS.get(wish.verb, _staged)(wish.args, wish.verb, said)
    magic = _MAGIC[wish.verb](wish.args) if wish.verb in _MAGIC else "status"
    return {
        "python": text.line(python, MAX_CHARS),
        "magic": text.line(f"%lance {magic}", MAX_CHARS),
    }


def _staged(args: dict[str, Any], verb: str, said: str) -> str:
    if verb == IN_CODE:
        return f"stage.commit({said})"
    if verb == "append" and args["source"].endswith((*STREAMED, ".lance")):
        also = f", message={said}" if said else ""
        return f"lance_nb.spark.append(ds, {args['source']!r}{also})"
    return f"ds.stage().{_call(args, verb)}.commit({said})"


def _call(args: dict[str, Any], verb: str) -> str:
    if verb in ("append", "overwrite"):
        return f"{verb}({_rows(args['source'])})"
    if verb == "upsert":
        on = args["on"][0] if len(args["on"]) == 1 else args["on"]
        return f"upsert({_rows(args['source'])}, on={on!r})"
    if verb == "delete":
        return f"delete({args['where']!r})"
    if verb == "update":
        where = f", where={args['where']!r}" if "where" in args else ""
        return f"update({args['set']!r}{where})"
    if verb == "restore":
        return f"restore({_number(args['version'])})"
    if verb == "compact":
        return f"compact({', '.join(f'{key}={value!r}' for key, value in args.items())})"
    if verb == "drop_columns":
        return f"drop_columns({args['columns']!r})"
    if verb == "add_column":
        if "sql" in args:
            return f"add_columns({{{args['name']!r}: {args['sql']!r}}})"
        return f"add_columns(pa.field({args['name']!r}, {_type(args.get('type', 'string'))}))"
    if verb == "rename_column":
        return f"alter_columns({{'path': {args['column']!r}, 'name': {args['name']!r}}})"
    return f"alter_columns({{'path': {args['column']!r}, 'data_type': {_type(args['type'])}}})"


def _type(name: str) -> str:
    """Write an Arrow type as Python: ``pa.int32()``."""
    vector = VECTOR.fullmatch(name)
    if vector is not None:
        return f"pa.list_({_type(vector[1])}, {vector[2]})"
    return f"pa.{name}()" if hasattr(pa, name) else f"pa.type_for_alias({name!r})"


def _number(version: str) -> str:
    last = version.rpartition(":")[2]
    return last if last.isdigit() else f"ds.checkout_version({version!r}).version"


def _rows(source: str) -> str:
    if source.isidentifier():
        return source
    ending = PurePath(source).suffix
    return f"{_READERS.get(ending, 'lance_nb.dataset')}({source!r})"


def _cleanup(args: dict[str, Any], _verb: str, _said: str) -> str:
    rules = []
    if "older_than" in args:
        rules.append(f"older_than=timedelta(days={args['older_than']:g})")
    if "keep" in args:
        rules.append(f"retain_versions={args['keep']}")
    return f"ds.cleanup_old_versions({', '.join(rules)})"


def _tag(args: dict[str, Any], _verb: str, _said: str) -> str:
    verb = {"create": "create", "move": "update", "delete": "delete"}[args["action"]]
    ref = "" if verb == "delete" or "ref" not in args else f", {_ref(args['ref'])}"
    return f"ds.tags.{verb}({args['name']!r}{ref})"


def _branch(args: dict[str, Any], _verb: str, _said: str) -> str:
    if args["action"] == "delete":
        return f"ds.branches.delete({args['name']!r})"
    ref = f", {_ref(args['ref'])}" if "ref" in args else ""
    return f"ds.create_branch({args['name']!r}{ref})"


def _ref(ref: str) -> str:
    if ref.isdigit():
        return ref
    branch, colon, number = ref.partition(":")
    if colon and number.isdigit():
        return f"({None if branch == 'main' else branch!r}, {number})"
    return repr(ref)


def _words(*said: object) -> str:
    return " ".join(shlex.quote(str(one)) for one in said)


def _magic_update(args: dict[str, Any]) -> str:
    pairs = [f"{column}={value}" for column, value in args["set"].items()]
    where = ("--where", args["where"]) if "where" in args else ()
    return _words("stage", "update", *pairs, *where)


def _magic_cleanup(args: dict[str, Any]) -> str:
    older = ("--older-than", f"{args['older_than']:g}") if "older_than" in args else ()
    keep = ("--keep", args["keep"]) if "keep" in args else ()
    return _words("clean", *older, *keep, "--really")


def _magic_compact(args: dict[str, Any]) -> str:
    target = args.get("target_rows_per_fragment")
    return _words("compact", *(() if target is None else ("--target-rows", target)))


def _magic_name(verb: str, args: dict[str, Any]) -> str:
    return _words(verb, args["action"], args["name"], *([args["ref"]] if "ref" in args else []))


_ACTIONS = {"cleanup": _cleanup, "tag": _tag, "branch": _branch}
_MAGIC: dict[str, Callable[[dict[str, Any]], str]] = {
    "append": lambda args: _words("stage", "append", args["source"]),
    "overwrite": lambda args: _words("stage", "overwrite", args["source"]),
    "delete": lambda args: _words("stage", "delete", args["where"]),
    "update": _magic_update,
    "cleanup": _magic_cleanup,
    "compact": _magic_compact,
    "restore": lambda args: _words("restore", args["version"]),
    "tag": lambda args: _magic_name("tag", args),
    "branch": lambda args: _magic_name("branch", args),
}
