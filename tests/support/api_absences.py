"""What of pylance's public API ``lance_nb`` does not have, or has otherwise, and why.

Every entry is checked: one that is present after all fails the test. A key is a place as in
``tests.support.api_comparison``; a missing class or function covers what is inside it, and
``*(name)`` covers the parameter of that name wherever it is missing.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.api_comparison import Entry

_INDEX_BUILDING = "drives pylance's builders of indices, which work otherwise here"
_SEGMENT_BUILDING = "segments of vector indices are not built one by one; others take keywords"
_VECTOR = "training of vector indices, internal to pylance's index builders"
_TEXT_SEARCH = "fields as one (BM25F), elements of lists and MinHash are not searched"
_TEXT_QUERY = "a query shows what it holds: there is no handle of the native library behind it"
_MEM_WAL = "the log-structured write path (MemWAL) belongs to a server"
_NAMESPACE = "clients of a namespace server are not part of the engine; open datasets by URI"
_NATIVE = "describes or drives pylance's native library"
_TRACING = "tracing of pylance's native library"
_TORCH = "feeds PyTorch; ds.to_batches() and take() are what it is made of"
_PYDANTIC = "rows come as Arrow; pydantic models are not read"
_OVERLAYS = "data overlays are recognised and carried, not read or made; see feature flag 6"
_HANDLE = "the constructor takes a handle of the native library; methods make the object"
_BLOB_FILES = "write_dataset and insert write the files of blobs"
_LOGGING = "lance_nb writes no log: what it has to say is returned or raised"

MISSING: dict[str, str] = {
    # Native library
    "FFILanceTableProvider": _NATIVE,
    "simd_info": _NATIVE,
    "CUDA_REGEX": _NATIVE,
    "PySearchFilter": _NATIVE,
    # Server side
    "ExecutionPlan": _MEM_WAL,
    "LsmPointLookupPlanner": _MEM_WAL,
    "LsmScanner": _MEM_WAL,
    "LsmVectorSearchPlanner": _MEM_WAL,
    "ShardSnapshot": _MEM_WAL,
    "ShardWriter": _MEM_WAL,
    "ShardingField": _MEM_WAL,
    "ShardingSpec": _MEM_WAL,
    "evaluate_sharding_spec": _MEM_WAL,
    "LanceDataset.initialize_mem_wal": _MEM_WAL,
    "LanceDataset.mem_wal_index_details": _MEM_WAL,
    "LanceDataset.mem_wal_writer": _MEM_WAL,
    "DirectoryNamespace": _NAMESPACE,
    "DynamicContextProvider": _NAMESPACE,
    "PyDirectoryNamespace": _NAMESPACE,
    "RestAdapter": _NAMESPACE,
    "RestNamespace": _NAMESPACE,
    # Indices
    "FtsToken": _TEXT_SEARCH,
    "tokenize": _TEXT_SEARCH,
    "CombinedFieldsQuery": _TEXT_SEARCH,
    "DocumentGranularity": _TEXT_SEARCH,
    "MinHashQuery": _TEXT_SEARCH,
    "BooleanQuery.inner": _TEXT_QUERY,
    "BoostQuery.inner": _TEXT_QUERY,
    "FullTextQuery.inner": _TEXT_QUERY,
    "MatchQuery.inner": _TEXT_QUERY,
    "MultiMatchQuery.inner": _TEXT_QUERY,
    "PhraseQuery.inner": _TEXT_QUERY,
    "PyFullTextQuery": _NATIVE,
    "FullTextQueryType.COMBINED_FIELDS": _TEXT_SEARCH,
    "ScannerBuilder.minhash_search": _TEXT_SEARCH,
    "IndexConfig": _INDEX_BUILDING,
    "IndexFileVersion": _INDEX_BUILDING,
    "IndexSegment": _INDEX_BUILDING,
    "IndexSegmentDescription": _INDEX_BUILDING,
    "IndicesBuilder": _INDEX_BUILDING,
    "SupportedDistributedIndices": _INDEX_BUILDING,
    "VectorIndexReader": _INDEX_BUILDING,
    "LanceDataset.centroids": _INDEX_BUILDING,
    "LanceDataset.get_ivf_model": _INDEX_BUILDING,
    **{
        f"LanceDataset.create_index_uncommitted({name})": _SEGMENT_BUILDING
        for name in (
            "metric",
            "replace",
            "num_partitions",
            "ivf_centroids",
            "pq_codebook",
            "num_sub_vectors",
            "accelerator",
            "index_cache_size",
            "shuffle_partition_batches",
            "shuffle_partition_concurrency",
            "ivf_centroids_file",
            "precomputed_partition_dataset",
            "storage_options",
            "filter_nan",
            "train",
            "fragment_ids",
            "index_uuid",
            "target_partition_size",
            "streaming_sample_rate",
            "streaming_coreset_rate",
            "streaming_refine_passes",
            "skip_transpose",
            "rabitq_model",
        )
    },
    "IvfModel": _VECTOR,
    "PqModel": _VECTOR,
    "HNSW": _VECTOR,
    "KMeans": _VECTOR,
    "MetricType": _VECTOR,
    "VectorSearchQuery": _VECTOR,
    "validate_vector_index": _VECTOR,
    "compute_partitions": _VECTOR,
    "compute_pq_codes": _VECTOR,
    "find_duplicate_pairs": _VECTOR,
    "find_duplicate_pairs_in_partition": _VECTOR,
    "get_ivf_partition_info": _VECTOR,
    "hamming_clustering_for_ivf_partition": _VECTOR,
    "hamming_clustering_for_range": _VECTOR,
    "hamming_clustering_for_sample": _VECTOR,
    "one_pass_assign_ivf_pq_on_accelerator": _VECTOR,
    "one_pass_train_ivf_pq_on_accelerator": _VECTOR,
    "train_ivf_centroids_on_accelerator": _VECTOR,
    "train_pq_codebook_on_accelerator": _VECTOR,
    # Integrations
    "FragmentSampler": _TORCH,
    "FullScanSampler": _TORCH,
    "PrioritizedItem": _TORCH,
    "Sampler": _TORCH,
    "ShardedBatchSampler": _TORCH,
    "ShardedFixedBatchSampler": _TORCH,
    "ShardedFragmentSampler": _TORCH,
    "maybe_sample": _TORCH,
    "reservoir_sampling": _TORCH,
    "preferred_device": _TORCH,
    "HuggingFaceConverter": "converts Hugging Face data sets; they are written through Arrow",
    "FixedSizeListMixin": _PYDANTIC,
    "MultiVector": _PYDANTIC,
    "Vector": _PYDANTIC,
    "get_extras": _PYDANTIC,
    "is_nullable": _PYDANTIC,
    "pydantic_to_schema": _PYDANTIC,
    "LanceDataset.from_pydantic_model": _PYDANTIC,
    # Logs and traces
    "format_fragment": "prints structures of pylance's native library; repr() and ds.inspect do it",
    "format_manifest": "prints structures of pylance's native library; ds.inspect does it",
    "format_schema": "prints structures of pylance's native library; repr() does it",
    "list_transactions": "ds.get_transactions() and ds.history() list them",
    "TraceEvent": _TRACING,
    "capture_trace_events": _TRACING,
    "lance_capture_trace_events": _TRACING,
    "lance_trace_to_chrome": _TRACING,
    "shutdown_tracing": _TRACING,
    "trace_to_chrome": _TRACING,
    "instrument_lance_metrics": _TRACING,
    "lance_metrics_catalog": _TRACING,
    "register_lance_metrics_recorder": _TRACING,
    "snapshot_lance_metrics": _TRACING,
    "set_logger": _LOGGING,
    "ENV_NAME_PYLANCE_LOGGING_LEVEL": _LOGGING,
    "get_log_level": _LOGGING,
    "get_python_log_level": _LOGGING,
    # Constructors that only the native library can call
    "BlobFile(inner)": _HANDLE,
    "BlobFile(buffer_size)": _HANDLE,
    "Branches(dataset)": _HANDLE,
    "DatasetDelta(delta)": _HANDLE,
    "FragmentSession(session)": _HANDLE,
    "LanceScanner(dataset)": _HANDLE,
    "LanceScanner(scanner)": _HANDLE,
    "LanceScanner(snapshot)": _HANDLE,
    "SqlQuery(query)": _HANDLE,
    "SqlQueryBuilder(builder)": _HANDLE,
    "Tags(dataset)": _HANDLE,
    # Others
    "LanceBlobFile": "the native half of BlobFile, which has its methods",
    "LanceFileSession.open_dedicated_blob_writer": _BLOB_FILES,
    "LanceFileSession.open_packed_blob_writer": _BLOB_FILES,
    "normalize_transform": "an internal step of add_columns, which takes every form of transform",
    "LanceDataset.create_scalar_index(document_granularity)": _TEXT_SEARCH,
    "LanceOperation.DataOverlay": _OVERLAYS,
    "LanceOperation.DataOverlayFile": _OVERLAYS,
    "LanceOperation.DataOverlayGroup": _OVERLAYS,
    "BlobDescriptor": _BLOB_FILES,
    "BlobDescriptorArrayBuilder": _BLOB_FILES,
    "DedicatedBlobWriter": _BLOB_FILES,
    "PackedBlobWriter": _BLOB_FILES,
    "CompactedSsTable": _MEM_WAL,
    "CommitConflictError(message)": "an error takes its fields by position, the text first",
    "CommitConflictError(retryable)": "RetryableCommitConflictError is a class of its own",
}

# Parameters that are there, so that positions fit, and are refused when they are given.
REFUSED: dict[str, str] = {
    "namespace_client": _NAMESPACE,
    "table_id": _NAMESPACE,
    "namespace_client_managed_versioning": _NAMESPACE,
    "base_store_params": "pass storage_options, which opens all stores of a dataset",
}


def reason_for(entry: Entry) -> str | None:
    """Return why an entry may differ, None if it may not."""
    return next((MISSING[key] for key in _keys_of(entry) if key in MISSING), None)


def stale_keys(entries: Iterable[Entry]) -> list[str]:
    """Return the keys of the lists that excuse nothing."""
    used: set[str] = set()
    for entry in entries:
        if entry.problem is not None:
            used.update(_keys_of(entry))
    return [key for key in MISSING if key not in used]


def _keys_of(entry: Entry) -> list[str]:
    """Return the keys that would excuse an entry."""
    keys = [entry.place if entry.cause is None else entry.cause]
    if entry.is_parameter and entry.cause is None:
        keys.append("*(" + entry.place.partition("(")[2])
    return keys
