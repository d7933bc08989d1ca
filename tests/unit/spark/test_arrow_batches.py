from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lance_nb.spark.arrow_batches import ROWS, counted_rows

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
types = pytest.importorskip("pyspark.sql.types")


class Settings(dict[str, str]):
    """The runtime settings of a session."""

    def set(self, key: str, value: str) -> None:
        self[key] = value


def frame(schema: str, said: Settings, dimension: int = 0) -> Any:
    fields = []
    for one in schema.split(", "):
        name, kind = one.split()
        metadata = {"lance_nb.dimension": dimension} if dimension and name == "vector" else None
        fields.append(types.StructField(name, KINDS[kind], metadata=metadata))
    return SimpleNamespace(schema=types.StructType(fields), sparkSession=SimpleNamespace(conf=said))


KINDS = {
    "long": types.LongType(),
    "text": types.StringType(),
    "binary": types.BinaryType(),
    "floats": types.ArrayType(types.FloatType()),
    "struct": types.StructType([types.StructField("x", types.DoubleType())]),
    "map": types.MapType(types.StringType(), types.StringType()),
}


def settings(**more: str) -> Settings:
    return Settings({BYTES: "67108864b", RECORDS: "65536", **more})


@pytest.mark.parametrize(
    ("schema", "dimension", "counted"),
    [
        ("id long, s text, p struct", 0, True),
        ("id long, vector floats", 64, True),
        ("id long, vector floats", 0, False),
        ("vector floats", 16_384, False),  # 64 KB a row
        ("id long, b binary", 0, False),
        ("id long, m map", 0, False),
        (", ".join(f"s{n} text" for n in range(33)), 0, False),
    ],
)
def test_rows_are_counted_where_their_width_is_known(
    schema: str, dimension: int, counted: bool
) -> None:
    said = settings()
    with counted_rows(frame(schema, said, dimension)):
        expected = {BYTES: str(2**31 - 1), RECORDS: str(ROWS)} if counted else settings()
        assert said == expected
    assert said == settings()


def test_the_session_says_again_what_it_said_when_the_last_job_ends() -> None:
    said = settings()
    one = frame("id long", said)
    with pytest.raises(KeyError), counted_rows(one), counted_rows(one):
        raise KeyError
    assert said == settings()
    with counted_rows(one):
        with counted_rows(one):
            pass
        assert said[BYTES] == str(2**31 - 1)
    assert said == settings()


@pytest.mark.parametrize("own", [{BYTES: "1048576b"}, {BYTES: "2147483647"}])
def test_a_limit_that_the_user_chose_stays(own: dict[str, str]) -> None:
    said = settings(**own)
    with counted_rows(frame("id long", said)):
        assert said == settings(**own)


def test_fewer_rows_that_the_user_chose_stay() -> None:
    said = settings(**{RECORDS: "100"})
    with counted_rows(frame("id long", said)):
        assert said[RECORDS] == "100"
