"""Records a program's calls and their times: for ``torch.profiler``, and as separate traces."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import _C
from ._warning import warn
from .errors import AclnnError
from .host import PREFIX

if os.environ.get("ACLNN_TORCH_PROFILE_STAGES", "0") not in ("", "0"):
    _C.set_profile_stages(True)


@contextmanager
def profile_stages() -> Iterator[None]:
    """Shows both stages of each call to ``torch.profiler``, for the body of a ``with`` statement, in all threads.

    The operators are shown without this, as ``aclnn::elu`` and so on. With it, each contains the two functions of CANN,
    ``aclnnEluGetWorkspaceSize`` and ``aclnnElu``. The environment variable ``ACLNN_TORCH_PROFILE_STAGES=1`` enables it
    for the whole process. On NPU tensors, the second range ends when the call is in torch_npu's task queue.
    """
    before = _C.get_profile_stages()
    _C.set_profile_stages(True)
    try:
        yield
    finally:
        _C.set_profile_stages(before)


@contextmanager
def trace(path: str | os.PathLike[str]) -> Iterator[None]:
    """Writes every call of the host CANN to a file, for the body of a ``with`` statement.

    The file is JSON of Chrome's trace format, one event a line: ``ui.perfetto.dev`` and ``chrome://tracing`` show it.
    A call has an event in each of three categories:

    - ``stage 1``, named ``aclnnEluGetWorkspaceSize``: its ``args`` have ``arguments`` by name (of tensors dtype, shape,
      strides and offset in elements), ``product`` and ``status``; of a convolution also ``algorithm``, which names
      for each result the entry of the list in docs/convolution.md that computes it;
    - ``stage 2``, named ``aclnnElu``: ``workspaceSize`` in bytes and ``status``;
    - ``run``, the computation, on the stream's thread: ``status``.

    Where the status is not 0, ``error`` has the text. ``ts`` and ``dur`` are microseconds of the monotonic clock,
    ``pid`` and ``tid`` the system's numbers. Covered are CPU tensors, and NPU tensors on simulated NPUs; of an Ascend
    machine's CANN its own tools (``msprof``) tell. Processes forked within the body are not covered: the environment
    variable ``ACLNN_TORCH_TRACE`` traces a process from its start and those that it starts, C++ programs too, into the
    file that it names, or ``aclnn_torch_trace.json`` if it is ``1``; that file is continued if it exists, and its end
    is missing, which the format allows. If it cannot be written, a warning says so, when the package is imported or
    the process ends.

    Several traces may be active at once, nested, in several threads, besides the environment's: each has all calls.

    Args:
        path: the file, which is its user's alone; a file or a symbolic link that exists is replaced, not written to.

    Raises:
        OSError: the file cannot be written, or, at the end, lacks calls because of that, e.g. on a full disk. If the
            body raises, that is a warning.
        ValueError: another trace is being written to it.
    """
    path = Path(path)
    path = path.parent.resolve() / path.name
    _begin(path)
    try:
        yield
    except BaseException:
        if problem := _end(path):
            warn(f"trace: {problem}")
        raise
    if problem := _end(path):
        raise problem


_open: set[Path] = set()  # the files of traces that are on
_open_lock = threading.Lock()


def _open_itself(path: str, flags: int) -> int:
    """As the host CANN opens it: does not follow symbolic links, and does not wait for a pipe's reader."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)


def _append(path: Path, mode: str, text: str) -> None:
    try:
        with open(path, mode, opener=_open_itself) as file:
            file.write(text)
    except OSError as error:  # an error of a write does not know the file
        raise OSError(error.errno, os.strerror(error.errno or 0), str(path)) from None


def _simulated_npus() -> ctypes.CDLL | None:
    """The host CANN of the process's simulated NPUs, if it has any; a different library than that for CPU tensors."""
    try:
        library = ctypes.CDLL(str(PREFIX / "lib64" / "libnnopbase.so"), os.RTLD_NOLOAD)
    except OSError:
        return None
    library.aclHostTraceProblem.restype = library.aclGetRecentErrMsg.restype = ctypes.c_char_p
    return library


def _begin(path: Path) -> None:
    """Begins a trace; on failure, leaves nothing behind."""
    with _open_lock:
        if path in _open:
            raise ValueError(
                f"trace: {path} is being written by another trace, expected a file of its own; name another"
            )
        _open.add(path)
    try:
        if path.is_file() or path.is_symlink():
            path.unlink()
        _append(path, "w" if path.exists() else "x", "[\n")
        try:
            _C.trace(os.fsencode(path))
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    except BaseException:
        _open.discard(path)
        raise
    if npus := _simulated_npus():
        npus.aclHostTrace(os.fsencode(path))


def _end(path: Path) -> OSError | None:
    """Ends a trace, and reports calls missing from its file."""
    problem: OSError | None = None
    try:
        _C.end_trace(os.fsencode(path))
    except AclnnError as error:
        problem = OSError(str(error))
    npus = _simulated_npus()
    if npus and npus.aclHostTraceEnd(os.fsencode(path)) == _LACKS_CALLS and not problem:
        problem = OSError(npus.aclGetRecentErrMsg().decode())
    _open.discard(path)
    try:  # no comma follows the last event
        event = f'{{"ph":"M","name":"process_name","pid":{os.getpid()},"args":{{"name":"aclnn_torch"}}}}'
        _append(path, "a", f"{event}\n]\n")
    except OSError as error:
        problem = problem or error
    return problem


_LACKS_CALLS = 500005  # of aclHostTraceEnd


def environments_problem() -> str | None:
    """The problem with the trace that ``ACLNN_TORCH_TRACE`` requests."""
    if problem := _C.trace_problem():
        return problem
    npus = _simulated_npus()
    text: bytes | None = npus.aclHostTraceProblem() if npus else None
    return text.decode(errors="replace") if text else None


def _warn_of_problem(known: str | None = None) -> str | None:
    problem = environments_problem()
    if problem and problem != known:
        warn(problem)
    return problem


if os.environ.get("ACLNN_TORCH_TRACE", "0") not in ("", "0"):
    atexit.register(_warn_of_problem, _warn_of_problem())
