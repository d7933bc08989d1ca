"""Define the edits that can be staged: their forms, the check of their arguments, and the choices.

Layout: ``VERBS`` by name; a verb has fields, a field a kind that says how it is typed and checked.

============== ==============================================================================
kind           value
============== ==============================================================================
``filter``     SQL condition
``sql``        SQL expression
``set``        mapping of column to SQL expression
``column``     name of a column;  ``columns``: a list of them
``name``       a name that does not exist yet
``rows``       variable, file or dataset (see row_sources)
``type``       Arrow type: ``int64``, ``timestamp[us]``, ``float16[128]`` for vectors
``version``    a version, as ``%lance at`` takes it
``tag branch`` name of one
``count``      whole number;  ``number``: any
``choice``     one of ``choices``
============== ==============================================================================

Layout of ``form_choices``: ``{verbs: [{name, label, group, fields}], columns: [{name, sql, type}],
rows: [{name, kind, text}], tags, branches, versions: [text], spark: text}``. ``spark`` says in one
line whether Spark can be used; no session is started for it.

Limits: texts of ``MAX_CHARS`` characters, conditions of ``MAX_FILTER_CHARS``, ``MAX_COLUMNS``
columns in an edit; ``MAX_COLUMN_CHOICES`` columns and ``MAX_NAMES`` tags, branches and versions to
choose from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.explorer.rows.filter_conditions import column_sql
from lance_nb.explorer.schema_tree import type_label
from lance_nb.explorer.stage.row_sources import Namespace, variable_choices
from lance_nb.value_classes import dataclass

MAX_CHARS = 4000
MAX_FILTER_CHARS = 120_000
MAX_COLUMNS = 200
VECTOR = re.compile(r"(\w+)\[(\d{1,6})\]")
MAX_COLUMN_CHOICES = 2000
MAX_NAMES = 100


@dataclass(frozen=True, slots=True)
class Field:
    """One argument. ``hint`` is shown while it is empty.

    ``only_for``: it is there only where a choice that stands before it, by name, is one of these.
    """

    name: str
    kind: str
    label: str
    hint: str = ""
    is_required: bool = True
    choices: tuple[str, ...] = ()
    only_for: tuple[str, tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Verb(JsonFields):
    """One kind of edit that can be staged; ``group`` says what it changes.

    ``is_heavy``: it reads or writes data, so that it can run elsewhere.
    """

    name: str
    label: str
    group: str
    fields: tuple[Field, ...]
    is_heavy: bool = False


_WHERE = Field("where", "filter", "where", "price < 0 AND label IS NULL")
_ROWS = Field("source", "rows", "rows", "variable, file, or URL of a dataset")
_TARGET = Field(
    "target_rows_per_fragment", "count", "rows per fragment", "1,048,576", is_required=False
)
_SHARE = Field(
    "materialize_deletions_threshold", "number",
    "rewrite fragments with at least this share of deleted rows",
    "0.1", is_required=False,
)  # fmt: skip
_TAG_ACTION = Field("action", "choice", "action", choices=("create", "move", "delete"))
_BRANCH_ACTION = Field("action", "choice", "action", choices=("create", "delete"))
_REF = Field("ref", "version", "at", "the newest version", is_required=False)

VECTOR_KINDS = ("IVF_PQ", "IVF_FLAT")
INDEX_KINDS = ("INVERTED", *VECTOR_KINDS, "BTREE", "BITMAP", "NGRAM", "LABEL_LIST")
VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("append", "Append rows", "rows", (_ROWS,), is_heavy=True),
        Verb("delete", "Delete rows", "rows", (_WHERE,), is_heavy=True),
        Verb("update", "Update rows", "rows", (
            Field("set", "set", "set", "price * 2"),
            Field("where", "filter", "where", "every row", is_required=False),
        ), is_heavy=True),
        Verb("upsert", "Upsert rows", "rows", (
            _ROWS, Field("on", "columns", "match on", "id"),
        ), is_heavy=True),
        Verb("overwrite", "Overwrite everything", "rows", (_ROWS,)),
        Verb("add_column", "Add a column", "columns", (
            Field("name", "name", "name", "price_eur"),
            Field("sql", "sql", "computed as", "price * 0.92 (empty: nulls)", is_required=False),
            Field("type", "type", "type of a column of nulls", "float64", is_required=False),
        ), is_heavy=True),
        Verb("rename_column", "Rename a column", "columns", (
            Field("column", "column", "column"), Field("name", "name", "new name"),
        )),
        Verb("cast_column", "Cast a column", "columns", (
            Field("column", "column", "column"), Field("type", "type", "to", "int32"),
        ), is_heavy=True),
        Verb("drop_columns", "Drop columns", "columns", (
            Field("columns", "columns", "columns"),
        )),
        Verb("restore", "Restore a version", "versions", (
            Field("version", "version", "version", "main:3, v1, HEAD~2"),
        )),
        Verb("compact", "Compact fragments", "upkeep", (_TARGET, _SHARE), is_heavy=True),
        Verb("index", "Build an index", "upkeep", (
            Field("column", "column", "column"),
            Field("kind", "choice", "kind", choices=INDEX_KINDS),
            Field("metric", "choice", "metric", is_required=False,
                  choices=("l2", "cosine", "dot"), only_for=("kind", VECTOR_KINDS)),
        )),
        Verb("cleanup", "Clean up old versions", "upkeep", (
            Field("older_than", "number", "older than, days", "14", is_required=False),
            Field("keep", "count", "keep the newest", "all newer versions", is_required=False),
        )),
        Verb("tag", "Tag", "names", (
            _TAG_ACTION, Field("name", "tag", "tag", "v1"), _REF,
        )),
        Verb("branch", "Branch", "names", (
            _BRANCH_ACTION, Field("name", "branch", "branch", "try-out"), _REF,
        )),
    )
}  # fmt: skip
# Other names by which views ask for a verb, with the arguments that they mean.
ALIASES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "materialize": ("compact", {"materialize_deletions_threshold": 0.0}),
    "insert": ("append", {}),
    "merge_insert": ("upsert", {}),
}


# An edit that was staged in code has no form; its card holds the stage itself.
IN_CODE = "in_code"
# Coordinates that the map has staged as a column; the card holds the stage itself, too.
COORDINATES = "coordinates"
# Edits of cells and rows in the grid: the card holds a draft (see cell_draft.py).
EDITS = "edits"


@dataclass(frozen=True, slots=True)
class EditForm:
    """A filled-in form: a verb with checked arguments, and the engine it is to run on."""

    verb: str
    args: dict[str, Any]
    engine: str = "auto"

    @classmethod
    def of(cls, verb: object, args: object, engine: object = "auto") -> EditForm:
        """Check the input of a browser or of a ``%lance`` line. Raises InvalidInputError."""
        name, meant = ALIASES.get(str(verb), (str(verb), {}))
        if name not in VERBS:
            raise InvalidInputError(
                f"there is no change {str(verb)[:40]!r}; changes: {', '.join(VERBS)}"
            )
        if not isinstance(args, Mapping):
            raise InvalidInputError("the arguments of a card must be an object")
        form_arguments = {
            **meant,
            **{key: value for key, value in args.items() if value not in (None, "", [], {})},
        }
        fields_by_name = {field.name: field for field in VERBS[name].fields}
        unknown = [key for key in form_arguments if key not in fields_by_name]
        if unknown:
            raise InvalidInputError(f"{name} has no argument {str(unknown[0])[:40]!r}")
        missing = [
            field.label
            for field in fields_by_name.values()
            if field.is_required and field.name not in form_arguments
        ]
        if missing:
            raise InvalidInputError(f"{missing[0]} is missing")
        checked = {
            key: _checked(fields_by_name[key], value) for key, value in form_arguments.items()
        }
        for field in fields_by_name.values():
            if field.only_for is None or field.name not in checked:
                continue
            other, allowed = field.only_for
            if checked.get(other) not in allowed:
                raise InvalidInputError(f"{field.label} is for {other} {' or '.join(allowed)} only")
        if engine not in ("auto", "local", "spark"):
            raise InvalidInputError("engine must be auto, local or spark")
        return cls(name, checked, str(engine))


def _checked(field: Field, value: Any) -> Any:
    """Take one argument. Raises InvalidInputError."""
    if field.kind == "set":
        if not isinstance(value, Mapping) or len(value) > MAX_COLUMNS:
            raise InvalidInputError(f"{field.label} must be columns with their new values")
        return {
            _text("column", key): _text(str(key), text_value) for key, text_value in value.items()
        }
    if field.kind == "columns":
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or len(values) > MAX_COLUMNS:
            raise InvalidInputError(f"{field.label} must be a list of up to {MAX_COLUMNS} columns")
        return [_text(field.label, value) for value in values]
    if field.kind in ("count", "number"):
        return _number(field, value)
    if field.kind == "choice":
        if value not in field.choices:
            raise InvalidInputError(f"{field.label} must be one of {', '.join(field.choices)}")
        return value
    written = str(value) if field.kind == "version" and isinstance(value, int) else value
    return _text(field.label, written, MAX_FILTER_CHARS if field.kind == "filter" else MAX_CHARS)


def _number(field: Field, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        try:
            value = float(str(value).replace(",", "")[:40])
        except ValueError:
            raise InvalidInputError(f"{field.label} must be a number") from None
    if not 0 <= value < 2**53 or (field.kind == "count" and value != int(value)):
        raise InvalidInputError(f"{field.label} must be a whole number that is not negative")
    return int(value) if field.kind == "count" else float(value)


def _text(label: str, value: object, most: int = MAX_CHARS) -> str:
    if not isinstance(value, str) or len(value) > most or not value.strip():
        raise InvalidInputError(f"{label} must be a text of up to {most:,} characters")
    return value.strip()


def type_of(name: str) -> pa.DataType:
    """Read the name of an Arrow type; ``float16[128]`` is a vector. Raises InvalidInputError."""
    vector = VECTOR.fullmatch(name.strip())
    try:
        if vector is not None:
            return pa.list_(pa.type_for_alias(vector[1]), int(vector[2]))
        return pa.type_for_alias(name.strip())
    except (ValueError, pa.ArrowException):
        raise InvalidInputError(
            f"{name!r} is not a type; examples are int64, float32, string, bool, date32, "
            "timestamp[us], float16[128]"
        ) from None


def form_choices(dataset: LanceDataset, namespace: Namespace) -> dict[str, Any]:
    """Return the menu as JSON-able values."""
    tags = sorted(dataset.tags.names())[:MAX_NAMES]
    branches = sorted(dataset.branches.names())[:MAX_NAMES]
    numbers = list(dataset.version_numbers())[-MAX_NAMES:]
    branch = text.name(dataset.branch or "main")
    return {
        "verbs": [verb.to_json() for verb in VERBS.values()],
        "columns": [
            {
                "name": text.name(field.name),
                "value": field.name,
                "sql": column_sql(field.name),
                "type": type_label(field.type),
            }
            for field in list(dataset.schema)[:MAX_COLUMN_CHOICES]
        ],
        "rows": variable_choices(namespace, dataset.schema),
        "tags": tags,
        "branches": branches,
        "versions": [f"{branch}:{number}" for number in reversed(numbers)] + tags,
        "spark": _spark(namespace),
    }


def _spark(namespace: Namespace) -> str:
    if spark.find_session(namespace) is not None:
        return "a Spark session is running"
    return spark.why_not() or "a local Spark session would be started"
