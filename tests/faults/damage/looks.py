"""Every verb that reads, called on a damaged dataset: each checks what it gets, or raises.

``LOOKS`` is the table: a weight, which keeps many cases a second, and the function of the world,
the dataset and a source of chance. ``FIRST_LOOKS`` need no dataset that opens.
"""

from __future__ import annotations

import contextlib
import io
import logging
import pickle
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa

import lance_nb
from lance_nb.dataset import display
from lance_nb.errors import LanceError
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.display import kind_of, render_value
from lance_nb.explorer.error_card import error_card
from lance_nb.explorer.html_export import snapshot_page, take_snapshot
from lance_nb.explorer.messages import handle
from lance_nb.explorer.registry import VIEWS
from lance_nb.explorer.session import Session
from lance_nb.explorer.static_rendering import render_error, render_parts
from lance_nb.explorer.storage.fragments import most_deleted
from lance_nb.explorer.storage.storage_report import space_use
from lance_nb.explorer.widget import HeaderHandlers, RowHistoryHandlers
from lance_nb.magic.command_line import main as command_line
from lance_nb.magic.context import MagicContext
from lance_nb.magic.registry import parse
from lance_nb.magic.verb import Result
from tests.faults.damage.shown import (
    ShownError,
    check_error,
    check_html,
    check_picture,
    check_repr,
    check_table,
)
from tests.faults.damage.worlds import World

Look = Callable[[World, Any, random.Random], object]
PARTS = ("card", "timeline", "rows", "detail")
CELLS_MAX = 200_000


def opened(world: World, ref: Any = None) -> Any:
    """Open the dataset as a user would who trusts what lies beside it."""
    return lance_nb.dataset(world.uri, version=ref, allow_bases=[world.top])


def tried(call: Callable[[], Any]) -> Any:
    """Call, and return None for an error of ours whose text is fit to show."""
    try:
        return call()
    except LanceError as error:
        check_error(error)
        check_picture(render_error(error))
        return None


def column_of(dataset: Any, rng: random.Random) -> str:
    """Choose a top-level column, in the words of a filter."""
    names = dataset.schema.names or ["id"]
    return "`" + str(rng.choice(names)).replace("`", "``") + "`"


# --- rows -----------------------------------------------------------------------------------------


def _scan(world: World, dataset: Any, rng: random.Random) -> None:
    found = dataset.to_table()
    check_table(found)
    if found.num_rows != dataset.count_rows():
        raise ShownError(f"{found.num_rows} rows, but counted {dataset.count_rows()}")


def _scanner(world: World, dataset: Any, rng: random.Random) -> None:
    names = dataset.schema.names
    options: dict[str, Any] = {}
    if rng.random() < 0.5:
        options["columns"] = rng.sample(names, rng.randint(0, len(names)))
    if rng.random() < 0.5:
        options |= {"limit": rng.choice((0, 1, 7)), "offset": rng.choice((0, 2, 10**9))}
    if rng.random() < 0.3:
        options["order_by"] = [rng.choice(names)] if names else None
    for flag in ("with_row_id", "with_row_address", "include_deleted_rows", "keep_dictionaries"):
        if rng.random() < 0.25:
            options[flag] = True
    if options.get("include_deleted_rows"):
        options["with_row_id"] = True
    if rng.random() < 0.2:
        options["blob_handling"] = rng.choice(("all_binary", "all_descriptions"))
    for at, batch in enumerate(dataset.scanner(**options, batch_size=rng.choice((1, 1000)))
                               .to_batches()):  # fmt: skip
        check_table(batch)
        if at == 20:
            break


def _filter(world: World, dataset: Any, rng: random.Random) -> None:
    name = column_of(dataset, rng)
    ends = ("is null", "is not null", "= 5", "> 3", "= 'text 1'", "like '%t%'", "in (1, 2, 3)",
            "is not null and _rowid > 3")  # fmt: skip
    where = f"{name} {rng.choice(ends)}"
    if rng.random() < 0.4:
        dataset.count_rows(where)
    else:
        check_table(dataset.to_table(filter=where, with_row_id=rng.random() < 0.3))


