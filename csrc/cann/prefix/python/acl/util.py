"""Conversions between addresses and Python's bytes or NumPy's arrays, and threads that serve callbacks."""

from __future__ import annotations

import ctypes
import errno
import threading
import warnings
from typing import TYPE_CHECKING, Any

from ._prototypes import attributes, take

if TYPE_CHECKING:
    import numpy

_bytes_of = ctypes.pythonapi.PyBytes_FromStringAndSize
_bytes_of.restype = ctypes.py_object
_bytes_of.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t]


def bytes_to_ptr(*arguments: object) -> int:
    """``ptr = acl.util.bytes_to_ptr(data)``: the address of the bytes, which live as long as the object."""
    title = "acl.util.bytes_to_ptr"
    (data,) = take(title, "object data", arguments)
    if not isinstance(data, bytes):
        raise TypeError(f"{title}: data is {type(data).__name__}, expected bytes")
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def ptr_to_bytes(*arguments: object) -> bytes:
    """``data = acl.util.ptr_to_bytes(ptr, size)``: a copy of the memory at an address of the host."""
    title = "acl.util.ptr_to_bytes"
    address, size = take(title, "void* ptr, size_t size", arguments)
    _check_address(title, address, size)
    return _bytes_of(address, size)


def numpy_to_ptr(*arguments: object) -> int:
    """``ptr = acl.util.numpy_to_ptr(array)``: the address of the elements, which live as long as the array."""
    title = "acl.util.numpy_to_ptr"
    (array,) = take(title, "object array", arguments)
    _check_array(title, array)
    _deprecated("numpy_to_ptr", "bytes_to_ptr")
    if not array.flags.c_contiguous:
        warnings.warn(f"{title}: the array is not contiguous, and its elements are not in order", Warning, stacklevel=2)
    return array.ctypes.data


def numpy_contiguous_to_ptr(*arguments: object) -> tuple[int, numpy.ndarray]:
    """``ptr, array = acl.util.numpy_contiguous_to_ptr(array)``: an address, and the contiguous array that is there."""
    title = "acl.util.numpy_contiguous_to_ptr"
    (array,) = take(title, "object array", arguments)
    _check_array(title, array)
    _deprecated("numpy_contiguous_to_ptr", "bytes_to_ptr")
    import numpy

    contiguous = numpy.asarray(array, order="C")
    return contiguous.ctypes.data, contiguous


def ptr_to_numpy(*arguments: object) -> numpy.ndarray:
    """``array = acl.util.ptr_to_numpy(ptr, shape, type)``: the memory at an address of the host, as an array.

    ``shape`` is a tuple, ``type`` NumPy's number of a type: ``numpy.dtype(numpy.float32).num`` is 11.
    """
    title = "acl.util.ptr_to_numpy"
    address, shape, number = take(title, "void* ptr, object shape, int32_t type", arguments)
    if not isinstance(shape, tuple) or not all(isinstance(size, int) for size in shape):
        raise TypeError(f"{title}: shape is {shape!r}, expected a tuple of ints")
    if min(shape, default=0) < 0:
        raise ValueError(f"{title}: shape is {shape}, expected sizes of 0 or more")
    import numpy

    codes = "?" + numpy.typecodes["AllInteger"] + numpy.typecodes["AllFloat"]
    types = {numpy.dtype(code).num: numpy.dtype(code) for code in codes}
    if number not in types:
        raise ValueError(f"{title}: type is {number}, expected the number of a numeric type of NumPy, dtype.num")
    _check_address(title, address, 0 if 0 in shape else 1)
    _deprecated("ptr_to_numpy", "ptr_to_bytes")

    class Memory:
        """What NumPy takes for an array."""

        __array_interface__ = {  # noqa: RUF012
            "version": 3,
            "data": (address, False),
            "shape": shape,
            "typestr": types[number].str,
        }

    return numpy.asarray(Memory())


class _Thread(threading.Thread):
    """A thread that keeps the exception that ended it."""

    error: BaseException | None = None

    def run(self) -> None:
        """Runs the function; threading.excepthook reports its exception."""
        try:
            super().run()
        except BaseException as error:
            self.error = error
            raise


_threads: dict[int, _Thread] = {}


def start_thread(*arguments: Any) -> tuple[int, int]:
    """``thread_id, ret = acl.util.start_thread(fn, args_list)``: a thread that calls fn(args_list), or fn() for None.

    The thread has no context until it calls acl.rt.set_context. It ends with the process.
    """
    title = "acl.util.start_thread"
    function, given = take(title, "object fn, object args_list", arguments)
    if not callable(function):
        raise TypeError(f"{title}: fn is {type(function).__name__}, expected a function")
    thread = _Thread(target=function, args=() if given is None else (given,), daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return 0, errno.EAGAIN
    assert thread.ident is not None
    _threads[thread.ident] = thread
    return thread.ident, 0


def stop_thread(*arguments: object) -> int:
    """``ret = acl.util.stop_thread(thread_id)``: waits for a thread; RuntimeError if an exception has ended it."""
    title = "acl.util.stop_thread"
    (number,) = take(title, "uint64_t thread_id", arguments)
    thread = _threads.get(number)
    if thread is None:
        return errno.ESRCH
    if thread is threading.current_thread():
        return errno.EDEADLK
    thread.join()
    _threads.pop(number, None)
    if thread.error is not None:
        raise RuntimeError(f"{title}: {type(thread.error).__name__}: {thread.error}") from thread.error
    return 0


def _check_address(title: str, address: int, size: int) -> None:
    if address == 0 and size > 0:
        raise ValueError(f"{title}: ptr is 0, expected the address of memory of the host")


def _check_array(title: str, value: object) -> None:
    import numpy

    if not isinstance(value, numpy.ndarray):
        raise TypeError(f"{title}: array is {type(value).__name__}, expected numpy.ndarray")


def _deprecated(name: str, instead: str) -> None:
    """The warning of CANN's module, of the same category."""
    text = f"acl.util.{name} is deprecated in CANN; acl.util.{instead} replaces it"
    warnings.warn(text, Warning, stacklevel=3)


__getattr__, __dir__ = attributes(globals(), "", {})
