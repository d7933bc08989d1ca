# The public names of lance_nb, each once; its module is imported when the name is first used.
from . import errors as errors
from .dataset import (
    DatasetStats as DatasetStats,
    LanceDataset as LanceDataset,
    LanceFragment as LanceFragment,
    LanceScanner as LanceScanner,
    dataset as dataset,
)
from .dataset.arguments import (
    DEFAULT_MAX_BYTES_PER_FILE as DEFAULT_MAX_BYTES_PER_FILE,
    LANCE_COMMIT_MESSAGE_KEY as LANCE_COMMIT_MESSAGE_KEY,
    AlterColumn as AlterColumn,
    AutoCleanupConfig as AutoCleanupConfig,
    Session as Session,
    sanitize_ts as sanitize_ts,
    serialize_row_addrs as serialize_row_addrs,
    td_to_micros as td_to_micros,
    vec_to_table as vec_to_table,
)
from .dataset.checks.result import (
    CheckOutcome as CheckOutcome,
    CheckResult as CheckResult,
)
from .dataset.comparing import (
    DatasetDelta as DatasetDelta,
)
from .dataset.database import (
    Database as Database,
    TableSummary as TableSummary,
    database as database,
)
from .dataset.expectations import (
    Expectations as Expectations,
)
from .dataset.file_reader import (
    LanceBufferDescriptor as LanceBufferDescriptor,
    LanceColumnMetadata as LanceColumnMetadata,
    LanceFileMetadata as LanceFileMetadata,
    LanceFileReader as LanceFileReader,
    LanceFileStatistics as LanceFileStatistics,
    LancePageMetadata as LancePageMetadata,
    ReaderResults as ReaderResults,
)
from .dataset.file_session import (
    LanceFileSession as LanceFileSession,
    ListResult as ListResult,
)
from .dataset.file_writer import (
    LanceFileWriter as LanceFileWriter,
)
from .dataset.fragment import (
    FragmentMetadata as FragmentMetadata,
    FragmentSession as FragmentSession,
)
from .dataset.functions import (
    diff as diff,
    write_dataset as write_dataset,
    write_fragments as write_fragments,
)
from .dataset.health import (
    RepairPlan as RepairPlan,
    plan_repair as plan_repair,
    undo_repair as undo_repair,
    verify as verify,
)
from .dataset.merge_insert import (
    MergeInsertBuilder as MergeInsertBuilder,
)
from .dataset.operations import (
    LanceOperation as LanceOperation,
)
from .dataset.optimize import (
    Compaction as Compaction,
    CompactionMetrics as CompactionMetrics,
    CompactionOptions as CompactionOptions,
    CompactionPlan as CompactionPlan,
    CompactionTask as CompactionTask,
    DatasetOptimizer as DatasetOptimizer,
    RewriteResult as RewriteResult,
)
from .dataset.refs import (
    Branches as Branches,
    Tags as Tags,
)
from .dataset.result_types import (
    Branch as Branch,
    BulkCommitResult as BulkCommitResult,
    DeleteResult as DeleteResult,
    ExecuteResult as ExecuteResult,
    IndexInformation as IndexInformation,
    Tag as Tag,
    UpdateResult as UpdateResult,
    Version as Version,
    VersionRef as VersionRef,
)
from .dataset.reviews import (
    Review as Review,
    ReviewFolder as ReviewFolder,
)
from .dataset.scanner import (
    ScanStatistics as ScanStatistics,
)
from .dataset.scanner_builder import (
    ScannerBuilder as ScannerBuilder,
)
from .dataset.sql import (
    SqlQuery as SqlQuery,
    SqlQueryBuilder as SqlQueryBuilder,
)
from .dataset.stats import (
    LanceStats as LanceStats,
)
from .errors import (
    ColumnNotFoundError as ColumnNotFoundError,
    CommitConflictError as CommitConflictError,
    CommitError as CommitError,
    CommitStateUnknownError as CommitStateUnknownError,
    CorruptFileError as CorruptFileError,
    DatasetNotFoundError as DatasetNotFoundError,
    FormatError as FormatError,
    InvalidInputError as InvalidInputError,
    LanceError as LanceError,
    NotFoundError as NotFoundError,
    NotSupportedError as NotSupportedError,
    RefNotFoundError as RefNotFoundError,
    StorageError as StorageError,
    VersionNotFoundError as VersionNotFoundError,
)
from .explorer.app import (
    Explorer as Explorer,
    explore as explore,
)
from .file.versions import (
    stable_version as stable_version,
)
from .format.bfloat16 import (
    BFloat16 as BFloat16,
    BFloat16Array as BFloat16Array,
    BFloat16Scalar as BFloat16Scalar,
    BFloat16Type as BFloat16Type,
    PandasBFloat16Array as PandasBFloat16Array,
    bfloat16_array as bfloat16_array,
    cast as cast,
)
from .format.bitmap import (
    Bitmap as Bitmap,
)
from .format.blob_values import (
    Blob as Blob,
    BlobArray as BlobArray,
    BlobColumn as BlobColumn,
    BlobIterator as BlobIterator,
    BlobType as BlobType,
    blob_array as blob_array,
    blob_field as blob_field,
)
from .format.expectations import (
    Expectation as Expectation,
)
from .format.fragment import (
    DataFile as DataFile,
    DeletionFile as DeletionFile,
    RowDatasetVersionMeta as RowDatasetVersionMeta,
    RowIdMeta as RowIdMeta,
)
from .format.images import (
    EncodedImageArray as EncodedImageArray,
    EncodedImageScalar as EncodedImageScalar,
    EncodedImageType as EncodedImageType,
    FixedShapeImageTensorArray as FixedShapeImageTensorArray,
    FixedShapeImageTensorScalar as FixedShapeImageTensorScalar,
    FixedShapeImageTensorType as FixedShapeImageTensorType,
    ImageArray as ImageArray,
    ImageScalar as ImageScalar,
    ImageURIArray as ImageURIArray,
    ImageURIScalar as ImageURIScalar,
    ImageURIType as ImageURIType,
)
from .format.index_metadata import (
    Index as Index,
    IndexFile as IndexFile,
)
from .format.lance_schema import (
    LanceField as LanceField,
    LanceSchema as LanceSchema,
)
from .format.reviews import (
    ReviewComment as ReviewComment,
)
from .format.row_id_sequence import (
    RowIdSequence as RowIdSequence,
)
from .format.schema_json import (
    json_to_schema as json_to_schema,
    schema_to_json as schema_to_json,
)
from .indices.building import (
    IndexProgress as IndexProgress,
)
from .magic.provenance import (
    provenance as provenance,
)
from .magic.shell import (
    load_ipython_extension as load_ipython_extension,
    unload_ipython_extension as unload_ipython_extension,
)
from .merging.choices import (
    CellChoice as CellChoice,
)
from .session.base_paths import (
    DatasetBasePath as DatasetBasePath,
)
from .session.storage_access import (
    IOStats as IOStats,
    StorageOptionsAccessor as StorageOptionsAccessor,
    bytes_read_counter as bytes_read_counter,
    iops_counter as iops_counter,
)
from .table.blobs import (
    DEFAULT_BLOB_BUFFER_SIZE as DEFAULT_BLOB_BUFFER_SIZE,
    BlobFile as BlobFile,
)
from .table.data_statistics import (
    DataStatistics as DataStatistics,
    FieldStatistics as FieldStatistics,
)
from .table.diff import (
    Diff as Diff,
)
from .table.ordering import (
    ColumnOrdering as ColumnOrdering,
)
from .table.text_query import (
    BooleanQuery as BooleanQuery,
    BoostQuery as BoostQuery,
    FullTextOperator as FullTextOperator,
    FullTextQuery as FullTextQuery,
    FullTextQueryType as FullTextQueryType,
    MatchQuery as MatchQuery,
    MultiMatchQuery as MultiMatchQuery,
    Occur as Occur,
    PhraseQuery as PhraseQuery,
)
from .table.verification.findings import (
    Finding as Finding,
    Verification as Verification,
)
from .transactions.transaction import (
    Transaction as Transaction,
)
from .transactions.version_slots import (
    CommitLock as CommitLock,
)
from .version import (
    __version__ as __version__,
)
from .writing.cleanup import (
    CleanupCandidateFile as CleanupCandidateFile,
    CleanupExplanation as CleanupExplanation,
    CleanupReferencedBranch as CleanupReferencedBranch,
    CleanupStats as CleanupStats,
)
from .writing.editing import (
    EditResult as EditResult,
)
from .writing.repair import (
    RepairResult as RepairResult,
    RepairStep as RepairStep,
)
from .writing.udf_columns import (
    BatchUDF as BatchUDF,
    BatchUDFCheckpoint as BatchUDFCheckpoint,
    batch_udf as batch_udf,
)
from .writing.progress import (
    FileSystemFragmentWriteProgress as FileSystemFragmentWriteProgress,
    FragmentWriteProgress as FragmentWriteProgress,
    NoopFragmentWriteProgress as NoopFragmentWriteProgress,
)