def _take(world: World, dataset: Any, rng: random.Random) -> None:
    count = dataset.count_rows()
    rows = [rng.randrange(min(count, 2**40)) for _ in range(rng.randint(0, 5))] if count else []
    way = rng.randrange(5)
    if way == 0:
        check_table(dataset.take([*rows, count - 1] if count else []))
    elif way == 1:
        check_table(dataset.take_rows([rng.choice((*rows, 0, 1, 2**32, 2**32 + 1))]))
    elif way == 2:
        check_table(dataset.head(rng.choice((0, 1, 5))))
    elif way == 3 and count < CELLS_MAX:
        check_table(dataset.sample(min(count, 3), seed=1))
    else:
        check_table(dataset.slice(rng.choice((0, max(0, count - 2))), 3))


def _nearest(world: World, dataset: Any, rng: random.Random) -> None:
    for field in dataset.schema:
        if pa.types.is_fixed_size_list(field.type) and field.type.list_size < 1000:
            nearest = {"column": field.name, "q": [1.0] * field.type.list_size, "k": 3}
            where = rng.choice((None, f"{column_of(dataset, rng)} is not null"))
            check_table(dataset.to_table(nearest=nearest, filter=where))
            return
    _scan(world, dataset, rng)


def _blobs(world: World, dataset: Any, rng: random.Random) -> None:
    names, count = dataset.schema.names or ["x"], dataset.count_rows()
    if "blob" not in names:
        _take(world, dataset, rng)
    name = "blob" if "blob" in names else rng.choice(names)
    rows = sorted({rng.randrange(min(count, 2**40)) for _ in range(4)}) if count else []
    for file in dataset.take_blobs(name, indices=rows):
        if file is not None and file.size() < 1 << 20:
            file.read()
    dataset.read_blobs(name, indices=rows)
    if rows:
        dataset.read_blob_ranges(name, [(rows[0], 0, 2)], selector="indices")


def _fragments(world: World, dataset: Any, rng: random.Random) -> None:
    for fragment in dataset.get_fragments()[:2]:
        fragment.count_rows()
        repr(fragment), repr(fragment.metadata), fragment.data_files(), fragment.deletion_file()
        tried(lambda one=fragment: check_table(one.to_table(limit=5)))
        tried(lambda one=fragment: one.take([0, 1]))
        tried(fragment.validate)
    dataset.validate()


def _data_file(world: World, dataset: Any, rng: random.Random) -> None:
    paths = dataset.inspect.data_files()["path"].to_pylist()
    if paths:
        reader = lance_nb.LanceFileReader(f"{world.uri}/data/{rng.choice(paths)}")
        repr(reader.metadata()), reader.file_statistics()
        check_table(reader.read_all().to_table())
        check_table(reader.read_range(0, 2).to_table())


def _sql(world: World, dataset: Any, rng: random.Random) -> None:
    query = dataset.sql("select count(*) from dataset")
    for batch in query.build().to_batch_records():
        check_table(batch)


# --- what a version is, what came before ----------------------------------------------------------


def _history(world: World, dataset: Any, rng: random.Random) -> None:
    for one in dataset.history(limit=rng.choice((None, 4))):
        repr(one)
    dataset.versions()
    dataset.version_numbers()


def _transactions(world: World, dataset: Any, rng: random.Random) -> None:
    repr(tried(dataset.transaction))
    repr(tried(lambda: dataset.get_transactions(5)))
    for number in dataset.version_numbers()[-3:]:
        repr(tried(lambda one=number: dataset.read_transaction(one)))
        repr(tried(lambda one=number: dataset.version_info(one)))


def _refs(world: World, dataset: Any, rng: random.Random) -> None:
    dataset.tags.names(), dataset.tags.marks(), dataset.branches.names()
    for name in [*dataset.tags.readable(), *(tried(dataset.tags.list) or ())][:4]:
        tried(lambda one=name: dataset.checkout_version(one).count_rows())
        tried(lambda one=name: dataset.tags.get_version(one))
    for name in [*(tried(dataset.branches.list) or ())][:4]:
        tried(lambda one=name: check_table(dataset.checkout_version((one, None)).to_table()))
        tried(lambda one=name: repr(dataset.branches.explain_delete(one)))
        tried(lambda one=name: repr(dataset.branches.plan_merge(one)))
    tried(dataset.tags.list_ordered)
    tried(dataset.branches.list_ordered)
    tried(dataset.version_refs)


def _old_version(world: World, dataset: Any, rng: random.Random) -> None:
    numbers = dataset.version_numbers()
    check_table(dataset.checkout_version(rng.choice(numbers)).to_table())
    repr(dataset.latest_version)


