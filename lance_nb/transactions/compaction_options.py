"""Which fragments a compaction rewrites and into what: the options, their defaults, their limits.

An option that is not given comes from the dataset's configuration (key ``lance.compaction.`` and
the name), else from here. ``max_rows_per_group``, ``num_threads``, ``io_buffer_size`` and
``binary_copy_read_batch_bytes`` tune how pylance works; they are accepted and change nothing.

``defer_index_remap``: whether the rewrite is recorded in the fragment-reuse index, so that indices
on row addresses stay in use. None, the default, records it where an index needs it (pylance's
default rewrites the files of indices instead, which nobody here can do). False does not: the rows
leave the coverage of indices.

Not supported: ``compaction_mode="force_binary_copy"`` (``"try_binary_copy"`` re-encodes, as it
may), data files of another version than the dataset's.
Source: ``CompactionOptions`` of pylance 14.0.2 and its documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from lance_nb.errors import InvalidInputError, NotSupportedError

CONFIG_PREFIX = "lance.compaction."
MODES = ("reencode", "try_binary_copy", "force_binary_copy")


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Which fragments are rewritten, and into how large ones."""

    target_rows_per_fragment: int = 1024 * 1024
    max_rows_per_group: int = 1024
    max_bytes_per_file: int | None = None
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    num_threads: int | None = None
    batch_size: int | None = None
    io_buffer_size: int | None = None
    defer_index_remap: bool | None = None
    compaction_mode: str | None = None
    binary_copy_read_batch_bytes: int = 16 * 1024 * 1024
    max_source_fragments: int | None = None
    max_source_rows: int | None = None
    max_source_bytes: int | None = None
    excluded_fragment_ids: frozenset[int] = frozenset()
    data_storage_version: str | None = None

    def __post_init__(self) -> None:
        for name in (
            "target_rows_per_fragment", "max_bytes_per_file", "max_source_fragments",
            "max_source_rows", "max_source_bytes", "batch_size",
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidInputError(f"{name} is positive, not {value}")
        if not 0 <= self.materialize_deletions_threshold <= 1:
            raise InvalidInputError(
                "materialize_deletions_threshold is a share between 0 and 1, not "
                f"{self.materialize_deletions_threshold}"
            )
        if self.compaction_mode not in (None, *MODES):
            raise InvalidInputError(
                f"Invalid compaction mode {self.compaction_mode!r}. Valid values: "
                + ", ".join(map(repr, MODES))
            )
        if self.compaction_mode == "force_binary_copy":
            raise NotSupportedError(
                "compaction_mode='force_binary_copy' is not supported: rows are read and written "
                "again; use 'reencode' or 'try_binary_copy'"
            )

    @classmethod
    def of(cls, given: Mapping[str, Any], config: Mapping[str, str]) -> Self:
        """Read options; None means the default, which the configuration may set.

        Raises InvalidInputError, NotSupportedError.
        """
        known = {one.name: _READERS[str(one.type)] for one in fields(cls)}
        values = {}
        for name, value in given.items():
            if name not in known:
                raise InvalidInputError(
                    f"Invalid compaction option: {name}. Options: {', '.join(known)}"
                )
            if value is not None:
                values[name] = known[name](name, value)
        for key, text in config.items():
            name = key.removeprefix(CONFIG_PREFIX)
            if name != key and name in known and name not in values:
                values[name] = known[name](key, _from_text(text))
        return cls(**values)


def _from_text(text: str) -> Any:
    """Return what a value of the configuration means."""
    lowered = text.strip().lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    for kind in (int, float):
        try:
            return kind(lowered)
        except ValueError:
            continue
    return text


def _number(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidInputError(
            f"Invalid value for {name}: {value!r} (expected a non-negative integer)"
        )
    return int(value)


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInputError(f"Invalid value for {name}: {value!r} (expected a number)")
    return float(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInputError(f"Invalid value for {name}: {value!r} (expected true or false)")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str | float | int):
        raise InvalidInputError(f"Invalid value for {name}: {value!r} (expected a text)")
    return str(value)


def _ids(name: str, value: Any) -> frozenset[int]:
    return frozenset(_number(name, one) for one in value)


_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "int": _number,
    "int | None": _number,
    "float": _share,
    "bool": _flag,
    "bool | None": _flag,
    "str | None": _text,
    "frozenset[int]": _ids,
}
