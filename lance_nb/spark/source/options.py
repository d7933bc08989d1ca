"""The options of ``spark.read.format("lance_nb")`` and of ``df.write.format("lance_nb")``.

======================  ==========================================================================
option                  meaning
======================  ==========================================================================
``path``                the dataset; what ``load`` and ``save`` are given
``version``             a version number (also ``versionAsOf``)
``timestampAsOf``       the newest version at that time (main branch)
``branch``, ``tag``     a branch (with ``version``, a version of it), or a tag
``columns``             names, separated by commas: only these are read
``filter``              SQL that rows must pass; evaluated by lance_nb, before Spark
``withRowId``           "true" adds ``_rowid``; ``withRowAddress`` adds ``_rowaddr``
``table``               a metadata table in place of the rows: history, fragments, files, columns,
                        tags, branches, indices, transactions
``storageOptions``      a JSON object for fsspec
``allowBases``          other folders that the dataset may refer to, separated by commas, or a
                        JSON list of them
``readChangeFeed``      "true" reads changes after ``startingVersion`` - 1, up to ``endingVersion``
                        (default: the newest); ``key`` names columns that tell rows apart
``startingVersion``     the first version that a stream reads; "latest" begins with the next one
``maxVersionsPerTrigger``  how many versions a batch of a stream may have
``skipChangeCommits``   "true": a stream of appended rows passes over versions that change rows
``queryId``             a name for a stream, which the history shows (writing streams only)
``txnAppId``, ``txnVersion``  a batch write that is known: of an application (any text), a write
                        whose number (each higher than the one before) is there already is skipped
``maxRowsPerFile``      writing: a new data file begins after so many rows (also
                        ``maxBytesPerFile``, ``dataStorageVersion``, ``enableStableRowIds``)
======================  ==========================================================================

Spark lowers the keys; an unknown one is refused, so that a misspelt filter is not ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.dataset import dataset as open_dataset
from lance_nb.errors import InvalidInputError
from lance_nb.transactions.stream_mark import StreamMark

TABLES = (
    "history", "fragments", "files", "columns", "tags", "branches", "indices", "transactions",
)  # fmt: skip
_KNOWN = frozenset({
    "path", "paths", "version", "versionasof", "timestampasof", "branch", "tag", "columns",
    "filter", "withrowid", "withrowaddress", "table", "storageoptions", "queryid",
    "queryname", "txnappid", "txnversion",
    "checkpointlocation", "maxrowsperfile", "maxbytesperfile", "datastorageversion",
    "enablestablerowids", "readchangefeed", "startingversion", "endingversion", "key",
    "maxversionspertrigger", "skipchangecommits", "allowbases",
})  # fmt: skip
_NUMBERS = {"maxrowsperfile": "max_rows_per_file", "maxbytesperfile": "max_bytes_per_file"}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options as Spark gives them: lower-case keys, values of text."""

    values: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> SourceOptions:
        """Check the keys. Raises InvalidInputError."""
        lowered = {key.lower(): value for key, value in given.items()}
        for key in lowered:
            if key not in _KNOWN:
                raise InvalidInputError(
                    f"option {key!r} is not one of {', '.join(sorted(_KNOWN - {'paths'}))}"
                )
        return cls(tuple(sorted(lowered.items())))

    def get(self, key: str) -> str | None:
        """Return one option."""
        return dict(self.values).get(key)

    @property
    def path(self) -> str:
        """The dataset. Raises InvalidInputError when there is none."""
        found = self.get("path")
        if found is None:
            raise InvalidInputError(
                "the path of a dataset is missing: spark.read.format('lance_nb').load(path); "
                "tables of Spark's catalog lose it, make a temporary view instead"
            )
        return found

    @property
    def storage_options(self) -> dict[str, Any] | None:
        """Options for fsspec. Raises InvalidInputError."""
        text = self.get("storageoptions")
        if text is None:
            return None
        try:
            found = json.loads(text)
        except ValueError as error:
            raise InvalidInputError(f"storageOptions is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise InvalidInputError("storageOptions is a JSON object")
        return found

    @property
    def columns(self) -> list[str] | None:
        """The columns to read."""
        return None if self.get("columns") is None else list(self.names("columns"))

    def names(self, key: str) -> tuple[str, ...]:
        """Return an option that is names, separated by commas."""
        return tuple(one.strip() for one in (self.get(key) or "").split(",") if one.strip())

    def bases(self) -> tuple[str, ...]:
        """Return option ``allowBases``: places separated by commas, or a JSON list of them."""
        text = (self.get("allowbases") or "").strip()
        if not text.startswith("["):
            return self.names("allowbases")
        try:
            found = json.loads(text)
        except json.JSONDecodeError as exc:
            raise InvalidInputError(f"allowBases {text!r} is not a JSON list: {exc}") from exc
        if not all(isinstance(one, str) for one in found):
            raise InvalidInputError(f"allowBases {text!r} is not a list of places")
        return tuple(found)

    def number(self, key: str) -> int | None:
        """Return an option that is a positive number. Raises InvalidInputError."""
        text = self.get(key)
        if text is None:
            return None
        if _number(text, key) < 1:
            raise InvalidInputError(f"{key} is at least 1, not {text}")
        return _number(text, key)

    @property
    def starting_version(self) -> int | None:
        """The first version to read, -1 for those that are not there yet."""
        if (self.get("startingversion") or "").lower() == "latest":
            return -1
        return self.number("startingversion")

    @property
    def files(self) -> dict[str, Any]:
        """How data files are written. Raises InvalidInputError."""
        found: dict[str, Any] = {}
        for key, name in _NUMBERS.items():
            value = self.number(key)
            if value is not None:
                found[name] = value
        version = self.get("datastorageversion")
        return found if version is None else {**found, "data_storage_version": version}

    @property
    def mark(self) -> StreamMark | None:
        """The batch that a batch write is. Raises InvalidInputError."""
        app, version = self.get("txnappid"), self.get("txnversion")
        if app is None and version is None:
            return None
        if app is None or version is None:
            raise InvalidInputError(
                "txnAppId and txnVersion go together: the application, and the number of the write"
            )
        return StreamMark(app, _number(version, "txnVersion"))

    def is_set(self, key: str) -> bool:
        """Whether an option is "true"."""
        return (self.get(key) or "false").lower() == "true"

    def open(self) -> LanceDataset:
        """Open the version that the options name. Raises VersionNotFoundError, RefNotFoundError."""
        version = self.get("version") or self.get("versionasof")
        moment, branch, tag = self.get("timestampasof"), self.get("branch"), self.get("tag")
        if sum(one is not None for one in (version or branch, moment, tag)) > 1:
            raise InvalidInputError("give one of version (with branch), timestampAsOf and tag")
        number = None if version is None else _number(version)
        ref = (branch, number) if branch is not None else tag if tag is not None else number
        return open_dataset(
            self.path, ref, asof=moment, storage_options=self.storage_options,
            allow_bases=self.bases(),
        )  # fmt: skip


def _number(text: str, key: str = "version") -> int:
    if not text.isdecimal():
        hint = "; a tag goes to option 'tag'" if key == "version" else ""
        raise InvalidInputError(f"{key} {text!r} is not a number{hint}")
    return int(text)
