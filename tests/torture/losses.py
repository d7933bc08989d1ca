"""The power fails: of what was not synced, any part may be gone, cut or torn.

The calls of one change are recorded with their data. For each prefix of them, what a disk may hold
is built and read: content of a file is safe once the file is synced, else all of it, half, nothing
or zeros may be there; a name in a folder is safe once the folder is synced, else its creation,
renaming or removal may be lost, each by itself. That is what POSIX allows, and more than a journal
loses. Readers must see the state before or after, and after it once the change has returned.

    python -m tests.torture.losses 10000 [seed] [--verb NAME] [--jobs 2]
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.faulty_system import Call, WatchedSystem, in_place_of_os
from tests.torture import command
from tests.torture.kills import Case
from tests.torture.looking import Judge, errors_of, look
from tests.torture.verbs import VERBS

WATCHED = ("open", "write", "writev", "fsync", "link", "rename", "unlink", "mkdir", "rmdir")
WATCHED = (*WATCHED, "makedirs")
PER_PREFIX = 24
PER_VERB = 120
JUDGED_EVERY = 20
SOUND = ("before", "after", "landed")  # ends of which verify must find no error
TORN = ("whole", "half", "nothing", "zeros")
NAMING = ("create", "link", "rename", "unlink", "mkdir", "rmdir")


Loss = tuple[frozenset[int], dict[int, str]]  # numbers of steps, and how files are torn


class Step(NamedTuple):
    """One recorded call. ``file`` is the number of an inode, 0 for folders."""

    kind: str
    path: str = ""
    file: int = 0
    data: bytes = b""
    source: str = ""


class Recorder:
    """Makes the calls one at a time and writes down those that succeed."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._lock = threading.Lock()
        self._open: list[int] = []  # so that no inode number is given twice

    def __call__(self, name: str, real: Call, arguments: Any, options: Any) -> Any:
        with self._lock:
            paths = [
                _full(one, options, key)
                for one, key in zip(arguments[:2], ("dir_fd", "dst_dir_fd"), strict=False)
                if isinstance(one, str)
            ]
            if name in ("link", "rename"):
                paths[0] = _full(arguments[0], options, "src_dir_fd")
                file = os.lstat(paths[0]).st_ino
            folders = _missing(paths[0]) if name == "makedirs" else []
            done = real(*arguments, **options)
            self.steps += [Step("mkdir", one) for one in folders]
            if name == "open" and arguments[1] & os.O_CREAT:
                self._open.append(os.dup(done))
                self.steps.append(Step("create", paths[0], os.fstat(done).st_ino))
            elif name in ("write", "writev"):
                pieces = arguments[1] if name == "writev" else [arguments[1]]
                data = b"".join(bytes(one) for one in pieces)[:done]
                self.steps.append(Step("write", "", os.fstat(arguments[0]).st_ino, data))
            elif name == "fsync":
                self.steps.append(_synced(arguments[0]))
            elif name in ("link", "rename"):
                self.steps.append(Step(name, paths[1], file, source=paths[0]))
            elif name in ("unlink", "mkdir", "rmdir"):
                self.steps.append(Step(name, paths[0]))
            return done

    def close(self) -> None:
        """Let go of the files."""
        for descriptor in self._open:
            os.close(descriptor)


