"""Writers that commit through an external manifest store, killed at every call.

As ``kills``, with a manifest store beside the dataset: the child also dies before and after each
call to the store, and, with SQLite, at steps of the program that a statement is compiled to. The
next opener must finish what was committed half: then the newest entry names a manifest that is in
place, and pylance, which does not know of the store, reads the same from the folder alone.

    python -m tests.torture.stores 1000 [seed] [--kind sqlite] [--verb NAME] [--jobs 2]
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
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
from tests.support import servers
from tests.support.requirements import require_package
from tests.torture import command
from tests.torture.kills import Case, Killer
from tests.torture.looking import Judge, look
from tests.torture.verb import OPTIONS, opened, rows
from tests.torture.verbs import VERBS

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
        self._number -= 1
        if self._number == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0


class StoreCase(Case):
    """A verb on a dataset of a seed that has an external manifest store."""

    def __init__(self, name: str, seed: int, folder: Path, url: str) -> None:
        self._url = url
        self._bases: set[str] = set()
        self._use(folder / "source")
        super().__init__(name, seed, folder)

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
        place = super().copied(name)
        store = self._use(self._folder / name)
        for base in self._bases:
            store.forget(base)
        for folder, found in source:
            base = self._key(self._folder / name / folder.relative_to(self._folder / "source"))
            ends = ("", self.verb.at, "/tree/dev")
            self._bases |= {base, *(self._key(f"{place}{end}") for end in ends)}
            for one in found:
                path = f"{base}/_versions/{one.path.rpartition('/')[2]}"
                store.put_if_not_exists(base, replace(one, path=path))
        return place

    def _key(self, folder: str | Path) -> str:
        """Return the name that a dataset or branch has in the store."""
        return base_uri(open_store(str(folder)), str(OPTIONS[OPTION]))

    def entries_of(self, folder: Path) -> list[tuple[Path, list[Any]]]:
        """Return the entries of every dataset and branch below a folder."""
        store = open_external(self._url or f"sqlite:///{folder}.db", CREDENTIALS)
        found = []
        for versions in sorted(folder.rglob("_versions")):
            names = [parse_manifest_name(one.name) for one in versions.iterdir()]
            numbers = sorted({one.version for one in names if one and not one.detached})
            base = self._key(versions.parent)
            some = [store.get(base, number) for number in [*numbers, max(numbers, default=0) + 1]]
            found.append((versions.parent, [one for one in some if one is not None]))
        return found

    def watched_act(self, place: str, killer: Killer) -> None:
        """Make the change, while calls to the disk and to the store go through ``killer``."""
        kind = type(open_external(str(OPTIONS[OPTION]), CREDENTIALS))
        with ExitStack() as stack:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            for name in METHODS:
                patch.setattr(kind, name, _through(killer, name, getattr(kind, name)))
            if isinstance(killer, _Within):
                patch.setattr(sqlite3, "connect", _stepping(killer, sqlite3.connect))
            super().watched_act(place, killer)

    def killer(self, number: int, moment: str) -> Killer:
        """Return what ends the process at a call, or "within" one to SQLite."""
        return (_Within if moment == "within" else Killer)(number, moment, [])

    def left(self) -> str:
        """Describe the files and the entries that a dead writer left."""
        entries = [
            (folder.name, [(one.version, one.is_staged) for one in found])
            for folder, found in self.entries_of(self._folder / "round")
        ]
        return f"{super().left()} {entries}"

    def append(self, judge: Judge, at: str) -> int:
        """Append rows through the store; look whether the newest entry is finished."""
        dataset = opened(at)
        wanted = [one for one in rows(9000, 1).column_names if one in dataset.schema.names]
        dataset.insert(rows(9000, 1).select(wanted), schema=None)
        for folder, entries in self.entries_of(Path(at)):
            assert not any(one.is_staged for one in entries[-1:]), f"{folder}: {entries[-1]}"
            assert not entries or (folder / entries[-1].object_path).exists()
        found = look(at)
        judge.compare(at, found)
        return len(found["main"]["rows"])


def _through(killer: Killer, name: str, real: Any) -> Any:
    def call(*arguments: Any, **options: Any) -> Any:
        return killer(name, real, arguments, options)

    return call


def _stepping(killer: _Within, connect: Any) -> Any:
    def connected(*arguments: Any, **options: Any) -> Any:
        connection = connect(*arguments, **options)
        connection.set_progress_handler(killer.step, 1)
        return connection

    return connected


class StoreKills:
    """A run: its counts, and what it found."""

    def __init__(self, url: str, per_verb: int) -> None:
        self._url = url
        self._per_verb = per_verb
        self._judge = Judge()
        self.ends: Counter[str] = Counter()
        self.verbs: Counter[str] = Counter()
        self.failures: list[str] = []

    def close(self) -> None:
        """End the process of pylance."""
        self._judge.close()

    def all_of(self, name: str, seed: int) -> None:
        """Kill a verb at some calls."""
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
        chance, began = random.Random(f"{name} {seed}"), time.perf_counter()
        with tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as folder:
            case = StoreCase(name, seed, Path(folder) / "case", self._url)
            cells = [
                (number, moment)
                for number in range(1, len(case.calls) + 1)
                for moment in ("before", "after")
            ]
            cells = chance.sample(cells, min(len(cells), self._per_verb))
            if not self._url:
                inside = range(round(len(cells) * WITHIN_SHARE))
                cells[: len(inside)] = [
                    (chance.randint(1, WITHIN_STEPS_MAX), "within") for _ in inside
                ]
            for number, moment in cells:
                try:
                    end = case.round(self._judge, number, moment)
                except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
                    end = "found"
                    text = f"{name}, seed {seed}, killed {moment} {number} of {case.calls}"
                    self.failures.append(f"{text}: {type(error).__name__}: {error}")
                    case.tidy()
                if end != "ended":
                    self.ends[end] += 1
                    self.verbs[name] += 1
        seconds = time.perf_counter() - began
        print(f"{name}, seed {seed}: {self.verbs[name]} kills, {seconds:.1f} s", flush=True)


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


def work(run: command.Run) -> command.Found:
    """Kill until the size is reached and every verb is through; return the counts."""
    names = run.options.verb or list(NAMES)
    with url_of(run.options.kind) as url:

        def make(_: int) -> StoreKills:
            return StoreKills(url, run.options.per_verb)

        return {**command.each_verb(run, names, make, "rounds"), "kind": run.options.kind}


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    parser = command.arguments_of("tests.torture.stores", "kills")
    parser.add_argument("--kind", choices=KINDS, default="sqlite", help="of the manifest store")
    parser.add_argument("--verb", action="append", choices=NAMES)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--per-verb", type=int, default=PER_VERB, help="kills at most")
    kind = parser.parse_args(arguments).kind
    return command.run(f"stores_{kind}", parser, arguments, work)


if __name__ == "__main__":
    assert {*NAMES} <= {*VERBS}
    sys.exit(main(sys.argv[1:]))
