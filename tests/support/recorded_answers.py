"""What pylance answered to many expressions, kept in ``tests/golden/answers``.

Each group is a table (``<group>.arrow``) and its questions (``<group>.jsonl.gz``), one JSON object
a line. ``tests/interop/recording.py`` asks pylance and writes them; unit tests replay them without
it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_nb.errors import PredicateError
from lance_nb.table.predicate import compile_column, compile_filter
from lance_nb.table.predicate.filter import needed_paths

FOLDER = Path(__file__).parents[1] / "golden" / "answers"
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Question:
    """An expression and its answer.

    ``kind`` is ``value`` (the answer is a type and a value per row, as ``repr`` writes them),
    ``untyped`` (the values alone: pylance returns texts as views, for example) or ``rows`` (the
    answer is a 1 per row that a filter chooses and a 0 per other row).
    """

    text: str
    kind: str
    answer: str


def groups() -> list[str]:
    """Name the groups."""
    return sorted(path.stem for path in FOLDER.glob("*.arrow"))


def table_of(group: str) -> pa.Table:
    """Return the rows that the questions of a group are asked of."""
    with pa.OSFile(str(FOLDER / f"{group}.arrow")) as file:
        stored = pa.ipc.open_file(file).read_all()
    # Values of the file may lie at any 8 bytes; pylance wants decimals at 16.
    return stored.take(pa.array(range(stored.num_rows)))


def questions_of(group: str) -> Iterator[Question]:
    """Yield the questions of a group."""
    with gzip.open(FOLDER / f"{group}.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            yield Question(**json.loads(line))


def write_group(group: str, table: pa.Table, questions: list[Question]) -> None:
    """Write a group; the same questions give the same bytes."""
    path = str(FOLDER / f"{group}.arrow")
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    lines = "".join(f"{json.dumps(asdict(one), ensure_ascii=False)}\n" for one in questions)
    packed = gzip.compress(lines.encode(), 9, mtime=0)
    (FOLDER / f"{group}.jsonl.gz").write_bytes(packed)


def shown_values(values: pa.ChunkedArray | pa.Array) -> str:
    """Write values with their type; -0.0 and NaN are told apart, times are whole numbers."""
    type_ = str(values.type)
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return f"{type_}\t{values.to_pylist()!r}"


def without_type(answer: str) -> str:
    """Return the values of an answer, which stand behind their type and a tab."""
    return answer.partition("\t")[2] or answer


def shown_rows(mask: list[bool]) -> str:
    """Write which rows are chosen."""
    return "".join("01"[one] for one in mask)


def answer_here(table: pa.Table, question: Question) -> str:
    """Answer a question by the compiler of expressions, without a dataset."""
    try:
        if question.kind == "rows":
            condition = compile_filter(question.text, table.schema)
            columns = {path: _column(table, path) for path in condition.paths}
            return shown_rows(condition.mask(columns, table.num_rows).tolist())
        computed = compile_column("v", question.text, table.schema)
        columns = {path: _column(table, path) for path in needed_paths(computed)}
        answer = shown_values(computed.values(columns, table.num_rows))
        return without_type(answer) if question.kind == "untyped" else answer
    except PredicateError:
        return REFUSED


def _column(table: pa.Table, path: tuple[str, ...]) -> Any:
    column = table[path[0]]
    return column if len(path) == 1 else pc.struct_field(column, path[1:])
