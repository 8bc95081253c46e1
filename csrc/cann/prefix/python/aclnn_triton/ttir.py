"""Reads Triton's intermediate representation (TTIR) from MLIR's generic text form.

In that form every operation is written alike: results, name, operands, attributes, regions, types, location.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Type(NamedTuple):
    """A type: the element, such as ``f32``, ``ptr`` or ``block``, and the shape, which is None for a scalar.

    ``of`` is what a pointer points to, or the tensor that a block pointer or a descriptor describes.
    """

    element: str
    shape: tuple[int, ...] | None = None
    of: Type | None = None


@dataclass
class Block:
    """Operations that follow one another, and the values with which the block begins."""

    name: str
    arguments: list[tuple[str, Type]] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)


@dataclass
class Operation:
    """An operation; ``attributes`` have their text, ``successors`` are names of blocks."""

    name: str
    results: list[str]
    operands: list[str]
    attributes: dict[str, str]
    successors: list[str]
    regions: list[list[Block]] = field(default_factory=list)
    operand_types: list[Type] = field(default_factory=list)
    result_types: list[Type] = field(default_factory=list)
    place: str = ""


def unquoted(text: str, begin: int = 0) -> Iterator[tuple[int, str, int]]:
    """The letters outside strings from ``begin`` on: position, letter, and how many brackets are open behind it."""
    depth, quoted, previous = 0, False, ""
    for index in range(begin, len(text)):
        letter = text[index]
        if letter == '"' and previous != "\\":
            quoted = not quoted
        elif not quoted:
            if letter in "<([{":
                depth += 1
            elif letter in ")]}" or (letter == ">" and previous != "-"):
                depth -= 1
            yield index, letter, depth
        previous = letter


def split(text: str, separator: str = ",") -> list[str]:
    """The parts between separators that are not inside brackets or strings."""
    parts, begin = [], 0
    for index, letter, depth in unquoted(text):
        if letter == separator and depth == 0:
            parts.append(text[begin:index].strip())
            begin = index + 1
    last = text[begin:].strip()
    return [*parts, last] if last or parts else []


def closing(text: str, begin: int) -> int:
    """The position behind the bracket that closes the one at ``begin``."""
    for index, letter, depth in unquoted(text, begin):
        if letter in ")]}>" and depth == 0:
            return index + 1
    raise ValueError(f"no closing bracket in {text[begin:]}")


def type_of(text: str) -> Type:
    """Reads a type."""
    text = text.strip()
    if text.startswith("tensor<"):
        sizes = re.match(r"(?:\d+x)*", text[7:])
        assert sizes is not None
        of = type_of(split(text[7 + sizes.end() : -1])[0])
        return Type(of.element, tuple(map(int, sizes[0].split("x")[:-1])), of.of)
    if text.startswith("!tt.ptr<"):
        of = type_of(split(text[8:-1])[0])
        return Type("ptr" if of.shape is None else "block", None, of)
    if text.startswith("!tt.tensordesc<"):
        return Type("block", None, type_of(split(text[15:-1])[0]))
    return Type(text)


def types_of(text: str) -> list[Type]:
    """Reads a type, or several in parentheses."""
    text = text.strip()
    return [type_of(part) for part in split(text[1:-1] if text.startswith("(") else text)]


HEAD = re.compile(r'(?:(%[^=]+?) = )?"([\w.]+)"\(([^)]*)\)(?:\[([^\]]*)\])?')
LOCATION = re.compile(r"^(#loc\d*) = (loc\(.*\))$", re.MULTILINE)
FILE = re.compile(r'"([^"]+)":(\d+):\d+')


def attributes_of(text: str) -> dict[str, str]:
    """Reads ``name = value`` pairs; a name alone has the value ``unit``."""
    pairs = (part.partition(" = ") for part in split(text))
    return {name.strip(): value.strip() or "unit" for name, _, value in pairs}


class Reader:
    """Reads the functions of a module."""

    def __init__(self, text: str) -> None:
        self.locations = dict(LOCATION.findall(text))
        self.lines = iter(text.split("\n"))
        self.places: dict[str, str] = {}

    def place(self, location: str) -> str:
        """The file and line of a location: the innermost one, of a call's inner function."""
        known = self.places.get(location)
        if known is None:
            found = FILE.search(location)
            if found is not None:
                known = f"{found[1]}:{found[2]}"
            else:
                inner = [name for name in re.findall(r"#loc\d*", location) if self.locations.get(name) != location]
                known = next((place for place in (self.place(self.locations[name]) for name in inner) if place), "")
            self.places[location] = known
        return known

    def function_type(self, operation: Operation, text: str) -> None:
        """Reads what is behind the colon: the operation's types and location."""
        operands = closing(text, 0)
        operation.operand_types = types_of(text[:operands])
        rest = text[operands:].lstrip(" ->").strip()
        end = closing(rest, 0) if rest.startswith("(") else len(rest.partition(" loc(")[0])
        operation.result_types = types_of(rest[:end])
        operation.place = self.place(rest[end:].strip())

    def operation(self, line: str) -> tuple[Operation, str]:
        """The operation that a line begins, and the rest of the line."""
        head = HEAD.match(line)
        if head is None:
            raise ValueError(f"no operation of TTIR: {line}")
        names, name, operands, successors = head.groups()
        results = []
        for part in (names or "").split(","):
            base, _, count = part.strip().partition(":")
            results += [f"{base}#{i}" for i in range(int(count))] if count else [base] if base else []
        rest = line[head.end() :].lstrip()
        attributes = {}
        if rest.startswith("<{"):
            end = closing(rest, 0)
            attributes = attributes_of(rest[2 : end - 2])
            rest = rest[end:].lstrip()
        return Operation(name, results, split(operands), attributes, split(successors or "")), rest

    def region(self) -> tuple[list[Block], str]:
        """Reads a region up to its end; returns its blocks and the line of the end."""
        blocks = [Block("")]
        for line in self.lines:
            line = line.strip()
            if line.startswith("}"):
                return [block for block in blocks if block.operations or block.arguments or block.name], line
            if line.startswith("^"):
                name = re.match(r"\^\w+", line)
                assert name is not None
                block = Block(name[0])
                if line[name.end()] == "(":
                    for part in split(line[name.end() + 1 : closing(line, name.end()) - 1]):
                        argument, _, kind = part.partition(": ")
                        block.arguments.append((argument, type_of(kind.partition(" loc(")[0])))
                blocks.append(block)
            elif line:
                blocks[-1].operations.append(self.whole(line))
        raise ValueError("a region of TTIR does not end")

    def whole(self, line: str) -> Operation:
        """Reads an operation with its regions."""
        operation, rest = self.operation(line)
        while rest.endswith("({") or rest == "{":
            blocks, end = self.region()
            operation.regions.append(blocks)
            rest = end[1:].strip()
            if rest.startswith(", {"):
                rest = "{"
            elif rest.startswith(")"):
                rest = rest[1:].strip()
                break
        if rest.startswith("{"):
            end = closing(rest, 0)
            operation.attributes |= attributes_of(rest[1 : end - 1])
            rest = rest[end:].strip()
        self.function_type(operation, rest.removeprefix(":").strip())
        return operation


def read(text: str) -> dict[str, Operation]:
    """The functions of a module in generic form, by their names."""
    reader = Reader(text)
    for line in reader.lines:
        if line.startswith('"builtin.module"'):
            blocks, _ = reader.region()
            functions = [operation for block in blocks for operation in block.operations]
            return {
                operation.attributes["sym_name"].strip('"'): operation
                for operation in functions
                if operation.name == "tt.func"
            }
    raise ValueError("the text has no module of TTIR in generic form")
