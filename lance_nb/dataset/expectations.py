"""ds.expectations: add, list and remove conditions that versions of a dataset should meet.

They are kept in the table configuration (format/expectations.py), so that they travel with the
dataset; each change is a version. ``ds.check`` evaluates them.

The gate makes ``Stage.commit`` refuse a commit after which an expectation fails that held before,
or fails for more rows. Other writers (pylance, Spark, ``ds.insert``) are not bound by it: nothing
in the format makes a writer look at the configuration. Check versions in continuous integration,
too.

NULL semantics are those of SQL: see checks/evaluation.py.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotFoundError
from lance_nb.format.expectations import (
    EXPECTATIONS_MAX,
    GATE,
    PREFIX,
    PREVIOUS,
    REFUSE,
    ConfiguredExpectations,
    Expectation,
    check_name,
    checked,
    free_name,
)
from lance_nb.session.base_paths import remember_created

if TYPE_CHECKING:
    import pyarrow as pa

    from lance_nb.dataset.bisecting import Bisection
    from lance_nb.dataset.checks.evaluation import Progress
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.table.refs import Ref


class Expectations:
    """The expectations of a dataset, as its version has them. Created by ``ds.expectations``.

    Examples:
        >>> ds.expectations.add("id BETWEEN 0 AND 100")
        'id-between-0-and-100'
        >>> ds.check().ok
        True
    """

    def __init__(self, dataset: LanceDataset) -> None:
        self._dataset = dataset

    def list(self) -> dict[str, Expectation]:
        """Return the expectations by name. What cannot be read is left out; see ``problems``.

        Examples:
            >>> ds.expectations.add("id >= 0", name="positive")
            'positive'
            >>> ds.expectations.list()["positive"].sql
            'id >= 0'
        """
        return dict(self._configured().expectations)

    def problems(self) -> dict[str, str]:
        """Return why an entry of the configuration cannot be read, by name.

        Examples:
            >>> _ = ds.update_config({"lance_nb.expectation.bad": "[]"})
            >>> builtins_list = list(ds.expectations.problems())
            >>> builtins_list
            ['bad']
        """
        return dict(self._configured().problems)

    def names(self) -> builtins.list[str]:
        """List the names, also of what cannot be read.

        Examples:
            >>> ds.expectations.names()
            []
        """
        configured = self._configured()
        return sorted((*configured.expectations, *configured.problems))

    def add(self, condition: str, *, name: str | None = None) -> str:
        """Expect a condition of every row; return the name of the expectation.

        Rows for which it is NULL pass, as with CHECK in SQL.

        Args:
            condition: SQL, as for a filter; about one row, and not about the current time.
            name: letters, digits, "_", "." and "-"; made of the condition by default.

        Raises PredicateError, ColumnNotFoundError, InvalidInputError (the name is taken).

        Examples:
            >>> ds.expectations.add("label IN ('a', 'b')", name="labels")
            'labels'
        """
        return self._add(Expectation("", "check", sql=condition), name)

    def add_not_null(self, column: str, *, name: str | None = None) -> str:
        """Expect that a column has no NULL.

        Args:
            column: a top-level column.
            name: as for ``add``.

        Raises ColumnNotFoundError, InvalidInputError.

        Examples:
            >>> ds.expectations.add_not_null("id")
            'id-is-not-null'
        """
        return self._add(Expectation("", "not_null", column=column), name)

    def add_unique(self, columns: str | Sequence[str], *, name: str | None = None) -> str:
        """Expect that no two rows have the same key; a key with a NULL is like no other.

        Args:
            columns: the column or columns of the key.
            name: as for ``add``.

        Raises ColumnNotFoundError, InvalidInputError, NotSupportedError for nested columns.

        Examples:
            >>> ds.expectations.add_unique("id")
            'unique-id'
        """
        column_names = (columns,) if isinstance(columns, str) else tuple(columns)
        return self._add(Expectation("", "unique", columns=column_names), name)

    def add_reference(
        self,
        column: str,
        uri: str | os.PathLike[str],
        to: str,
        *,
        name: str | None = None,
    ) -> str:
        """Expect that the values of a column are among those of a column of another dataset.

        NULL passes. Another process reads the other dataset only where it is allowed to, by
        ``allow_bases`` or LANCE_NB_ALLOW_BASES.

        Args:
            column: the column of this dataset.
            uri: the other dataset.
            to: its column.
            name: as for ``add``.

        Raises ColumnNotFoundError, DatasetNotFoundError, InvalidInputError.

        Examples:
            >>> ds.expectations.add_reference("label", uri, "label", name="known-labels")
            'known-labels'
        """
        session = self._dataset.opened[0]
        other = type(self._dataset)(uri, storage_options=session.storage_options)
        if to not in other.schema.names:
            raise ColumnNotFoundError(to, tuple(other.schema.names))
        place = other.opened[0].root.uri
        expectation = self._add(Expectation("", "reference", column=column, uri=place, to=to), name)
        remember_created(session.root.uri, [place])
        return expectation

    def add_row_count(
        self, minimum: int | None = None, maximum: int | None = None, *, name: str | None = None
    ) -> str:
        """Expect a number of rows; it comes from the manifest, and no data is read.

        Args:
            minimum, maximum: inclusive bounds; one may be None.
            name: as for ``add``.

        Raises InvalidInputError.

        Examples:
            >>> ds.expectations.add_row_count(1, 1000)
            'count-between-1-and-1000'
        """
        return self._add(Expectation("", "row_count", minimum=minimum, maximum=maximum), name)

    def add_drift(
        self, column: str, limit: float = 0.25, *, against: str = PREVIOUS, name: str | None = None
    ) -> str:
        """Expect that the distribution of a column stays close to that of another version.

        Args:
            column: numbers, times, texts or vectors.
            limit: the largest population stability index: 0.1 is a small change, 0.25 a large one.
            against: "previous", the version before; or a tag or a version number, as text.
            name: as for ``add``.

        Raises ColumnNotFoundError, InvalidInputError.

        Examples:
            >>> ds.expectations.add_drift("id", 0.5)
            'drift-of-id-from-previous-0.5'
        """
        expectation = Expectation(
            "", "drift", column=column, limit=float(limit), against=str(against)
        )
        return self._add(expectation, name)

    def remove(self, name: str) -> None:
        """Remove an expectation, as a new version.

        Args:
            name: as ``names`` lists it.

        Raises NotFoundError.

        Examples:
            >>> ds.expectations.add("id >= 0", name="positive")
            'positive'
            >>> ds.expectations.remove("positive")
            >>> ds.expectations.names()
            []
        """
        names = self.names()
        if name not in names:
            listed = ", ".join(map(repr, names)) or "none"
            raise NotFoundError(f"there is no expectation {name!r}; there are: {listed}")
        self._dataset.delete_config_keys([f"{PREFIX}{name}"])

    @property
    def gate(self) -> bool:
        """Whether staging refuses a commit that breaks an expectation.

        Examples:
            >>> ds.expectations.gate
            False
        """
        return self._configured().is_gated

    def set_gate(self, refuse: bool) -> None:
        """Open or close the gate, as a new version.

        It binds ``ds.stage()`` and the Stage tab. Other writers, pylance among them, do not know it
        and are not bound.

        Args:
            refuse: whether staging refuses a commit that breaks an expectation.

        Examples:
            >>> ds.expectations.set_gate(True)
            >>> ds.expectations.gate
            True
        """
        self._dataset.update_config({GATE: REFUSE if refuse else None})

    def failing_rows(
        self, name: str, *, limit: int = 100, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return the first rows of this version for which an expectation fails.

        Args:
            name: the expectation: a condition, not-null, a unique key or a reference.
            limit: how many rows at most; rows of the first 20 fragments with such rows are found.
            columns: which columns; all of them by default.

        Raises InvalidInputError where there is no such expectation, where it cannot be evaluated
        here, and for row counts and drift, which no single row fails.

        Examples:
            >>> ds.expectations.add("id < 8", name="small")
            'small'
            >>> ds.expectations.failing_rows("small", columns=["id"])["id"].to_pylist()
            [8, 9]
        """
        from lance_nb.dataset.checks.evaluation import Checker

        if limit < 1:
            raise InvalidInputError(f"limit must be at least 1, not {limit}")
        checker = Checker(self._dataset, [name])
        rows = checker.failing_rows(self._dataset, limit, columns)
        checker.save()
        return rows

    def bisect(
        self,
        name: str,
        *,
        good: Ref | None = None,
        bad: Ref | None = None,
        progress: Progress | None = None,
    ) -> Bisection:
        """Find the first version of this branch at which an expectation fails.

        Args:
            name: the expectation.
            good, bad: as for ``LanceDataset.bisect``.
            progress: called with the versions checked, and how many will be at most.

        Raises InvalidInputError, VersionNotFoundError.

        Examples:
            >>> ds.expectations.add_row_count(minimum=10, name="enough")
            'enough'
            >>> ds.delete("id = 5")["num_deleted_rows"]
            1
            >>> ds.expectations.bisect("enough").first_bad
            3
        """
        from lance_nb.dataset.checks.evaluation import Checker

        checker = Checker(self._dataset, [name])
        total = len(self._dataset.version_numbers()).bit_length() + 2
        done = 0

        def holds(dataset: LanceDataset) -> bool:
            nonlocal done
            if progress is not None:
                progress(min(done, total), total)
            done += 1
            outcome = checker.evaluate(dataset).outcomes[0]
            if outcome.status == "unknown":
                raise ColumnNotFoundError(name, tuple(dataset.schema.names))
            return outcome.status == "pass"

        try:
            return self._dataset.bisect(holds, good=good, bad=bad)
        finally:
            checker.save()  # also what was found before it was cancelled

    def _configured(self) -> ConfiguredExpectations:
        return ConfiguredExpectations.of(self._dataset.opened[1].manifest.config)

    def _add(self, draft: Expectation, name: str | None) -> str:
        from lance_nb.dataset.checks.evaluation import check_usable

        taken = set(self.names())
        if name is None:
            name = free_name(draft.statement, taken)
        if check_name(name) in taken:
            raise InvalidInputError(
                f"there is an expectation {name!r} already; remove it first, or give another name"
            )
        if len(taken) >= EXPECTATIONS_MAX:
            raise InvalidInputError(f"a dataset has at most {EXPECTATIONS_MAX} expectations")
        fields = {
            field_name: getattr(draft, field_name)
            for field_name in Expectation.__dataclass_fields__
        }
        expectation = checked(Expectation(**{**fields, "name": name}))
        Expectation.from_json(name, expectation.to_json())
        check_usable(self._dataset, expectation)
        self._dataset.update_config({expectation.key: expectation.to_json()})
        return name

    def __repr__(self) -> str:
        expectations = self.list()
        lines = [f"  {name}: {expectation.statement}" for name, expectation in expectations.items()]
        return "\n".join([f"<lance_nb.Expectations: {len(expectations)}>", *lines])
