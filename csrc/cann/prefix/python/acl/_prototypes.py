"""Functions with the arguments and the results of CANN's Python interface, made of C prototypes.

A module's table has a prototype for each function::

    malloc = aclrtMalloc(out void* dev_ptr, size_t size, int32_t policy)

Python passes the parameters that are not ``out``, and gets those that are and then the status, all in C's order:
``dev_ptr, ret = acl.rt.malloc(size, policy)``. If the C function returns no status, the type of its result stands
before its name, and Python gets the result alone. The types are C's, and further:

========================  ==============================================================================
``int64_t[] dims``        a list of numbers
``size_t len(dims)``      the number of elements of that list, or of a text's bytes; not passed by Python
``out char[len] key``     a text that needs at most the number ``len`` of bytes
``optional char* path``   a text that may be left out
``out aclrtUuid uuid``    a dict with the members of a structure; ``aclrtUuid* uuid`` takes one
========================  ==============================================================================

An address is a number, 0 for none. A status is returned and never raised. As in CANN, an argument of the wrong type is
a TypeError, and integers of NumPy are accepted only for signed parameters, as which CANN's module takes some numbers
that are unsigned in C.
"""

from __future__ import annotations

import ctypes
import numbers
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

PREFIX = Path(__file__).resolve().parents[3]
LONGEST_TEXT = 1023  # of `out char[...]`

# ctypes releases Python's lock while a C function runs, so that another thread can serve callbacks meanwhile.
library = ctypes.CDLL(str(PREFIX / "lib64" / "libascendcl.so"))


class Location(ctypes.Structure):
    """aclrtMemLocation: a device, and the side that owns the memory."""

    _fields_ = [("id", ctypes.c_uint32), ("type", ctypes.c_int32)]


class PhysicalMemory(ctypes.Structure):
    """aclrtPhysicalMemProp: the kind of memory that aclrtMallocPhysical makes."""

    _fields_ = [
        ("handleType", ctypes.c_int32),
        ("allocationType", ctypes.c_int32),
        ("memAttr", ctypes.c_int32),
        ("location", Location),
        ("reserve", ctypes.c_uint64),
    ]


class Utilization(ctypes.Structure):
    """aclrtUtilizationInfo, in percent."""

    _fields_ = [
        ("cube_utilization", ctypes.c_int32),
        ("vector_utilization", ctypes.c_int32),
        ("aicpu_utilization", ctypes.c_int32),
        ("memory_utilization", ctypes.c_int32),
        ("utilization_extend", ctypes.c_uint64),
    ]


class Version(ctypes.Structure):
    """aclCANNPackageVersion."""

    _fields_ = [
        ("version", ctypes.c_char * 128),
        ("major_version", ctypes.c_char * 64),
        ("minor_version", ctypes.c_char * 64),
        ("release_version", ctypes.c_char * 64),
        ("patch_version", ctypes.c_char * 64),
        ("reserved", ctypes.c_char * 128),
    ]


