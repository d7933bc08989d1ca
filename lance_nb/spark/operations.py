"""The operations that users call: each plans, runs the plan on an engine, commits one version.

``engine`` is "auto", "local" or "spark"; ``explain`` shows which one a plan gets and why. A Spark
DataFrame is always processed by Spark. ``progress`` is called with a ``RunProgress``; ``stop`` is
called between tasks, and True cancels the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.dataset import LanceDataset
from lance_nb.dataset import dataset as open_dataset
from lance_nb.dataset.functions import write_dataset
from lance_nb.errors import DatasetAlreadyExistsError, InvalidInputError, RunCancelledError
from lance_nb.indices.building import IndexProgress
from lance_nb.session.opening import destination
from lance_nb.spark import journal
from lance_nb.spark.dataframes import clustered, is_dataframe, plan_frame
from lance_nb.spark.plan import PinnedVersion, Plan
from lance_nb.spark.row_writer import Destination, RowWriter, WriteSettings
from lance_nb.spark.run import RunOptions, run, run_edits, run_once, run_parts
from lance_nb.spark.sessions import find_session, start_session
from lance_nb.spark.tasks.columns import Values, plan_columns
from lance_nb.spark.tasks.files import Source, SourceSettings, plan_append, plan_write
from lance_nb.spark.tasks.maintenance import (
    in_parts,
    plan_clone,
    plan_compaction,
    plan_index,
    plan_statistics,
    sum_statistics,
)
from lance_nb.spark.tasks.rows import plan_count, plan_delete, plan_diff, plan_update
from lance_nb.table.data_statistics import DataStatistics
from lance_nb.writing.input_data import reader_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def append(
    target: Destination,
    source: Source | DataFrame,
    *,
    cast: bool = False,
    hive: bool = True,
    source_options: Mapping[str, Any] | None = None,
    on_error: str = "raise",
    bad_records: str = "raise",
    bad_record_column: str = "_corrupt_record",
    message: str | None = None,
    **options: Any,
) -> LanceDataset:
    """Append files, another dataset, or a DataFrame; return the new version.

    Files are Parquet, Arrow, CSV or JSON lines: paths, patterns, folders, or URLs of fsspec with
    their ``source_options``. ``cast`` converts their columns to the types of the dataset where no
    value changes. Folders named ``column=value`` give columns, unless ``hive`` is False. With
    ``on_error="skip"``, files that cannot be decoded or do not fit are left out as a whole; a
    warning counts them, and the transaction lists them in its property "lance_nb.spark.skipped".

    Single records that do not parse, or with a value that does not fit its column, are an error
    with ``bad_records="raise"`` (Spark's FAILFAST), left out with "drop" (DROPMALFORMED), and with
    "column" (PERMISSIVE) kept as rows that have their text in ``bad_record_column``, a text column
    of the dataset, and null in the others. A warning counts them, and property
    "lance_nb.spark.bad_records" of the transaction does so by file.

    Options: ``engine``, ``spark``, ``progress``, ``stop``; ``journal``: where tasks record their
    results for ``resume``, by default beside the dataset if there is much work (True: always,
    False: never, or a folder). Raises SchemaMismatchError, InvalidInputError, RunCancelledError,
    CommitStateUnknownError.
    """
    if _is_files(source):
        run_options = RunOptions.of(message, options)
        source_settings = SourceSettings(
            cast=cast, hive=hive, options=source_options, on_error=on_error,
            bad_records=bad_records, bad_record_column=bad_record_column,
        )  # fmt: skip
        dataset = _opened(target)
        return run(dataset, lambda base: plan_append(base, source, source_settings), run_options)
    return write(source, target, mode="append", message=message, **options)


def _run(
    target: Destination,
    make: Callable[[LanceDataset], Plan],
    message: str | None,
    options: Mapping[str, Any],
) -> LanceDataset:
    return run(_opened(target), make, RunOptions.of(message, options))


def delete(
    target: Destination, predicate: str, *, message: str | None = None, **options: Any
) -> LanceDataset:
    """Delete the rows that pass a filter; options as in ``append``. Raises PredicateError."""
    return _run(target, lambda base: plan_delete(base, predicate), message, options)


def update(
    target: Destination,
    updates: Mapping[str, str],
    where: str | None = None,
    *,
    message: str | None = None,
    **options: Any,
) -> LanceDataset:
    """Update columns of the rows that pass a filter; options as in ``append``."""
    return _run(target, lambda base: plan_update(base, updates, where), message, options)


def backfill(
    target: Destination,
    values: Values,
    read_columns: Sequence[str] | None = None,
    *,
    message: str | None = None,
    **options: Any,
) -> LanceDataset:
    """Add columns from SQL expressions or a function of batches; options as in ``append``.

    It is one commit: in a version between, rows without a value yet and rows whose value is null
    would look the same. An interrupted backfill keeps its finished tasks, see ``resume``.
    """
    if "parts" in options:
        raise InvalidInputError(
            "a backfill is committed as a whole, because a part would show null for rows that have "
            "no value yet. Finished tasks are kept with journal=True, and lance_nb.spark.resume "
            "runs the others"
        )
    return _run(target, lambda base: plan_columns(base, values, read_columns), message, options)


def compact(
    target: Destination, *, message: str | None = None, compaction: Mapping[str, Any] | None = None,
    parts: int = 1, **options: Any,
) -> LanceDataset:  # fmt: skip
    """Compact fragments; ``compaction`` are the arguments of ``compact_files``.

    With ``parts``, it is committed in so many transactions, one after the other: what is committed
    stays when a later part fails or is cancelled, and the same call goes on with the others. Other
    options as in ``append``. Raises InvalidInputError.
    """
    compaction_options = dict(compaction or {})
    if parts != 1:
        whole = plan_compaction(_opened(target), **compaction_options)
        plans = in_parts(whole, parts)
        run_options = RunOptions.of(message, options)
        return run_parts(plans, run_options) if plans else whole.pinned.dataset()
    return _run(target, lambda base: plan_compaction(base, **compaction_options), message, options)


def write(
    source: Any,
    target: Destination,
    mode: str = "create",
    *,
    where: str | None = None,
    cluster_by: Sequence[str] | str | None = None,
    message: str | None = None,
    enable_stable_row_ids: bool = False,
    checksums: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    files: Mapping[str, Any] | None = None,
    dimensions: Mapping[str, int] | None = None,
    cast: bool = False,
    merge_schema: bool = False,
    hive: bool = True,
    source_options: Mapping[str, Any] | None = None,
    on_error: str = "raise",
    bad_records: str = "raise",
    bad_record_column: str = "_corrupt_record",
    **options: Any,
) -> LanceDataset:
    """Write rows as one version.

    ``mode`` is "create" (also "error", "errorifexists"), "append", "overwrite", or "ignore", which
    returns a dataset that is there already as it is. With "overwrite" and ``where``, only the rows
    that pass this filter are replaced, by rows that pass it too. ``cluster_by``: columns of a
    DataFrame by which its rows are sorted into fragments (Lance has no partitions, so Spark's
    ``partitionBy`` is refused).

    ``source`` is a Spark DataFrame, files as in ``append`` (with ``cast``, ``hive``, ``on_error``,
    ``bad_records``, ``bad_record_column`` and ``source_options`` as there), an open dataset, or
    anything that ``lance_nb.write_dataset`` takes, which is then written in this process. A new
    dataset has the columns of the first file; with ``merge_schema`` those of all files, in the
    widest of their types. ``files``: arguments of ``write_dataset`` for data files; ``checksums``
    as there. ``dimensions``: the columns of a DataFrame that are vectors, and their lengths,
    because Spark has no type for them; columns that were read from Lance are known. Other options
    as in ``append``.

    Raises DatasetAlreadyExistsError, SchemaMismatchError, InvalidInputError, CommitConflictError,
    CommitStateUnknownError.
    """
    mode = _MODES.get(mode, mode)
    session, current = destination(target, storage_options)
    if mode == "ignore" and current is not None:
        return LanceDataset.from_opened(session, current)
    settings = WriteSettings(
        mode="create" if mode == "ignore" else mode,
        branch=None,
        storage_options=storage_options,
        stable_row_ids=enable_stable_row_ids,
        files=dict(files or {}),
        checksums=checksums,
        where=where,
    )
    run_options = RunOptions.of(message, options)
    read = SourceSettings(
        cast=cast,
        merge_schema=merge_schema,
        hive=hive,
        options=source_options,
        on_error=on_error,
        bad_records=bad_records,
        bad_record_column=bad_record_column,
    )
    if cluster_by is not None:
        if not is_dataframe(source):
            raise InvalidInputError(
                "cluster_by sorts a DataFrame of Spark: read these rows as one, or sort them before"
            )
        source = clustered(source, cluster_by)
    try:
        return _written(
            source, target, settings, read, run_options=run_options, dimensions=dimensions
        )
    except DatasetAlreadyExistsError:
        if mode != "ignore":
            raise
        # It was created meanwhile.
        return open_dataset(session.opening_uri, storage_options=storage_options)


_MODES = {"error": "create", "errorifexists": "create"}


def _written(
    source: Any,
    target: Destination,
    write_settings: WriteSettings,
    read: SourceSettings,
    *,
    run_options: RunOptions,
    dimensions: Mapping[str, int] | None,
) -> LanceDataset:
    """Write rows of any kind."""
    if is_dataframe(source):
        return run_once(plan_frame(target, source, write_settings, dimensions), run_options)
    if _is_files(source):
        return run_once(plan_write(target, source, write_settings, read), run_options)
    if write_settings.where is not None:
        reader = reader_of(source)
        rows = RowWriter.of(target, reader.schema, write_settings)
        return rows.plan(write_settings.mode, "rows").commit(
            [rows.write(reader)], run_options.label
        )
    return write_dataset(
        source,
        target,
        mode=write_settings.mode,
        commit_message=run_options.label.message,
        storage_options=write_settings.storage_options,
        enable_stable_row_ids=write_settings.stable_row_ids,
        checksums=write_settings.checksums,
        **write_settings.files,
    )


def clone(
    target: Destination,
    copy: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    message: str | None = None,
    **options: Any,
) -> LanceDataset:
    """Copy a version with all its files into a new dataset; options as in ``append``.

    Raises DatasetAlreadyExistsError, InvalidInputError.
    """
    plan = plan_clone(_opened(target), copy, storage_options)
    return run_once(plan, RunOptions.of(message, options))


def diff(
    target: Destination,
    a: Any,
    b: Any = None,
    *,
    key: Sequence[str] | str | None = None,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> pa.Table:
    """Return the rows that differ between version ``a`` and ``b`` (None: the current version).

    Columns and arguments as in ``LanceDataset.diff(...).rows()``, in no order; options as in
    ``append``. The result is held in memory; ``diff_frame`` returns a DataFrame.
    """
    parts = run_edits(plan_diff(_opened(target), a, b, key=key, columns=columns), **options)
    return pa.concat_tables(parts)


def diff_frame(
    target: Destination,
    a: Any,
    b: Any = None,
    *,
    key: Sequence[str] | str | None = None,
    columns: Sequence[str] | None = None,
    spark: SparkSession | None = None,
) -> DataFrame:
    """Return the rows of ``diff`` as a Spark DataFrame, which is evaluated lazily."""
    plan = plan_diff(_opened(target), a, b, key=key, columns=columns)
    from lance_nb.spark.scan_frames import dataframe_of_parts  # needs PySpark

    return dataframe_of_parts(plan.tasks, spark or find_session() or start_session())


def count(target: Destination, filter: str | None = None, **options: Any) -> int:
    """Count rows: from the manifest, or those that pass a filter, reading only its columns.

    Only the latter needs an engine; options as in ``append``. ``count()`` of what
    ``lance_nb.spark.read`` returns counts in the same way; that of ``format("lance_nb")`` reads all
    columns: PySpark's Python data source API has no pushdown of counts.
    """
    dataset = _opened(target)
    if filter is None:
        return int(dataset.count_rows())
    return sum(result.num_rows for result in run_edits(plan_count(dataset, filter), **options))


def create_scalar_index(
    target: Destination,
    column: str,
    index_type: str = "BTREE",
    name: str | None = None,
    *,
    replace: bool = True,
    parameters: Mapping[str, Any] | None = None,
    message: str | None = None,
    **options: Any,
) -> LanceDataset:
    """Build an index, one segment per task; options as in ``append``.

    ``parameters`` are those of the kind, as in ``ds.create_scalar_index``. Raises
    ColumnNotFoundError, InvalidInputError, and NotSupportedError for types that are not built.
    """

    def make(base: LanceDataset) -> Plan:
        return plan_index(base, column, index_type, name, parameters=parameters, replace=replace)

    return _run(target, make, message, options)


def create_index(
    target: Destination,
    column: str,
    index_type: str,
    name: str | None = None,
    *,
    metric: str = "l2",
    num_partitions: int | None = None,
    num_sub_vectors: int | None = None,
    replace: bool = False,
    parameters: Mapping[str, Any] | None = None,
    message: str | None = None,
    **options: Any,
) -> LanceDataset:
    """Build an index on a column of vectors, one segment per task; options as in ``append``.

    Centroids and codes are trained in this process, on a sample of all rows, before the tasks
    start; ``stop`` is asked meanwhile too. The segments share them, so the number of partitions is
    that of the dataset. ``parameters`` are other ones of ``ds.create_index``. Raises
    ColumnNotFoundError, InvalidInputError, RunCancelledError, and NotSupportedError for types that
    are not built.
    """
    run_options = RunOptions.of(message, options)
    own = {"num_partitions": num_partitions, "num_sub_vectors": num_sub_vectors}
    index_options = {name: value for name, value in own.items() if value is not None}
    settings = {"metric": metric, **index_options, **(parameters or {})}

    def go_on(_: IndexProgress) -> None:
        if run_options.is_stopped():
            raise RunCancelledError(0, 0)

    return run(
        _opened(target),
        lambda base: plan_index(
            base, column, index_type, name, parameters=settings, replace=replace, progress=go_on
        ),
        run_options,
    )


def statistics(target: Destination, **options: Any) -> DataStatistics:
    """Return the bytes of every field on disk, as ``ds.stats.data_stats()`` does.

    The metadata of files is read by the tasks; options as in ``append``.
    """
    dataset = _opened(target)
    return sum_statistics(dataset, run_edits(plan_statistics(dataset), **options))


def orphans(target: Destination) -> pa.Table:
    """List the files that no version names, and which interrupted job of this user made them.

    Columns: ``path`` (in the folder of the dataset), ``kind``, ``size_bytes``, ``job`` and
    ``operation``. ``job`` is the id for ``resume`` of an interrupted job that has kept the result
    with this file; resuming it puts the file into a version. It is null for files of attempts that
    failed or lost a race, and of jobs that ``forget`` has removed: nobody needs these, but another
    writer may be about to commit them. ``ds.cleanup_old_versions()`` removes them once they are
    seven days old, with ``delete_unverified=True`` at once: only while nobody writes.

    Raises DatasetNotFoundError, StorageError.
    """
    dataset = _opened(target)
    files = dataset.space().files
    orphan_files = files.filter(pc.equal(files["state"], "orphan")).select(
        ["path", "kind", "size_bytes"]
    )
    jobs = journal.recorded_files(PinnedVersion.of(dataset))
    entries = [jobs.get(path) for path in orphan_files["path"].to_pylist()]
    for name, values in (
        ("job", [None if entry is None else entry.operation_id for entry in entries]),
        (
            "operation",
            [None if entry is None else f"{entry.verb} {entry.detail}" for entry in entries],
        ),
    ):
        orphan_files = orphan_files.append_column(name, pa.array(values, pa.string()))
    return orphan_files


def _is_files(source: Any) -> TypeGuard[Source]:
    """Whether tasks can read the source: paths, or a dataset."""
    if isinstance(source, str | os.PathLike | LanceDataset):
        return True
    if not isinstance(source, list | tuple) or not source:
        return False
    return all(isinstance(element, str | os.PathLike) for element in source)


def _opened(target: Destination) -> LanceDataset:
    return target if isinstance(target, LanceDataset) else open_dataset(target)
