"""The operations by the name of their arm: the only module that knows them all."""

from __future__ import annotations

from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.append import Append

OPERATIONS: dict[str, type[Operation]] = {operation.arm: operation for operation in (Append,)}
