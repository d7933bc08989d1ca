"""lance_nb: explore, version and change Lance datasets in Jupyter, on an engine in Python.

``lance_nb.dataset(uri)`` opens a dataset; ``lance_nb.explore(uri)`` opens it as a widget;
``%load_ext lance_nb`` adds the ``%lance`` magic. Names follow pylance where the concept is the
same.
"""

import importlib as _importlib
import typing as _typing

from lance_nb import errors
from lance_nb.dataset import (
    DatasetStats,
    LanceDataset,
    LanceFragment,
    LanceScanner,
)
from lance_nb.dataset import dataset as _open_dataset
from lance_nb.dataset import display as _display
from lance_nb.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    CorruptFileError,
    DatasetNotFoundError,
    FormatError,
    InvalidInputError,
    LanceError,
    NotFoundError,
    NotSupportedError,
    RefNotFoundError,
    StorageError,
    VersionNotFoundError,
)
from lance_nb.version import __version__

if _typing.TYPE_CHECKING:
    from lance_nb.dataset.arguments import (
        DEFAULT_MAX_BYTES_PER_FILE,
        LANCE_COMMIT_MESSAGE_KEY,
        AlterColumn,
        AutoCleanupConfig,
        sanitize_ts,
        serialize_row_addrs,
        td_to_micros,
        vec_to_table,
    )
    from lance_nb.dataset.checks.result import CheckOutcome, CheckResult
    from lance_nb.dataset.comparing import DatasetDelta
    from lance_nb.dataset.database import Database, TableSummary, database
    from lance_nb.dataset.expectations import Expectations
    from lance_nb.dataset.file_reader import (
        LanceBufferDescriptor,
        LanceColumnMetadata,
        LanceFileMetadata,
        LanceFileReader,
        LanceFileStatistics,
        LancePageMetadata,
        ReaderResults,
    )
    from lance_nb.dataset.file_session import LanceFileSession, ListResult
    from lance_nb.dataset.file_writer import LanceFileWriter
    from lance_nb.dataset.fragment import FragmentSession
    from lance_nb.dataset.functions import diff, write_dataset, write_fragments
    from lance_nb.dataset.health import RepairPlan, plan_repair, undo_repair, verify
    from lance_nb.dataset.merge_insert import MergeInsertBuilder
    from lance_nb.dataset.operations import LanceOperation
    from lance_nb.dataset.optimize import (
        Compaction,
        CompactionMetrics,
        CompactionOptions,
        CompactionPlan,
        CompactionTask,
        DatasetOptimizer,
        RewriteResult,
    )
    from lance_nb.dataset.refs import Branches, Tags
    from lance_nb.dataset.result_types import (
        Branch,
        BulkCommitResult,
        DeleteResult,
        ExecuteResult,
        IndexInformation,
        Tag,
        UpdateResult,
        Version,
        VersionRef,
    )
    from lance_nb.dataset.reviews import Review, ReviewFolder
    from lance_nb.dataset.scanner import ScanStatistics
    from lance_nb.dataset.scanner_builder import ScannerBuilder
    from lance_nb.dataset.sql import SqlQuery, SqlQueryBuilder
    from lance_nb.dataset.stats import LanceStats
    from lance_nb.explorer.app import Explorer, explore
    from lance_nb.file.versions import stable_version
    from lance_nb.format.bfloat16 import (
        BFloat16,
        BFloat16Array,
        BFloat16Scalar,
        BFloat16Type,
        PandasBFloat16Array,
        bfloat16_array,
        cast,
    )
    from lance_nb.format.bitmap import Bitmap
    from lance_nb.format.blob_values import (
        Blob,
        BlobArray,
        BlobColumn,
        BlobIterator,
        BlobType,
        blob_array,
        blob_field,
    )
    from lance_nb.format.expectations import Expectation
    from lance_nb.format.fragment import (
        DataFile,
        DeletionFile,
        RowDatasetVersionMeta,
        RowIdMeta,
    )
    from lance_nb.format.fragment import Fragment as FragmentMetadata
    from lance_nb.format.images import (
        EncodedImageArray,
        EncodedImageScalar,
        EncodedImageType,
        FixedShapeImageTensorArray,
        FixedShapeImageTensorScalar,
        FixedShapeImageTensorType,
        ImageArray,
        ImageScalar,
        ImageURIArray,
        ImageURIScalar,
        ImageURIType,
    )
    from lance_nb.format.index_metadata import Index, IndexFile
    from lance_nb.format.lance_schema import LanceField, LanceSchema
    from lance_nb.format.reviews import ReviewComment
    from lance_nb.format.row_id_sequence import RowIdSequence
    from lance_nb.format.schema_json import json_to_schema, schema_to_json
    from lance_nb.indices.building import IndexProgress
    from lance_nb.magic.provenance import provenance
    from lance_nb.magic.shell import load_ipython_extension, unload_ipython_extension
    from lance_nb.merging.choices import CellChoice
    from lance_nb.session.base_paths import DatasetBasePath
    from lance_nb.session.session import CacheSession as Session
    from lance_nb.session.storage_access import (
        IOStats,
        StorageOptionsAccessor,
        bytes_read_counter,
        iops_counter,
    )
    from lance_nb.table.blobs import DEFAULT_BLOB_BUFFER_SIZE, BlobFile
    from lance_nb.table.data_statistics import DataStatistics, FieldStatistics
    from lance_nb.table.diff import Diff
    from lance_nb.table.ordering import (
        ColumnOrdering,
    )
    from lance_nb.table.text_query import (
        BooleanQuery,
        BoostQuery,
        FullTextOperator,
        FullTextQuery,
        FullTextQueryType,
        MatchQuery,
        MultiMatchQuery,
        Occur,
        PhraseQuery,
    )
    from lance_nb.table.verification.findings import Finding, Verification
    from lance_nb.transactions.transaction import Transaction
    from lance_nb.transactions.version_slots import CommitLock
    from lance_nb.writing.cleanup import (
        CleanupCandidateFile,
        CleanupExplanation,
        CleanupReferencedBranch,
        CleanupStats,
    )
    from lance_nb.writing.editing import EditResult
    from lance_nb.writing.repair import RepairResult
    from lance_nb.writing.repair_plan import RepairStep
    from lance_nb.writing.udf_columns import BatchUDF, BatchUDFCheckpoint, batch_udf
    from lance_nb.writing.write_progress import (
        FileSystemFragmentWriteProgress,
        FragmentWriteProgress,
        NoopFragmentWriteProgress,
    )

