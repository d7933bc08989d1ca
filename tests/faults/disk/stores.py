"""Writers that commit through an external manifest store, killed at every call.

As ``kills``, with a manifest store beside the dataset: the child also dies before and after each
call to the store, and, with SQLite, at steps of the program that a statement is compiled to. The
next opener must finish what was committed half: then the newest entry names a manifest that is in
place, and pylance, which does not know of the store, reads the same from the folder alone.

    python -m tests.faults stores 700 [seed] [--kind sqlite] [--verb NAME] [--jobs 2]
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lance_nb.format.layout import parse_manifest_name
from lance_nb.storage.registry import open_store
from lance_nb.transactions.external import OPTION
from lance_nb.transactions.external.base import ExternalManifestStore
from lance_nb.transactions.external.registry import base_uri, open_external
from tests.faults import command
from tests.faults.disk.case import Place
from tests.faults.disk.kills import KillCase, Killer
from tests.faults.disk.looking import Judge, look
from tests.faults.verbs.verb import OPTIONS, opened, rows
from tests.support import servers
from tests.support.requirements import require_package

METHODS = ("get", "latest", "put_if_not_exists", "put_if_exists", "forget")
KINDS = ("sqlite", "redis", "postgresql", "dynamodb")
PER_VERB = 40
TABLE = "manifests"
WITHIN_SHARE = 0.3  # of the kills with SQLite
WITHIN_STEPS_MAX = 400
CREDENTIALS = {"aws_access_key_id": "test", "aws_secret_access_key": "testtest"}
NAMES = (
    "create",
    "append",
    "append of three files",
    "append that cleans up",
    "overwrite",
    "delete",
    "update",
    "merge_insert, upsert",
    "staged batch",
    "add_columns",
    "drop_columns",
    "compact",
    "create_scalar_index",
    "update_config",
    "restore",
    "create_branch",
    "append to a branch",
    "branches.delete",
    "branches.merge",
    "cherry_pick",
    "tags.create",
    "shallow_clone",
    "deep_clone",
    "cleanup_old_versions",
    "drop",
)


class _Within(Killer):
    """Ends the process at a step inside a statement of SQLite."""

    def __call__(self, name: str, real: Any, arguments: Any, options: Any) -> Any:
        return real(*arguments, **options)

    def step(self) -> int:
        """Count one step."""
        self._count += 1
        if self._count == self._place.number:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0


class StoreCase(KillCase):
    """A verb on a dataset of a seed that has an external manifest store."""

    def __init__(
        self, name: str, seed: int, folder: Path, judge: Judge, per_verb: int, *, url: str
    ) -> None:
        self._url = url
        self._bases: set[str] = set()
        self._use(folder / "source")
        super().__init__(name, seed, folder, judge, per_verb)

    def rounds(self) -> Iterator[Place]:
        """Yield where the writer is killed: at calls, and with SQLite inside of statements."""
        calls = enumerate(self.calls, 1)
        places = [Place(at, moment, call) for at, call in calls for moment in ("before", "after")]
        chosen = list(self.sampled(places, self._per_verb))
        if not self._url:
            steps = range(round(len(chosen) * WITHIN_SHARE))
            chosen[: len(steps)] = [
                Place(self.chance.randint(1, WITHIN_STEPS_MAX), "within") for _ in steps
            ]
        yield from chosen

    def _use(self, folder: Path) -> ExternalManifestStore:
        """Let all datasets have the store, empty but for what others have there."""
        url = self._url or f"sqlite:///{folder}.db"
        if not self._url:
            for end in ("", "-wal", "-shm"):
                Path(f"{folder}.db{end}").unlink(missing_ok=True)
        OPTIONS.update({OPTION: url, **CREDENTIALS})
        return open_external(url, CREDENTIALS)

    def copied(self, name: str) -> str:
        """Copy the dataset, and its entries under the names of the copy."""
        source = self.entries_of(self._folder / "source")
        path = super().copied(name)
        store = self._use(self._folder / name)
        for base in self._bases:
            store.forget(base)
        for folder, entries in source:
            base = self._key(self._folder / name / folder.relative_to(self._folder / "source"))
            ends = ("", self.verb.at, "/tree/dev")
            self._bases |= {base, *(self._key(f"{path}{end}") for end in ends)}
            for entry in entries:
                manifest = f"{base}/_versions/{entry.path.rpartition('/')[2]}"
                store.put_if_not_exists(base, replace(entry, path=manifest))
        return path

    def _key(self, folder: str | Path) -> str:
        """Return the name that a dataset or branch has in the store."""
        return base_uri(open_store(str(folder)), str(OPTIONS[OPTION]))

    def entries_of(self, folder: Path) -> list[tuple[Path, list[Any]]]:
        """Return the entries of every dataset and branch below a folder."""
        store = open_external(self._url or f"sqlite:///{folder}.db", CREDENTIALS)
        entries = []
        for versions in sorted(folder.rglob("_versions")):
            names = [parse_manifest_name(file.name) for file in versions.iterdir()]
            numbers = sorted({name.version for name in names if name and not name.detached})
            base = self._key(versions.parent)
            found = [store.get(base, number) for number in [*numbers, max(numbers, default=0) + 1]]
            entries.append((versions.parent, [entry for entry in found if entry is not None]))
        return entries

    def watched_run(self, path: str, watch: Callable[..., Any]) -> None:
        """Make the change, while calls to the disk and to the store go through ``watch``."""
        kind = type(open_external(str(OPTIONS[OPTION]), CREDENTIALS))
        with ExitStack() as stack:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            for name in METHODS:
                patch.setattr(kind, name, _through(watch, name, getattr(kind, name)))
            if isinstance(watch, _Within):
                patch.setattr(sqlite3, "connect", _stepping(watch, sqlite3.connect))
            super().watched_run(path, watch)

    def killer(self, place: Place) -> Killer:
        """Return what ends the process at a call, or "within" one to SQLite."""
        return (_Within if place.moment == "within" else Killer)(place)

    def left(self) -> str:
        """Describe the files and the entries that a dead writer left."""
        entries = [
            (folder.name, [(entry.version, entry.is_staged) for entry in some])
            for folder, some in self.entries_of(self._folder / "round")
        ]
        return f"{super().left()} {entries}"

    def append(self, path: str) -> int:
        """Append rows through the store; look whether the newest entry is finished."""
        dataset = opened(path)
        names = [name for name in rows(9000, 1).column_names if name in dataset.schema.names]
        dataset.insert(rows(9000, 1).select(names), schema=None)
        for folder, entries in self.entries_of(Path(path)):
            assert not any(entry.is_staged for entry in entries[-1:]), f"{folder}: {entries[-1]}"
            assert not entries or (folder / entries[-1].object_path).exists()
        state = look(path)
        self.judge.compare(path, state)
        return len(state["main"]["rows"])


def _through(watch: Callable[..., Any], name: str, real: Any) -> Any:
    return lambda *arguments, **options: watch(name, real, arguments, options)


def _stepping(killer: _Within, connect: Any) -> Any:
    def connected(*arguments: Any, **options: Any) -> Any:
        connection = connect(*arguments, **options)
        connection.set_progress_handler(killer.step, 1)
        return connection

    return connected


@contextmanager
def url_of(kind: str) -> Iterator[str]:
    """Start the server of a manifest store; yield its URL, "" for files of SQLite."""
    if kind == "sqlite":
        yield ""
    elif kind == "redis":
        with servers.redis_server() as port:
            yield f"redis://127.0.0.1:{port}/0"
    elif kind == "postgresql":
        with servers.postgres_server() as port:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    else:
        with servers.moto_server() as endpoint:
            _make_table(endpoint)
            yield f"dynamodb://{TABLE}?endpoint={endpoint}&region=us-east-1"


def _make_table(endpoint: str) -> None:
    client = require_package("boto3").client(
        "dynamodb", endpoint_url=endpoint, region_name="us-east-1", **CREDENTIALS
    )
    keys = {"base_uri": ("HASH", "S"), "version": ("RANGE", "N")}
    client.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": name, "KeyType": key} for name, (key, _) in keys.items()],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": kind} for name, (_, kind) in keys.items()
        ],
        BillingMode="PAY_PER_REQUEST",
    )


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    parser = command.parser_of("stores", "kills", 700)
    parser.add_argument("--kind", choices=KINDS, default="sqlite", help="of the manifest store")
    parser.add_argument("--verb", action="append", choices=NAMES)
    parser.add_argument("--per-verb", type=int, default=PER_VERB, help="kills at most")

    def work(run: command.Run) -> command.Counts:
        options = run.options
        with url_of(options.kind) as url:

            def begin() -> tuple[command.MakeCase, Callable[[], None]]:
                judge = Judge()
                return lambda name, seed, folder: StoreCase(
                    name, seed, folder, judge, options.per_verb, url=url
                ), judge.close

            counts = command.each_verb(run, options.verb or NAMES, begin)
        return {**counts, "kind": options.kind}

    return command.run(f"stores_{parser.parse_args(arguments).kind}", parser, arguments, work)
