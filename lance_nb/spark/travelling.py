"""A value that travels to other processes, functions of a notebook included.

pickle sends a function by its name, and the names of a notebook mean nothing elsewhere; cloudpickle
(which PySpark brings) sends what the function is. Plain values are sent by pickle.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

from lance_nb.errors import NotSupportedError


@dataclass(frozen=True, slots=True)
class Travelling:
    """A pickled value; ``value`` is what it was. Only for what this process pickled itself."""

    payload: bytes

    @classmethod
    def of(cls, value: Any) -> Travelling:
        """Pickle a value. Raises NotSupportedError for a function, without PySpark."""
        if not callable(value):
            return cls(pickle.dumps(value))
        try:
            from pyspark import cloudpickle
        except ImportError as error:
            raise NotSupportedError(
                "a function is sent to other processes by PySpark's cloudpickle, which is not "
                "installed: pip install 'lance-nb[spark]', or use engine='local'"
            ) from error
        return cls(bytes(cloudpickle.dumps(value)))  # type: ignore[no-untyped-call]

    @property
    def value(self) -> Any:
        """The value."""
        return pickle.loads(self.payload)  # noqa: S301 - made by ``of`` in the process that planned