__all__ = [
    "DEFAULT_BLOB_BUFFER_SIZE",
    "DEFAULT_MAX_BYTES_PER_FILE",
    "LANCE_COMMIT_MESSAGE_KEY",
    "AlterColumn",
    "AutoCleanupConfig",
    "BFloat16",
    "BFloat16Array",
    "BFloat16Scalar",
    "BFloat16Type",
    "BatchUDF",
    "BatchUDFCheckpoint",
    "Bitmap",
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobFile",
    "BlobIterator",
    "BlobType",
    "BooleanQuery",
    "BoostQuery",
    "Branch",
    "Branches",
    "BulkCommitResult",
    "CellChoice",
    "CheckOutcome",
    "CheckResult",
    "CleanupCandidateFile",
    "CleanupExplanation",
    "CleanupReferencedBranch",
    "CleanupStats",
    "ColumnNotFoundError",
    "ColumnOrdering",
    "CommitConflictError",
    "CommitError",
    "CommitLock",
    "CommitStateUnknownError",
    "Compaction",
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "CompactionTask",
    "CorruptFileError",
    "DataFile",
    "DataStatistics",
    "Database",
    "DatasetBasePath",
    "DatasetDelta",
    "DatasetNotFoundError",
    "DatasetOptimizer",
    "DatasetStats",
    "DeleteResult",
    "DeletionFile",
    "Diff",
    "EditResult",
    "EncodedImageArray",
    "EncodedImageScalar",
    "EncodedImageType",
    "ExecuteResult",
    "Expectation",
    "Expectations",
    "Explorer",
    "FieldStatistics",
    "FileSystemFragmentWriteProgress",
    "Finding",
    "FixedShapeImageTensorArray",
    "FixedShapeImageTensorScalar",
    "FixedShapeImageTensorType",
    "FormatError",
    "FragmentMetadata",
    "FragmentSession",
    "FragmentWriteProgress",
    "FullTextOperator",
    "FullTextQuery",
    "FullTextQueryType",
    "IOStats",
    "ImageArray",
    "ImageScalar",
    "ImageURIArray",
    "ImageURIScalar",
    "ImageURIType",
    "Index",
    "IndexFile",
    "IndexInformation",
    "IndexProgress",
    "InvalidInputError",
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceDataset",
    "LanceError",
    "LanceField",
    "LanceFileMetadata",
    "LanceFileReader",
    "LanceFileSession",
    "LanceFileStatistics",
    "LanceFileWriter",
    "LanceFragment",
    "LanceOperation",
    "LancePageMetadata",
    "LanceScanner",
    "LanceSchema",
    "LanceStats",
    "ListResult",
    "MatchQuery",
    "MergeInsertBuilder",
    "MultiMatchQuery",
    "NoopFragmentWriteProgress",
    "NotFoundError",
    "NotSupportedError",
    "Occur",
    "PandasBFloat16Array",
    "PhraseQuery",
    "ReaderResults",
    "RefNotFoundError",
    "RepairPlan",
    "RepairResult",
    "RepairStep",
    "Review",
    "ReviewComment",
    "ReviewFolder",
    "RewriteResult",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "RowIdSequence",
    "ScanStatistics",
    "ScannerBuilder",
    "Session",
    "SqlQuery",
    "SqlQueryBuilder",
    "StorageError",
    "StorageOptionsAccessor",
    "TableSummary",
    "Tag",
    "Tags",
    "Transaction",
    "UpdateResult",
    "Verification",
    "Version",
    "VersionNotFoundError",
    "VersionRef",
    "__version__",
    "batch_udf",
    "bfloat16_array",
    "blob_array",
    "blob_field",
    "bytes_read_counter",
    "cast",
    "database",
    "dataset",
    "diff",
    "errors",
    "explore",
    "iops_counter",
    "json_to_schema",
    "load_ipython_extension",
    "plan_repair",
    "provenance",
    "sanitize_ts",
    "schema_to_json",
    "serialize_row_addrs",
    "stable_version",
    "td_to_micros",
    "undo_repair",
    "unload_ipython_extension",
    "vec_to_table",
    "verify",
    "write_dataset",
    "write_fragments",
]

