"""Commits without data files: what the tests of the commit protocol are built from.

The engine below the façade never opens a data file to commit, so fragments are made up. Time,
sleep, chance and names come from one seed.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.schema import Schema
from lance_nb.storage.base import Store
from lance_nb.storage.memory import MemoryStore
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.transaction import Transaction
from tests.support.faulty_store import FaultyStore, Plan, no_faults

SCHEMA = Schema.from_arrow(pa.schema([("id", pa.int64()), ("name", pa.string())]))
START_NS = 1_700_000_000_000_000_000


@dataclass(slots=True)
class FakeTime:
    """A clock that moves when somebody sleeps, and a little at each look."""

    now_s: float = 0.0
    slept: list[float] = field(default_factory=list)

    def clock(self) -> int:
        self.now_s += 0.000_001
        return START_NS + int(self.now_s * 1e9)

    def monotonic(self) -> float:
        self.now_s += 0.000_001
        return self.now_s

    def sleep(self, wait_s: float) -> None:
        self.slept.append(wait_s)
        self.now_s += wait_s


def environment(seed: int = 0, time: FakeTime | None = None) -> Environment:
    """Return an environment in which everything follows from the seed."""
    chance = random.Random(seed)
    time = time or FakeTime()
    return Environment(
        time.clock,
        time.monotonic,
        time.sleep,
        chance.random,
        lambda: str(uuid.UUID(int=chance.getrandbits(128), version=4)),
    )


def fragment(name: str = "rows", num_rows: int = 10, identity: int = 0) -> Fragment:
    """Make up a fragment of one data file; nobody will open it."""
    file = DataFile(f"{name}.lance", (0, 1), (0, 1), 2, 2, 100)
    return Fragment(identity, (file,), num_rows)


class Table:
    """One dataset in memory, seen through a store with faults."""

    def __init__(self, plan: Plan = no_faults, seed: int = 0, inner: Store | None = None) -> None:
        self.inner = inner or MemoryStore(uuid.uuid4().hex)
        self.time = FakeTime()
        self.environment = environment(seed, self.time)
        self.root = FaultyStore(self.inner, plan)

    @property
    def place(self) -> CommitPlace:
        """Main, through the faults."""
        return CommitPlace.of(self.root)

    @property
    def sound(self) -> CommitPlace:
        """Main, without them: what another process sees."""
        return CommitPlace.of(self.inner)

    def options(self, **more: Any) -> CommitOptions:
        return CommitOptions(environment=self.environment, **more)

    def transaction(self, read_version: int, operation: Any) -> Transaction:
        return Transaction(read_version, operation, self.environment.new_uuid())

    def appending(self, read_version: int, name: str = "") -> Transaction:
        """An append of one fragment, not committed."""
        name = name or f"after-{read_version}"
        return self.transaction(read_version, Append((fragment(name),)))

    def creating(self, name: str = "first") -> Transaction:
        """An overwrite that creates the dataset, not committed."""
        return self.transaction(0, Overwrite(SCHEMA, (fragment(name),)))

    def create(self, **more: Any) -> Committed:
        """Create the dataset, without faults."""
        return commit(self.sound, self.creating(), self.options(**more))

    def append(self, read_version: int, name: str = "") -> Committed:
        """Commit an append as another process would, without faults."""
        return commit(self.sound, self.appending(read_version, name), self.options())

    def commit(self, transaction: Transaction, **more: Any) -> Committed:
        """Commit through the faults."""
        return commit(self.place, transaction, self.options(**more))


def file_names(committed: Committed) -> list[str]:
    """The data files of a version, in order."""
    return [one.path for part in committed.manifest.fragments for one in part.files]
