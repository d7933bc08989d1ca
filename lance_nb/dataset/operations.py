"""LanceOperation: the operations of transactions under the names that pylance gives them.

Each is a frozen value of lance_nb.transactions.operations; commit one with
``LanceDataset.commit``.
"""

from __future__ import annotations

from lance_nb.transactions.operation import BaseOperation as _BaseOperation
from lance_nb.transactions.operations.append import Append as _Append
from lance_nb.transactions.operations.clone import Clone as _Clone
from lance_nb.transactions.operations.create_index import CreateIndex as _CreateIndex
from lance_nb.transactions.operations.data_replacement import DataReplacement as _DataReplacement
from lance_nb.transactions.operations.data_replacement import (
    DataReplacementGroup as _DataReplacementGroup,
)
from lance_nb.transactions.operations.delete import Delete as _Delete
from lance_nb.transactions.operations.merge import Merge as _Merge
from lance_nb.transactions.operations.overwrite import Overwrite as _Overwrite
from lance_nb.transactions.operations.project import Project as _Project
from lance_nb.transactions.operations.reserve_fragments import ReserveFragments as _ReserveFragments
from lance_nb.transactions.operations.restore import Restore as _Restore
from lance_nb.transactions.operations.rewrite import Rewrite as _Rewrite
from lance_nb.transactions.operations.rewrite import RewriteGroup as _RewriteGroup
from lance_nb.transactions.operations.rewrite import RewrittenIndex as _RewrittenIndex
from lance_nb.transactions.operations.update import Update as _Update
from lance_nb.transactions.operations.update_bases import UpdateBases as _UpdateBases
from lance_nb.transactions.operations.update_config import UpdateConfig as _UpdateConfig
from lance_nb.transactions.operations.update_config import UpdateMap as _UpdateMap


class LanceOperation:
    """A namespace of the changes that a transaction can make, with pylance's names and arguments.

    Lists may be any iterables, schemas a LanceSchema or a pyarrow.Schema. Values do not change;
    ``dataclasses.replace`` makes others.

    >>> from lance_nb import LanceOperation
    >>> LanceOperation.UpdateMap({"a": "1", "b": None})  # sets one key and deletes another
    LanceOperation.UpdateMap(updates={'a': '1', 'b': None}, replace=False)
    """

    Append = _Append
    BaseOperation = _BaseOperation
    Clone = _Clone
    CreateIndex = _CreateIndex
    DataReplacement = _DataReplacement
    DataReplacementGroup = _DataReplacementGroup
    Delete = _Delete
    Merge = _Merge
    Overwrite = _Overwrite
    Project = _Project
    ReserveFragments = _ReserveFragments
    Restore = _Restore
    Rewrite = _Rewrite
    RewriteGroup = _RewriteGroup
    RewrittenIndex = _RewrittenIndex
    Update = _Update
    UpdateBases = _UpdateBases
    UpdateConfig = _UpdateConfig
    UpdateMap = _UpdateMap
