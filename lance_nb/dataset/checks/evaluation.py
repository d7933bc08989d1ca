"""Evaluate expectations at versions of a dataset.

A condition, not-null or a reference is counted fragment by fragment: rows, rows for which it is
false, rows for which it is NULL. What the cache knows is not read again (checks/cache.py). For a
unique key the sorted hashes of each fragment are kept; where two rows share a hash, the keys behind
them are read and compared, so that the answer is exact. The number of rows comes from the manifest.
Drift reads the column in both versions, sampled, and is kept for the pair of versions.

NULL is treated as in SQL: a condition that is NULL holds (CHECK), a key with a NULL is equal to no
other key (UNIQUE), and a NULL refers to nothing and needs nothing (FOREIGN KEY).

A reference names another dataset, and reading it would use the reader's own credentials. It is read
only where base paths may be read (dataset/base_paths.py); else the outcome is unknown, and says
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
from sqlglot import expressions
from sqlglot.errors import SqlglotError

from lance_nb.arrow_casts import cast_array
from lance_nb.dataset.checks.cache import CheckCache, Numbers, ResultCache, digest
from lance_nb.dataset.checks.key_hashes import Hashes, check_key_type, key_hashes
from lance_nb.dataset.checks.result import FRAGMENTS_MAX, CheckOutcome, CheckResult
from lance_nb.dataset.opened import stamp_of
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
_CLOCK_NODES = (
    expressions.CurrentTimestamp,
    expressions.CurrentDate,
    expressions.CurrentTime,
)

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
    calls = {one.name.lower() for one in tree.find_all(expressions.Anonymous)}
    if tree.find(*_CLOCK_NODES) is not None or calls & _CLOCKS:
        raise PredicateError(
            "an expectation cannot depend on the current time, because its result is kept: compare "
            "with a date, such as date '2030-01-01'"
        )
    roots = tuple(dict.fromkeys(one.parts[0].name for one in tree.find_all(expressions.Column)))
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
    known = {one.name.lower(): one for one in dataset.opened[1].manifest.schema}
    ids: set[int] = set()
    words = []
    for name in names:
        field = known.get(name.lower())
        if field is None:
            raise ColumnNotFoundError(name, tuple(dataset.schema.names))
        for one in field.walk():
            ids.add(one.id)
            words.append(f"{one.name}\0{one.id}\0{one.logical_type}")
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
        found = configured or ConfiguredExpectations.of(snapshot.manifest.config)
        known = sorted((*found.expectations, *found.problems))
        for name in names or ():
            if name not in known:
                listed = ", ".join(map(repr, known)) or "none"
                raise InvalidInputError(f"there is no expectation {name!r}; there are: {listed}")
        wanted = known if names is None else list(dict.fromkeys(names))
        self._expectations = [
            found.expectations[one] for one in wanted if one in found.expectations
        ]
        self._problems = {one: found.problems[one] for one in wanted if one in found.problems}
        self._allowed = (session.root.uri, *session.trusted_bases, *allow_bases)
        self._cache = CheckCache(session, is_used=cache)
        self._others: dict[str, LanceDataset] = {}
        self._values: dict[tuple[str, str, str], pa.Array] = {}
        self._session = session
        self._tick: Callable[[], object] = int  # called between batches; may raise to cancel

    def at(self, dataset: LanceDataset, progress: Progress | None = None) -> CheckResult:
        """Evaluate all expectations at the version of ``dataset``."""
        before = meter.totals().read_bytes
        outcomes = []
        for done, one in enumerate(self._expectations):
            if progress is not None:
                self._tick = partial(progress, done, len(self._expectations))
            self._tick()
            outcomes.append(self._outcome(dataset, one))
        for name, problem in self._problems.items():
            outcomes.append(CheckOutcome(name, "", "unreadable", "unknown", problem))
        outcomes.sort(key=lambda one: one.name)
        read = meter.totals().read_bytes - before
        return CheckResult(dataset.name, dataset.branch, dataset.version, tuple(outcomes), read)

    def columns_of(self, name: str) -> tuple[str, ...]:
        """Return the top-level columns that an expectation of this checker names."""
        return next(_columns_of(one) for one in self._expectations if one.name == name)

    def save(self) -> None:
        """Write what was found into the cache."""
        self._cache.save()

    def _outcome(self, dataset: LanceDataset, one: Expectation) -> CheckOutcome:
        try:
            return self._evaluated(dataset, one)
        except _NOT_EVALUATED as error:
            return CheckOutcome(one.name, one.statement, one.kind, "unknown", clip(str(error)))

    def _evaluated(self, dataset: LanceDataset, one: Expectation) -> CheckOutcome:
        match one.kind:
            case "row_count":
                return _row_count(dataset, one)
            case "drift":
                return self._drift(dataset, one)
            case "unique":
                return self._unique(dataset, one)
            case "check":
                sql = one.sql
            case "not_null":
                sql = f"{format_column_path([one.column])} IS NOT NULL"
            case "reference":
                return self._reference(dataset, one)
        return self._condition(dataset, one, sql)

    def unread_bytes(self, dataset: LanceDataset) -> int:
        """Return how many bytes of data files hold what ``at`` would read of this version.

        It reads at most that, as it reads columns and not whole files; 0 means that the cache has
        all results. A file whose size is not recorded counts as ``UNSIZED_FILE_BYTES``.
        """
        missing: set[int] = set()
        fragments = dataset.opened[1].manifest.fragments
        for one in self._expectations:
            try:
                if one.kind == "drift":
                    before = self._baseline(dataset, one)
                    if before is None or self._drift_entry(dataset, before, one)[2] is not None:
                        continue
                    missing.update(range(len(fragments)))
                elif one.kind != "row_count":
                    cache, keys = self._cached(dataset, one)
                    known = cache.hashes if one.kind == "unique" else cache.get
                    missing.update(at for at, key in enumerate(keys) if known(key) is None)
            except _NOT_EVALUATED:
                continue  # nothing is read for it
        return sum(
            file.file_size_bytes or UNSIZED_FILE_BYTES
            for at in missing
            for file in fragments[at].files
        )

    # --- counted by fragment ----------------------------------------------------------------------

    def _cached(self, dataset: LanceDataset, one: Expectation) -> tuple[ResultCache, list[str]]:
        """Return the cache of an expectation, and the key in it of each fragment of a version."""
        ids, columns = _field_ids(dataset, _columns_of(one))
        if one.kind == "reference":
            columns = f"{columns}\0{self._referenced_dataset(one)[1]}"
        keys = self._cache.fragment_keys(dataset.opened[1], ids)
        return self._cache.of(one.statement, columns), keys

    def _condition(self, dataset: LanceDataset, one: Expectation, sql: str) -> CheckOutcome:
        cache, keys = self._cached(dataset, one)

        def failures(fragments: list[int]) -> Iterator[tuple[Hashes, pa.Array, pa.Array]]:
            chosen = _chosen(dataset, fragments)
            scanner = dataset.scanner(columns=_tests(sql), fragments=chosen, with_row_address=True)
            for batch in scanner.to_batches():
                self._tick()
                yield _fragment_ids(batch), batch["true"], batch["false"]

        counts = _Counts.of(keys, dataset, cache)
        counts.count(failures)
        is_check = one.kind == "check"
        ending = "\n" if "--" in sql else ""
        filter_ = f"({sql}{ending}) IS FALSE" if is_check else sql.replace(" NOT NULL", " NULL")
        words = "the condition is false" if is_check else "the column is NULL"
        return counts.outcome(one, words, filter_)

    def _reference(self, dataset: LanceDataset, one: Expectation) -> CheckOutcome:
        cache, keys = self._cached(dataset, one)

        def failures(fragments: list[int]) -> Iterator[tuple[Hashes, pa.Array, pa.Array]]:
            for batch, is_in, is_strange in self._references(dataset, one, fragments):
                yield _fragment_ids(batch), is_in, is_strange

        counts = _Counts.of(keys, dataset, cache)
        counts.count(failures)
        return counts.outcome(one, f"the value is not in `{one.to}` of {one.uri}", None)

    def _references(
        self, dataset: LanceDataset, one: Expectation, fragments: list[int]
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array, pa.Array]]:
        """Yield batches, and which of their values are allowed and which are not."""
        import pyarrow.compute as pc

        type_ = dataset.schema.field(one.column).type
        allowed = self._allowed_values(self._referenced_dataset(one)[0], one, type_)
        chosen = _chosen(dataset, fragments)
        scanner = dataset.scanner(columns=[one.column], fragments=chosen, with_row_address=True)
        for batch in scanner.to_batches():
            self._tick()
            values = batch.column(0)
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            is_in = pc.is_in(values, value_set=allowed)
            is_valid = values.is_valid()
            yield batch, pc.and_(is_in, is_valid), pc.and_not(is_valid, is_in)

    def _referenced_dataset(self, one: Expectation) -> tuple[LanceDataset, str]:
        """Return the dataset that a reference names, and a text that changes when it does."""
        from lance_nb.dataset.dataset import LanceDataset

        if not any(relative_uri(one.uri, place) is not None for place in self._allowed):
            advice = how_to_allow(self._session.trusted_bases, one.uri, self._session.root.uri)
            raise _UnknownError(f"the values are in another dataset, {one.uri!r}; {advice}")
        other = self._others.get(one.uri)
        if other is None:
            options = self._session.storage_options
            try:
                other = LanceDataset(
                    one.uri, storage_options=options, allow_bases=self._allowed[1:]
                )
            except NotFoundError as error:
                raise _UnknownError(f"the values cannot be read: {error}") from error
            self._others[one.uri] = other
        if one.to not in other.schema.names:
            raise ColumnNotFoundError(one.to, tuple(other.schema.names))
        return other, f"{other.uri}\0{stamp_of(other.opened[1].manifest)}"

    def _allowed_values(
        self, other: LanceDataset, one: Expectation, type_: pa.DataType
    ) -> pa.Array:
        """Return the distinct values that a reference allows."""
        wanted = type_.value_type if pa.types.is_dictionary(type_) else type_
        place = (one.uri, one.to, str(wanted))
        if place in self._values:
            return self._values[place]
        known: pa.Array = pa.array([], wanted)
        for batch in other.to_batches(columns=[one.to]):
            values = batch.column(0)
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            try:
                values = cast_array(values, wanted)
            except pa.ArrowException as error:
                raise _UnknownError(
                    f"`{one.to}` of {one.uri} is {values.type}, `{one.column}` is {type_}"
                ) from error
            known = pa.concat_arrays([known, values.drop_null()]).unique()
            if len(known) > REFERENCED_MAX:
                raise _UnknownError(f"`{one.to}` has more than {REFERENCED_MAX:,} distinct values")
        self._values[place] = known
        return known

    # --- unique keys ------------------------------------------------------------------------------

    def _unique(self, dataset: LanceDataset, one: Expectation) -> CheckOutcome:
        for name in one.columns:
            _field_ids(dataset, [name])
            check_key_type(name, dataset.schema.field(name).type)
        cache, keys = self._cached(dataset, one)
        numbers = dataset.opened[1].manifest.fragments.counts().ids.tolist()
        missing = [at for at, key in enumerate(keys) if cache.hashes(key) is None]
        if missing:
            self._hash_fragments(dataset, one.columns, [numbers[at] for at in missing],
                                 {numbers[at]: keys[at] for at in missing}, cache)  # fmt: skip
        held = [cache.hashes(key) for key in keys]
        hashes = [np.zeros(0, np.uint64) if one is None else one for one in held]
        num_rows = int(live_counts(dataset.opened[1]).sum())
        num_valid = sum(map(len, hashes))
        # What repeats is known for the same fragments, also at another version.
        place = digest("repeated", *keys)
        counted = cache.get(place)
        if counted is None:
            addresses = self._repeated(dataset, one, hashes, numbers)
            owners = np.unique(addresses >> np.uint64(32)).astype(np.int64).tolist()
            places = {number: at for at, number in enumerate(numbers)}
            shown = owners[: FRAGMENTS_MAX + 1]
            counted = (len(addresses), *(places[owner] for owner in shown))
            cache.put(place, counted)
        num_failed = int(counted[0])
        fragments = [numbers[int(at)] for at in counted[1:]]
        found = CheckOutcome(
            one.name, one.statement, one.kind, "pass", num_rows=num_rows, num_failed=num_failed,
            num_null=num_rows - num_valid, num_fragments_read=len(missing),
            num_fragments_cached=len(keys) - len(missing),
        )  # fmt: skip
        if not num_failed:
            return found
        detail = f"{_rows_text(num_failed)} of {num_rows:,} have a key that another row has"
        detail = f"{detail}{_in_fragments(fragments)}"
        first = tuple(fragments[:FRAGMENTS_MAX])
        return replace(found, status="fail", detail=detail, fragments=first)

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
        for number, found in parts.items():
            joined = np.concatenate(found) if found else np.zeros(0, np.uint64)
            cache.put_hashes(keys[number], np.sort(joined))

    def _repeated(
        self, dataset: LanceDataset, one: Expectation, hashes: list[Hashes], numbers: list[int]
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
        names = list(one.columns)
        scanner = dataset.scanner(columns=names, fragments=chosen, with_row_address=True)
        parts = []
        for batch in scanner.to_batches():
            self._tick()
            found, valid = key_hashes([batch[name] for name in names])
            wanted = valid & np.isin(found, twice)
            parts.append(batch.filter(pa.array(wanted)))
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
        for outcome in self.at(dataset).outcomes:
            if outcome.name == name or name is None:
                break
        if outcome.status == "unknown":
            raise InvalidInputError(f"expectation {outcome.name!r}: {outcome.detail}")
        (one,) = (found for found in self._expectations if found.name == outcome.name)
        wanted = list(columns) if columns is not None else None
        if one.kind in {"row_count", "drift"}:
            raise InvalidInputError(
                f"expectation {one.name!r} is about all rows together: no single row fails it"
            )
        if outcome.status == "pass":
            return dataset.scanner(columns=wanted, limit=0).to_table()
        fragments = [at for at in outcome.fragments if at in first] or outcome.fragments
        if outcome.filter is not None:
            chosen = _chosen(dataset, fragments)
            return dataset.scanner(
                columns=wanted, filter=outcome.filter, fragments=chosen, limit=limit
            ).to_table()
        addresses = self._failing_addresses(dataset, one, fragments, limit)
        chosen = _chosen(dataset, sorted({address >> 32 for address in addresses}))
        listed = ", ".join(map(str, addresses))
        return dataset.scanner(
            columns=wanted, filter=f"{ROW_ADDRESS} IN ({listed})", fragments=chosen
        ).to_table()

    def _failing_addresses(
        self, dataset: LanceDataset, one: Expectation, fragments: Sequence[int], limit: int
    ) -> list[int]:
        if one.kind == "unique":
            cache, keys = self._cached(dataset, one)
            numbers = dataset.opened[1].manifest.fragments.counts().ids.tolist()
            held = [cache.hashes(key) for key in keys]
            hashes = [np.zeros(0, np.uint64) if own is None else own for own in held]
            repeated = self._repeated(dataset, one, hashes, numbers)
            owners = (repeated >> np.uint64(32)).astype(np.int64)
            listed: list[int] = repeated[np.isin(owners, fragments)][:limit].tolist()
            return listed
        found: list[int] = []
        for batch, _, is_strange in self._references(dataset, one, list(fragments)):
            found += batch[ROW_ADDRESS].filter(is_strange).to_pylist()
            if len(found) >= limit:
                break
        return found[:limit]

    # --- of a whole version -----------------------------------------------------------------------

    def _drift_entry(
        self, dataset: LanceDataset, before: LanceDataset, one: Expectation
    ) -> tuple[ResultCache, str, Numbers | None]:
        """Return the cache of a drift, the key of the two versions in it, and what is known."""
        ids, columns = _field_ids(dataset, [one.column])
        other_ids, other_columns = _field_ids(before, [one.column])
        cache = self._cache.of(one.statement, f"{columns}\0{other_columns}")
        old = self._cache.fragment_keys(before.opened[1], other_ids)
        new = self._cache.fragment_keys(dataset.opened[1], ids)
        key = digest(*old, "to", *new)
        return cache, key, (0.0,) if old == new else cache.get(key)

    def _drift(self, dataset: LanceDataset, one: Expectation) -> CheckOutcome:
        _field_ids(dataset, [one.column])
        before = self._baseline(dataset, one)
        if before is None:
            said = "there is no version before this one"
            return CheckOutcome(one.name, one.statement, one.kind, "pass", said)
        cache, key, known = self._drift_entry(dataset, before, one)
        if known is None:
            found = dataset.diff(before, dataset).drift([one.column])[0].psi
            known = (-1.0 if found is None else found,)
            cache.put(key, known)
        psi = known[0]
        if psi < 0:
            raise _UnknownError(f"the values of `{one.column}` are not counted in one of the two")
        is_fine = psi <= one.limit
        said = f"drift {psi:.3g} from {before.branch or 'main'}:{before.version}"
        return CheckOutcome(
            one.name, one.statement, one.kind, "pass" if is_fine else "fail",
            said if is_fine else f"{said} is above {one.limit:g}", measured=psi,
        )  # fmt: skip

    @staticmethod
    def _baseline(dataset: LanceDataset, one: Expectation) -> LanceDataset | None:
        if one.against != PREVIOUS:
            ref = int(one.against) if one.against.isdecimal() else one.against
            try:
                return dataset.checkout_version(ref)
            except LanceError as error:
                raise _UnknownError(f"{one.against!r} cannot be opened: {error}") from error
        numbers = dataset.version_numbers()
        older = [number for number in numbers if number < dataset.version]
        if not older:
            return None
        return dataset.checkout_version((dataset.branch, older[-1]))


def _with_one_zero(table: pa.Table) -> pa.Table:
    """Return the table without -0.0, which SQL takes for 0.0 and Arrow groups apart."""
    import pyarrow.compute as pc

    for at, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            zero = pa.scalar(0.0, pa.float64()).cast(field.type)
            table = table.set_column(at, field, pc.add(table.column(at), zero))
    return table


def _chosen(dataset: LanceDataset, numbers: Sequence[int]) -> list[LanceFragment]:
    found = map(dataset.get_fragment, numbers)
    return [one for one in found if one is not None]


def _fragment_ids(batch: pa.RecordBatch) -> Hashes:
    addresses: Hashes = batch[ROW_ADDRESS].to_numpy(zero_copy_only=False) >> np.uint64(32)
    return addresses


def _contains_any(ordered: Hashes, wanted: Hashes) -> bool:
    places = np.minimum(np.searchsorted(ordered, wanted), ordered.size - 1)
    return bool((ordered[places] == wanted).any())


def _rows_text(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _in_fragments(fragments: Sequence[int]) -> str:
    if not fragments:
        return ""
    listed = ", ".join(map(str, fragments[:FRAGMENTS_MAX]))
    more = ", ..." if len(fragments) > FRAGMENTS_MAX else ""
    return f"; in fragment{'' if len(fragments) == 1 else 's'} {listed}{more}"


def _row_count(dataset: LanceDataset, one: Expectation) -> CheckOutcome:
    rows = dataset.count_rows()
    low = one.minimum is None or rows >= one.minimum
    high = one.maximum is None or rows <= one.maximum
    detail = _rows_text(rows)
    if not low:
        detail = f"{detail}, at least {one.minimum:,} expected"
    elif not high:
        detail = f"{detail}, at most {one.maximum:,} expected"
    return CheckOutcome(
        one.name, one.statement, one.kind, "pass" if low and high else "fail", detail,
        num_rows=rows, measured=float(rows),
    )  # fmt: skip


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
        self._missing = [at for at, key in enumerate(self._keys) if self._cache.get(key) is None]
        if not self._missing:
            return
        numbers = np.array([self._numbers[at] for at in self._missing], np.uint64)
        order = np.argsort(numbers)
        totals = np.zeros((3, len(numbers)), np.int64)
        for owners, is_true, is_false in failures(numbers.tolist()):
            places = order[np.searchsorted(numbers[order], owners)]
            weights = [
                np.ones(len(places)),
                *(
                    np.asarray(one.fill_null(False).to_numpy(zero_copy_only=False), np.float64)
                    for one in (is_false, is_true)
                ),
            ]
            for at, weight in enumerate(weights):
                totals[at] += np.bincount(places, weight, len(numbers)).astype(np.int64)
        totals[2] = totals[0] - totals[1] - totals[2]
        for at, counts in zip(self._missing, totals.T.tolist(), strict=True):
            self._cache.put(self._keys[at], counts)

    def outcome(self, one: Expectation, words: str, filter_: str | None) -> CheckOutcome:
        found: list[Numbers] = [self._cache.get(key) or (0, 0, 0) for key in self._keys]
        sums = np.array(found, np.int64).reshape(-1, 3).sum(axis=0).tolist()
        num_rows, num_failed, num_null = sums
        fragments = [
            number for number, counts in zip(self._numbers, found, strict=True) if counts[1]
        ]
        detail = ""
        if num_failed:
            detail = (
                f"{words} for {_rows_text(num_failed)} of {num_rows:,}{_in_fragments(fragments)}"
            )
        elif num_null and one.kind == "check":
            detail = f"NULL for {_rows_text(num_null)}, which pass"
        return CheckOutcome(
            one.name, one.statement, one.kind, "fail" if num_failed else "pass", detail, num_rows,
            num_failed, num_null, filter_, tuple(fragments[:FRAGMENTS_MAX]),
            num_fragments_read=len(self._missing),
            num_fragments_cached=len(self._keys) - len(self._missing),
        )  # fmt: skip
