"""Evaluate expectations at versions of a dataset.

A condition, not-null or a reference is counted fragment by fragment: rows, rows for which it is
false, rows for which it is NULL. What the cache knows is not read again (checks/cache.py). For a
unique key the sorted hashes of each fragment are kept; where two rows share a hash, the keys behind
them are read and compared, so that the answer is exact. The number of rows comes from the manifest.
Drift reads the column in both versions, sampled, and is kept for the pair of versions.

NULL is treated as in SQL: a condition that is NULL holds (CHECK), a key with a NULL is equal to no
other key (UNIQUE), and a NULL refers to nothing and needs nothing (FOREIGN KEY).

A reference names another dataset, and reading it would use the reader's own credentials. It is read
only where base paths may be read (session/base_paths.py); else the outcome is unknown, and says
which line allows it.

Limits: a condition is about one row; aggregates, row columns such as ``_rowid`` and functions of
the current time are refused when the expectation is added, and unknown where another writer has
added them. ``REFERENCED_MAX`` distinct values of a reference; a unique key takes 8 bytes a row.
Source: SQL:2016 CHECK, UNIQUE and FOREIGN KEY (MATCH SIMPLE); population stability index as in
table/diff/drift.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.arrow_casts import cast_array
from lance_nb.dataset.checks.cache import CheckCache, Numbers, ResultCache, digest
from lance_nb.dataset.checks.key_hashes import Hashes, check_key_type, key_hashes
from lance_nb.dataset.checks.result import FRAGMENTS_MAX, CheckOutcome, CheckResult
from lance_nb.errors import (
    ColumnNotFoundError,
    InvalidInputError,
    LanceError,
    NotFoundError,
    NotSupportedError,
    PredicateError,
    clip,
)
from lance_nb.format.expectations import (
    PREVIOUS,
    ConfiguredExpectations,
    Expectation,
)
from lance_nb.format.schema import format_column_path
from lance_nb.session.opened import stamp_of
from lance_nb.storage import meter
from lance_nb.storage.links import how_to_allow
from lance_nb.storage.registry import relative_uri
from lance_nb.table.predicate.sql_text import parse_duckdb, problem_of
from lance_nb.table.projection import ROW_ADDRESS, ROW_COLUMNS
from lance_nb.table.scan_tasks import live_counts

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.dataset.fragment import LanceFragment

REFERENCED_MAX = 20_000_000
_CLOCKS = frozenset({"now", "current_timestamp", "current_date", "today", "current_time"})

UNSIZED_FILE_BYTES = 64_000_000  # of files of other writers that record no size

Progress = Callable[[int, int], object]


class _UnknownError(Exception):
    """An expectation cannot be evaluated at a version; the text says why."""


_NOT_EVALUATED = (ColumnNotFoundError, PredicateError, NotSupportedError, _UnknownError)


def check_usable(dataset: LanceDataset, expectation: Expectation) -> None:
    """Refuse an expectation that cannot be evaluated at the version of ``dataset``.

    Raises ColumnNotFoundError, PredicateError, NotSupportedError, InvalidInputError.
    """
    names = _columns_of(expectation)
    _field_ids(dataset, names)
    match expectation.kind:
        case "check":
            tests = _tests(expectation.sql)
            dataset.scanner(columns=tests, limit=0).to_table()
        case "unique":
            for name in names:
                check_key_type(name, dataset.schema.field(name).type)
        case "not_null" | "reference" | "drift" | "row_count":
            pass


def roots_of(sql: str) -> tuple[str, ...]:
    """Return the top-level columns that a condition names.

    Raises PredicateError for what is not a condition on one row, or depends on the time.
    """
    from sqlglot import expressions
    from sqlglot.errors import SqlglotError

    clock_nodes = (
        expressions.CurrentTimestamp,
        expressions.CurrentDate,
        expressions.CurrentTime,
    )
    try:
        trees = parse_duckdb(sql)
    except SqlglotError as error:
        raise PredicateError(f"{sql!r} is not SQL: {problem_of(error, sql)}") from error
    if len(trees) != 1 or isinstance(trees[0], expressions.Query):
        raise PredicateError(f"{clip(sql)!r} is not a condition on one row")
    tree = trees[0]
    if tree.find(expressions.AggFunc) is not None:
        raise PredicateError(
            "an expectation is checked fragment by fragment and cannot hold an aggregate: use "
            "ds.expectations.add_row_count(...) for count(*), or ds.bisect(...) to search versions"
        )
    calls = {call.name.lower() for call in tree.find_all(expressions.Anonymous)}
    if tree.find(*clock_nodes) is not None or calls & _CLOCKS:
        raise PredicateError(
            "an expectation cannot depend on the current time, because its result is kept: compare "
            "with a date, such as date '2030-01-01'"
        )
    roots = tuple(
        dict.fromkeys(column.parts[0].name for column in tree.find_all(expressions.Column))
    )
    for name in roots:
        if name in ROW_COLUMNS:
            raise PredicateError(f"an expectation cannot name {name}, which changes as rows move")
    return roots


def _tests(sql: str) -> dict[str, str]:
    # A comment at the end of the condition must not swallow the bracket.
    return {"true": f"({sql}\n) IS TRUE", "false": f"({sql}\n) IS FALSE"}


def _columns_of(expectation: Expectation) -> tuple[str, ...]:
    if expectation.kind == "check":
        return roots_of(expectation.sql)
    return expectation.columns or ((expectation.column,) if expectation.column else ())


def _field_ids(dataset: LanceDataset, names: Sequence[str]) -> tuple[frozenset[int], str]:
    """Return the ids of top-level columns with all that is in them, and a text that names them.

    Raises ColumnNotFoundError.
    """
    fields_by_name = {field.name.lower(): field for field in dataset.opened[1].manifest.schema}
    ids: set[int] = set()
    words = []
    for name in names:
        field = fields_by_name.get(name.lower())
        if field is None:
            raise ColumnNotFoundError(name, tuple(dataset.schema.names))
        for nested in field.walk():
            ids.add(nested.id)
            words.append(f"{nested.name}\0{nested.id}\0{nested.logical_type}")
    return frozenset(ids), "\0".join(words)


class Checker:
    """Evaluates the expectations of one dataset at any of its versions.

    ``names``: only these; InvalidInputError for one that does not exist.
    """

    def __init__(
        self,
        dataset: LanceDataset,
        names: Sequence[str] | None = None,
        *,
        cache: bool = True,
        allow_bases: Sequence[str] = (),
        configured: ConfiguredExpectations | None = None,
    ) -> None:
        session, snapshot = dataset.opened
        self._dataset_type = type(dataset)
        configuration = configured or ConfiguredExpectations.of(snapshot.manifest.config)
        all_names = sorted((*configuration.expectations, *configuration.problems))
        for name in names or ():
            if name not in all_names:
                listed = ", ".join(map(repr, all_names)) or "none"
                raise InvalidInputError(f"there is no expectation {name!r}; there are: {listed}")
        chosen_names = all_names if names is None else list(dict.fromkeys(names))
        self._expectations = [
            configuration.expectations[name]
            for name in chosen_names
            if name in configuration.expectations
        ]
        self._problems = {
            name: configuration.problems[name]
            for name in chosen_names
            if name in configuration.problems
        }
        self._allowed = (session.root.uri, *session.trusted_bases, *allow_bases)
        self._cache = CheckCache(session, is_used=cache)
        self._referenced: dict[str, LanceDataset] = {}
        self._values: dict[tuple[str, str, str], pa.Array] = {}
        self._session = session
        self._tick: Callable[[], object] = int  # called between batches; may raise to cancel

    def evaluate(self, dataset: LanceDataset, progress: Progress | None = None) -> CheckResult:
        """Evaluate all expectations at the version of ``dataset``."""
        before = meter.totals().read_bytes
        outcomes = []
        for done, expectation in enumerate(self._expectations):
            if progress is not None:
                self._tick = partial(progress, done, len(self._expectations))
            self._tick()
            outcomes.append(self._outcome(dataset, expectation))
        for name, problem in self._problems.items():
            outcomes.append(CheckOutcome(name, "", "unreadable", status="unknown", detail=problem))
        outcomes.sort(key=lambda outcome: outcome.name)
        read = meter.totals().read_bytes - before
        return CheckResult(
            dataset.name, dataset.branch, dataset.version, outcomes=tuple(outcomes), bytes_read=read
        )

    def columns_of(self, name: str) -> tuple[str, ...]:
        """Return the top-level columns that an expectation of this checker names."""
        return next(
            _columns_of(expectation)
            for expectation in self._expectations
            if expectation.name == name
        )

    def save(self) -> None:
        """Write what was found into the cache."""
        self._cache.save()

    def _outcome(self, dataset: LanceDataset, expectation: Expectation) -> CheckOutcome:
        try:
            return self._evaluated(dataset, expectation)
        except _NOT_EVALUATED as error:
            return CheckOutcome(
                expectation.name,
                expectation.statement,
                expectation.kind,
                status="unknown",
                detail=clip(str(error)),
            )

    def _evaluated(self, dataset: LanceDataset, expectation: Expectation) -> CheckOutcome:
        match expectation.kind:
            case "row_count":
                return _row_count(dataset, expectation)
            case "drift":
                return self._drift(dataset, expectation)
            case "unique":
                return self._unique(dataset, expectation)
            case "check":
                sql = expectation.sql
            case "not_null":
                sql = f"{format_column_path([expectation.column])} IS NOT NULL"
            case "reference":
                return self._reference(dataset, expectation)
        return self._condition(dataset, expectation, sql)

    def unread_bytes(self, dataset: LanceDataset) -> int:
        """Return how many bytes of data files hold what ``evaluate`` would read of this version.

        It reads at most that, as it reads columns and not whole files; 0 means that the cache has
        all results. A file whose size is not recorded counts as ``UNSIZED_FILE_BYTES``.
        """
        missing: set[int] = set()
        fragments = dataset.opened[1].manifest.fragments
        for expectation in self._expectations:
            try:
                if expectation.kind == "drift":
                    before = self._baseline(dataset, expectation)
                    if (
                        before is None
                        or self._drift_entry(dataset, before, expectation)[2] is not None
                    ):
                        continue
                    missing.update(range(len(fragments)))
                elif expectation.kind != "row_count":
                    cache, keys = self._cached(dataset, expectation)
                    lookup = cache.hashes if expectation.kind == "unique" else cache.get
                    missing.update(
                        position for position, key in enumerate(keys) if lookup(key) is None
                    )
            except _NOT_EVALUATED:
                continue  # nothing is read for it
        return sum(
            file.file_size_bytes or UNSIZED_FILE_BYTES
            for position in missing
            for file in fragments[position].files
        )

    # --- counted by fragment ----------------------------------------------------------------------

    def _cached(
        self, dataset: LanceDataset, expectation: Expectation
    ) -> tuple[ResultCache, list[str]]:
        """Return the cache of an expectation, and the key in it of each fragment of a version."""
        ids, columns = _field_ids(dataset, _columns_of(expectation))
        if expectation.kind == "reference":
            columns = f"{columns}\0{self._referenced_dataset(expectation)[1]}"
        keys = self._cache.fragment_keys(dataset.opened[1], ids)
        return self._cache.of(expectation.statement, columns), keys

    def _condition(self, dataset: LanceDataset, expectation: Expectation, sql: str) -> CheckOutcome:
        cache, keys = self._cached(dataset, expectation)

        def failures(fragments: list[int]) -> Iterator[tuple[Hashes, pa.Array, pa.Array]]:
            chosen = _chosen(dataset, fragments)
            scanner = dataset.scanner(columns=_tests(sql), fragments=chosen, with_row_address=True)
            for batch in scanner.to_batches():
                self._tick()
                yield _fragment_ids(batch), batch["true"], batch["false"]

        counts = _Counts.of(keys, dataset, cache)
        counts.count(failures)
        is_check = expectation.kind == "check"
        ending = "\n" if "--" in sql else ""
        filter_ = f"({sql}{ending}) IS FALSE" if is_check else sql.replace(" NOT NULL", " NULL")
        words = "the condition is false" if is_check else "the column is NULL"
        return counts.outcome(expectation, words, filter_)

    def _reference(self, dataset: LanceDataset, expectation: Expectation) -> CheckOutcome:
        cache, keys = self._cached(dataset, expectation)

        def failures(fragments: list[int]) -> Iterator[tuple[Hashes, pa.Array, pa.Array]]:
            for batch, is_in, is_strange in self._references(dataset, expectation, fragments):
                yield _fragment_ids(batch), is_in, is_strange

        counts = _Counts.of(keys, dataset, cache)
        counts.count(failures)
        return counts.outcome(
            expectation, f"the value is not in `{expectation.to}` of {expectation.uri}", None
        )

    def _references(
        self, dataset: LanceDataset, expectation: Expectation, fragments: list[int]
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array, pa.Array]]:
        """Yield batches, and which of their values are allowed and which are not."""
        type_ = dataset.schema.field(expectation.column).type
        allowed = self._allowed_values(self._referenced_dataset(expectation)[0], expectation, type_)
        chosen = _chosen(dataset, fragments)
        scanner = dataset.scanner(
            columns=[expectation.column], fragments=chosen, with_row_address=True
        )
        for batch in scanner.to_batches():
            self._tick()
            values = batch.column(0)
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            is_in = pc.is_in(values, value_set=allowed)
            is_valid = values.is_valid()
            yield batch, pc.and_(is_in, is_valid), pc.and_not(is_valid, is_in)

    def _referenced_dataset(self, expectation: Expectation) -> tuple[LanceDataset, str]:
        """Return the dataset that a reference names, and a text that changes when it does."""
        if not any(relative_uri(expectation.uri, place) is not None for place in self._allowed):
            advice = how_to_allow(
                self._session.trusted_bases, expectation.uri, self._session.root.uri
            )
            raise _UnknownError(f"the values are in another dataset, {expectation.uri!r}; {advice}")
        other = self._referenced.get(expectation.uri)
        if other is None:
            options = self._session.storage_options
            try:
                other = self._dataset_type(
                    expectation.uri, storage_options=options, allow_bases=self._allowed[1:]
                )
            except NotFoundError as error:
                raise _UnknownError(f"the values cannot be read: {error}") from error
            self._referenced[expectation.uri] = other
        if expectation.to not in other.schema.names:
            raise ColumnNotFoundError(expectation.to, tuple(other.schema.names))
        return other, f"{other.uri}\0{stamp_of(other.opened[1].manifest)}"

    def _allowed_values(
        self, other: LanceDataset, expectation: Expectation, type_: pa.DataType
    ) -> pa.Array:
        """Return the distinct values that a reference allows."""
        value_type = type_.value_type if pa.types.is_dictionary(type_) else type_
        place = (expectation.uri, expectation.to, str(value_type))
        if place in self._values:
            return self._values[place]
        allowed: pa.Array = pa.array([], value_type)
        for batch in other.to_batches(columns=[expectation.to]):
            values = batch.column(0)
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            try:
                values = cast_array(values, value_type)
            except pa.ArrowException as error:
                raise _UnknownError(
                    f"`{expectation.to}` of {expectation.uri} is {values.type}, "
                    f"`{expectation.column}` is {type_}"
                ) from error
            allowed = pa.concat_arrays([allowed, values.drop_null()]).unique()
            if len(allowed) > REFERENCED_MAX:
                raise _UnknownError(
                    f"`{expectation.to}` has more than {REFERENCED_MAX:,} distinct values"
                )
        self._values[place] = allowed
        return allowed

    # --- unique keys ------------------------------------------------------------------------------

    def _unique(self, dataset: LanceDataset, expectation: Expectation) -> CheckOutcome:
        for name in expectation.columns:
            _field_ids(dataset, [name])
            check_key_type(name, dataset.schema.field(name).type)
        cache, keys = self._cached(dataset, expectation)
        numbers = dataset.opened[1].manifest.fragments.counts().ids.tolist()
        missing = [position for position, key in enumerate(keys) if cache.hashes(key) is None]
        if missing:
            self._hash_fragments(
                dataset,
                expectation.columns,
                [numbers[position] for position in missing],
                keys={numbers[position]: keys[position] for position in missing},
                cache=cache,
            )
        held = [cache.hashes(key) for key in keys]
        hashes = [np.zeros(0, np.uint64) if cached is None else cached for cached in held]
        num_rows = int(live_counts(dataset.opened[1]).sum())
        num_valid = sum(map(len, hashes))
        # What repeats is known for the same fragments, also at another version.
        place = digest("repeated", *keys)
        counted = cache.get(place)
        if counted is None:
            addresses = self._repeated(dataset, expectation, hashes, numbers)
            owners = np.unique(addresses >> np.uint64(32)).astype(np.int64).tolist()
            places = {number: position for position, number in enumerate(numbers)}
            shown = owners[: FRAGMENTS_MAX + 1]
            counted = (len(addresses), *(places[owner] for owner in shown))
            cache.put(place, counted)
        num_failed = int(counted[0])
        fragments = [numbers[int(position)] for position in counted[1:]]
        outcome = CheckOutcome(
            expectation.name,
            expectation.statement,
            expectation.kind,
            "pass",
            num_rows=num_rows,
            num_failed=num_failed,
            num_null=num_rows - num_valid,
            num_fragments_read=len(missing),
            num_fragments_cached=len(keys) - len(missing),
        )
        if not num_failed:
            return outcome
        detail = f"{_rows_text(num_failed)} of {num_rows:,} have a key that another row has"
        detail = f"{detail}{_in_fragments(fragments)}"
        first = tuple(fragments[:FRAGMENTS_MAX])
        return replace(outcome, status="fail", detail=detail, fragments=first)

    def _hash_fragments(
        self,
        dataset: LanceDataset,
        columns: Sequence[str],
        fragments: list[int],
        keys: dict[int, str],
        cache: ResultCache,
    ) -> None:
        parts: dict[int, list[Hashes]] = {number: [] for number in fragments}
        chosen = _chosen(dataset, fragments)
        scanner = dataset.scanner(columns=list(columns), fragments=chosen, with_row_address=True)
        for batch in scanner.to_batches():
            self._tick()
            owners = _fragment_ids(batch)
            hashes, valid = key_hashes([batch[name] for name in columns])
            for number in np.unique(owners).tolist():
                parts[number].append(hashes[valid & (owners == number)])
        for number, part in parts.items():
            joined = np.concatenate(part) if part else np.zeros(0, np.uint64)
            cache.put_hashes(keys[number], np.sort(joined))

    def _repeated(
        self,
        dataset: LanceDataset,
        expectation: Expectation,
        hashes: list[Hashes],
        numbers: list[int],
    ) -> Hashes:
        """Return the addresses of the rows that share their key with another row."""
        every = np.sort(np.concatenate(hashes)) if hashes else np.zeros(0, np.uint64)
        twice = np.unique(every[1:][every[1:] == every[:-1]])
        if not twice.size:
            return np.zeros(0, np.uint64)
        suspects = [
            number
            for number, own in zip(numbers, hashes, strict=True)
            if own.size and _contains_any(own, twice)
        ]
        chosen = _chosen(dataset, suspects)
        names = list(expectation.columns)
        scanner = dataset.scanner(columns=names, fragments=chosen, with_row_address=True)
        parts = []
        for batch in scanner.to_batches():
            self._tick()
            row_hashes, valid = key_hashes([batch[name] for name in names])
            is_repeated = valid & np.isin(row_hashes, twice)
            parts.append(batch.filter(pa.array(is_repeated)))
        table = _with_one_zero(pa.Table.from_batches(parts, scanner.projected_schema))
        groups = table.group_by(names).aggregate([(ROW_ADDRESS, "count"), (ROW_ADDRESS, "list")])
        counts = groups[f"{ROW_ADDRESS}_count"].to_numpy()
        repeated = groups.filter(pa.array(counts > 1))
        addresses = repeated[f"{ROW_ADDRESS}_list"].combine_chunks().flatten()
        ordered: Hashes = np.sort(addresses.to_numpy(zero_copy_only=False))
        return ordered

    # --- the rows that fail -----------------------------------------------------------------------

    def failing_rows(
        self,
        dataset: LanceDataset,
        limit: int,
        columns: Sequence[str] | None = None,
        *,
        name: str | None = None,
        first: frozenset[int] = frozenset(),
    ) -> pa.Table:
        """Return the first rows for which an expectation fails: ``name``, or the only one.

        If rows of the fragments ``first`` fail, only those are returned.

        Raises InvalidInputError for an expectation that is not about rows, or cannot be evaluated.
        """
        for outcome in self.evaluate(dataset).outcomes:
            if outcome.name == name or name is None:
                break
        if outcome.status == "unknown":
            raise InvalidInputError(f"expectation {outcome.name!r}: {outcome.detail}")
        (expectation,) = (
            candidate for candidate in self._expectations if candidate.name == outcome.name
        )
        column_names = list(columns) if columns is not None else None
        if expectation.kind in {"row_count", "drift"}:
            raise InvalidInputError(
                f"expectation {expectation.name!r} is about all rows together: no single row "
                "fails it"
            )
        if outcome.status == "pass":
            return dataset.scanner(columns=column_names, limit=0).to_table()
        fragments = [number for number in outcome.fragments if number in first] or outcome.fragments
        if outcome.filter is not None:
            chosen = _chosen(dataset, fragments)
            return dataset.scanner(
                columns=column_names, filter=outcome.filter, fragments=chosen, limit=limit
            ).to_table()
        addresses = self._failing_addresses(dataset, expectation, fragments, limit)
        chosen = _chosen(dataset, sorted({address >> 32 for address in addresses}))
        listed = ", ".join(map(str, addresses))
        return dataset.scanner(
            columns=column_names, filter=f"{ROW_ADDRESS} IN ({listed})", fragments=chosen
        ).to_table()

    def _failing_addresses(
        self, dataset: LanceDataset, expectation: Expectation, fragments: Sequence[int], limit: int
    ) -> list[int]:
        if expectation.kind == "unique":
            cache, keys = self._cached(dataset, expectation)
            numbers = dataset.opened[1].manifest.fragments.counts().ids.tolist()
            held = [cache.hashes(key) for key in keys]
            hashes = [np.zeros(0, np.uint64) if own is None else own for own in held]
            repeated = self._repeated(dataset, expectation, hashes, numbers)
            owners = (repeated >> np.uint64(32)).astype(np.int64)
            listed: list[int] = repeated[np.isin(owners, fragments)][:limit].tolist()
            return listed
        addresses: list[int] = []
        for batch, _, is_strange in self._references(dataset, expectation, list(fragments)):
            addresses += batch[ROW_ADDRESS].filter(is_strange).to_pylist()
            if len(addresses) >= limit:
                break
        return addresses[:limit]

    # --- of a whole version -----------------------------------------------------------------------

    def _drift_entry(
        self, dataset: LanceDataset, before: LanceDataset, expectation: Expectation
    ) -> tuple[ResultCache, str, Numbers | None]:
        """Return the cache of a drift, the key of the two versions in it, and what is known."""
        ids, columns = _field_ids(dataset, [expectation.column])
        other_ids, other_columns = _field_ids(before, [expectation.column])
        cache = self._cache.of(expectation.statement, f"{columns}\0{other_columns}")
        old = self._cache.fragment_keys(before.opened[1], other_ids)
        new = self._cache.fragment_keys(dataset.opened[1], ids)
        key = digest(*old, "to", *new)
        return cache, key, (0.0,) if old == new else cache.get(key)

    def _drift(self, dataset: LanceDataset, expectation: Expectation) -> CheckOutcome:
        _field_ids(dataset, [expectation.column])
        before = self._baseline(dataset, expectation)
        if before is None:
            explanation = "there is no version before this one"
            return CheckOutcome(
                expectation.name,
                expectation.statement,
                expectation.kind,
                status="pass",
                detail=explanation,
            )
        cache, key, cached = self._drift_entry(dataset, before, expectation)
        if cached is None:
            measured_psi = dataset.diff(before, dataset).drift([expectation.column])[0].psi
            cached = (-1.0 if measured_psi is None else measured_psi,)
            cache.put(key, cached)
        psi = cached[0]
        if psi < 0:
            raise _UnknownError(
                f"the values of `{expectation.column}` are not counted in one of the two"
            )
        is_fine = psi <= expectation.limit
        explanation = f"drift {psi:.3g} from {before.branch or 'main'}:{before.version}"
        return CheckOutcome(
            expectation.name,
            expectation.statement,
            expectation.kind,
            status="pass" if is_fine else "fail",
            detail=explanation if is_fine else f"{explanation} is above {expectation.limit:g}",
            measured=psi,
        )

    @staticmethod
    def _baseline(dataset: LanceDataset, expectation: Expectation) -> LanceDataset | None:
        if expectation.against != PREVIOUS:
            ref = (
                int(expectation.against) if expectation.against.isdecimal() else expectation.against
            )
            try:
                return dataset.checkout_version(ref)
            except LanceError as error:
                raise _UnknownError(f"{expectation.against!r} cannot be opened: {error}") from error
        numbers = dataset.version_numbers()
        older = [number for number in numbers if number < dataset.version]
        if not older:
            return None
        return dataset.checkout_version((dataset.branch, older[-1]))


def _with_one_zero(table: pa.Table) -> pa.Table:
    """Return the table without -0.0, which SQL takes for 0.0 and Arrow groups apart."""
    for index, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            zero = pa.scalar(0.0, pa.float64()).cast(field.type)
            table = table.set_column(index, field, pc.add(table.column(index), zero))
    return table


def _chosen(dataset: LanceDataset, numbers: Sequence[int]) -> list[LanceFragment]:
    fragments = map(dataset.get_fragment, numbers)
    return [fragment for fragment in fragments if fragment is not None]


def _fragment_ids(batch: pa.RecordBatch) -> Hashes:
    addresses: Hashes = batch[ROW_ADDRESS].to_numpy(zero_copy_only=False) >> np.uint64(32)
    return addresses


def _contains_any(ordered: Hashes, members: Hashes) -> bool:
    places = np.minimum(np.searchsorted(ordered, members), ordered.size - 1)
    return bool((ordered[places] == members).any())


def _rows_text(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _in_fragments(fragments: Sequence[int]) -> str:
    if not fragments:
        return ""
    listed = ", ".join(map(str, fragments[:FRAGMENTS_MAX]))
    more = ", ..." if len(fragments) > FRAGMENTS_MAX else ""
    return f"; in fragment{'' if len(fragments) == 1 else 's'} {listed}{more}"


def _row_count(dataset: LanceDataset, expectation: Expectation) -> CheckOutcome:
    rows = dataset.count_rows()
    low = expectation.minimum is None or rows >= expectation.minimum
    high = expectation.maximum is None or rows <= expectation.maximum
    detail = _rows_text(rows)
    if not low:
        detail = f"{detail}, at least {expectation.minimum:,} expected"
    elif not high:
        detail = f"{detail}, at most {expectation.maximum:,} expected"
    return CheckOutcome(
        expectation.name,
        expectation.statement,
        expectation.kind,
        status="pass" if low and high else "fail",
        detail=detail,
        num_rows=rows,
        measured=float(rows),
    )


class _Counts:
    """Rows, false rows and NULL rows of each fragment; what the cache lacks is counted."""

    def __init__(self, keys: list[str], numbers: list[int], cache: ResultCache) -> None:
        self._keys = keys
        self._numbers = numbers
        self._cache = cache
        self._missing: list[int] = []

    @classmethod
    def of(cls, keys: list[str], dataset: LanceDataset, cache: ResultCache) -> _Counts:
        return cls(keys, dataset.opened[1].manifest.fragments.counts().ids.tolist(), cache)

    def count(
        self, failures: Callable[[list[int]], Iterator[tuple[Hashes, pa.Array, pa.Array]]]
    ) -> None:
        """Count the fragments that are not known; ``failures`` yields batches of them.

        A batch is the fragment of each row, and which rows are true and which are false.
        """
        self._missing = [
            position for position, key in enumerate(self._keys) if self._cache.get(key) is None
        ]
        if not self._missing:
            return
        numbers = np.array([self._numbers[position] for position in self._missing], np.uint64)
        order = np.argsort(numbers)
        totals = np.zeros((3, len(numbers)), np.int64)
        for owners, is_true, is_false in failures(numbers.tolist()):
            places = order[np.searchsorted(numbers[order], owners)]
            weights = [
                np.ones(len(places)),
                *(
                    np.asarray(mask.fill_null(False).to_numpy(zero_copy_only=False), np.float64)
                    for mask in (is_false, is_true)
                ),
            ]
            for position, weight in enumerate(weights):
                totals[position] += np.bincount(places, weight, len(numbers)).astype(np.int64)
        totals[2] = totals[0] - totals[1] - totals[2]
        for position, counts in zip(self._missing, totals.T.tolist(), strict=True):
            self._cache.put(self._keys[position], counts)

    def outcome(self, expectation: Expectation, words: str, filter_: str | None) -> CheckOutcome:
        results: list[Numbers] = [self._cache.get(key) or (0, 0, 0) for key in self._keys]
        sums = np.array(results, np.int64).reshape(-1, 3).sum(axis=0).tolist()
        num_rows, num_failed, num_null = sums
        fragments = [
            number for number, counts in zip(self._numbers, results, strict=True) if counts[1]
        ]
        detail = ""
        if num_failed:
            detail = (
                f"{words} for {_rows_text(num_failed)} of {num_rows:,}{_in_fragments(fragments)}"
            )
        elif num_null and expectation.kind == "check":
            detail = f"NULL for {_rows_text(num_null)}, which pass"
        return CheckOutcome(
            name=expectation.name,
            statement=expectation.statement,
            kind=expectation.kind,
            status="fail" if num_failed else "pass",
            detail=detail,
            num_rows=num_rows,
            num_failed=num_failed,
            num_null=num_null,
            filter=filter_,
            fragments=tuple(fragments[:FRAGMENTS_MAX]),
            num_fragments_read=len(self._missing),
            num_fragments_cached=len(self._keys) - len(self._missing),
        )
