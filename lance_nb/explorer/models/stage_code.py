"""A card as the lines of code that do the same, in Python and as ``%lance``.

Limits: a verb that ``%lance`` lacks has the line that shows what is staged.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from lance_nb.code_lines import PYTHON_ONLY, Python, magic, offered
from lance_nb.explorer.staging.rows import STREAMED
from lance_nb.explorer.staging.wishes import IN_CODE, VECTOR, Wish

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
    return offered(_python(wish.verb, wish.args, message), _magic(wish.verb, wish.args))


# --- Python ---------------------------------------------------------------------------------------


def _python(verb: str, args: Mapping[str, Any], message: str) -> Python:
    said = (message,) if message else ()
    if verb == IN_CODE:
        return Python("stage.commit").call(*said)
    if verb == "cleanup":
        return _cleanup(args)
    if verb == "tag":
        change = {"create": "create", "move": "update", "delete": "delete"}[args["action"]]
        ref = () if change == "delete" or "ref" not in args else (_ref(args["ref"]),)
        return Python(f"ds.tags.{change}").call(args["name"], *ref)
    if verb == "branch":
        if args["action"] == "delete":
            return Python("ds.branches.delete").call(args["name"])
        ref = (_ref(args["ref"]),) if "ref" in args else ()
        return Python("ds.create_branch").call(args["name"], *ref)
    if verb == "append" and args["source"].endswith((*STREAMED, ".lance")):
        also = {"message": message} if message else {}
        return Python("lance_nb.spark.append").call(Python("ds"), args["source"], **also)
    return _staged(Python("ds.stage()"), verb, args).attribute("commit").call(*said)


def _staged(stage: Python, verb: str, args: Mapping[str, Any]) -> Python:
    """Put one change on a stage."""
    if verb in ("append", "overwrite"):
        return stage.attribute(verb).call(_rows(args["source"]))
    if verb == "upsert":
        on = args["on"][0] if len(args["on"]) == 1 else args["on"]
        return stage.attribute(verb).call(_rows(args["source"]), on=on)
    if verb == "delete":
        return stage.attribute(verb).call(args["where"])
    if verb == "update":
        where = {"where": args["where"]} if "where" in args else {}
        return stage.attribute(verb).call(args["set"], **where)
    if verb == "restore":
        return stage.attribute(verb).call(_number(args["version"]))
    if verb == "compact":
        return stage.attribute(verb).call(**args)
    if verb == "drop_columns":
        return stage.attribute(verb).call(args["columns"])
    if verb == "add_column":
        if "sql" in args:
            return stage.attribute("add_columns").call({args["name"]: args["sql"]})
        field = Python("pa.field").call(args["name"], _type(args.get("type", "string")))
        return stage.attribute("add_columns").call(field)
    change = (
        {"name": args["name"]} if verb == "rename_column" else {"data_type": _type(args["type"])}
    )
    return stage.attribute("alter_columns").call({"path": args["column"], **change})


def _type(name: str) -> Python:
    """Write an Arrow type as Python: ``pa.int32()``."""
    vector = VECTOR.fullmatch(name)
    if vector is not None:
        return Python("pa.list_").call(_type(vector[1]), int(vector[2]))
    if name.isidentifier() and hasattr(pa, name):
        return Python("pa").attribute(name).call()
    return Python("pa.type_for_alias").call(name)


def _number(version: str) -> int | Python:
    last = version.rpartition(":")[2]
    if _is_number(last):
        return int(last)
    return Python("ds.checkout_version").call(version).attribute("version")


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()


def _rows(source: str) -> Python:
    """Return what the rows are: a variable, or what reads a file."""
    if source.isidentifier() and source.isascii() and not keyword.iskeyword(source):
        return Python(source)
    return Python(_READERS.get(PurePath(source).suffix, "lance_nb.dataset")).call(source)


def _cleanup(args: Mapping[str, Any]) -> Python:
    rules: dict[str, object] = {}
    if "older_than" in args:
        rules["older_than"] = Python("timedelta").call(days=_days(args["older_than"]))
    if "keep" in args:
        rules["retain_versions"] = args["keep"]
    return Python("ds.cleanup_old_versions").call(**rules)


def _days(days: float) -> float | int:
    return int(days) if days == int(days) else days


def _ref(ref: str) -> object:
    if _is_number(ref):
        return int(ref)
    branch, colon, number = ref.partition(":")
    if colon and _is_number(number):
        return (None if branch == "main" else branch, int(number))
    return ref


# --- %lance ---------------------------------------------------------------------------------------


def _magic(verb: str, args: Mapping[str, Any]) -> str:
    if verb in ("append", "overwrite"):
        return magic("stage", verb, args["source"])
    if verb == "delete":
        return magic("stage", verb, args["where"])
    if verb == "update":
        if any("=" in column or column != column.strip() for column in args["set"]):
            return PYTHON_ONLY
        pairs = (f"{column}={value}" for column, value in args["set"].items())
        return magic("stage", verb, *pairs, options={"--where": args.get("where")})
    if verb == "cleanup":
        older = args.get("older_than")
        rules = {
            "--older-than": None if older is None else _days(older),
            "--keep": args.get("keep"),
        }
        return magic("clean", options={**rules, "--really": True})
    if verb == "compact":
        return magic("compact", options={"--target-rows": args.get("target_rows_per_fragment")})
    if verb == "restore":
        return magic(verb, args["version"])
    if verb in ("tag", "branch"):
        ref = (args["ref"],) if "ref" in args else ()
        return magic(verb, args["action"], args["name"], *ref)
    return magic("status")