# The submodule of the same name is bound here while it is imported; the function is what users
# call.
dataset = _open_dataset

# Doors to the notebook interface, which needs packages that the engine does not, and to what a
# plain read does without.
_LAZY = {
    "FragmentWriteProgress": "lance_nb.writing.write_progress",
    "NoopFragmentWriteProgress": "lance_nb.writing.write_progress",
    "FileSystemFragmentWriteProgress": "lance_nb.writing.write_progress",
    "vec_to_table": "lance_nb.dataset.arguments",
    "Finding": "lance_nb.table.verification.findings",
    "Verification": "lance_nb.table.verification.findings",
    "verify": "lance_nb.dataset.health",
    "plan_repair": "lance_nb.dataset.health",
    "undo_repair": "lance_nb.dataset.health",
    "RepairPlan": "lance_nb.dataset.health",
    "RepairResult": "lance_nb.writing.repair",
    "RepairStep": "lance_nb.writing.repair_plan",
    "CellChoice": "lance_nb.merging.choices",
    "BooleanQuery": "lance_nb.table.text_query",
    "BoostQuery": "lance_nb.table.text_query",
    "FullTextOperator": "lance_nb.table.text_query",
    "FullTextQuery": "lance_nb.table.text_query",
    "FullTextQueryType": "lance_nb.table.text_query",
    "MatchQuery": "lance_nb.table.text_query",
    "MultiMatchQuery": "lance_nb.table.text_query",
    "Occur": "lance_nb.table.text_query",
    "PhraseQuery": "lance_nb.table.text_query",
    "ColumnOrdering": "lance_nb.table.ordering",
    "AlterColumn": "lance_nb.dataset.arguments",
    "AutoCleanupConfig": "lance_nb.dataset.arguments",
    "sanitize_ts": "lance_nb.dataset.arguments",
    "td_to_micros": "lance_nb.dataset.arguments",
    "serialize_row_addrs": "lance_nb.dataset.arguments",
    "DEFAULT_MAX_BYTES_PER_FILE": "lance_nb.dataset.arguments",
    "LANCE_COMMIT_MESSAGE_KEY": "lance_nb.dataset.arguments",
    "BFloat16": "lance_nb.format.bfloat16",
    "BFloat16Array": "lance_nb.format.bfloat16",
    "BFloat16Scalar": "lance_nb.format.bfloat16",
    "BFloat16Type": "lance_nb.format.bfloat16",
    "PandasBFloat16Array": "lance_nb.format.bfloat16",
    "bfloat16_array": "lance_nb.format.bfloat16",
    "cast": "lance_nb.format.bfloat16",
    "Blob": "lance_nb.format.blob_values",
    "BlobArray": "lance_nb.format.blob_values",
    "BlobColumn": "lance_nb.format.blob_values",
    "BlobIterator": "lance_nb.format.blob_values",
    "BlobType": "lance_nb.format.blob_values",
    "blob_array": "lance_nb.format.blob_values",
    "blob_field": "lance_nb.format.blob_values",
    "EncodedImageArray": "lance_nb.format.images",
    "EncodedImageScalar": "lance_nb.format.images",
    "EncodedImageType": "lance_nb.format.images",
    "FixedShapeImageTensorArray": "lance_nb.format.images",
    "FixedShapeImageTensorScalar": "lance_nb.format.images",
    "FixedShapeImageTensorType": "lance_nb.format.images",
    "ImageArray": "lance_nb.format.images",
    "ImageScalar": "lance_nb.format.images",
    "ImageURIArray": "lance_nb.format.images",
    "ImageURIScalar": "lance_nb.format.images",
    "ImageURIType": "lance_nb.format.images",
    "BlobFile": "lance_nb.table.blobs",
    "BatchUDF": "lance_nb.writing.udf_columns",
    "BatchUDFCheckpoint": "lance_nb.writing.udf_columns",
    "batch_udf": "lance_nb.writing.udf_columns",
    "CleanupCandidateFile": "lance_nb.writing.cleanup",
    "CleanupExplanation": "lance_nb.writing.cleanup",
    "CleanupReferencedBranch": "lance_nb.writing.cleanup",
    "CleanupStats": "lance_nb.writing.cleanup",
    "Compaction": "lance_nb.dataset.optimize",
    "CompactionMetrics": "lance_nb.dataset.optimize",
    "CompactionOptions": "lance_nb.dataset.optimize",
    "CompactionPlan": "lance_nb.dataset.optimize",
    "CompactionTask": "lance_nb.dataset.optimize",
    "RewriteResult": "lance_nb.dataset.optimize",
    "Bitmap": "lance_nb.format.bitmap",
    "Branch": "lance_nb.dataset.result_types",
    "Branches": "lance_nb.dataset.refs",
    "BulkCommitResult": "lance_nb.dataset.result_types",
    "CommitLock": "lance_nb.transactions.commit_options",
    "DEFAULT_BLOB_BUFFER_SIZE": "lance_nb.table.blobs",
    "DataStatistics": "lance_nb.table.data_statistics",
    "DatasetOptimizer": "lance_nb.dataset.optimize",
    "DeleteResult": "lance_nb.dataset.result_types",
    "EditResult": "lance_nb.writing.editing",
    "ExecuteResult": "lance_nb.dataset.result_types",
    "FieldStatistics": "lance_nb.table.data_statistics",
    "FragmentSession": "lance_nb.dataset.fragment",
    "IOStats": "lance_nb.session.storage_access",
    "IndexInformation": "lance_nb.dataset.result_types",
    "LanceBufferDescriptor": "lance_nb.dataset.file_reader",
    "LanceColumnMetadata": "lance_nb.dataset.file_reader",
    "LanceFileMetadata": "lance_nb.dataset.file_reader",
    "LanceFileSession": "lance_nb.dataset.file_session",
    "LanceFileStatistics": "lance_nb.dataset.file_reader",
    "LancePageMetadata": "lance_nb.dataset.file_reader",
    "LanceStats": "lance_nb.dataset.stats",
    "ListResult": "lance_nb.dataset.file_session",
    "MergeInsertBuilder": "lance_nb.dataset.merge_insert",
    "ReaderResults": "lance_nb.dataset.file_reader",
    "ScanStatistics": "lance_nb.dataset.scanner",
    "Session": "lance_nb.session.session:CacheSession",
    "SqlQuery": "lance_nb.dataset.sql",
    "SqlQueryBuilder": "lance_nb.dataset.sql",
    "StorageOptionsAccessor": "lance_nb.session.storage_access",
    "Tag": "lance_nb.dataset.result_types",
    "Tags": "lance_nb.dataset.refs",
    "UpdateResult": "lance_nb.dataset.result_types",
    "Version": "lance_nb.dataset.result_types",
    "VersionRef": "lance_nb.dataset.result_types",
    "bytes_read_counter": "lance_nb.session.storage_access",
    "iops_counter": "lance_nb.session.storage_access",
    "stable_version": "lance_nb.file.versions",
    "DataFile": "lance_nb.format.fragment",
    "DeletionFile": "lance_nb.format.fragment",
    "RowDatasetVersionMeta": "lance_nb.format.fragment",
    "RowIdMeta": "lance_nb.format.fragment",
    "RowIdSequence": "lance_nb.format.row_id_sequence",
    "DatasetBasePath": "lance_nb.session.base_paths",
    "FragmentMetadata": "lance_nb.format.fragment:Fragment",
    "Index": "lance_nb.format.index_metadata",
    "IndexFile": "lance_nb.format.index_metadata",
    "IndexProgress": "lance_nb.indices.building",
    "LanceFileReader": "lance_nb.dataset.file_reader",
    "LanceFileWriter": "lance_nb.dataset.file_writer",
    "json_to_schema": "lance_nb.format.schema_json",
    "schema_to_json": "lance_nb.format.schema_json",
    "LanceOperation": "lance_nb.dataset.operations",
    "LanceField": "lance_nb.format.lance_schema",
    "LanceSchema": "lance_nb.format.lance_schema",
    "ScannerBuilder": "lance_nb.dataset.scanner_builder",
    "Transaction": "lance_nb.transactions.transaction",
    "Database": "lance_nb.dataset.database",
    "TableSummary": "lance_nb.dataset.database",
    "database": "lance_nb.dataset.database",
    "DatasetDelta": "lance_nb.dataset.comparing",
    "CheckOutcome": "lance_nb.dataset.checks.result",
    "CheckResult": "lance_nb.dataset.checks.result",
    "Expectation": "lance_nb.format.expectations",
    "Expectations": "lance_nb.dataset.expectations",
    "Review": "lance_nb.dataset.reviews",
    "ReviewComment": "lance_nb.format.reviews",
    "ReviewFolder": "lance_nb.dataset.reviews",
    "Diff": "lance_nb.table.diff",
    "diff": "lance_nb.dataset.functions",
    "write_dataset": "lance_nb.dataset.functions",
    "write_fragments": "lance_nb.dataset.functions",
    "Explorer": "lance_nb.explorer.app",
    "explore": "lance_nb.explorer.app",
    "provenance": "lance_nb.magic.provenance",
    "load_ipython_extension": "lance_nb.magic.shell",
    "unload_ipython_extension": "lance_nb.magic.shell",
}


