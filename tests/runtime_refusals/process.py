"""The process that makes all calls. It needs no torch."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.runtime_refusals.before_a_device import WITHOUT_DEVICE
from tests.runtime_refusals.objects import OBJECTS
from tests.runtime_refusals.refusal import PAGE, Argument, Call, Refusal
from tests.runtime_refusals.table import IDS, ON_DEVICE


class Answer(NamedTuple):
    """What a refused call returned, the thread's last error, its messages, and the objects of the expected text."""

    returned: int
    last_error: int
    text: str
    objects: dict[str, str]


class Process:
    """Calls functions of the libraries in the prefix of the host CANN."""

    def __init__(self, libraries: str) -> None:
        names = ("libopapi.so", "libmsprofiler.so", "libhccl.so", "libhcomm.so")
        self._libraries = [ctypes.CDLL(f"{libraries}/{name}", ctypes.RTLD_GLOBAL) for name in names]
        self._out = ctypes.create_string_buffer(8192)
        self._pages = mmap.mmap(-1, 2 * PAGE)
        self._slots: dict[str, ctypes.c_uint64] = {}
        host = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        # A function of C++ that throws std::bad_alloc, and one of C that does nothing with a null pointer.
        throws = ctypes.cast(ctypes.CDLL("libstdc++.so.6")._ZSt17__throw_bad_allocv, ctypes.c_void_p).value
        nothing = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p).value
        out = ctypes.addressof(self._out)
        known = {"out": out, "root": out, "host": host, "throws": throws, "nothing": nothing}
        for name, value in (known | {"thread": threading.get_ident()}).items():
            self._slots[name] = ctypes.c_uint64(value or 0)

    def function(self, name: str) -> Any:
        return next(found for library in self._libraries if (found := getattr(library, name, None)))

    def address(self, text: str) -> int:
        """The value of an object, or the address of its variable."""
        if text.startswith("&"):
            return ctypes.addressof(self._slots.setdefault(text[1:], ctypes.c_uint64()))
        name, _, offset = text.partition("+")
        return self._slots[name].value + int(offset or 0)

    def argument(self, value: Argument) -> Any:
        """In a whole register, which fits parameters of any integral type."""
        if isinstance(value, float):
            return ctypes.c_float(value)
        if isinstance(value, bytes):
            return ctypes.create_string_buffer(value)
        if isinstance(value, str):
            value = self.address(value)
        return ctypes.c_uint64((value or 0) & (2**64 - 1))

    def call(self, call: Call, result: Any = ctypes.c_int) -> int:
        function = self.function(str(call[0]))
        function.restype = result
        return int(function(*(self.argument(value) for value in call[1:])) or 0)

    def messages(self) -> str:
        text = self.function("aclGetRecentErrMsg")
        text.restype = ctypes.c_char_p
        return (text() or b"").decode()

    def step(self, call: Call) -> None:
        """A call that succeeds, unless its name begins with "?"; "name=function" stores its result."""
        name, _, function = str(call[0]).rpartition("=")
        if name:
            self._slots[name] = ctypes.c_uint64(self.call((function, *call[1:]), ctypes.c_uint64))
        elif function.startswith("?"):
            self.call((function[1:], *call[1:]))
            self.messages()
        elif status := self.call(call):
            raise AssertionError(f"{call} returned {status}: {self.messages()}")

    def object(self, name: str) -> str:
        """An object as the texts name it."""
        if name == "here":
            return os.getcwd()
        if name == "profile":
            return str(max(Path("profiles").resolve().iterdir()))
        return f"{self.address(name):#x}"

    def refused(self, refusal: Refusal) -> Answer:
        self.messages()
        self.call(("aclrtGetLastError", 0))
        for each in refusal.before:
            self.step(each)
        ctypes.memset(self._out, 0, len(self._out))
        returned = self.call(refusal.call)
        last_error = self.call(("aclrtGetLastError", 0))
        text = self.messages()
        objects = {name: self.object(name) for name in re.findall(r"{([\w+]+)}", refusal.text)}
        for each in refusal.after:
            self.step(each)
        return Answer(returned, last_error, text, objects)


def call_all(libraries: str) -> None:
    """Prints the answers, in the order of ALL."""
    process = Process(libraries)
    # The refusals of a call are those of its test (tests/mutants).
    module = os.environ["PYTEST_CURRENT_TEST"].partition("::")[0]

    def answer(refusals: Sequence[Refusal], names: Sequence[str]) -> list[Answer]:
        answers = []
        for refusal, name in zip(refusals, names, strict=True):
            os.environ["PYTEST_CURRENT_TEST"] = f"{module}::test_refusal[{name}] (call)"
            answers.append(process.refused(refusal))
        return answers

    count = len(WITHOUT_DEVICE)
    answers = answer(WITHOUT_DEVICE, IDS[:count])
    for call in OBJECTS:
        process.step(call)
    answers += answer(ON_DEVICE, IDS[count:])
    print(json.dumps(answers))
