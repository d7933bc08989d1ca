"""Conditional put: create an object unless it exists, by one request per kind of object store.

Each class sends one conditional request for the whole object, because several servers check the
condition on a single upload only and ignore it when a multipart upload is completed:

====================  ==============  =========================================================
service (driver)      class           request
====================  ==============  =========================================================
S3 (s3fs)             S3Put           one PUT with ``If-None-Match: *``
Cloud Storage (gcsfs) GcsPut          one upload with ``ifGenerationMatch=0``
Azure Blob (adlfs)    AzurePut        an upload with ``overwrite=False``
all three (obstore)   ObjectStorePut  one PUT with the condition of the service
====================  ==============  =========================================================

``CONDITIONAL_PUTS`` maps URI schemes to them. A server or a driver that does not know the condition
ignores it: both of two writers are told that they created the object, and one commit is lost
silently. So before the first commit to a server and bucket ``require_exclusive`` probes it: a
scratch object ``.probe-<id>`` is created by ``RACERS`` writers at the same time (one may win) and
then by a late one (which must be refused), read and removed: 11 requests, in four steps. It lies in
the folder of the object to be created, under a name that no reader of Lance looks at.

Outcomes: drivers repeat requests on their own, so ``EXISTS`` may mean the caller's own object whose
first reply was lost. The committer has to read it back and compare.

Limits: only what is certain counts as ``FAILED``; a server error, a timeout or a broken connection
is ``UNKNOWN``, because the server may have done the work before. A refusal (403, 404) counts as
certain, although a lost reply before it is possible if the driver repeated the request. 5 GiB, the
largest single PUT. The result of a probe is kept for the life of the process and not on disk, since
another server may stand behind the same address by then; a probe cannot prove that a store is
right, it detects stores that are wrong always or often. Through obstore, the services' own
addresses are not probed (object_store.py). Cloud Storage and Azure are tested against a fake driver
and a server of the tests only.
Source: "Conditional writes" of the S3 user guide; "Request preconditions" of the Cloud Storage
documentation; "Specifying conditional headers" of the Blob service; s3fs 2026.9.0, gcsfs 2026.10.1,
adlfs 2026.8.0.
"""

from __future__ import annotations

import errno
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Any, Protocol

