"""The options of ``spark.read.format("lance_nb")`` and of ``df.write.format("lance_nb")``.

======================  ==========================================================================
option                  meaning
======================  ==========================================================================
``path``                the dataset; the argument of ``load`` and ``save``
``version``             a version: 3, dev:3, HEAD~2, v1, 2026-08-01 (also ``versionAsOf``)
``timestampAsOf``       the newest version at that time (main branch)
``branch``, ``tag``     a branch (with ``version``, a version of it), or a tag
``columns``             column names, separated by commas, or a JSON list: only these are read
``filter``              SQL filter, evaluated by lance_nb before rows reach Spark
``withRowId``           "true" adds ``_rowid``; ``withRowAddress`` adds ``_rowaddr``
``table``               read a metadata table instead of the rows: history, fragments, files,
                        columns, tags, branches, indices, transactions
``storage_options``     a JSON object, as ``storage_options`` of ``lance_nb.dataset`` (also
                        ``storageOptions``)
``allowBases``          other folders that the dataset may refer to, separated by commas, or a
                        JSON list of them
``readChangeFeed``      "true" reads the changes from ``startingVersion`` to ``endingVersion``
                        (default: the newest); ``key`` names the columns that identify a row
``startingVersion``     the first version that a stream reads; "latest" begins with the next one
``maxVersionsPerTrigger``  the most versions in one batch of a stream
``skipChangeCommits``   "true": a stream of appended rows skips versions that change rows
``queryId``             a name for a stream, shown in the history (writing streams only)
``txnAppId``, ``txnVersion``  makes a batch write idempotent: application and number of the write;
                        a write whose number is not above the last one is skipped
``maxRowsPerFile``      writing: the most rows in a data file (also
                        ``maxBytesPerFile``, ``dataStorageVersion``, ``enableStableRowIds``)
``replaceWhere``        writing with mode overwrite: only the rows that pass this filter are
                        replaced; new rows have to pass it too
``checksums``           "true": a new dataset records checksums of its files
``dimensions``          writing a new dataset: arrays that are vectors, and their lengths, as
                        ``emb=384, face=128`` or a JSON object
======================  ==========================================================================

Spark converts the keys to lower case. Unknown keys are refused, so that a misspelled filter is not
ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.dataset import dataset as open_dataset
from lance_nb.errors import InvalidInputError
from lance_nb.table.refs import Ref
from lance_nb.transactions.stream_mark import StreamMark
from lance_nb.value_classes import dataclass

TABLES = (
    "history", "fragments", "files", "columns", "tags", "branches", "indices", "transactions",
)  # fmt: skip
_KNOWN = frozenset({
    "path", "paths", "version", "versionasof", "timestampasof", "branch", "tag", "columns",
    "filter", "withrowid", "withrowaddress", "table", "storage_options", "queryid",
    "queryname", "txnappid", "txnversion",
    "checkpointlocation", "maxrowsperfile", "maxbytesperfile", "datastorageversion",
    "enablestablerowids", "readchangefeed", "startingversion", "endingversion", "key",
    "maxversionspertrigger", "skipchangecommits", "allowbases", "checksums",
    "dimensions", "replacewhere",
})  # fmt: skip
_NO_TABLES = (
    "Spark gives readers written in Python no options of tables. Create a view: CREATE TEMPORARY "
    "VIEW name USING lance_nb OPTIONS (path '...')"
)
_NUMBERS = {"maxrowsperfile": "max_rows_per_file", "maxbytesperfile": "max_bytes_per_file"}


STORAGE_OPTIONS = "storage_options"
_SPELLINGS = {"storageoptions": STORAGE_OPTIONS}


def with_one_spelling(given_options: Mapping[str, str]) -> dict[str, str]:
    """Return options with lower-case keys, each in its first spelling.

    Raises InvalidInputError for an option that is given in two spellings.
    """
    options_by_name: dict[str, str] = {}
    for key, value in given_options.items():
        name = _SPELLINGS.get(key.lower(), key.lower())
        if options_by_name.setdefault(name, value) != value:
            raise InvalidInputError(f"option {name!r} is given twice, also as {key!r}")
    return options_by_name


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options as Spark passes them: lower-case keys, text values."""

    values: tuple[tuple[str, str], ...] = field(repr=False)  # credentials among them

    @classmethod
    def of(cls, given_options: Mapping[str, str]) -> SourceOptions:
        """Check the keys. Raises InvalidInputError."""
        lowered = with_one_spelling(given_options)
        if "provider" in lowered:  # CREATE TABLE adds it
            raise InvalidInputError(f"a table of Spark's catalog cannot be a dataset: {_NO_TABLES}")
        for key in lowered:
            if key not in _KNOWN:
                raise InvalidInputError(
                    f"unknown option {key!r}; options: {', '.join(sorted(_KNOWN - {'paths'}))}"
                )
        return cls(tuple(sorted(lowered.items())))

    def get(self, key: str) -> str | None:
        """Return one option."""
        return dict(self.values).get(key)

    @property
    def path(self) -> str:
        """The path of the dataset. Raises InvalidInputError if it is missing."""
        text = self.get("path")
        if text is None:
            raise InvalidInputError(
                "the path of the dataset is missing: use spark.read.format('lance_nb').load(path). "
                f"A table of Spark's catalog loses it: {_NO_TABLES}"
            )
        return text

    @property
    def storage_options(self) -> dict[str, Any] | None:
        """Options for fsspec. Raises InvalidInputError."""
        text = self.get(STORAGE_OPTIONS)
        if text is None:
            return None
        try:
            parsed = json.loads(text)
        except ValueError as error:
            raise InvalidInputError(f"storage_options is not JSON: {error}") from error
        if not isinstance(parsed, dict):
            raise InvalidInputError("storage_options must be a JSON object")
        return parsed

    @property
    def columns(self) -> list[str] | None:
        """The columns to read."""
        return None if self.get("columns") is None else list(self.names("columns"))

    def names(self, key: str) -> tuple[str, ...]:
        """Return the names of an option, separated by commas, or as a JSON list of them.

        Raises InvalidInputError for a list that is not JSON, or not one of names.
        """
        text = (self.get(key) or "").strip()
        if not text.startswith("["):
            return tuple(name.strip() for name in text.split(",") if name.strip())
        try:
            parsed = json.loads(text)
        except ValueError as error:
            raise InvalidInputError(f"{key} {text!r} is not a JSON list: {error}") from error
        if not all(isinstance(value, str) for value in parsed):
            raise InvalidInputError(f"{key} {text!r} is not a list of names")
        return tuple(parsed)

    def bases(self) -> tuple[str, ...]:
        """Return option ``allowBases``: the folders."""
        return self.names("allowbases")

    def number(self, key: str) -> int | None:
        """Return an option as a positive number. Raises InvalidInputError."""
        text = self.get(key)
        if text is None:
            return None
        if _number(text, key) < 1:
            raise InvalidInputError(f"{key} must be at least 1, not {text}")
        return _number(text, key)

    @property
    def starting_version(self) -> int | None:
        """The first version to read, -1 for "latest"."""
        if (self.get("startingversion") or "").lower() == "latest":
            return -1
        return self.number("startingversion")

    @property
    def files(self) -> dict[str, Any]:
        """Options of ``write_dataset`` for data files. Raises InvalidInputError."""
        options: dict[str, Any] = {}
        for key, name in _NUMBERS.items():
            value = self.number(key)
            if value is not None:
                options[name] = value
        version = self.get("datastorageversion")
        return options if version is None else {**options, "data_storage_version": version}

    @property
    def dimensions(self) -> dict[str, int]:
        """The lengths of vectors by column. Raises InvalidInputError."""
        text = (self.get("dimensions") or "").strip()
        if text.startswith("{"):
            try:
                pairs = list(json.loads(text).items())
            except ValueError as error:
                raise InvalidInputError(f"dimensions is not JSON: {error}") from error
        else:
            pairs = [
                (name.strip(), length.strip())
                for name, _, length in (name.rpartition("=") for name in self.names("dimensions"))
            ]
        lengths = {}
        for name, length in pairs:
            if not str(length).isdecimal() or not int(length) or not name:
                raise InvalidInputError(
                    f"dimensions {text!r} must be columns and lengths of at least 1, such as "
                    "'emb=384, face=128'"
                )
            lengths[name] = int(length)
        return lengths

    @property
    def mark(self) -> StreamMark | None:
        """The application and number of an idempotent batch write. Raises InvalidInputError."""
        app, version = self.get("txnappid"), self.get("txnversion")
        if app is None and version is None:
            return None
        if app is None or version is None:
            raise InvalidInputError(
                "txnAppId (the application) and txnVersion (the number of the write) must be set "
                "together"
            )
        return StreamMark(app, _number(version, "txnVersion"))

    def is_set(self, key: str) -> bool:
        """Whether an option is "true"."""
        return (self.get(key) or "false").lower() == "true"

    def open(self) -> LanceDataset:
        """Open the version of the options. Raises VersionNotFoundError, RefNotFoundError."""
        version = self.get("version") or self.get("versionasof")
        moment, branch, tag = self.get("timestampasof"), self.get("branch"), self.get("tag")
        if sum(value is not None for value in (version or branch, moment, tag)) > 1:
            raise InvalidInputError(
                "set only one of version (optionally with branch), timestampAsOf and tag"
            )
        ref: Ref | None = version if tag is None else f"tag:{tag}"
        if branch is not None:
            ref = (branch, None if version is None else _number(version, "version of a branch"))
        return open_dataset(
            self.path, ref, asof=moment, storage_options=self.storage_options,
            allow_bases=self.bases(),
        )  # fmt: skip


def _number(text: str, key: str) -> int:
    if not text.isdecimal():
        raise InvalidInputError(f"{key} {text!r} is not a number")
    return int(text)
