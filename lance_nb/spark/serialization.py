"""Pickle the messages between the driver and its Python workers: tasks, functions and results.

Only this module and spark_engine.py unpickle, and only bytes from this process or its own workers,
which PySpark pickles too. Neither reads files or stores (tests/house/safety_rules.py). Values that
are stored use JSON instead (journal.py).
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_nb.errors import NotSupportedError

RESULT_DDL = "result binary"
_SCHEMA = pa.schema([("result", pa.binary())])


@dataclass(frozen=True, slots=True)
class PickledValue:
    """A pickled value. Only for values that this process pickled itself.

    Functions are pickled by cloudpickle, which PySpark contains: pickle stores a function by its
    name, and other processes cannot import the names of a notebook.
    """

    payload: bytes

    @classmethod
    def of(cls, value: Any) -> PickledValue:
        """Pickle a value. Raises NotSupportedError for a function, without PySpark."""
        if not callable(value):
            return cls(pickle.dumps(value))
        try:
            from pyspark import cloudpickle
        except ImportError as error:
            raise NotSupportedError(
                "sending a function to other processes needs PySpark, which is not installed: "
                "pip install 'lance-nb[spark]', or use engine='local'"
            ) from error
        return cls(bytes(cloudpickle.dumps(value)))  # type: ignore[no-untyped-call]

    @property
    def value(self) -> Any:
        """The unpickled value."""
        return pickle.loads(self.payload)  # noqa: S301 - made by ``of`` on the driver


def result_batch(value: Any) -> pa.RecordBatch:
    """Pickle the result of a worker into a batch of one row, for ``mapInArrow``."""
    return pa.RecordBatch.from_pydict({"result": [pickle.dumps(value)]}, _SCHEMA)


def result_table(value: Any) -> pa.Table:
    """Pickle the result of a worker into a table of one row, for ``applyInArrow``."""
    return pa.Table.from_batches([result_batch(value)])


def result_of_row(row: Any) -> Any:
    """Unpickle the result in a row that a worker returned."""
    return pickle.loads(bytes(row["result"]))  # noqa: S301 - from our own workers
