"""The global buffers of a vector index: the partitions (IVF) and tensors, from bytes and to bytes.

Limits: a tensor has as many numbers as its shape says. Numbers of 16 bits become float32.
Source: messages ``IVF`` and ``Tensor`` of lance.index.pb; files that pylance 14.0.2 writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_nb._pb import index as pb
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.format.wire import parse
from lance_nb.value_classes import dataclass

_BRAIN_FLOAT = pb.Tensor.BFLOAT16
_TYPES = {
    pb.Tensor.FLOAT16: "<f2",
    pb.Tensor.FLOAT32: "<f4",
    pb.Tensor.FLOAT64: "<f8",
    pb.Tensor.UINT8: "|u1",
}
_NUMBERS = {np.dtype(form): number for number, form in _TYPES.items()}
Matrix = npt.NDArray[Any]
METRICS = ("l2", "cosine", "dot", "hamming")


@dataclass(frozen=True, slots=True)
class Partitioning:
    """Where partitions begin in a file, how many rows they have, and their centroids.

    ``loss`` is what training left: the mean squared distance to the nearest centroid.
    """

    starts: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.uint64]
    centroids: Matrix | None = None
    loss: float | None = None

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, path: str) -> Partitioning:
        """Read a message IVF. Raises CorruptFileError, NotSupportedError."""
        message = parse(pb.IVF, data, path)
        centroids = None
        if message.HasField("centroids_tensor"):
            centroids = _values(message.centroids_tensor, path)
        return cls(
            np.array(message.offsets, np.uint64),
            np.array(message.lengths, np.uint64),
            centroids,
            message.loss if message.HasField("loss") else None,
        )

    def to_bytes(self) -> bytes:
        """Return the message IVF."""
        message = pb.IVF(
            offsets=self.starts.tolist(), lengths=self.lengths.tolist(), loss=self.loss
        )
        if self.centroids is not None:
            message.centroids_tensor.CopyFrom(_message(self.centroids))
        return message.SerializeToString()


def vector_details(
    metric: str,
    compression: str,
    settings: Mapping[str, int],
    hints: Mapping[str, str],
    target_partition_size: int = 0,
) -> bytes:
    """Return the message VectorIndexDetails. ``compression`` is flat, pq or sq, with settings."""
    message = pb.VectorIndexDetails(
        metric_type=METRICS.index(metric), target_partition_size=target_partition_size
    )
    part = getattr(message, compression)
    part.SetInParent()
    for name, value in settings.items():
        setattr(part, name, value)
    for name, text in sorted(hints.items()):
        message.runtime_hints[name] = text
    return message.SerializeToString(deterministic=True)


def details_of(data: bytes, path: str) -> tuple[str, dict[str, int]]:
    """Return metric and settings of a message VectorIndexDetails. Raises CorruptFileError."""
    message = parse(pb.VectorIndexDetails, data, path)
    if message.metric_type >= len(METRICS):
        raise NotSupportedError(f"{path}: a vector index by metric {message.metric_type}")
    settings = {}
    if message.WhichOneof("compression") == "pq":
        settings = {
            "num_bits": message.pq.num_bits, "num_sub_vectors": message.pq.num_sub_vectors,
        }  # fmt: skip
    if message.target_partition_size:
        settings["target_partition_size"] = message.target_partition_size
    return METRICS[message.metric_type], settings


def tensor_from_bytes(data: bytes | memoryview, path: str) -> Matrix:
    """Read a message Tensor. Raises CorruptFileError, NotSupportedError."""
    return _values(parse(pb.Tensor, data, path), path)


def tensor_to_bytes(values: Matrix) -> bytes:
    """Return the message Tensor of numbers of 16, 32 or 64 bits, or bytes."""
    return _message(values).SerializeToString()


def _message(values: Matrix) -> pb.Tensor:
    return pb.Tensor(
        data_type=_NUMBERS[values.dtype],
        shape=values.shape,
        data=np.ascontiguousarray(values).tobytes(),
    )


def _values(message: pb.Tensor, path: str) -> Matrix:
    shape = tuple(message.shape)
    kind = np.dtype("<u2" if message.data_type == _BRAIN_FLOAT else _TYPES.get(message.data_type))
    if message.data_type != _BRAIN_FLOAT and message.data_type not in _TYPES:
        raise NotSupportedError(f"{path}: a tensor of type {message.data_type}")
    count = 1
    for length in shape:
        count *= length
    if not shape or count * kind.itemsize != len(message.data):
        raise CorruptFileError(
            path, None, f"a tensor of shape {shape}", f"{len(message.data)} bytes"
        )
    values = np.frombuffer(message.data, kind).reshape(shape)
    if message.data_type == _BRAIN_FLOAT:
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32) if kind.itemsize == 2 else values