def _diff(world: World, dataset: Any, rng: random.Random) -> None:
    numbers = dataset.version_numbers()
    diff = dataset.diff(rng.choice(numbers[-4:]))
    repr(diff)
    looks: list[Callable[[], object]] = [
        diff.summary,
        lambda: check_table(diff.rows(limit=20).read_all()),
        lambda: check_table(diff.cells(limit=20).read_all()),
        lambda: check_table(diff.transactions),
        lambda: check_table(diff.schema),
        lambda: check_table(diff.fragments),
        lambda: check_table(diff.files),
        lambda: check_table(diff.deletions),
        lambda: check_table(diff.indices),
        lambda: check_table(diff.config),
        diff.drift,
        lambda: diff.counts,
        lambda: diff.ancestor,
        diff.removed_row_ids,
    ]
    for look in rng.sample(looks, 4):
        tried(look)


def _changes(world: World, dataset: Any, rng: random.Random) -> None:
    numbers = dataset.version_numbers()
    begin = rng.choice(numbers[-4:])
    tried(lambda: check_table(dataset.changes(begin).read_all()))
    tried(lambda: check_table(dataset.delta(begin).get_inserted_rows().read_all()))
    tried(lambda: dataset.row_history(rng.choice((0, 1, 30))).steps())
    tried(lambda: dataset.row_history(address=rng.choice((0, 1, 2**32))).steps())


def _bisect(world: World, dataset: Any, rng: random.Random) -> None:
    statement = rng.choice((f"{column_of(dataset, rng)} is not null", "count(*) < 20"))
    repr(dataset.bisect(statement))


def _opening(world: World, dataset: Any, rng: random.Random) -> None:
    """Open in the other ways: with checksums, by tag, branch and time, from a pickle."""
    allow = {"allow_bases": [world.top]}
    way = rng.randrange(5)
    if way == 0:
        check_table(lance_nb.dataset(world.uri, check=True, **allow).to_table())
    elif way == 1:
        ref = rng.choice(("first", "newest", "side/deep", ("side/deep", None), ("side", 3), 2))
        check_table(lance_nb.dataset(world.uri, ref, **allow).to_table())
    elif way == 2:
        lance_nb.dataset(world.uri, asof=rng.choice(("2023-01-01", "2027-01-01")), **allow)
    elif way == 3:
        pickle.loads(pickle.dumps(dataset)).count_rows()  # noqa: S301
    else:
        dataset.checkout_latest()


def _described(world: World, dataset: Any, rng: random.Random) -> None:
    check_repr(dataset)
    repr(dataset.stats()), dataset.stats.dataset_stats()
    repr(dataset.stats.data_stats())
    repr(dataset.lance_schema), dataset.metadata, dataset.config(), dataset.get_version()
    repr(dataset.base_paths()), repr(dataset.fragment_ids)
    repr((dataset.schema_metadata, dataset.max_field_id, dataset.data_storage_version))


def _indices(world: World, dataset: Any, rng: random.Random) -> None:
    found = dataset.describe_indices()
    repr(found), dataset.list_indices(), dataset.has_index
    check_table(dataset.index_coverage())
    for one in found[:4]:
        tried(lambda name=one.name: repr(dataset.index_statistics(name)))
        tried(lambda name=one.name: check_table(dataset.index_coverage(name)))
    tried(lambda: dataset.remap_row_addrs(pa.array([0, 1, 2**32], pa.uint64())))


def _inspect(world: World, dataset: Any, rng: random.Random) -> None:
    inspect = dataset.inspect
    for look in (inspect.versions, inspect.fragments, inspect.data_files, inspect.columns):
        tried(lambda one=look: check_table(one()))
    for path in inspect.data_files()["path"].to_pylist()[:2]:
        tried(lambda one=path: check_table(inspect.pages(one)))
    tried(lambda: check_table(dataset.all_files().read_all()))
    tried(lambda: check_table(dataset.tracked_files().read_all()))


# --- health: these must not raise -----------------------------------------------------------------


def _verify(world: World, _: Any, rng: random.Random) -> None:
    options: dict[str, Any] = {}
    if rng.random() < 0.4:
        options = {"values": False}
    elif rng.random() < 0.3:
        options = {"sample": 0.5, "seed": 1}
    found = lance_nb.verify(world.uri, allow_bases=[world.top], **options)
    check_repr(found)
    check_table(found.to_table())


