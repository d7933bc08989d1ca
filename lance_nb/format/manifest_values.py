"""Small values inside a manifest: who wrote it, the format of its files, its other roots.

Source: messages ``WriterVersion``, ``DataStorageFormat``, ``BasePath`` of lance.table.
"""

from __future__ import annotations

from dataclasses import dataclass

from lance_nb._pb import table as pb
from lance_nb.format.wire import unknown_bytes


@dataclass(frozen=True, slots=True)
class WriterVersion:
    """Which library wrote the version; informative."""

    library: str
    version: str
    prerelease: str = ""
    build_metadata: str = ""

    def __str__(self) -> str:
        pre = f"-{self.prerelease}" if self.prerelease else ""
        build = f"+{self.build_metadata}" if self.build_metadata else ""
        return f"{self.library} {self.version}{pre}{build}".strip()

    @classmethod
    def from_pb(cls, message: pb.WriterVersion) -> WriterVersion:
        """Read the message."""
        return cls(message.library, message.version, message.prerelease, message.build_metadata)

    def to_pb(self) -> pb.WriterVersion:
        """Return the message."""
        return pb.WriterVersion(
            library=self.library,
            version=self.version,
            prerelease=self.prerelease,
            build_metadata=self.build_metadata,
        )


@dataclass(frozen=True, slots=True)
class DataStorageFormat:
    """The format of new data files, for example ("lance", "2.2")."""

    file_format: str
    version: str
    unknown: bytes = b""

    @classmethod
    def from_pb(cls, message: pb.DataStorageFormat) -> DataStorageFormat:
        """Read the message."""
        return cls(message.file_format, message.version, unknown_bytes(message))

    def to_pb(self) -> pb.DataStorageFormat:
        """Return the message."""
        message = pb.DataStorageFormat(file_format=self.file_format, version=self.version)
        message.MergeFromString(self.unknown)
        return message


@dataclass(frozen=True, slots=True)
class BasePath:
    """Another root that files of this dataset may live under (branches, clones)."""

    id: int
    path: str
    is_dataset_root: bool = False
    name: str | None = None
    unknown: bytes = b""

    @classmethod
    def from_pb(cls, message: pb.BasePath) -> BasePath:
        """Read the message."""
        name = message.name if message.HasField("name") else None
        return cls(message.id, message.path, message.is_dataset_root, name, unknown_bytes(message))

    def to_pb(self) -> pb.BasePath:
        """Return the message."""
        message = pb.BasePath(
            id=self.id, name=self.name, is_dataset_root=self.is_dataset_root, path=self.path
        )
        message.MergeFromString(self.unknown)
        return message
