"""A history of several writers under a seed, and the sequential model that it must equal.

Writers append, delete rows, overwrite, restore, and set config keys, each from a version that may
be old. Their store loses replies, repeats requests, delivers late, shows old listings and fails; a
writer may crash. Afterwards every version is read and compared with what the transactions, applied
one after the other in the order of their versions, must have made of the rows.

    python -m tests.faults simulate 100000 [seed] [--jobs 2]
"""

from __future__ import annotations

import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lance_nb.errors import (
    CommitError,
    CommitStateUnknownError,
    DatasetNotFoundError,
    StorageError,
    VersionNotFoundError,
)
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.manifest import Manifest
from lance_nb.storage.memory import MemoryStore, clear
from lance_nb.table.locations import Locations
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace
from lance_nb.transactions.deletion_files import read_deletion_file, write_deletion_file
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.operations.update_config import UpdateConfig, UpdateMap
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import VersionSource
from tests.faults import command
from tests.support.committing import SCHEMA, FakeTime, environment, fragment
from tests.support.faulty_store import Crash, Fault, FaultyStore, Step

ROWS = 10
FAULTS = {
    "write_if_absent": (
        Fault.LOST_REPLY,
        Fault.LOST_REPLY_REPEATED,
        Fault.ARRIVES_LATER,
        Fault.UNKNOWN_BEFORE,
        Fault.ERROR_BEFORE,
        Fault.CRASH_BEFORE,
        Fault.CRASH_AFTER,
    ),
    "write": (Fault.ERROR_BEFORE, Fault.LOST_REPLY, Fault.CRASH_AFTER),
    "list_names": (Fault.STALE_LIST, Fault.EMPTY_LIST, Fault.ERROR_BEFORE),
    "read": (Fault.ERROR_BEFORE,),
}
OUTAGE_BEGINS, OUTAGE_STEPS, OUTAGE_SHARE = 0.2, 12, 0.95
FORGETFUL_SHARE = 0.1  # of those who got an answer and ask again
KINDS = ("append", "append", "append", "delete", "delete", "config", "overwrite", "restore")

Rows = dict[str, frozenset[int]]  # file name -> offsets that are deleted


@dataclass(slots=True)
class State:
    """What the rows and the config of a version are, in the model."""

    files: Rows = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Outcome:
    """How one transaction ended: "done" with its version, "failed", "unknown", or "not begun"."""

    transaction: Transaction
    ended: str
    version: int | None = None
    rows: dict[str, frozenset[int]] = field(default_factory=dict)


