"""What a program's calls were and how long they took: for ``torch.profiler``, and as a trace of their own."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import _C
from .host import PREFIX

if os.environ.get("ACLNN_TORCH_PROFILE_STAGES", "0") not in ("", "0"):
    _C.set_profile_stages(True)


@contextmanager
def profile_stages() -> Iterator[None]:
    """Shows both stages of each call to ``torch.profiler``, for the body of a ``with`` statement, in all threads.

    The operators are there without this, as ``aclnn::elu`` and so on. Within each then stand the two functions of
    CANN, ``aclnnEluGetWorkspaceSize`` and ``aclnnElu``. The environment variable ``ACLNN_TORCH_PROFILE_STAGES=1`` does
    it for the whole process. On NPU tensors the second ends when the call is in torch_npu's task queue.
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
      strides and offset in elements), ``product`` and ``status``;
    - ``stage 2``, named ``aclnnElu``: ``workspaceSize`` in bytes and ``status``;
    - ``run``, the computation, on the stream's thread: ``status``.

    Where the status is not 0, ``error`` has the text. ``ts`` and ``dur`` are microseconds of the monotonic clock,
    ``pid`` and ``tid`` the system's numbers. Covered are CPU tensors, and NPU tensors on simulated NPUs; of an Ascend
    machine's CANN its own tools (``msprof``) tell. Processes forked within the body are not covered: the environment
    variable ``ACLNN_TORCH_TRACE`` traces a process from its start and those that it starts, C++ programs too, into the
    file that it names, or ``aclnn_torch_trace.json`` if it is ``1``; that file is continued if it exists, and its end
    is missing, which the format allows.

    Args:
        path: the file; one that exists is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    path = Path(path).absolute()
    path.write_text("[\n")
    _trace(str(path))
    try:
        yield
    finally:
        _trace(None)
        with path.open("a") as file:  # the last event has no comma behind it
            file.write(f'{{"ph":"M","name":"process_name","pid":{os.getpid()},"args":{{"name":"aclnn_torch"}}}}\n]\n')


def _trace(path: str | None) -> None:
    """Starts or ends the trace, of simulated NPUs too if the process has them."""
    _C.trace(path)
    try:
        npus = ctypes.CDLL(str(PREFIX / "lib64" / "libnnopbase.so"), os.RTLD_NOLOAD)
    except OSError:
        return
    npus.aclHostTrace(path.encode() if path else None)