def _opened(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def _full(path: str, options: Any, key: str) -> str:
    folder = options.get(key)
    return path if folder is None else f"{_opened(folder)}/{path}"


def _missing(path: str) -> list[str]:
    around = [path, *map(str, Path(path).parents)]
    return [one for one in reversed(around) if not Path(one).is_dir()]


def _synced(descriptor: int) -> Step:
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        return Step("sync folder", _opened(descriptor))
    return Step("sync", "", status.st_ino)


class Disk:
    """What may be on the disk after a prefix of the steps."""

    def __init__(self, steps: list[Step]) -> None:
        self._steps = steps
        self.written: dict[int, bytes] = {}
        safe: dict[int, int] = {}
        last: dict[str, int] = {}
        for number, step in enumerate(steps):
            match step.kind:
                case "write":
                    self.written[step.file] = self.written.get(step.file, b"") + step.data
                case "sync":
                    safe[step.file] = len(self.written.get(step.file, b""))
                case "sync folder":
                    last[step.path] = number
        self._safe = safe
        self._files = [one for one, data in self.written.items() if len(data) > safe.get(one, 0)]
        self._names = [
            number
            for number, step in enumerate(steps)
            if step.kind in NAMING and last.get(step.path.rpartition("/")[0], -1) < number
        ]

    def losses(self, chance: random.Random) -> Iterator[Loss]:
        """Say which names are lost and how files are torn: all ways if they are few."""
        names, files = self._names, self._files
        if 2 ** len(names) * len(TORN) ** len(files) <= PER_PREFIX:
            for lost in itertools.product((False, True), repeat=len(names)):
                gone = frozenset(itertools.compress(names, lost))
                for torn in itertools.product(TORN, repeat=len(files)):
                    yield gone, dict(zip(files, torn, strict=True))
            return
        everything = dict.fromkeys(files, "whole")
        yield frozenset(), everything
        yield frozenset(names), dict.fromkeys(files, "nothing")
        for one in names:
            yield frozenset({one}), everything
            yield frozenset(names) - {one}, everything
        for _ in range(PER_PREFIX):
            gone = frozenset(one for one in names if chance.random() < 0.5)
            yield gone, {one: chance.choice(TORN) for one in files}

    def names(self, before: dict[str, int], lost: frozenset[int]) -> dict[str, int]:
        """Return path -> file (0: a folder; what was there before has a number below 0)."""
        found = dict(before)
        for number, step in enumerate(self._steps):
            if step.kind not in NAMING or number in lost:
                continue
            if step.kind in ("unlink", "rmdir"):
                found.pop(step.path, None)
                continue
            if step.kind == "rename":
                found.pop(step.source, None)
            file = before.get(step.source, step.file) if step.source else step.file
            found[step.path] = file
        return {path: file for path, file in found.items() if _is_reachable(path, found)}

    def files(self, before: dict[str, int], loss: Loss) -> dict[str, Any]:
        """Return path -> content, or a number as ``names`` has it, of what is not lost."""
        lost, torn = loss
        return {
            path: file if file <= 0 else self.content(file, torn.get(file, "whole"))
            for path, file in self.names(before, lost).items()
        }

    def content(self, file: int, how: str) -> bytes:
        """Return what is in a file that is torn in some way."""
        data = self.written.get(file, b"")
        safe = self._safe.get(file, 0)
        rest = data[safe:]
        torn = {"whole": rest, "half": rest[: len(rest) // 2], "nothing": b""}
        return data[:safe] + torn.get(how, bytes(len(rest)))


def _is_reachable(path: str, found: dict[str, int]) -> bool:
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        if found.get(path) != 0:
            return False
    return True


class Losses:
    """A run: its counts, and what it found."""

    def __init__(self, seed: int, per_verb: int) -> None:
        self._judge = Judge()
        self._per_verb = per_verb
        self._chance = random.Random(seed)
        self.ends: Counter[str] = Counter()
        self.verbs: Counter[str] = Counter()
        self.failures: list[str] = []

    def close(self) -> None:
        """End the process of pylance."""
        self._judge.close()

    def all_of(self, name: str, seed: int) -> None:
        """Lose the power after every call of a verb."""
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
        began, earlier = time.perf_counter(), self.verbs[name]
        with tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as folder:
            case = Case(name, seed, Path(folder) / "case")
            place = case.copied("round")
            root = str(Path(place).parent)
            before, sources = _tree(root, f"{folder}/case/source")
            recorder = Recorder()
            with in_place_of_os(WatchedSystem(WATCHED, recorder)):
                case.verb.act(place)
            recorder.close()
            after = look(place + case.verb.at)
            for files, where, is_done in self._chosen(recorder.steps, before):
                shutil.rmtree(root, ignore_errors=True)
                _build(root, files, sources)
                self._read(
                    case, place, after, is_done=is_done, where=f"{name}, seed {seed}, {where}"
                )
                self.verbs[name] += 1
        seconds = time.perf_counter() - began
        print(
            f"{name}, seed {seed}: {self.verbs[name] - earlier} states, {seconds:.1f} s", flush=True
        )

    def _chosen(
        self, steps: list[Step], before: dict[str, int]
    ) -> Iterator[tuple[dict[str, Any], str, bool]]:
        """Yield different states, how each came to be, and whether the change had returned.

        Where there are more than ``per_verb``, a third is of those after the change had returned.
        """
        states: dict[Any, tuple[int, Loss]] = {}
        for count in range(len(steps) + 1):
            disk = Disk(steps[:count])
            for loss in disk.losses(self._chance):
                files = disk.files(before, loss)
                states.setdefault((count == len(steps), frozenset(files.items())), (count, loss))
        chosen: list[Any] = []
        for is_done, most in ((True, self._per_verb // 3), (False, self._per_verb)):
            some = [one for one in states if one[0] is is_done]
            chosen += self._chance.sample(some, min(len(some), most - len(chosen)))
        for key in chosen:
            count, loss = states[key]
            lost = [f"{steps[one][0]} {_below(steps[one][1])}" for one in sorted(loss[0])]
            yield dict(key[1]), f"step {count} of {len(steps)}, lost {lost}", key[0]

    def _read(self, case: Case, place: str, after: Any, *, is_done: bool, where: str) -> None:
        at = place + case.verb.at
        try:
            found = case.seen(at)
            end = "after" if found == after else case.end_of(found)
            assert end == "after" or not is_done, f"acknowledged, and readers see {end}"
            is_foreign = end != "before" or case.verb.foreign_before
            if not isinstance(found, str) and is_foreign and self.ends.total() % JUDGED_EVERY == 0:
                self._judge.compare(at, found)
                problems = errors_of(at) if found and end in SOUND else []
                known = ([], case.errors, case.errors_before if end == "before" else [])
                assert problems in known, f"verify: {problems}"
        except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
            self.failures.append(f"{where}: {type(error).__name__}: {error}")
            end = "found"
        self.ends[end] += 1


def _below(path: str) -> str:
    """Return a path from the folder of the round on: the rest differs from machine to machine."""
    return path.partition("/round/")[2] or path


def _tree(root: str, source: str) -> tuple[dict[str, int], dict[int, str]]:
    """Return the paths below a folder, a number for each file, and where it is in ``source``."""
    names = {root: 0}
    for folder in Path(root).parents:
        names[str(folder)] = 0
    sources = {}
    for number, one in enumerate(sorted(Path(root).rglob("*")), 1):
        names[str(one)] = 0 if one.is_dir() else -number
        if one.is_file():
            sources[-number] = str(one).replace(root, source, 1)
    return names, sources


def _build(root: str, files: dict[str, Any], sources: dict[int, str]) -> None:
    for path, content in sorted(files.items()):
        if not path.startswith(root):
            continue
        if content == 0:
            Path(path).mkdir(parents=True, exist_ok=True)
        elif isinstance(content, bytes):
            Path(path).write_bytes(content)
        else:
            os.link(sources[content], path)


def work(run: command.Run) -> command.Found:
    """Lose power until the size is reached and every verb is through; return the counts."""

    def make(seed: int) -> Losses:
        return Losses(seed, run.options.per_verb)

    return command.each_verb(run, run.options.verb or list(VERBS), make, "states")


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    parser = command.arguments_of("tests.torture.losses", "states that are read")
    parser.add_argument("--verb", action="append", choices=list(VERBS))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--per-verb", type=int, default=PER_VERB, help="states at most")
    return command.run("losses", parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