from lance_nb.errors import (
    NotSupportedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from lance_nb.storage.system_calls import call_in_forked_children
from lance_nb.value_classes import dataclass

PROBE_PREFIX = ".probe-"
RACERS = 8

BUSY_WAITS_S = (0.05, 0.2, 0.8)  # before an object is tried again that is being written

_CAUSES_MAX = 16
_RACE_START_S = 10.0
_SINGLE_UPLOAD_BYTES = 5 << 30  # a part size that is never reached keeps an upload one request


class Outcome(Enum):
    """What an error of a conditional request means for the object."""

    EXISTS = "exists"
    BUSY = "busy"  # refused because another request for the object is under way: try again
    FAILED = "failed"
    UNKNOWN = "unknown"


class Judge(Protocol):
    """Knows what an error of a driver means for the object that was to be created."""

    def outcome(self, error: BaseException) -> Outcome:
        """Judge an error of a conditional request."""
        ...


class ConditionalPut(Judge, Protocol):
    """Creates objects exclusively through one driver of fsspec."""

    def put(self, filesystem: Any, full: str, data: bytes) -> None:
        """Create the object ``full`` by one request; any error is the driver's own."""
        ...

    def place(self, filesystem: Any, full: str) -> str:
        """Name the server and bucket, for which one probe is enough."""
        ...


# --- services -------------------------------------------------------------------------------------


_S3_CODES = {
    "PreconditionFailed": Outcome.EXISTS,
    "ConditionalRequestConflict": Outcome.BUSY,
    "OperationAborted": Outcome.BUSY,
}


class S3Put:
    """Creates objects through s3fs.

    Some servers report 412 as FileExistsError and others as OSError 22, so the server's own answer
    is looked up behind the driver's error. 409 ``ConditionalRequestConflict``: two requests met and
    neither counts. A refusal after botocore repeated the request is UNKNOWN. Ceph ignores the
    condition when a multipart upload is completed.
    """

    def put(self, filesystem: Any, full: str, data: bytes) -> None:
        """Create an object by one PUT."""
        filesystem.pipe_file(full, data, mode="create", chunksize=_SINGLE_UPLOAD_BYTES)

    def outcome(self, error: BaseException) -> Outcome:
        """Judge an error by the server's answer, else by its class."""
        answer = _s3_answer(error)
        if answer is None:
            return _s3_outcome_without_answer(error)
        code = str(answer.get("Error", {}).get("Code", ""))
        if code in _S3_CODES:
            return _S3_CODES[code]
        meta = answer.get("ResponseMetadata", {})
        judged = outcome_by_status(int(meta.get("HTTPStatusCode") or 0), error)
        if judged is Outcome.FAILED and meta.get("RetryAttempts"):
            return Outcome.UNKNOWN
        return judged

    def place(self, filesystem: Any, full: str) -> str:
        """Name the endpoint and the bucket."""
        client = getattr(filesystem, "client_kwargs", None) or {}
        endpoint = getattr(filesystem, "endpoint_url", None) or client.get("endpoint_url") or "aws"
        return f"s3 {endpoint} {bucket_of(full)}"


def _s3_answer(error: BaseException) -> Mapping[str, Any] | None:
    for cause in causes(error):
        answer = getattr(cause, "response", None)
        if isinstance(answer, Mapping) and "Error" in answer:
            return answer
    return None


def _s3_outcome_without_answer(error: BaseException) -> Outcome:
    text = str(error).lower()
    invalid = isinstance(error, OSError) and error.errno == errno.EINVAL
    if invalid and ("precondition" in text or "pre-condition" in text):
        return Outcome.EXISTS
    return outcome_by_class(error)


class GcsPut:
    """Creates objects through gcsfs.

    gcsfs reports 412 as FileExistsError and refusals as OSError "Forbidden".
    """

    def put(self, filesystem: Any, full: str, data: bytes) -> None:
        """Create an object by one upload."""
        filesystem.pipe_file(full, data, mode="create", chunksize=_SINGLE_UPLOAD_BYTES)

    def outcome(self, error: BaseException) -> Outcome:
        """Judge an error by its status code, else by its class and the text of gcsfs."""
        for cause in causes(error):
            code = getattr(cause, "code", None)
            if isinstance(code, int):
                return outcome_by_status(code, cause)
            if isinstance(cause, OSError) and str(cause).startswith("Forbidden"):
                return Outcome.FAILED
        return outcome_by_class(error)

    def place(self, filesystem: Any, full: str) -> str:
        """Name the endpoint and the bucket."""
        return f"gcs {getattr(filesystem, '_location', '')} {bucket_of(full)}"


_AZURE_EXISTS = frozenset({"BlobAlreadyExists", "PathAlreadyExists", "ConditionNotMet"})


class AzurePut:
    """Creates blobs through adlfs, which sends ``If-None-Match: *``.

    A large blob is staged in blocks; the condition holds for the request that commits the block
    list. adlfs reports an existing blob as FileExistsError.
    """

    def put(self, filesystem: Any, full: str, data: bytes) -> None:
        """Create a blob by one conditional upload."""
        filesystem.pipe_file(full, data, mode="create")

    def outcome(self, error: BaseException) -> Outcome:
        """Judge an error by the service's error code and status, else by its class."""
        for cause in causes(error):
            if str(getattr(cause, "error_code", "")) in _AZURE_EXISTS:
                return Outcome.EXISTS
            status = getattr(cause, "status_code", None)
            if isinstance(status, int):
                return outcome_by_status(status, cause)
        return outcome_by_class(error)

    def place(self, filesystem: Any, full: str) -> str:
        """Name the account and the container."""
        account = getattr(filesystem, "account_url", None) or getattr(
            filesystem, "account_name", ""
        )
        return f"azure {account} {bucket_of(full)}"


class ObjectStorePut:
    """Creates objects through obstore, in any service.

    obstore repeats a request whose reply was lost and then reports the caller's own object as
    existing, so whoever commits has to read it back. A refusal after obstore repeated the request
    is UNKNOWN. It reports every 409 as an object that exists; the code of the service tells.
    """

    def put(self, driver: Any, full: str, data: bytes) -> None:
        """Create an object by one request, whatever its size."""
        import obstore

        obstore.put(driver, full, data, mode="create", use_multipart=False)

    def outcome(self, error: BaseException) -> Outcome:
        """Judge an error by the answer that it quotes, else by its class."""
        text = str(error)
        status, code, _ = _quoted_answer(text)
        if code in _S3_CODES:
            return _S3_CODES[code]
        if code in _AZURE_EXISTS or status == 412:
            return Outcome.EXISTS
        if status == 409:
            return Outcome.UNKNOWN
        kind = type(error).__name__
        if kind in ("AlreadyExistsError", "PreconditionError", "NotModifiedError"):
            return Outcome.EXISTS
        is_refused = kind in ("PermissionDeniedError", "UnauthenticatedError", "NotSupportedError")
        judged = Outcome.FAILED if is_refused else outcome_by_status(status, error)
        if judged is Outcome.FAILED and _REPEATED.search(text):
            return Outcome.UNKNOWN
        return judged

    @staticmethod
    def is_missing_bucket(error: BaseException) -> bool:
        """Tell whether an error says that there is no such bucket (or container)."""
        return _quoted_answer(str(error))[1] in ("NoSuchBucket", "ContainerNotFound")


_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([^<]*)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_REPEATED = re.compile(r"\bretries: [1-9]|after [1-9]\d* retries")
_QUERY = re.compile(r"(https?://[^\s?]*)\?\S*")


def _quoted_answer(text: str) -> tuple[int, str, str]:
    """Return status, code and message of the answer that an error of obstore quotes (0, "", "")."""
    status, code, message = _STATUS.search(text), _CODE.search(text), _MESSAGE.search(text)
    return (
        int(status.group(1)) if status else 0,
        code.group(1) if code else "",
        message.group(1) if message else "",
    )


def object_store_text(error: BaseException) -> str:
    """Return in one line what an error of obstore says; without queries, which may hold secrets."""
    text = str(error)
    status, code, message = _quoted_answer(text)
    shown = text.partition("\n\nDebug source")[0].partition("<?xml")[0]
    shown = " ".join(_QUERY.sub(r"\1", shown).split()).removesuffix(":")
    if status and code:
        return f"{shown} ({code}: {message})"
    return shown or type(error).__name__


CONDITIONAL_PUTS: dict[str, ConditionalPut] = {
    **dict.fromkeys(("s3", "s3a"), S3Put()),
    **dict.fromkeys(("gs", "gcs"), GcsPut()),
    **dict.fromkeys(("az", "abfs", "abfss"), AzurePut()),
}


# --- what an error says about the outcome ---------------------------------------------------------


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what caused it: drivers hide the server's answer behind their own."""
    cause: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def outcome_by_class(error: BaseException) -> Outcome:
    """Judge an error by its Python class alone."""
    for cause in causes(error):
        if isinstance(cause, FileExistsError):
            return Outcome.EXISTS
        if isinstance(cause, (PermissionError, FileNotFoundError, NotImplementedError)):
            return Outcome.FAILED
    return Outcome.UNKNOWN


def outcome_by_status(status: int, error: BaseException) -> Outcome:
    """Judge an error by the HTTP status of the answer, where that decides."""
    if status == 412:
        return Outcome.EXISTS
    if status in (400, 401, 403, 404, 405, 501):
        return Outcome.FAILED
    return outcome_by_class(error)


def bucket_of(full: str) -> str:
    """Return the bucket or container of a driver's path."""
    return full.lstrip("/").partition("/")[0]


# --- probe ----------------------------------------------------------------------------------------

_faults: dict[str, str] = {}
_locks: dict[str, threading.Lock] = {}  # one probe per place, while other places go on
call_in_forked_children(_locks.clear)


@dataclass(frozen=True, slots=True)
class ProbeFolder:
    """A folder of a store, as far as the probe uses it. ``create`` is the request under test."""

    create: Callable[[str, bytes], None]
    read: Callable[[str], bytes | memoryview]
    delete: Callable[[str], None]
    folder: str


def require_exclusive(place: str, target: ProbeFolder) -> None:
    """Probe ``place`` unless that has been done.

    Raises NotSupportedError when the store cannot be trusted, StorageError when the probe failed.
    """
    if place not in _faults:
        with _locks.setdefault(place, threading.Lock()):
            if place not in _faults:
                _faults[place] = find_fault(target)
    fault = _faults[place]
    if fault:
        raise NotSupportedError(
            f"cannot commit here: {fault}, so a commit could be lost without a word; "
            "commit through an external manifest store instead: storage_options="
            "{'manifest_store': 'sqlite:////shared/manifests.db'} (or redis, postgresql, dynamodb)"
        )


def find_fault(target: ProbeFolder) -> str:
    """Return what is wrong with a store, "" when nothing is.

    One object serves for both questions: racing writers create it, then a late one tries. Where
    none of the racers was told that it won, because replies were lost, two attempts at another
    object decide.
    """
    path = _scratch_path(target.folder)
    try:
        won = _race(target, path)
        late_won = _attempt(target, path, _LATE)
        content = _content(target, path)
    finally:
        _remove(target, path)
    if True not in won:
        return _create_twice(target)
    if late_won or content == _LATE:
        return _REPLACED
    if sum(won) > 1:
        return f"{sum(won)} of {RACERS} racing writers were told that they created one object"
    if content != _racer_bytes(won.index(True)):
        return "an object is not the one whose writer was told that it created it"
    return ""


_LATE = b"late"
_REPLACED = "the store replaced an object that was to be created only if absent"


def _create_twice(target: ProbeFolder) -> str:
    path = _scratch_path(target.folder)
    try:
        _attempt(target, path, b"first")
        second = _attempt(target, path, b"second")
        return _REPLACED if second or _content(target, path) != b"first" else ""
    finally:
        _remove(target, path)


def _race(target: ProbeFolder, path: str) -> list[bool]:
    """Let writers create one object at the same time; return who was told to have done it."""
    barrier = threading.Barrier(RACERS)

    def racer(number: int) -> bool:
        barrier.wait(_RACE_START_S)
        return _attempt(target, path, _racer_bytes(number))

    with ThreadPoolExecutor(RACERS) as pool:
        return list(pool.map(racer, range(RACERS)))


def _racer_bytes(number: int) -> bytes:
    return b"racer %d" % number


def _attempt(target: ProbeFolder, path: str, data: bytes) -> bool:
    """Create an object; return whether we did (a refusal may answer our own request)."""
    try:
        target.create(path, data)
    except ObjectExistsError:
        return False
    return True


def _content(target: ProbeFolder, path: str) -> bytes:
    try:
        return bytes(target.read(path))
    except ObjectNotFoundError:
        return b""


def _remove(target: ProbeFolder, path: str) -> None:
    try:
        target.delete(path)
    except StorageError:
        return  # a scratch object that stays does no harm


def _scratch_path(folder: str) -> str:
    name = f"{PROBE_PREFIX}{uuid.uuid4().hex}"
    return f"{folder}/{name}" if folder else name
