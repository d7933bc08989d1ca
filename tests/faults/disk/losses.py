"""The power fails: of what was not synced, any part may be gone, cut or torn.

The calls of one change are recorded with their data. For each prefix of them, what a disk may hold
is built and read: content of a file is safe once the file is synced, else all of it, half, nothing
or zeros may be there; a name in a folder is safe once the folder is synced, else its creation,
renaming or removal may be lost, each by itself. That is what POSIX allows, and more than a journal
loses. Readers must see the state before or after, and after it once the change has returned.

    python -m tests.faults losses 10000 [seed] [--verb NAME] [--jobs 2]
"""

from __future__ import annotations

import itertools
import os
import random
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.disk.case import Case, run_kind
from tests.faults.disk.looking import Judge, errors_of, look
from tests.support.faulty_system import Call

PER_PREFIX = 24
PER_VERB = 120
JUDGED_EVERY = 20
SOUND = ("before", "after", "landed")  # ends of which verify must find no error
TORN = ("whole", "half", "nothing", "zeros")
NAMING = ("create", "link", "rename", "unlink", "mkdir", "rmdir")

Lost = tuple[frozenset[int], dict[int, str]]  # numbers of steps, and how files are torn


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

    def losses(self, chance: random.Random) -> Iterator[Lost]:
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
        names_now = dict(before)
        for number, step in enumerate(self._steps):
            if step.kind not in NAMING or number in lost:
                continue
            if step.kind in ("unlink", "rmdir"):
                names_now.pop(step.path, None)
                continue
            if step.kind == "rename":
                names_now.pop(step.source, None)
            file = before.get(step.source, step.file) if step.source else step.file
            names_now[step.path] = file
        return {path: file for path, file in names_now.items() if _is_reachable(path, names_now)}

    def files(self, before: dict[str, int], loss: Lost) -> dict[str, Any]:
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


def _is_reachable(path: str, names_now: dict[str, int]) -> bool:
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        if names_now.get(path) != 0:
            return False
    return True


class Loss(NamedTuple):
    """What a disk may hold after some of the steps."""

    files: dict[str, Any]
    text: str
    is_done: bool

    def __str__(self) -> str:
        return self.text


class LossCase(Case):
    """A verb after every call of which the power fails."""

    def __init__(self, name: str, seed: int, folder: Path, judge: Judge, per_verb: int) -> None:
        super().__init__(name, seed, folder, judge)
        self._per_verb = per_verb
        self._count = 0
        path = self.copied("round")
        self._root = str(Path(path).parent)
        self._tree, self._sources = _tree(self._root, str(self._source))
        recorder = Recorder()
        self.watched_run(path, recorder)
        recorder.close()
        self._steps = recorder.steps
        self._recorded = look(path + self.verb.at)

    def rounds(self) -> Iterator[Loss]:
        """Yield different states, how each came to be, and whether the change had returned.

        Where there are more than ``per_verb``, a third is of those after the change had returned.
        """
        steps, states = self._steps, {}
        for count in range(len(steps) + 1):
            disk = Disk(steps[:count])
            for loss in disk.losses(self.chance):
                files = disk.files(self._tree, loss)
                states.setdefault((count == len(steps), frozenset(files.items())), (count, loss))
        chosen: list[Any] = []
        for is_done, most in ((True, self._per_verb // 3), (False, self._per_verb)):
            keys = [key for key in states if key[0] is is_done]
            chosen += self.chance.sample(keys, min(len(keys), most - len(chosen)))
        for key in chosen:
            count, loss = states[key]
            lost = [f"{steps[number][0]} {_below(steps[number][1])}" for number in sorted(loss[0])]
            yield Loss(dict(key[1]), f"step {count} of {len(steps)}, lost {lost}", key[0])

    def round(self, loss: Loss) -> str:
        """Build a state and read it; return its end. Raises AssertionError."""
        self.tidy()
        _build(self._root, loss.files, self._sources)
        path = f"{self._root}/t.lance"
        state = self.seen(path)
        end = "after" if state == self._recorded else self.end_of(state)
        assert end == "after" or not loss.is_done, f"acknowledged, and readers see {end}"
        is_foreign = end != "before" or self.verb.foreign_before
        self._count += 1
        if not isinstance(state, str) and is_foreign and self._count % JUDGED_EVERY == 1:
            self.judge.compare(path + self.verb.at, state)
            problems = errors_of(path + self.verb.at) if state and end in SOUND else []
            allowed = ([], self.errors, self.errors_before if end == "before" else [])
            assert problems in allowed, f"verify: {problems}"
        return end


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


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    return run_kind("losses", "losses", arguments, LossCase, (10_000, PER_VERB))
