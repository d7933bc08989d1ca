"""A store that fails when it is told to: at which step, and how.

Every call of the store is a step, numbered from 1; reading and listing are steps too. A plan looks
at each step and says which fault happens there, if any. All stores made by ``child`` share the
steps and the plan, and so does what is written piece by piece (its ``finish`` is the step).

    store = FaultyStore(MemoryStore("x"), at(3, Fault.CRASH_AFTER))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from lance_nb.errors import ObjectExistsError, StorageError
from lance_nb.storage.base import Buffer, ByteRange, Listing, Names, ObjectWriter, Store

WRITES = ("write", "write_if_absent", "replace", "delete", "create")
LISTS = ("list", "list_names", "list_recursive")


class Crash(BaseException):
    """The process ends here: nobody catches it but the test."""


class Fault(Enum):
    """What happens at a step."""

    ERROR_BEFORE = "nothing is done, and the store says so"
    NO_SPACE = "nothing is done: the disk is full"
    UNKNOWN_BEFORE = "nothing is done, and nobody knows"
    LOST_REPLY = "it is done, and nobody knows"
    LOST_REPLY_REPEATED = "it is done, the driver repeats it by itself and hears 'exists'"
    ARRIVES_LATER = "nobody knows, and it is done some steps later"
    CRASH_BEFORE = "the process ends before it is done"
    CRASH_AFTER = "the process ends after it is done"
    INTERRUPT_BEFORE = "Ctrl-C comes before it is done"
    INTERRUPT_AFTER = "Ctrl-C comes after it is done"
    STALE_LIST = "a listing shows what was there some writes ago"
    EMPTY_LIST = "a listing shows nothing"


@dataclass(frozen=True, slots=True)
class Step:
    """One call: its number, the method, and the path below the outermost root."""

    number: int
    method: str
    path: str


Plan = Callable[[Step], Fault | None]


def no_faults(_step: Step) -> Fault | None:
    """Plan nothing."""
    return None


def at(number: int, fault: Fault, *more: tuple[int, Fault]) -> Plan:
    """Plan faults by the number of the step."""
    faults = dict([(number, fault), *more])
    return lambda step: faults.get(step.number)


def on(method: str, part: str, fault: Fault, times: int = 1, skip: int = 0) -> Plan:
    """Plan a fault for calls of a method whose path holds ``part``: ``times`` after ``skip``."""
    seen = 0

    def plan(step: Step) -> Fault | None:
        nonlocal seen
        if step.method != method or part not in step.path:
            return None
        seen += 1
        return fault if skip < seen <= skip + times else None

    return plan


@dataclass(slots=True)
class World:
    """What all stores of one faulty root share."""

    plan: Plan = no_faults
    steps: list[Step] = field(default_factory=list)
    late: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    listed: dict[str, list[Any]] = field(default_factory=dict)
    delay_steps: int = 3
    ended_by: Plan | None = None

    def crash(self, step: Step) -> Crash:
        """Return the end of the process: until there is another plan, no call reaches the store."""
        self.ended_by = self.plan
        return Crash(f"{step}")

    def begin(self, method: str, path: str) -> tuple[Step, Fault | None]:
        """Count a step, let what is late arrive, and ask the plan."""
        step = Step(len(self.steps) + 1, method, path)
        if self.ended_by is self.plan:
            raise Crash(f"{step}: the process has ended")
        self.steps.append(step)
        self.arrive(step.number)
        return step, self.plan(step)

    def arrive(self, number: int | None = None) -> None:
        """Do what was to be done later (everything, without ``number``)."""
        due = [one for one in self.late if number is None or one[0] <= number]
        self.late = [one for one in self.late if one not in due]
        for _, act in due:
            act()


class FaultyStore:
    """A store with faults in front of it."""

    def __init__(self, inner: Store, plan: Plan = no_faults, world: World | None = None) -> None:
        self.inner = inner
        self.world = world or World(plan)
        self._prefix = ""

    @property
    def steps(self) -> list[Step]:
        """Every call so far."""
        return self.world.steps

    @property
    def uri(self) -> str:
        return self.inner.uri

    @property
    def scheme(self) -> str:
        return self.inner.scheme

    def child(self, path: str) -> FaultyStore:
        found = FaultyStore(self.inner.child(path), world=self.world)
        found._prefix = f"{self._prefix}{path}/"
        return found

    # --- reading ----------------------------------------------------------------------------------

    def _read(self, method: str, path: str, act: Callable[[], Any]) -> Any:
        step, fault = self.world.begin(method, self._prefix + path)
        match fault:
            case None | Fault.STALE_LIST | Fault.EMPTY_LIST:
                return act()
            case Fault.CRASH_BEFORE | Fault.CRASH_AFTER:
                raise self.world.crash(step)
            case Fault.INTERRUPT_BEFORE | Fault.INTERRUPT_AFTER:
                raise KeyboardInterrupt
            case _:
                raise StorageError(f"{self.uri}/{path}", f"{method}: {fault.value}")

    def size(self, path: str) -> int:
        return self._read("size", path, lambda: self.inner.size(path))

    def exists(self, path: str) -> bool:
        return self._read("exists", path, lambda: self.inner.exists(path))

    def read(self, path: str) -> memoryview:
        return self._read("read", path, lambda: self.inner.read(path))

    def read_range(self, path: str, wanted: ByteRange) -> memoryview:
        return self._read("read_range", path, lambda: self.inner.read_range(path, wanted))

    def read_ranges(self, path: str, wanted: Sequence[ByteRange]) -> list[memoryview]:
        return self._read("read_ranges", path, lambda: self.inner.read_ranges(path, wanted))

    def read_tail(self, path: str, size_bytes: int) -> tuple[memoryview, int]:
        return self._read("read_tail", path, lambda: self.inner.read_tail(path, size_bytes))

    def map(self, path: str) -> memoryview | None:
        return self._read("map", path, lambda: self.inner.map(path))

    def _list(self, method: str, prefix: str) -> list[Any]:
        step, fault = self.world.begin(method, self._prefix + prefix)
        key = f"{method} {self._prefix}{prefix}"
        if fault is Fault.EMPTY_LIST:
            return []
        if fault is Fault.STALE_LIST:
            return self.world.listed.get(key, [])
        if fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
            raise self.world.crash(step)
        if fault in (Fault.INTERRUPT_BEFORE, Fault.INTERRUPT_AFTER):
            raise KeyboardInterrupt
        if fault is not None:
            raise StorageError(f"{self.uri}/{prefix}", f"{method}: {fault.value}")
        found = list(getattr(self.inner, method)(prefix))
        self.world.listed[key] = found
        return found

    def list(self, prefix: str) -> Listing:
        return self._list("list", prefix)

    def list_names(self, prefix: str) -> Names:
        return self._list("list_names", prefix)

    def list_recursive(self, prefix: str) -> Listing:
        return self._list("list_recursive", prefix)

    # --- writing ----------------------------------------------------------------------------------

    def _write(self, method: str, path: str, act: Callable[[], None]) -> None:
        step, fault = self.world.begin(method, self._prefix + path)
        where = f"{self.uri}/{path}"
        match fault:
            case None | Fault.STALE_LIST | Fault.EMPTY_LIST:
                act()
            case Fault.ERROR_BEFORE:
                raise StorageError(where, fault.value)
            case Fault.NO_SPACE:
                raise StorageError(where, "No space left on device")
            case Fault.UNKNOWN_BEFORE:
                raise StorageError(where, fault.value, "unknown")
            case Fault.LOST_REPLY:
                act()
                raise StorageError(where, fault.value, "unknown")
            case Fault.LOST_REPLY_REPEATED:
                act()
                if method == "write_if_absent":
                    raise ObjectExistsError(where)
            case Fault.ARRIVES_LATER:
                self.world.late.append((step.number + self.world.delay_steps, _quietly(act)))
                raise StorageError(where, fault.value, "unknown")
            case Fault.CRASH_BEFORE:
                raise self.world.crash(step)
            case Fault.CRASH_AFTER:
                act()
                raise self.world.crash(step)
            case Fault.INTERRUPT_BEFORE:
                raise KeyboardInterrupt
            case Fault.INTERRUPT_AFTER:
                act()
                raise KeyboardInterrupt

    def write(self, path: str, data: Buffer) -> None:
        self._write("write", path, lambda: self.inner.write(path, data))

    def write_unsynced(self, path: str, data: Buffer) -> None:
        self.write(path, data)

    def write_if_absent(self, path: str, data: Buffer) -> None:
        self._write("write_if_absent", path, lambda: self.inner.write_if_absent(path, data))

    def replace(self, path: str, expected: Buffer, data: Buffer) -> bool:
        replaced = False

        def act() -> None:
            nonlocal replaced
            replaced = self.inner.replace(path, expected, data)

        self._write("replace", path, act)
        return replaced

    def delete(self, path: str) -> None:
        self._write("delete", path, lambda: self.inner.delete(path))

    def create(self, path: str) -> ObjectWriter:
        self._write("create", path, lambda: None)
        return self.inner.create(path)


def _quietly(act: Callable[[], None]) -> Callable[[], None]:
    def later() -> None:
        try:
            act()
        except ObjectExistsError:
            return  # it came too late

    return later