class Turns:
    """Runs several writers, of which exactly one runs at a time; a seed says which.

    Every step of a store is a place where the turn may pass to another writer, so that a run visits
    one of all possible interleavings, and the same seed visits it again.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._waiting: dict[int, threading.Semaphore] = {}
        self._control = threading.Semaphore(0)
        self._local = threading.local()
        self._errors: list[BaseException] = []

    def step(self) -> None:
        """Pass the turn; called by a writer before each step of a store."""
        own = getattr(self._local, "number", None)
        if own is None:
            return
        self._control.release()
        self._waiting[own].acquire()

    def run(self, writers: list[Callable[[], None]]) -> None:
        """Run the writers to their ends; raise what one of them raised."""
        self._waiting = {number: threading.Semaphore(0) for number in range(len(writers))}
        threads = [
            threading.Thread(target=self._live, args=(number, writer), daemon=True)
            for number, writer in enumerate(writers)
        ]
        for thread in threads:
            thread.start()
        alive = dict(enumerate(threads))
        while alive:
            number = self._chance.choice(sorted(alive))
            self._waiting[number].release()
            self._control.acquire()
            if getattr(alive[number], "ended", False):
                alive.pop(number).join()
        if self._errors:
            raise self._errors[0]

    def _live(self, number: int, writer: Callable[[], None]) -> None:
        self._local.number = number
        self._waiting[number].acquire()
        try:
            writer()
        except BaseException as error:  # noqa: BLE001  handed to the thread that runs the test
            self._errors.append(error)
        threading.current_thread().ended = True
        self._control.release()


class Simulation:
    """One run. ``fault_share``: how many of the steps fail."""

    def __init__(self, seed: int, writers: int = 3, changes: int = 2, fault_share: float = 0.06):
        self.seed = seed
        self._chance = random.Random(seed)
        self._name = uuid.uuid4().hex
        self.inner = MemoryStore(self._name)
        self._time = FakeTime()
        self._environment = environment(seed, self._time)
        self._writers = writers
        self._changes = changes
        self._fault_share = fault_share
        self.outcomes: list[Outcome] = []
        self.faults = 0

    def run(self) -> None:
        """Run the writers, then hold every version against the model. Raises AssertionError."""
        first = Transaction(0, Overwrite(SCHEMA, (fragment("f0"),)), "first")
        commit(CommitPlace.of(self.inner), first, CommitOptions(environment=self._environment))
        self.outcomes.append(Outcome(first, "done", 1))
        turns = Turns(self._chance)
        stores = [self._store(turns) for _ in range(self._writers)]
        turns.run([lambda store=store: self._live(store) for store in stores])
        for store in stores:
            store.world.arrive()
        try:
            self._check()
        finally:
            clear(self._name)

    # --- writers ----------------------------------------------------------------------------------

    def _store(self, turns: Turns) -> FaultyStore:
        outage = 0  # steps that are still going to fail

        def plan(step: Step) -> Fault | None:
            nonlocal outage
            turns.step()
            choices = FAULTS.get(step.method)
            share = OUTAGE_SHARE if outage else self._fault_share
            outage = max(outage - 1, 0)
            if choices is None or self._chance.random() >= share:
                return None
            self.faults += 1
            if self._chance.random() < OUTAGE_BEGINS:
                outage = OUTAGE_STEPS
            return self._chance.choice(choices)

        return FaultyStore(self.inner, plan)

    def _live(self, store: FaultyStore) -> None:
        try:
            for _ in range(self._changes):
                self._change(store)
        except Crash:
            return

    def _change(self, store: FaultyStore) -> None:
        place = CommitPlace.of(store)
        try:
            outcome, affected = self._plan(place)
        except (StorageError, VersionNotFoundError):
            return
        self.outcomes.append(outcome)
        options = CommitOptions(environment=self._environment, affected_rows=affected)
        for _ in range(2):  # whoever does not know asks again with the same transaction
            try:
                made = commit(place, outcome.transaction, options)
                outcome.ended, outcome.version = "done", made.version
                if self._chance.random() >= FORGETFUL_SHARE:
                    return
            except CommitStateUnknownError:
                outcome.ended = "done" if outcome.ended == "done" else "unknown"
            except (CommitError, StorageError, DatasetNotFoundError, VersionNotFoundError):
                if outcome.ended == "not begun":
                    outcome.ended = "failed"
                return
            except Crash:
                outcome.ended = "done" if outcome.ended == "done" else "unknown"
                raise

    def _plan(self, place: CommitPlace) -> tuple[Outcome, dict[int, DeletionVector] | None]:
        """Make up a change on a version that may be the newest or an older one."""
        source = VersionSource(place.slots)
        head = source.head(1)
        read = max(1, head.version - self._chance.choice((0, 0, 0, 1, 2)))
        manifest = source.load(read).manifest
        kind = self._chance.choice(KINDS)
        name = f"f{len(self.outcomes)}-{self._chance.randrange(10**6)}"
        rows: dict[str, frozenset[int]] = {}
        affected = None
        if kind == "delete" and len(manifest.fragments):
            operation, rows, affected = self._deletion(place, manifest)
        elif kind == "config":
            key = self._chance.choice("ab")
            operation = UpdateConfig(UpdateMap({key: name}))
        elif kind == "overwrite":
            operation = Overwrite(SCHEMA, (fragment(name),))
        elif kind == "restore":
            operation = Restore(self._chance.randint(1, read))
        else:
            operation = Append((fragment(name),))
        transaction = Transaction(read, operation, self._environment.new_uuid())
        return Outcome(transaction, "not begun", None, rows), affected

    def _deletion(self, place: CommitPlace, manifest: Manifest):
        chosen = self._chance.choice(list(manifest.fragments))
        old = read_deletion_file(place.locations(manifest), chosen)
        live = [offset for offset in range(ROWS) if offset not in old]
        picked = self._chance.sample(live, min(len(live), self._chance.choice((1, 1, 2))))
        affected = {chosen.id: DeletionVector.of(picked)}
        rows = {chosen.files[0].path: frozenset(picked)}
        if len(picked) == len(live):
            return Delete((), (chosen.id,), "all"), rows, affected
        file = write_deletion_file(
            place.home,
            chosen.id,
            manifest.version,
            old | DeletionVector.of(picked),
            environment=self._environment,
        )
        return Delete((replace(chosen, deletion_file=file),), (), "some"), rows, affected

    # --- the oracle -------------------------------------------------------------------------------

    def _check(self) -> None:
        slots = CommitPlace.of(self.inner).slots
        source = VersionSource(slots)
        numbers = [name.version for name in slots.list_names()]
        assert numbers == list(range(1, len(numbers) + 1)), numbers
        landed = [source.transaction(number).uuid for number in numbers]
        assert len(set(landed)) == len(landed), "a transaction landed twice"
        known = {one.transaction.uuid: one for one in self.outcomes}
        for one in self.outcomes:
            times = landed.count(one.transaction.uuid)
            if one.ended == "done":
                assert times == 1, one
                assert landed[one.version - 1] == one.transaction.uuid, one
            assert one.ended != "failed" or times == 0, one
        states: dict[int, State] = {0: State()}
        highest = -1
        for number, name in zip(numbers, landed, strict=True):
            manifest = source.load(number).manifest
            state = _applied(known[name], states[number - 1], states)
            states[number] = state
            found = self._seen(manifest)
            assert found == state, f"version {number} ({known[name]}): {found} is not {state}"
            assert manifest.max_fragment_id is not None
            assert manifest.max_fragment_id >= highest
            highest = manifest.max_fragment_id

    def _seen(self, manifest: Manifest) -> State:
        locations = Locations(self.inner, self.inner)
        files = {
            one.files[0].path: frozenset(read_deletion_file(locations, one).offsets().tolist())
            for one in manifest.fragments
        }
        assert len(files) == len(manifest.fragments)
        return State(files, dict(manifest.config))


def _applied(outcome: Outcome, before: State, states: dict[int, State]) -> State:
    """Apply one change to the rows, alone and in order."""
    operation = outcome.transaction.operation
    files, config = dict(before.files), dict(before.config)
    match operation:
        case Append():
            files |= {one.files[0].path: frozenset() for one in operation.fragments}
        case Overwrite():
            files = {one.files[0].path: frozenset() for one in operation.fragments}
        case Restore():
            old = states[operation.version]
            files, config = dict(old.files), dict(old.config)
        case UpdateConfig():
            config |= dict(operation.config_updates.updates)
        case Delete():
            for path, rows in outcome.rows.items():
                assert path in files, f"{path} was deleted from, and is not there"
                files[path] |= rows
                if len(files[path]) == ROWS:
                    del files[path]
    return State(files, config)


# --- many histories -------------------------------------------------------------------------------

CHUNK = 1000  # histories of one process


def simulate(first: int, count: int) -> Counter[str]:
    """Run ``count`` seeds; return how many transactions were tried and faults happened."""
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        simulation = Simulation(seed, writers=3 + seed % 3, changes=2)
        try:
            simulation.run()
        except BaseException as error:
            error.add_note(f"seed {seed}: Simulation({seed}, writers={3 + seed % 3}).run()")
            raise
        counts.update(transactions=len(simulation.outcomes), faults=simulation.faults)
    return counts


def _share(seeds: range, tell: command.Tell) -> tuple[Counter[str], list[str]]:
    return command.each(seeds, tell, lambda seed: simulate(seed, 1), "simulate 1 {}")


def main(arguments: list[str]) -> int:
    """Simulate as many histories as asked; return the exit code."""
    parser = command.parser_of("simulate", "histories", 100_000)
    return command.run(
        "histories", parser, arguments, lambda run: command.shared(run, _share, CHUNK)
    )