STRUCTURES: dict[str, type[ctypes.Structure]] = {
    "aclrtPhysicalMemProp": PhysicalMemory,
    "aclrtUtilizationInfo": Utilization,
    "aclCANNPackageVersion": Version,
}
SIGNED: dict[str, Any] = {"int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64}
UNSIGNED: dict[str, Any] = {
    "void*": ctypes.c_uint64,
    "size_t": ctypes.c_uint64,
    "uint8_t": ctypes.c_uint8,
    "uint16_t": ctypes.c_uint16,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
}
SIMPLE = SIGNED | UNSIGNED | {"float": ctypes.c_float}
RESULTS = SIMPLE | {"void": None, "char*": ctypes.c_char_p}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a C function."""

    kind: str  # "in", "optional", "out", or "length"
    type: str
    name: str  # of a length: the list or text whose length it is


@dataclass(frozen=True)
class Prototype:
    """A C function; the type of its result is empty if it returns a status."""

    result: str
    name: str
    parameters: tuple[Parameter, ...]

    @property
    def inputs(self) -> list[Parameter]:
        """The parameters that Python passes."""
        return [parameter for parameter in self.parameters if parameter.kind in ("in", "optional")]

    @property
    def outputs(self) -> list[str]:
        """The names of what Python gets."""
        if self.result:
            return [] if self.result == "void" else ["result"]
        return [*(parameter.name for parameter in self.parameters if parameter.kind == "out"), "ret"]


def parse(text: str) -> Prototype:
    """The prototype of a text in a table."""
    result, name, parameters = re.fullmatch(r"(?:(\S+) )?(\w+)\((.*)\)", text).groups()  # type: ignore[union-attr]
    found = []
    for parameter in filter(None, parameters.strip().split(", ")):
        kind, type_, length, argument = re.fullmatch(
            r"(?:(out|optional) )?(\S+) (?:len\((\w+)\)|(\w+))", parameter
        ).groups()  # type: ignore[union-attr]
        found.append(Parameter("length" if length else kind or "in", type_, length or argument))
    return Prototype(result or "", name, tuple(found))


def _type_name(value: object) -> str:
    name = type(value)
    return name.__name__ if name.__module__ == "builtins" else f"{name.__module__}.{name.__name__}"


def _wrong(what: str, value: object, expected: str) -> TypeError:
    return TypeError(f"{what} is {_type_name(value)}, expected {expected}")


def _integer(type_: str, what: str) -> Callable[[object], int]:
    """Checks numbers. Too large ones of unsigned types lose bits when they are passed, as in CANN."""
    is_signed = type_ in SIGNED
    bits = 8 * ctypes.sizeof(SIGNED[type_]) if is_signed else 64
    lowest, highest = -(1 << (bits - 1)), (1 << (bits - is_signed)) - 1
    expected = "int, the number that is an address" if type_ == "void*" else "int"

    def convert(value: object) -> int:
        if not isinstance(value, int):
            if not is_signed or not hasattr(value, "__index__"):
                raise _wrong(what, value, expected)
            value = operator.index(value)
        if not lowest <= value <= highest:
            raise TypeError(f"{what} is {value}, expected a number from {lowest} to {highest}")
        return value

    return convert


def _text(what: str) -> Callable[[object], bytes]:
    def convert(value: object) -> bytes:
        if not isinstance(value, str):
            raise _wrong(what, value, "str")
        if "\0" in value:
            raise TypeError(f"{what} has a null character")
        return value.encode()

    return convert


def _fraction(what: str) -> Callable[[object], float]:
    def convert(value: object) -> float:
        if not isinstance(value, numbers.Real):
            raise _wrong(what, value, "float")
        return float(value)

    return convert


def _array(type_: str, what: str) -> Callable[[object], Any]:
    def convert(value: object) -> Any:
        if not isinstance(value, list):
            raise _wrong(what, value, "list")
        elements = [_integer(type_, f"{what}[{i}]")(each) for i, each in enumerate(value)]
        return (SIMPLE[type_] * len(elements))(*elements)

    return convert


def _structure(type_: type[ctypes.Structure], what: str) -> Callable[[object], Any]:
    """Makes a structure of a dict; members that it does not have are 0."""

    def convert(value: object) -> Any:
        if not isinstance(value, dict):
            raise _wrong(what, value, "dict")
        made = type_()
        for name, member, *_ in type_._fields_:
            if name in value:
                inside = f"{what}[{name!r}]"
                is_simple = not issubclass(member, ctypes.Structure)
                take = _integer("uint64_t", inside) if is_simple else _structure(member, inside)
                setattr(made, name, take(value[name]))
        return made

    return convert


def taker(type_: str, what: str) -> Callable[[object], Any]:
    """The function that checks a Python argument and makes of it what ctypes passes; ``what`` names it in errors."""
    if type_ == "char*":
        return _text(what)
    if type_ == "float":
        return _fraction(what)
    if type_.endswith("[]"):
        return _array(type_[:-2], what)
    if structure := STRUCTURES.get(type_[:-1]):
        return _structure(structure, what)
    return _integer(type_, what)


def from_c(value: Any) -> Any:
    """The Python value of what C has written or returned."""
    if isinstance(value, ctypes.Structure):
        return {name: from_c(getattr(value, name)) for name, *_ in value._fields_}
    if isinstance(value, (ctypes._SimpleCData, ctypes.Array)):
        value = value.value
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _text_of_length(size: int, title: str, name: str) -> Any:
    if size > LONGEST_TEXT:
        raise ValueError(f"{title}: {name} is {size}, expected at most {LONGEST_TEXT}")
    return ctypes.create_string_buffer(size + 1)


def check_number(title: str, names: str, arguments: tuple[object, ...], optional: int = 0) -> None:
    """Raises TypeError unless a function got as many arguments as it takes."""
    most = len(names.split(", ")) if names else 0
    if not most - optional <= len(arguments) <= most:
        raise TypeError(f"{title}({names}) takes {most} arguments, got {len(arguments)}")


def take(title: str, parameters: str, arguments: tuple[object, ...]) -> list[Any]:
    """The arguments of a function without a prototype, checked; parameters are types and names."""
    listed = [parameter.rsplit(" ", 1) for parameter in parameters.split(", ")]
    check_number(title, ", ".join(name for _, name in listed), arguments)
    return [
        argument if type_ == "object" else taker(type_, f"{title}: {name}")(argument)
        for (type_, name), argument in zip(listed, arguments, strict=True)
    ]


def function(module: str, name: str, prototype: Prototype) -> Callable[..., Any]:
    """The Python function of a prototype."""
    title = f"{module}.{name}"
    inputs = prototype.inputs
    names = ", ".join(parameter.name for parameter in inputs)
    optional = sum(parameter.kind == "optional" for parameter in inputs)
    takers = [taker(parameter.type, f"{title}: {parameter.name}") for parameter in inputs]
    places = {parameter.name: place for place, parameter in enumerate(inputs)}
    c_function = getattr(library, prototype.name)
    c_function.restype = RESULTS[prototype.result or "int32_t"]
    c_function.argtypes = [
        ctypes.c_void_p if parameter.kind == "out" else SIMPLE.get(parameter.type, ctypes.c_void_p)
        for parameter in prototype.parameters
    ]

    def memory(type_: str, values: list[Any]) -> Any:
        """Memory for an output."""
        if text := re.fullmatch(r"char\[(\w+)\]", type_):
            size = int(text[1]) if text[1].isdigit() else values[places[text[1]]]
            return _text_of_length(size, title, text[1])
        return (STRUCTURES.get(type_) or SIMPLE[type_])()

    def call(*arguments: object) -> Any:
        if len(arguments) != len(takers):
            check_number(title, names, arguments, optional)
            values = [convert(argument) for convert, argument in zip(takers, arguments, strict=False)]
            values += [None] * (len(takers) - len(arguments))
        else:
            values = [convert(argument) for convert, argument in zip(takers, arguments, strict=True)]
        passed: list[Any] = []
        outputs = []
        for parameter in prototype.parameters:
            if parameter.kind == "out":
                outputs.append(memory(parameter.type, values))
                passed.append(ctypes.byref(outputs[-1]))
            elif parameter.kind == "length":
                passed.append(len(values[places[parameter.name]]))
            else:
                value = values[places[parameter.name]]
                passed.append(ctypes.byref(value) if isinstance(value, ctypes.Structure) else value)
        result = c_function(*passed)
        if prototype.result:
            return from_c(result)
        return (*map(from_c, outputs), result) if outputs else result

    call.__name__, call.__qualname__, call.__module__ = name, name, module
    results = ", ".join(prototype.outputs) or "None"
    call.__doc__ = f"``{results} = {title}({names})``: {prototype.name} of CANN's C interface."
    return call


def _is_of(module: str, name: str, value: object) -> bool:
    """Whether a module's name is a function that it defines, or a module inside it."""
    if name.startswith("_"):
        return False
    if isinstance(value, ModuleType):
        return value.__name__ == f"{module}.{name}"
    return isinstance(value, FunctionType) and value.__module__ == module


def attributes(
    namespace: dict[str, Any], prototypes: str, refused: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], Iterable[str]]]:
    """``__getattr__`` and ``__dir__`` of a module with these functions beside those that it defines itself.

    Args:
        namespace: the module's, which gets each function when it is first used.
        prototypes: ``name = prototype`` for each function.
        refused: for each reason, the names of CANN's functions that the host CANN does not have.
    """
    module = namespace["__name__"]
    table = dict(re.findall(r"(\w+) = (.*?\))(?= \w+ = |$)", " ".join(prototypes.split())))
    reasons = {name: reason for reason, names in refused.items() for name in names.split()}
    own = [name for name, value in namespace.items() if _is_of(module, name, value)]
    namespace["__all__"] = sorted([*own, *table])

    def get(name: str) -> Any:
        if name in table:
            namespace[name] = made = function(module, name, parse(table[name]))
            return made
        if name in reasons:
            raise AttributeError(f"{module}.{name} is not in the host CANN: {reasons[name]}")
        if name.startswith("ACL_"):
            raise AttributeError(f"{module}.{name}: CANN's Python module has no constants; write the number")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return get, lambda: sorted({*namespace, *table})


def nothing(module: str, reason: str) -> Callable[[str], Any]:
    """``__getattr__`` of a module of CANN's with no function that the host CANN has."""

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise AttributeError(f"{module}.{name} is not in the host CANN: {reason}")

    return get
