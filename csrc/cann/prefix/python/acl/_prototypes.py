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


def _integer(type_: str, value: object, what: str) -> int:
    """A Python integer for a C type. Too large values of unsigned types lose bits, as in CANN."""
    if type_ in UNSIGNED:
        if not isinstance(value, int):
            advice = ", the number that is an address" if type_ == "void*" else ""
            raise TypeError(f"{what} is {_type_name(value)}, expected int{advice}")
        lowest, highest = -(1 << 63), (1 << 64) - 1
    else:
        try:
            value = operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(f"{what} is {_type_name(value)}, expected int") from None
        bits = 8 * ctypes.sizeof(SIGNED[type_])
        lowest, highest = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if not lowest <= value <= highest:
        raise TypeError(f"{what} is {value}, expected a number from {lowest} to {highest}")
    return value


def _type_name(value: object) -> str:
    name = type(value)
    return name.__name__ if name.__module__ == "builtins" else f"{name.__module__}.{name.__name__}"


def _structure(made: ctypes.Structure, value: object, what: str) -> ctypes.Structure:
    """Fills a structure from a dict; members that it does not have stay 0."""
    if not isinstance(value, dict):
        raise TypeError(f"{what} is {_type_name(value)}, expected dict")
    for name, type_, *_ in made._fields_:
        if name in value:
            if issubclass(type_, ctypes.Structure):
                _structure(getattr(made, name), value[name], f"{what}[{name!r}]")
            else:
                setattr(made, name, _integer("int64_t", value[name], f"{what}[{name!r}]"))
    return made


def to_c(type_: str, value: object, what: str) -> Any:
    """What ctypes passes for a Python argument; ``what`` names it in errors."""
    if type_ == "char*":
        if not isinstance(value, str):
            raise TypeError(f"{what} is {_type_name(value)}, expected str")
        if "\0" in value:
            raise TypeError(f"{what} has a null character")
        return ctypes.c_char_p(value.encode())
    if type_ == "float":
        if not isinstance(value, numbers.Real):
            raise TypeError(f"{what} is {_type_name(value)}, expected float")
        return ctypes.c_float(float(value))
    if type_.endswith("[]"):
        if not isinstance(value, list):
            raise TypeError(f"{what} is {_type_name(value)}, expected list")
        element = type_[:-2]
        elements = [_integer(element, each, f"{what}[{i}]") for i, each in enumerate(value)]
        return (SIMPLE[element] * len(elements))(*elements)
    if structure := STRUCTURES.get(type_[:-1]):
        return _structure(structure(), value, what)
    return SIMPLE[type_](_integer(type_, value, what))


def from_c(value: Any) -> Any:
    """The Python value of what C has written."""
    if isinstance(value, ctypes.Structure):
        return {name: from_c(getattr(value, name)) for name, *_ in value._fields_}
    if isinstance(value, ctypes.Array) and value._type_ is ctypes.c_char:
        value = value.value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value.value if isinstance(value, ctypes._SimpleCData) else value


def _length(value: Any) -> int:
    return len((value.value or b"") if isinstance(value, ctypes.c_char_p) else value)


def _storage(parameter: Parameter, values: Mapping[str, Any], title: str) -> Any:
    """Memory for an output."""
    if text := re.fullmatch(r"char\[(\w+)\]", parameter.type):
        size = int(text[1]) if text[1].isdigit() else values[text[1]].value
        if size > LONGEST_TEXT:
            raise ValueError(f"{title}: {text[1]} is {size}, expected at most {LONGEST_TEXT}")
        return ctypes.create_string_buffer(size + 1)
    return (STRUCTURES | SIMPLE)[parameter.type]()


def arguments_of(title: str, names: str, arguments: tuple[object, ...], optional: int = 0) -> None:
    """Raises TypeError unless a function got as many arguments as it takes."""
    most = len(names.split(", ")) if names else 0
    if not most - optional <= len(arguments) <= most:
        raise TypeError(f"{title}({names}) takes {most} arguments, got {len(arguments)}")


def function(module: str, name: str, prototype: Prototype) -> Callable[..., Any]:
    """The Python function of a prototype."""
    title = f"{module}.{name}"
    inputs = prototype.inputs
    names = ", ".join(parameter.name for parameter in inputs)
    optional = sum(parameter.kind == "optional" for parameter in inputs)
    c_function = getattr(library, prototype.name)
    c_function.restype = RESULTS[prototype.result or "int32_t"]

    def call(*arguments: object) -> Any:
        arguments_of(title, names, arguments, optional)
        values = {
            parameter.name: to_c(parameter.type, argument, f"{title}: {parameter.name}")
            for parameter, argument in zip(inputs, arguments, strict=False)
        }
        passed: list[Any] = []
        outputs = []
        for parameter in prototype.parameters:
            if parameter.kind == "out":
                outputs.append(_storage(parameter, values, title))
                passed.append(ctypes.byref(outputs[-1]))
            elif parameter.kind == "length":
                passed.append(SIMPLE[parameter.type](_length(values[parameter.name])))
            else:
                value = values.get(parameter.name)
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
    if isinstance(value, ModuleType):
        return value.__name__ == f"{module}.{name}"
    return isinstance(value, FunctionType) and value.__module__ == module and not name.startswith("_")


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