def __getattr__(name: str) -> _typing.Any:
    """Import a public name on first use."""
    if name not in _LAZY:
        raise AttributeError(f"module 'lance_nb' has no attribute {name!r}")
    module, _, attribute = _LAZY[name].partition(":")
    value = getattr(_importlib.import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, those that are imported on first use included."""
    return sorted({*globals(), *__all__})


def _render(value: object) -> dict[str, _typing.Any] | None:
    """Show a value of the façade as the explorer does; loaded when a notebook first shows one."""
    try:
        module = _importlib.import_module("lance_nb.explorer.display")
    except ImportError:
        return None  # the notebook packages are not installed: the notebook shows the repr
    bundle: dict[str, _typing.Any] = module.mime_bundle(value)
    return bundle


def _render_review(review: object, whole: bool) -> str:
    """Render the page of a review; loaded when one is asked for."""
    module = _importlib.import_module("lance_nb.explorer.review.review_page")
    page: str = module.review_page(review) if whole else module.review_picture(review)
    return page


_display.set_renderer(_render)
_display.set_page_renderer(_render_review)


def _load_magic_if_wanted() -> None:
    """Add ``%lance`` while lance_nb is imported, where IPython is configured so.

    In ipython_config.py: ``c.LanceMagics.autoload = True``.
    """
    shell = _display.ipython_shell()
    if shell is not None and shell.config.get("LanceMagics", {}).get("autoload"):
        shell.extension_manager.load_extension("lance_nb")


def _show_values() -> None:
    """Give values that cannot import the explorer their display, where there is a notebook.

    Nothing is loaded: IPython calls ``_render`` when a cell ends with such a value.
    """
    shell = _display.ipython_shell()
    if shell is None:
        return
    formatter = shell.display_formatter.mimebundle_formatter
    for module, name in _display.VALUES:
        formatter.for_type_by_name(module, name, lambda value, **_options: _render(value))


_load_magic_if_wanted()
_show_values()