def _plan(world: World, _: Any, rng: random.Random) -> None:
    plan = lance_nb.plan_repair(world.uri, older_than=timedelta(0), allow_bases=[world.top])
    check_repr(plan)


def _doctor(world: World, _: Any, rng: random.Random) -> None:
    """The doctor's exit status says what verify says."""
    report = lance_nb.verify(world.uri)
    status = command_line(["doctor", world.uri])
    if status != (0 if report.ok else 1):
        raise ShownError(f"the doctor ends with {status}: {report.verdict}")


def _space(world: World, dataset: Any, rng: random.Random) -> None:
    with _strict("space"):
        found = dataset.space()
        check_repr(found)
    repr(space_use(found))
    tried(lambda: dataset.explain_cleanup_old_versions(timedelta(0), include_files=True))
    tried(lambda: dataset.cleanup_old_versions(retain_versions=1, dry_run=True))


def _whole_history(world: World, dataset: Any, rng: random.Random) -> None:
    with _strict("history"):
        found = dataset.history()
    if len(found) != len(dataset.version_numbers()):
        raise ShownError("versions are missing in the history")


@contextlib.contextmanager
def _strict(what: str) -> Iterator[None]:
    """Let not even an error of ours pass."""
    try:
        yield
    except LanceError as error:
        raise ShownError(f"{what} of an opened dataset raised") from error


# --- the explorer and the magic -------------------------------------------------------------------


class _Faults(logging.Handler):
    """Requests that failed for faults of our own: their traces are logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@contextlib.contextmanager
def _answered() -> Iterator[None]:
    """Raise what the explorer's protocol turned into a reply, but is a fault of ours."""
    log, faults = logging.getLogger("lance_nb.explorer.messages"), _Faults()
    log.addHandler(faults)
    try:
        yield
    finally:
        log.removeHandler(faults)
    if faults.texts:
        raise ShownError(faults.texts[0][-3000:])


def _screen(world: World, dataset: Any, rng: random.Random) -> None:
    session = Session(dataset)
    session.screen(PARTS)
    check_picture(render_parts(session.parts.values()))


def _snapshot(world: World, dataset: Any, rng: random.Random) -> None:
    with _answered():
        found = take_snapshot(dataset, Explorer.request_handlers, PARTS, rows=5)
    session = Session(dataset)
    session.screen(PARTS)
    check_picture(render_parts(session.parts.values()))
    check_html(snapshot_page(dataset.name, "", found, 400), page=True)


def _requests(world: World, dataset: Any, rng: random.Random) -> None:
    session = Session(dataset)
    handlers = session.handlers() | session.keep(HeaderHandlers).handlers()
    handlers |= session.keep(RowHistoryHandlers).handlers()
    for name in sorted(VIEWS):
        handlers |= VIEWS[name].request_handlers(session)
    kinds = [one for one in sorted(handlers) if one not in WRITING]
    for kind in rng.choices(kinds, k=6):
        with _answered():
            handle({"id": "1", "type": kind, "args": _args(dataset, rng)}, handlers)
    most_deleted(dataset)


WRITING = frozenset({"stage.commit", "stage.all", "refs.merge", "lock"})


def _args(dataset: Any, rng: random.Random) -> dict[str, Any]:
    """Return arguments that fit most requests."""
    numbers = tried(dataset.version_numbers) or [dataset.version]
    at = {"branch": dataset.branch, "version": dataset.version}
    names = [None, "first", "newest", "side/deep", "side"]
    return at | {
        "first": 0, "stop": 9, "count": rng.choice((1, 5)), "fragment": rng.randrange(4),
        "rows": 50, "pixels": 20, "path": rng.choice(("data/x.lance", _file(dataset, rng))),
        "a": at | {"version": rng.choice(numbers)}, "b": at, "key": None, "end": "a",
        "versions": numbers[-3:], "numbers": numbers[-3:], "ref": rng.choice(("HEAD~1", "first")),
        "offset": 0, "limit": 20, "first_column": 0, "num_columns": 20, "kinds": None,
        "row": rng.choice((0, 1, 20)), "column": rng.randrange(9), "num_rows": dataset.count_rows(),
        "level": rng.choice(("schema", "fragments", "files", "deletions", "indices", "config",
                             "transactions")),
        "exact": rng.random() < 0.3, "text": rng.choice(("", "t")), "sort": "name",
        "descending": False, "fresh": True, "kind": rng.choice(("tag", "branch", "merge")),
        "name": rng.choice(names), "names": names, "action": rng.choice(("create", "delete",
                                                                        "move")),
        "at": "main:1", "source": "side/deep", "into": None, "on_conflict": "fail",
        "strategy": "auto", "ranges": [[0, 2]], "columns": None, "low": 0, "high": 5,
        "latest": dataset.version, "mark": "", "filter": "", "system": rng.random() < 0.5,
        "verb": rng.choice(("append", "delete", "update")), "args": {"where": "true"},
        "row_id": 1, "address": 0, "order": None, "near": None,
    }  # fmt: skip


