"""What users call: each function plans, runs the plan somewhere, and commits one version.

``engine`` is "auto", "local", "pool" or "spark"; ``explain`` says which it would be and why. Data
that is a Spark DataFrame stays on Spark. ``progress`` gets a ``TaskProgress``, ``stop`` is asked
between tasks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lance_nb.dataset import LanceDataset
from lance_nb.dataset import dataset as open_dataset
from lance_nb.dataset.creating import write_dataset
from lance_nb.dataset.destination import destination
from lance_nb.dataset.verbs.committing import commit_staged
from lance_nb.dataset.verbs.writing import WriteRequest, check_mode
from lance_nb.errors import DatasetAlreadyExistsError, InvalidInputError
from lance_nb.spark.frames import Target, is_frame, target_of, write_partitions
from lance_nb.spark.plan import Label
from lance_nb.spark.run import RunOptions, run
from lance_nb.spark.tasks.columns import Values, plan_columns
from lance_nb.spark.tasks.compaction import plan_compaction
from lance_nb.spark.tasks.deletion import plan_delete
from lance_nb.spark.tasks.files import plan_append
from lance_nb.spark.tasks.update import plan_update
from lance_nb.spark.types import check_names, new_schema
from lance_nb.table.storage_version import storage_version
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.input_schema import new_schema as lance_schema
from lance_nb.transactions.operation import DEFAULT_FILE_VERSION, BuildOptions
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.staged import StagedWrite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Destination = str | os.PathLike[str] | LanceDataset


def append(
    target: Destination,
    source: str | Sequence[str] | LanceDataset | DataFrame,
    *,
    message: str | None = None,
    **options: Any,
) -> LanceDataset:
    """Append files (paths, patterns), another dataset, or a DataFrame; return the new version.

    Options: ``engine``, ``spark``, ``progress``, ``stop``. Raises SchemaMismatchError,
    InvalidInputError, RunCancelledError, CommitStateUnknownError.
    """
    if not isinstance(source, str | Sequence | LanceDataset):
        return write(source, target, mode="append", message=message)
    return run(_opened(target), lambda base: plan_append(base, source), _options(message, options))


def delete(
    target: Destination, predicate: str, *, message: str | None = None, **options: Any
) -> LanceDataset:
    """Delete the rows that pass a filter; options as for ``append``. Raises PredicateError."""
    return run(
        _opened(target), lambda base: plan_delete(base, predicate), _options(message, options)
    )


def update(
    target: Destination,
    updates: Mapping[str, str],
    where: str | None = None,
    *,
    message: str | None = None,
    **options: Any,
) -> LanceDataset:
    """Give columns new values where a filter passes; options as for ``append``."""
    return run(
        _opened(target), lambda base: plan_update(base, updates, where), _options(message, options)
    )


def backfill(
    target: Destination,
    values: Values,
    read_columns: Sequence[str] | None = None,
    *,
    message: str | None = None,
    **options: Any,
) -> LanceDataset:
    """Add columns from expressions or a function of batches; options as for ``append``."""
    return run(
        _opened(target),
        lambda base: plan_columns(base, values, read_columns),
        _options(message, options),
    )


def compact(
    target: Destination, *, message: str | None = None, compaction: Mapping[str, Any] | None = None,
    **options: Any,
) -> LanceDataset:  # fmt: skip
    """Join small fragments and drop deleted rows; ``compaction`` as for ``compact_files``."""
    wanted = dict(compaction or {})
    return run(
        _opened(target), lambda base: plan_compaction(base, **wanted), _options(message, options)
    )


def write(
    frame: Any,
    target: Destination,
    mode: str = "create",
    *,
    message: str | None = None,
    enable_stable_row_ids: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> LanceDataset:
    """Write a Spark DataFrame as one version: "create", "append" or "overwrite".

    Anything that is not a DataFrame of Spark's is written by ``lance_nb.write_dataset``. Raises
    DatasetAlreadyExistsError, SchemaMismatchError, CommitConflictError, CommitStateUnknownError.
    """
    check_mode(mode)
    if not is_frame(frame):
        return write_dataset(
            frame, target, mode=mode, commit_message=message,
            enable_stable_row_ids=enable_stable_row_ids, storage_options=storage_options,
        )  # fmt: skip
    session, current = destination(target, storage_options)
    if mode == "create" and current is not None:
        raise DatasetAlreadyExistsError(
            f"there is a dataset at {session.root.uri!r} already; mode='append' adds to it, "
            "mode='overwrite' puts the data in its place as a new version"
        )
    if mode == "append" and current is not None:
        existing = LanceDataset(session, current)
        check_names(new_schema(frame.schema), existing.schema)
        version = storage_version(current.manifest)
        rows = target_of(existing, WriteRequest().write_options(version))
        staged = _staged(current.version, Append(tuple(write_partitions(frame, rows))))
    else:
        write_options = WriteRequest().write_options(DEFAULT_FILE_VERSION)
        schema = lance_schema(new_schema(frame.schema), write_options.file_version)
        stored = tuple(sorted((storage_options or {}).items()))
        branch = None if current is None else current.branch
        rows = Target(session.uri, branch, stored, schema, write_options)
        made = tuple(write_partitions(frame, rows))
        staged = _staged(0 if current is None else current.version, Overwrite(schema, made))
    build = BuildOptions(None, enable_stable_row_ids)
    options = CommitOptions(message=message, build=build)
    branch = None if current is None else current.branch
    return LanceDataset(session, commit_staged(session, branch, staged, options))


def _staged(read_version: int, operation: Append | Overwrite) -> StagedWrite:
    return StagedWrite(read_version, operation, new_fragments=tuple(operation.fragments))


def _opened(target: Destination) -> LanceDataset:
    return target if isinstance(target, LanceDataset) else open_dataset(target)


def _options(message: str | None, options: Mapping[str, Any]) -> RunOptions:
    known = {"engine", "spark", "progress", "stop"}
    for name in options:
        if name not in known:
            raise InvalidInputError(f"no option {name!r}; options: {', '.join(sorted(known))}")
    return RunOptions(label=Label(message), **options)
