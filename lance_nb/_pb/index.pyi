from lance_nb._pb import encodings as _encodings_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BTreeIndexDetails(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BitmapIndexDetails(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LabelListIndexDetails(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NGramIndexDetails(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BloomFilterIndexDetails(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ZoneMapIndexDetails(_message.Message):
    __slots__ = ("rows_per_zone", "use_seeds", "has_null_bitmap")
    ROWS_PER_ZONE_FIELD_NUMBER: _ClassVar[int]
    USE_SEEDS_FIELD_NUMBER: _ClassVar[int]
    HAS_NULL_BITMAP_FIELD_NUMBER: _ClassVar[int]
    rows_per_zone: int
    use_seeds: bool
    has_null_bitmap: bool
    def __init__(self, rows_per_zone: _Optional[int] = ..., use_seeds: _Optional[bool] = ..., has_null_bitmap: _Optional[bool] = ...) -> None: ...

class InvertedIndexDetails(_message.Message):
    __slots__ = ("base_tokenizer", "language", "with_position", "max_token_length", "lower_case", "stem", "remove_stop_words", "ascii_folding", "min_ngram_length", "max_ngram_length", "prefix_only")
    BASE_TOKENIZER_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    WITH_POSITION_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKEN_LENGTH_FIELD_NUMBER: _ClassVar[int]
    LOWER_CASE_FIELD_NUMBER: _ClassVar[int]
    STEM_FIELD_NUMBER: _ClassVar[int]
    REMOVE_STOP_WORDS_FIELD_NUMBER: _ClassVar[int]
    ASCII_FOLDING_FIELD_NUMBER: _ClassVar[int]
    MIN_NGRAM_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_NGRAM_LENGTH_FIELD_NUMBER: _ClassVar[int]
    PREFIX_ONLY_FIELD_NUMBER: _ClassVar[int]
    base_tokenizer: str
    language: str
    with_position: bool
    max_token_length: int
    lower_case: bool
    stem: bool
    remove_stop_words: bool
    ascii_folding: bool
    min_ngram_length: int
    max_ngram_length: int
    prefix_only: bool
    def __init__(self, base_tokenizer: _Optional[str] = ..., language: _Optional[str] = ..., with_position: _Optional[bool] = ..., max_token_length: _Optional[int] = ..., lower_case: _Optional[bool] = ..., stem: _Optional[bool] = ..., remove_stop_words: _Optional[bool] = ..., ascii_folding: _Optional[bool] = ..., min_ngram_length: _Optional[int] = ..., max_ngram_length: _Optional[int] = ..., prefix_only: _Optional[bool] = ...) -> None: ...

class JsonIndexDetails(_message.Message):
    __slots__ = ("path", "target_details")
    PATH_FIELD_NUMBER: _ClassVar[int]
    TARGET_DETAILS_FIELD_NUMBER: _ClassVar[int]
    path: str
    target_details: _encodings_pb2.Any
    def __init__(self, path: _Optional[str] = ..., target_details: _Optional[_Union[_encodings_pb2.Any, _Mapping]] = ...) -> None: ...

class VectorIndexDetails(_message.Message):
    __slots__ = ("metric_type", "target_partition_size", "hnsw_index_config", "pq", "sq", "rq", "flat", "runtime_hints")
    class HnswConfig(_message.Message):
        __slots__ = ("max_connections", "construction_ef", "max_level")
        MAX_CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
        CONSTRUCTION_EF_FIELD_NUMBER: _ClassVar[int]
        MAX_LEVEL_FIELD_NUMBER: _ClassVar[int]
        max_connections: int
        construction_ef: int
        max_level: int
        def __init__(self, max_connections: _Optional[int] = ..., construction_ef: _Optional[int] = ..., max_level: _Optional[int] = ...) -> None: ...
    class ProductQuantization(_message.Message):
        __slots__ = ("num_bits", "num_sub_vectors")
        NUM_BITS_FIELD_NUMBER: _ClassVar[int]
        NUM_SUB_VECTORS_FIELD_NUMBER: _ClassVar[int]
        num_bits: int
        num_sub_vectors: int
        def __init__(self, num_bits: _Optional[int] = ..., num_sub_vectors: _Optional[int] = ...) -> None: ...
    class ScalarQuantization(_message.Message):
        __slots__ = ("num_bits",)
        NUM_BITS_FIELD_NUMBER: _ClassVar[int]
        num_bits: int
        def __init__(self, num_bits: _Optional[int] = ...) -> None: ...
    class RabitQuantization(_message.Message):
        __slots__ = ("num_bits", "rotation")
        NUM_BITS_FIELD_NUMBER: _ClassVar[int]
        ROTATION_FIELD_NUMBER: _ClassVar[int]
        num_bits: int
        rotation: int
        def __init__(self, num_bits: _Optional[int] = ..., rotation: _Optional[int] = ...) -> None: ...
    class Flat(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class RuntimeHintsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    METRIC_TYPE_FIELD_NUMBER: _ClassVar[int]
    TARGET_PARTITION_SIZE_FIELD_NUMBER: _ClassVar[int]
    HNSW_INDEX_CONFIG_FIELD_NUMBER: _ClassVar[int]
    PQ_FIELD_NUMBER: _ClassVar[int]
    SQ_FIELD_NUMBER: _ClassVar[int]
    RQ_FIELD_NUMBER: _ClassVar[int]
    FLAT_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_HINTS_FIELD_NUMBER: _ClassVar[int]
    metric_type: int
    target_partition_size: int
    hnsw_index_config: VectorIndexDetails.HnswConfig
    pq: VectorIndexDetails.ProductQuantization
    sq: VectorIndexDetails.ScalarQuantization
    rq: VectorIndexDetails.RabitQuantization
    flat: VectorIndexDetails.Flat
    runtime_hints: _containers.ScalarMap[str, str]
    def __init__(self, metric_type: _Optional[int] = ..., target_partition_size: _Optional[int] = ..., hnsw_index_config: _Optional[_Union[VectorIndexDetails.HnswConfig, _Mapping]] = ..., pq: _Optional[_Union[VectorIndexDetails.ProductQuantization, _Mapping]] = ..., sq: _Optional[_Union[VectorIndexDetails.ScalarQuantization, _Mapping]] = ..., rq: _Optional[_Union[VectorIndexDetails.RabitQuantization, _Mapping]] = ..., flat: _Optional[_Union[VectorIndexDetails.Flat, _Mapping]] = ..., runtime_hints: _Optional[_Mapping[str, str]] = ...) -> None: ...

class FragmentReuseIndexDetails(_message.Message):
    __slots__ = ("inline", "external")
    class FragmentDigest(_message.Message):
        __slots__ = ("id", "physical_rows", "num_deleted_rows")
        ID_FIELD_NUMBER: _ClassVar[int]
        PHYSICAL_ROWS_FIELD_NUMBER: _ClassVar[int]
        NUM_DELETED_ROWS_FIELD_NUMBER: _ClassVar[int]
        id: int
        physical_rows: int
        num_deleted_rows: int
        def __init__(self, id: _Optional[int] = ..., physical_rows: _Optional[int] = ..., num_deleted_rows: _Optional[int] = ...) -> None: ...
    class Group(_message.Message):
        __slots__ = ("changed_row_addrs", "old_fragments", "new_fragments")
        CHANGED_ROW_ADDRS_FIELD_NUMBER: _ClassVar[int]
        OLD_FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
        NEW_FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
        changed_row_addrs: bytes
        old_fragments: _containers.RepeatedCompositeFieldContainer[FragmentReuseIndexDetails.FragmentDigest]
        new_fragments: _containers.RepeatedCompositeFieldContainer[FragmentReuseIndexDetails.FragmentDigest]
        def __init__(self, changed_row_addrs: _Optional[bytes] = ..., old_fragments: _Optional[_Iterable[_Union[FragmentReuseIndexDetails.FragmentDigest, _Mapping]]] = ..., new_fragments: _Optional[_Iterable[_Union[FragmentReuseIndexDetails.FragmentDigest, _Mapping]]] = ...) -> None: ...
    class Version(_message.Message):
        __slots__ = ("dataset_version", "groups")
        DATASET_VERSION_FIELD_NUMBER: _ClassVar[int]
        GROUPS_FIELD_NUMBER: _ClassVar[int]
        dataset_version: int
        groups: _containers.RepeatedCompositeFieldContainer[FragmentReuseIndexDetails.Group]
        def __init__(self, dataset_version: _Optional[int] = ..., groups: _Optional[_Iterable[_Union[FragmentReuseIndexDetails.Group, _Mapping]]] = ...) -> None: ...
    class InlineContent(_message.Message):
        __slots__ = ("legacy_versions",)
        LEGACY_VERSIONS_FIELD_NUMBER: _ClassVar[int]
        legacy_versions: _containers.RepeatedCompositeFieldContainer[FragmentReuseIndexDetails.Version]
        def __init__(self, legacy_versions: _Optional[_Iterable[_Union[FragmentReuseIndexDetails.Version, _Mapping]]] = ...) -> None: ...
    class ExternalContent(_message.Message):
        __slots__ = ("path", "offset", "size")
        PATH_FIELD_NUMBER: _ClassVar[int]
        OFFSET_FIELD_NUMBER: _ClassVar[int]
        SIZE_FIELD_NUMBER: _ClassVar[int]
        path: str
        offset: int
        size: int
        def __init__(self, path: _Optional[str] = ..., offset: _Optional[int] = ..., size: _Optional[int] = ...) -> None: ...
    INLINE_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_FIELD_NUMBER: _ClassVar[int]
    inline: FragmentReuseIndexDetails.InlineContent
    external: FragmentReuseIndexDetails.ExternalContent
    def __init__(self, inline: _Optional[_Union[FragmentReuseIndexDetails.InlineContent, _Mapping]] = ..., external: _Optional[_Union[FragmentReuseIndexDetails.ExternalContent, _Mapping]] = ...) -> None: ...

class Tensor(_message.Message):
    __slots__ = ("data_type", "shape", "data")
    class DataType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        BFLOAT16: _ClassVar[Tensor.DataType]
        FLOAT16: _ClassVar[Tensor.DataType]
        FLOAT32: _ClassVar[Tensor.DataType]
        FLOAT64: _ClassVar[Tensor.DataType]
        UINT8: _ClassVar[Tensor.DataType]
        UINT16: _ClassVar[Tensor.DataType]
        UINT32: _ClassVar[Tensor.DataType]
        UINT64: _ClassVar[Tensor.DataType]
    BFLOAT16: Tensor.DataType
    FLOAT16: Tensor.DataType
    FLOAT32: Tensor.DataType
    FLOAT64: Tensor.DataType
    UINT8: Tensor.DataType
    UINT16: Tensor.DataType
    UINT32: Tensor.DataType
    UINT64: Tensor.DataType
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    data_type: Tensor.DataType
    shape: _containers.RepeatedScalarFieldContainer[int]
    data: bytes
    def __init__(self, data_type: _Optional[_Union[Tensor.DataType, str]] = ..., shape: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ...) -> None: ...

class IVF(_message.Message):
    __slots__ = ("offsets", "lengths", "centroids_tensor", "loss")
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    CENTROIDS_TENSOR_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    offsets: _containers.RepeatedScalarFieldContainer[int]
    lengths: _containers.RepeatedScalarFieldContainer[int]
    centroids_tensor: Tensor
    loss: float
    def __init__(self, offsets: _Optional[_Iterable[int]] = ..., lengths: _Optional[_Iterable[int]] = ..., centroids_tensor: _Optional[_Union[Tensor, _Mapping]] = ..., loss: _Optional[float] = ...) -> None: ...