def _file(dataset: Any, rng: random.Random) -> str:
    files = [file for one in dataset.get_fragments()[:3] for file in one.data_files()]
    return rng.choice(files).path if files else "x"


LINES = (
    "show", "schema", "schema HEAD~1", "head -n 3", "head HEAD~1 -n 3", "fragments", "indices",
    "log", "log -n 3 --graph", "diff HEAD~1..HEAD", "diff HEAD~1..HEAD --all", "diff 1 --rows",
    "diff first..newest --transactions", "row 1", "row id=3", "branch", "tag", "space", "doctor",
    "doctor --quick", "doctor --repair", "clean --dry-run", "merge side/deep --dry-run",
    "revert HEAD --dry-run", "cherry-pick side/deep:3 --dry-run", "status", "at HEAD~1",
    "bisect 'count(*) < 20'", "sql select count(*) from dataset",
)  # fmt: skip


def _magic(world: World, dataset: Any, rng: random.Random) -> None:
    line = rng.choice(LINES)
    request = parse(line)
    context = MagicContext()
    context.set_dataset(dataset)
    if line.startswith("doctor"):
        with _strict("doctor"):
            found = request.verb.run(context, request.arguments)
    else:
        found = request.verb.run(context, request.arguments)
    if isinstance(found, Result):
        check_picture(found.picture)
        found.json()


def _values(world: World, dataset: Any, rng: random.Random) -> None:
    numbers = dataset.version_numbers()
    makers: list[Callable[[], object]] = [
        lambda: dataset.history(limit=2)[0],
        dataset.transaction,
        lambda: dataset.diff(rng.choice(numbers)),
        lambda: dataset.get_fragments()[0] if dataset.get_fragments() else dataset.lance_schema,
        lambda: dataset.lance_schema,
        lambda: dataset.stage().delete("true"),
    ]
    for make in makers:
        value = tried(make)
        if value is not None and kind_of(value) in set(display.VALUES.values()):
            tried(lambda one=value: check_picture(render_value(one)))


def _first_screen(world: World, _: Any, rng: random.Random) -> None:
    """Open by URI, as the explorer does: why it does not open is shown, too."""
    try:
        dataset = lance_nb.dataset(world.uri)
        session = Session(dataset)
        session.screen(PARTS)
        check_picture(render_parts(session.parts.values()))
    except LanceError as error:
        check_error(error)
        check_picture(render_error(error))
        repr(error_card(error).to_json())


FIRST_LOOKS: dict[str, tuple[float, Look]] = {
    "verify": (0.35, _verify),
    "plan_repair": (0.3, _plan),
    "doctor": (0.2, _doctor),
    "first screen": (0.6, _first_screen),
}
LOOKS: dict[str, tuple[float, Look]] = {
    **FIRST_LOOKS,
    "scan": (3, _scan),
    "scanner": (4, _scanner),
    "filter": (3, _filter),
    "take": (4, _take),
    "nearest": (1.5, _nearest),
    "blobs": (1.5, _blobs),
    "fragments": (0.5, _fragments),
    "data file": (1, _data_file),
    "sql": (0.1, _sql),
    "history": (1.5, _history),
    "whole history": (1, _whole_history),
    "transactions": (1.5, _transactions),
    "refs": (1, _refs),
    "old version": (2, _old_version),
    "diff": (1.5, _diff),
    "changes": (0.5, _changes),
    "bisect": (0.1, _bisect),
    "described": (2, _described),
    "opening": (1, _opening),
    "indices": (2, _indices),
    "inspect": (0.5, _inspect),
    "space": (0.6, _space),
    "screen": (0.5, _screen),
    "snapshot": (0.015, _snapshot),
    "requests": (2, _requests),
    "magic": (1, _magic),
    "values": (1, _values),
}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what is printed and logged away."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
