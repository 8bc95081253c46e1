"""Makes code for libaclnn_triton.so of a kernel in TTIR.

A value is a register: bytes at a fixed offset, in the order of its elements. A register with one element may stand for
many, as that of a splat or a constant does. csrc/cann/triton says what the operations' words mean.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from . import ttir
from .ttir import Block, Operation, Type

KINDS = {"i1": 0, "i8": 1, "i16": 2, "i32": 3, "i64": 4, "f16": 5, "bf16": 6, "f32": 7, "f64": 8, "ptr": 4, "index": 4}
BYTES = (1, 1, 2, 4, 8, 2, 2, 4, 8)
I1, I8, I16, I32, I64, F16, BF16, F32, F64 = range(9)

# Operations of two operands and one kind, and of one.
ARITHMETIC = """
    addi subi muli divsi divui remsi remui andi ori xori shli shrsi shrui minsi maxsi minui maxui
    addf subf mulf divf remf minnumf maxnumf minimumf maximumf
"""
MATHEMATICS = "exp exp2 log log2 sin cos sqrt rsqrt absf absi floor ceil erf tanh"
BINARY = {f"arith.{name}": name for name in ARITHMETIC.split()}
BINARY |= {"tt.mulhiui": "mulhiui", "tt.precise_divf": "divf"}
UNARY = {f"math.{name}": name for name in MATHEMATICS.split()}
UNARY |= {"arith.negf": "negf", "tt.precise_sqrt": "sqrt"}
# On truth values, whose arithmetic is modulo two.
OF_TRUTH = {"addi": "xori", "subi": "xori", "muli": "andi"}
SIGNED = {"arith.extsi", "arith.sitofp", "arith.fptosi", "arith.index_cast"}
CONVERSIONS = SIGNED | {
    f"arith.{name}" for name in ("extui", "trunci", "uitofp", "fptoui", "extf", "truncf", "index_castui")
}
SAME_BITS = {"arith.bitcast", "tt.bitcast", "tt.ptr_to_int", "tt.int_to_ptr"}
INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"),
    "true",
)
# Hints, and what only a debugger sees.
IGNORED = {"tt.print", "llvm.intr.assume", "gpu.barrier", "ttg.barrier", "ttg.local_barrier", "tt.assume"}
KEPT = {"tt.store", "tt.atomic_rmw", "tt.atomic_cas", "tt.assert", "tt.call", "tt.descriptor_store", "cf.assert"}
MOST_CONSTANTS = 1 << 13


class Unsupported(NotImplementedError):
    """A kernel has an operation that simulated NPUs do not compute."""


@dataclass(eq=False)
class Storage:
    """Bytes of a register, and how many names have it."""

    offset: int
    size: int
    users: int = 0


class Value(NamedTuple):
    """Elements of a kind in a register; ``is_splat`` if there is one for the whole shape."""

    kind: int
    shape: tuple[int, ...]
    storage: Storage
    is_splat: bool = False
    shift: int = 0  # bytes from the storage's beginning

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def offset(self) -> int:
        """The offset of the first element."""
        return self.storage.offset + self.shift


class BlockPointer(NamedTuple):
    """A block of a tensor in memory. All parts are scalars of 64 bits."""

    type: Type
    parts: tuple[Value, ...]  # address; sizes, strides and offsets of all dimensions

    def of(self, part: int) -> tuple[Value, ...]:
        """The sizes (0), strides (1) or offsets (2)."""
        assert self.type.shape is not None
        rank = len(self.type.shape)
        return self.parts[1 + part * rank : 1 + (part + 1) * rank]


AnyValue = Value | BlockPointer


@dataclass
class Label:
    """A position in the code, and the words that wait for it."""

    position: int | None = None
    waiting: list[int] = field(default_factory=list)


def bits_of(kind: int, text: str) -> int:
    """The bits of a constant in MLIR's text."""
    text = {"true": "1", "false": "0"}.get(text, text)
    if text.lower().startswith("0x"):
        return int(text, 16)
    if kind < F16:
        return int(text) & ((1 << 8 * BYTES[kind]) - 1 if kind != I1 else 1)
    number = float(text)
    if kind == BF16:
        bits = int.from_bytes(struct.pack("<f", number), "little")
        return bits + 0x7FFF + (bits >> 16 & 1) >> 16
    return int.from_bytes(struct.pack({F16: "<e", F32: "<f", F64: "<d"}[kind], number), "little")


def integers(text: str) -> list[int]:
    """The numbers of an attribute such as ``array<i32: 1, 0>`` or ``5 : i64``."""
    if text.startswith("array<"):
        return [int(part) for part in text[6:-1].partition(":")[2].split(",") if part.strip()]
    return [int(text.partition(" :")[0])]


def strides(shape: Sequence[int]) -> list[int]:
    """The distances of neighbours in a register."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def used(operation: Operation, known: dict[int, set[str]]) -> set[str]:
    """The names that an operation and its regions use."""
    names = known.get(id(operation))
    if names is None:
        names = set(operation.operands)
        for region in operation.regions:
            for block in region:
                for inner in block.operations:
                    names |= used(inner, known)
        known[id(operation)] = names
    return names


class Lowering:
    """Makes the code of one kernel."""

    def __init__(self, functions: dict[str, Operation], kernel: str, operations: Sequence[str], library: str) -> None:
        self.functions = functions
        self.kernel = kernel
        self.numbers = {name: number for number, name in enumerate(operations)}
        self.library = library  # folder of Triton's own functions, whose lines are not a user's
        self.code: list[int] = []
        self.places: list[str] = []
        self.place = 0
        self.lanes: int | None = None  # the elements of a scalar, in the function of a reduction
        self.known: dict[int, set[str]] = {}
        self.constants: dict[tuple[int, int], Storage] = {}
        self.image = bytearray()
        self.is_ordered = False  # whether the programs must run one after another
        self.work = 0  # bytes of all results of a program, those of a loop once
        self.end = 0
        self.free: dict[int, list[int]] = {}
        self.fresh: list[list[Storage]] = []

    # Registers.

    def storage(self, size: int) -> Storage:
        """A register for an operation. It is free again when the operation is done and no name has it."""
        size = 8 if size <= 8 else max(64, 1 << (size - 1).bit_length())
        offsets = self.free.setdefault(size, [])
        if not offsets:
            self.end = -(-self.end // min(size, 64)) * min(size, 64)
            offsets.append(self.end)
            self.end += size
        storage = Storage(offsets.pop(), size, 1)
        self.fresh[-1].append(storage)
        return storage

    def drop(self, storage: Storage) -> None:
        """Ends a use of a register, which is free behind the last one."""
        storage.users -= 1
        if storage.users == 0:
            self.free[storage.size].append(storage.offset)

    def done(self) -> None:
        """Ends the uses of the registers of an operation."""
        for storage in self.fresh.pop():
            self.drop(storage)

    def keep(self, value: AnyValue) -> None:
        """Makes what a name holds a register of the operation that is being made."""
        for part in value.parts if isinstance(value, BlockPointer) else (value,):
            self.fresh[-1].append(part.storage)

    def new(self, kind: int, shape: Sequence[int]) -> Value:
        """A new register."""
        size = max(1, math.prod(shape)) * BYTES[kind]
        self.work += size
        return Value(kind, tuple(shape), self.storage(size))

    def new_like(self, kind: Type) -> AnyValue:
        """New registers for a value of a type."""
        if kind.element == "block":
            assert kind.of is not None and kind.of.shape is not None
            return BlockPointer(kind.of, tuple(self.new(I64, ()) for _ in range(1 + 3 * len(kind.of.shape))))
        return self.new(self.kind(kind), self.shape(kind))

    def release(self, value: AnyValue) -> None:
        """Ends a name's hold of a value."""
        for part in value.parts if isinstance(value, BlockPointer) else (value,):
            self.drop(part.storage)

    def hold(self, value: AnyValue) -> AnyValue:
        """Counts a name of a value."""
        for part in value.parts if isinstance(value, BlockPointer) else (value,):
            part.storage.users += 1
        return value

    def constant(self, kind: int, bits: int, shape: Sequence[int] = ()) -> Value:
        """A constant, for all elements of a shape."""
        size = BYTES[kind]
        storage = self.constants.get((size, bits))
        if storage is None:
            if len(self.image) >= 8 * MOST_CONSTANTS:
                raise self.unsupported(f"a kernel with more than {MOST_CONSTANTS} arguments and constants")
            storage = self.constants[size, bits] = Storage(len(self.image), 8, 1)
            self.image += bits.to_bytes(8, "little")
        return Value(kind, tuple(shape), storage, is_splat=True)

    # Code.

    def emit(self, name: str, *words: int) -> None:
        """Appends an operation."""
        self.code += (self.numbers[name], self.place, *words)

    def jump(self, label: Label, condition: Value | None = None) -> None:
        """Jumps to a label, unless the condition holds."""
        label.waiting.append(len(self.code) + 2)
        if condition is None:
            self.emit("jump", 0)
        else:
            self.emit("jump_unless", 0, condition.offset)

    def mark(self, label: Label) -> None:
        """Puts a label here."""
        label.position = len(self.code)

    def settle(self, labels: Iterable[Label]) -> None:
        """Fills the labels' positions into the jumps."""
        for label in labels:
            for word in label.waiting:
                assert label.position is not None
                self.code[word] = label.position

    def text(self, text: str) -> int:
        """The number of a text for messages."""
        if text not in self.places:
            self.places.append(text)
        return self.places.index(text)

    def unsupported(self, what: str) -> Unsupported:
        """The error for a kernel that has something that is not computed."""
        return Unsupported(f"{self.kernel}: {self.places[self.place]}: simulated NPUs do not compute {what}")

    def kind(self, kind: Type) -> int:
        """The number of an element's kind."""
        number = KINDS.get(kind.element)
        if number is None:
            raise self.unsupported(f"elements of the type {kind.element}")
        return number

    def shape(self, kind: Type) -> tuple[int, ...]:
        """The shape of a value. In the function of a reduction, a scalar stands for the elements reduced at once."""
        if kind.shape is not None:
            return kind.shape
        return () if self.lanes is None else (self.lanes,)

    @staticmethod
    def operand(value: Value, count: int) -> int:
        """The word for an operand of an operation on so many elements."""
        is_splat = count > 1 and (value.is_splat or value.count == 1)
        return value.offset << 1 | is_splat

    def elementwise(
        self,
        name: str,
        kind: int,
        operands: Sequence[Value],
        shape: Sequence[int],
        result: int | None = None,
        extra: Sequence[int] = (),
    ) -> Value:
        """Computes each element of a result of another or the same kind."""
        is_splat = all(value.is_splat or value.count == 1 for value in operands)
        kind_of_result = kind if result is None else result
        to = self.new(kind_of_result, () if is_splat else shape)
        count = to.count
        self.emit(name, kind, count, to.offset, *(self.operand(value, count) for value in operands), *extra)
        return to._replace(shape=tuple(shape), is_splat=is_splat)

    def convert(self, value: Value, kind: int, is_signed: bool = True) -> Value:
        """Converts to another kind."""
        if value.kind == kind:
            return value
        return self.elementwise("convert", value.kind, [value], value.shape, kind, (kind, int(is_signed)))

    def copy(
        self, to: Value, source: Value, dimensions: Iterable[tuple[int, int, int]], shifts: tuple[int, int] = (-1, -1)
    ) -> None:
        """Copies elements between registers; a dimension is size, stride in the result, stride in the source."""
        merged: list[tuple[int, int, int]] = []
        for size, to_stride, source_stride in dimensions:
            if size == 1:
                continue
            if merged and merged[-1][1:] == (to_stride * size, source_stride * size):
                merged[-1] = (merged[-1][0] * size, to_stride, source_stride)
            else:
                merged.append((size, to_stride, source_stride))
        words = [word for dimension in merged for word in dimension]
        self.emit("move", BYTES[to.kind], to.offset, source.offset, *shifts, len(merged), *words)

    def dense(self, value: Value) -> Value:
        """The value with each of its elements in the register."""
        if not value.is_splat or value.count == 1:
            return value._replace(is_splat=False)
        to = self.new(value.kind, value.shape)
        self.copy(to, value, [(value.count, 1, 0)])
        return to

    def assign(self, targets: Sequence[AnyValue], sources: Sequence[AnyValue]) -> None:
        """Copies values into registers, all at once."""
        pairs: list[tuple[Value, Value]] = []
        for target, source in zip(targets, sources, strict=True):
            if isinstance(target, BlockPointer):
                assert isinstance(source, BlockPointer)
                pairs += zip(target.parts, source.parts, strict=True)
            else:
                assert isinstance(source, Value)
                pairs.append((target, source))
        pairs = [(target, source) for target, source in pairs if target.storage is not source.storage]
        written = {id(target.storage) for target, _ in pairs}
        saved = []
        for target, source in pairs:
            if id(source.storage) in written:
                held = self.new(source.kind, source.shape if not source.is_splat else ())
                self.copy(held, source, [(held.count, 1, 1)])
                source = held._replace(shape=source.shape, is_splat=source.is_splat)
            saved.append((target, source))
        for target, source in saved:
            self.copy(target, source, [(target.count, 1, 0 if source.is_splat or source.count == 1 else 1)])

    # Blocks and functions.

    def live(self, block: Block, elsewhere: set[str]) -> list[Operation]:
        """The block's operations without those whose results nobody uses."""
        wanted = set(elsewhere)
        kept = []
        for operation in reversed(block.operations):
            has_effect = operation.name in KEPT or operation.name.startswith(("scf.", "cf.")) or not operation.results
            if has_effect or wanted.intersection(operation.results):
                kept.append(operation)
                wanted |= used(operation, self.known)
        return kept[::-1]

    def block(self, block: Block, env: dict[str, AnyValue], elsewhere: set[str] = frozenset()) -> Operation:  # type: ignore[assignment]
        """Makes code of a block up to its last operation, which it returns.

        Names that only this block uses are released behind their last use. The caller releases those that are left.
        """
        operations = self.live(block, elsewhere)
        last: dict[str, int] = {}
        for index, operation in enumerate(operations):
            last |= dict.fromkeys(used(operation, self.known), index)
        for index, operation in enumerate(operations[:-1]):
            self.operation(operation, env)
            for name in {*operation.results, *used(operation, self.known)}:
                is_over = last.get(name, index) <= index and name not in elsewhere
                if is_over and name in env and (name in operation.results or name in self.own(block)):
                    self.release(env.pop(name))
        return operations[-1]

    def own(self, block: Block) -> set[str]:
        """The names that a block defines."""
        names = self.known.get(-id(block))
        if names is None:
            names = {name for operation in block.operations for name in operation.results}
            self.known[-id(block)] = names
        return names

    def operation(self, operation: Operation, env: dict[str, AnyValue]) -> None:
        """Makes code of an operation and names its results."""
        before = self.place
        if operation.place and not operation.place.startswith(self.library):
            self.place = self.text(operation.place)
        self.fresh.append([])
        results = self.results(operation, env)
        for name, value in zip(operation.results, results, strict=True):
            env[name] = self.hold(value)
        self.done()
        self.place = before

    def results(self, operation: Operation, env: dict[str, AnyValue]) -> Sequence[AnyValue]:
        """Makes code of an operation; returns its results."""
        name = operation.name
        if name in IGNORED:
            return []
        inputs = [env[operand] for operand in operation.operands]
        if name in ("scf.for", "scf.while", "scf.if"):
            return getattr(self, name.replace(".", "_"))(operation, inputs, env)  # type: ignore[no-any-return]
        if name == "tt.call":
            return self.function(self.functions[operation.attributes["callee"][1:].strip('"')], inputs, operation)
        handler: Callable[..., Sequence[AnyValue]] | None = getattr(self, name.replace(".", "_"), None)
        if handler is not None:
            return handler(operation, *inputs)
        values = [value for value in inputs if isinstance(value, Value)]
        result = operation.result_types[0] if operation.result_types else None
        if result is None:
            raise self.unsupported(f"the operation {name}")
        shape = self.shape(result)
        if name in BINARY:
            kind = values[0].kind
            function = BINARY[name]
            return [self.elementwise(OF_TRUTH.get(function, function) if kind == I1 else function, kind, values, shape)]
        if name in UNARY:
            return [self.elementwise(UNARY[name], values[0].kind, values, shape)]
        if name in CONVERSIONS:
            return [self.convert(values[0], self.kind(result), name in SIGNED)]
        if name in SAME_BITS:
            return [values[0]._replace(kind=self.kind(result))]
        raise self.unsupported(f"the operation {name}")

    def function(self, function: Operation, inputs: Sequence[AnyValue], call: Operation | None) -> Sequence[AnyValue]:
        """Makes code of a function's body for a call, or of the kernel, whose ``call`` is None."""
        (blocks,) = function.regions
        by_name = {block.name: block for block in blocks}
        reachable = [blocks[0]]
        for block in reachable:
            for name in block.operations[-1].successors:
                if by_name[name] not in reachable:
                    reachable.append(by_name[name])
        reachable.sort(key=blocks.index)
        names = {id(block): set[str]() for block in reachable}
        for block in reachable:
            for operation in block.operations:
                names[id(block)] |= used(operation, self.known)
        env: dict[str, AnyValue] = {
            name: self.hold(value) for (name, _), value in zip(blocks[0].arguments, inputs, strict=True)
        }
        results: list[AnyValue] = []
        if call is not None and len(reachable) > 1:
            results = [self.new_like(kind) for kind in call.result_types]
        for block in reachable[1:]:
            for name, kind in block.arguments:
                env[name] = self.hold(self.new_like(kind))
        labels = {block.name: Label() for block in reachable}
        leave = Label()
        for block in reachable:
            self.mark(labels[block.name])
            elsewhere = set().union(*(names[id(other)] for other in reachable if other is not block))
            last = self.block(block, env, elsewhere)
            self.fresh.append([])
            operands = [env[name] for name in last.operands]
            if last.name == "tt.return":
                if call is None:
                    self.emit("end")
                elif len(reachable) == 1:
                    results = operands
                else:
                    self.assign(results, operands)
                    self.jump(leave)
            elif last.name == "cf.br":
                self.assign([env[name] for name, _ in by_name[last.successors[0]].arguments], operands)
                self.jump(labels[last.successors[0]])
            elif last.name == "cf.cond_br":
                self.branch(last, operands, env, by_name, labels)
            else:
                raise self.unsupported(f"the operation {last.name}")
            self.done()
        self.mark(leave)
        self.settle([*labels.values(), leave])
        for value in results:
            self.keep(self.hold(value))
        for value in env.values():
            self.release(value)
        return results

    def branch(
        self,
        last: Operation,
        operands: Sequence[AnyValue],
        env: dict[str, AnyValue],
        by_name: dict[str, Block],
        labels: dict[str, Label],
    ) -> None:
        """Jumps to one of two blocks."""
        _, first, _ = integers(last.attributes["operandSegmentSizes"])
        condition = operands[0]
        assert isinstance(condition, Value)
        otherwise = Label()
        self.jump(otherwise, condition)
        for successor, values in zip(last.successors, (operands[1 : 1 + first], operands[1 + first :]), strict=True):
            self.assign([env[name] for name, _ in by_name[successor].arguments], values)
            self.jump(labels[successor])
            if otherwise.position is None:
                self.mark(otherwise)
        self.settle([otherwise])

    def region(
        self,
        blocks: Sequence[Block],
        inputs: Sequence[AnyValue],
        env: dict[str, AnyValue],
        end: Callable[[Operation, list[AnyValue]], None],
    ) -> None:
        """Makes code of a region of one block; ``end`` gets its last operation with the operands."""
        (block,) = blocks
        inner = dict(env)
        for (name, _), value in zip(block.arguments, inputs, strict=True):
            inner[name] = self.hold(value)
        last = self.block(block, inner)
        self.fresh.append([])
        end(last, [inner[name] for name in last.operands])
        self.done()
        for name in {*(name for name, _ in block.arguments), *self.own(block)}:
            if name in inner and inner[name] is not env.get(name):
                self.release(inner[name])

    # Control flow.

    def scf_if(self, operation: Operation, inputs: Sequence[AnyValue], env: dict[str, AnyValue]) -> Sequence[AnyValue]:
        """``scf.if``."""
        if self.lanes is not None:
            raise self.unsupported("an if statement in the function of a reduction or scan; use tl.where")
        condition = inputs[0]
        assert isinstance(condition, Value)
        results = [self.new_like(kind) for kind in operation.result_types]
        otherwise, leave = Label(), Label()
        self.jump(otherwise, condition)

        def end(_: Operation, values: list[AnyValue]) -> None:
            self.assign(results, values)

        self.region(operation.regions[0], [], env, end)
        if len(operation.regions) > 1 and operation.regions[1]:
            self.jump(leave)
            self.mark(otherwise)
            self.region(operation.regions[1], [], env, end)
        else:
            self.mark(otherwise)
        self.mark(leave)
        self.settle([otherwise, leave])
        return results

    def scf_for(self, operation: Operation, inputs: Sequence[AnyValue], env: dict[str, AnyValue]) -> Sequence[AnyValue]:
        """``scf.for``: begin, end and step, then the values that the loop carries."""
        begin, bound, step, *first = inputs
        assert isinstance(begin, Value) and isinstance(bound, Value) and isinstance(step, Value)
        index = self.new(begin.kind, ())
        carried = [self.new_like(kind) for kind in operation.result_types]
        self.assign([index, *carried], [begin, *first])
        condition = self.new(I1, ())
        top, leave = Label(), Label()
        self.mark(top)
        is_signed = "unsignedCmp" not in operation.attributes
        compare = "cmpi_slt" if is_signed else "cmpi_ult"
        self.emit(compare, index.kind, 1, condition.offset, index.offset << 1, bound.offset << 1)
        self.jump(leave, condition)

        def end(_: Operation, values: list[AnyValue]) -> None:
            self.assign(carried, values)

        self.region(operation.regions[0], [index, *carried], env, end)
        self.emit("addi", index.kind, 1, index.offset, index.offset << 1, step.offset << 1)
        self.jump(top)
        self.mark(leave)
        self.settle([top, leave])
        return carried

    def scf_while(
        self, operation: Operation, inputs: Sequence[AnyValue], env: dict[str, AnyValue]
    ) -> Sequence[AnyValue]:
        """``scf.while``: a region that ends with the condition, and the body."""
        before, body = operation.regions
        carried = [self.new_like(kind) for kind in operation.operand_types]
        results = [self.new_like(kind) for kind in operation.result_types]
        self.assign(carried, inputs)
        top, leave = Label(), Label()
        self.mark(top)

        def decide(_: Operation, values: list[AnyValue]) -> None:
            condition = values[0]
            assert isinstance(condition, Value)
            self.assign(results, values[1:])
            self.jump(leave, condition)

        self.region(before, carried, env, decide)

        def repeat(_: Operation, values: list[AnyValue]) -> None:
            self.assign(carried, values)

        self.region(body, results, env, repeat)
        self.jump(top)
        self.mark(leave)
        self.settle([top, leave])
        return results

    # Values.

    def arith_constant(self, operation: Operation) -> Sequence[AnyValue]:
        """``arith.constant``, whose elements are all alike."""
        (result,) = operation.result_types
        kind = self.kind(result)
        text = operation.attributes["value"]
        if text.startswith("dense<"):
            text = text[6 : ttir.closing(text, 5) - 1]
        if text.startswith(("[", '"')):
            raise self.unsupported("a constant with different elements")
        return [self.constant(kind, bits_of(kind, text.partition(" :")[0]), self.shape(result))]

    def ub_poison(self, operation: Operation) -> Sequence[AnyValue]:
        """``ub.poison``: any value; here zero."""
        (result,) = operation.result_types
        if result.element == "block":
            return [self.new_like(result)]
        return [self.constant(self.kind(result), 0, self.shape(result))]

    def tt_get_program_id(self, operation: Operation) -> Sequence[AnyValue]:
        """``tt.get_program_id``."""
        to = self.new(I32, ())
        self.emit("program_id", to.offset, *integers(operation.attributes["axis"]))
        return [to]

    def tt_get_num_programs(self, operation: Operation) -> Sequence[AnyValue]:
        """``tt.get_num_programs``."""
        to = self.new(I32, ())
        self.emit("num_programs", to.offset, *integers(operation.attributes["axis"]))
        return [to]

    def tt_make_range(self, operation: Operation) -> Sequence[AnyValue]:
        """``tt.make_range``."""
        (begin,), (end,) = (integers(operation.attributes[name]) for name in ("start", "end"))
        to = self.new(I32, (end - begin,))
        self.emit("range", to.offset, begin, end - begin)
        return [to]

    def arith_cmpi(self, operation: Operation, a: Value, b: Value) -> Sequence[AnyValue]:
        """``arith.cmpi``."""
        name = INTEGER_PREDICATES[integers(operation.attributes["predicate"])[0]]
        if a.kind == I1 and name[0] == "s":  # true is -1
            a, b, name = b, a, f"u{name[1:]}"
        if name[1:] in ("gt", "ge"):
            a, b, name = b, a, f"{name[0]}l{name[2]}"
        return [self.elementwise(f"cmpi_{name}", a.kind, [a, b], self.shape(operation.result_types[0]), I1)]

    def arith_cmpf(self, operation: Operation, a: Value, b: Value) -> Sequence[AnyValue]:
        """``arith.cmpf``."""
        name = FLOAT_PREDICATES[integers(operation.attributes["predicate"])[0]]
        shape = self.shape(operation.result_types[0])
        if name in ("false", "true"):
            return [self.constant(I1, int(name == "true"), shape)]
        if name[1:] in ("gt", "ge"):
            a, b, name = b, a, f"{name[0]}l{name[2]}"
        return [self.elementwise(f"cmpf_{name}", a.kind, [a, b], shape, I1)]

    def arith_select(self, operation: Operation, condition: Value, a: AnyValue, b: AnyValue) -> Sequence[AnyValue]:
        """``arith.select``."""
        if not isinstance(a, Value) or not isinstance(b, Value):
            raise self.unsupported("a choice between block pointers")
        return [self.elementwise("select", a.kind, [condition, a, b], self.shape(operation.result_types[0]))]

    def math_fma(self, operation: Operation, a: Value, b: Value, c: Value) -> Sequence[AnyValue]:
        """``math.fma``."""
        return [self.elementwise("fma", a.kind, [a, b, c], self.shape(operation.result_types[0]))]

    def tt_clampf(self, operation: Operation, x: Value, least: Value, most: Value) -> Sequence[AnyValue]:
        """``tt.clampf``."""
        spreads = integers(operation.attributes["propagateNan"]) != [0]
        shape = self.shape(operation.result_types[0])
        lower, upper = ("maximumf", "minimumf") if spreads else ("maxnumf", "minnumf")
        return [self.elementwise(upper, x.kind, [self.elementwise(lower, x.kind, [x, least], shape), most], shape)]

    def tt_fp_to_fp(self, operation: Operation, value: Value) -> Sequence[AnyValue]:
        """``tt.fp_to_fp``, rounding to nearest."""
        rounding = operation.attributes.get("rounding", "1 : i32")
        if integers(rounding) != [1] and BYTES[self.kind(operation.result_types[0])] < BYTES[value.kind]:
            raise self.unsupported("a conversion that rounds towards zero")
        return [self.convert(value, self.kind(operation.result_types[0]))]

    # Shapes.

    def tt_splat(self, operation: Operation, value: Value) -> Sequence[AnyValue]:
        """``tt.splat``."""
        return [value._replace(shape=self.shape(operation.result_types[0]), is_splat=True)]

    def tt_unsplat(self, operation: Operation, value: Value) -> Sequence[AnyValue]:
        """``tt.unsplat``."""
        return [value._replace(shape=(), is_splat=False)]

    def tt_reshape(self, operation: Operation, value: Value) -> Sequence[AnyValue]:
        """``tt.reshape`` and ``tt.expand_dims``: the elements keep their order."""
        return [value._replace(shape=self.shape(operation.result_types[0]))]

    tt_expand_dims = tt_reshape

    def tt_broadcast(self, operation: Operation, value: Value) -> Sequence[AnyValue]:
        """``tt.broadcast``: dimensions of size one are repeated."""
        shape = self.shape(operation.result_types[0])
        if value.is_splat or value.count == 1:
            return [value._replace(shape=shape, is_splat=True)]
        to = self.new(value.kind, shape)
        steps = [step if size > 1 else 0 for size, step in zip(value.shape, strides(value.shape), strict=True)]
        self.copy(to, value, zip(shape, strides(shape), steps, strict=True))
        return [to]

    def transposed(self, value: Value, order: Sequence[int]) -> Value:
        """The value with its dimensions in another order."""
        shape = tuple(value.shape[axis] for axis in order)
        if value.is_splat or [axis for axis in order if value.shape[axis] > 1] == sorted(
            axis for axis in order if value.shape[axis] > 1
        ):
            return value._replace(shape=shape)
        to = self.new(value.kind, shape)
        steps = strides(value.shape)
        self.copy(to, value, zip(shape, strides(shape), [steps[axis] for axis in order], strict=True))
        return to

    def tt_trans(self, operation: Operation, value: Value) -> Sequence[AnyValue]:
        """``tt.trans``."""
        return [self.transposed(value, integers(operation.attributes["order"]))]

    def tt_cat(self, operation: Operation, a: Value, b: Value) -> Sequence[AnyValue]:
        """``tt.cat``: one behind the other."""
        to = self.new(a.kind, self.shape(operation.result_types[0]))
        self.copy(to, a, [(a.count, 1, int(not a.is_splat))])
        self.copy(to._replace(shift=a.count * BYTES[a.kind]), b, [(b.count, 1, int(not b.is_splat))])
        return [to]

    def tt_join(self, operation: Operation, a: Value, b: Value) -> Sequence[AnyValue]:
        """``tt.join``: along a new last dimension."""
        to = self.new(a.kind, self.shape(operation.result_types[0]))
        self.copy(to, a, [(a.count, 2, int(not a.is_splat))])
        self.copy(to._replace(shift=BYTES[a.kind]), b, [(b.count, 2, int(not b.is_splat))])
        return [to]

    def tt_split(self, operation: Operation, value: Value) -> Sequence[AnyValue]:
        """``tt.split``: the two elements of the last dimension."""
        value = self.dense(value)
        results = []
        for index in range(2):
            to = self.new(value.kind, self.shape(operation.result_types[index]))
            self.copy(to, value._replace(shift=value.shift + index * BYTES[value.kind]), [(to.count, 1, 2)])
            results.append(to)
        return results

    def tt_gather(self, operation: Operation, source: Value, indices: Value) -> Sequence[AnyValue]:
        """``tt.gather``."""
        (axis,) = integers(operation.attributes["axis"])
        to = self.new(source.kind, indices.shape)
        picked = self.convert(self.dense(indices), I64)
        source = self.dense(source)
        before, behind = math.prod(source.shape[:axis]), math.prod(source.shape[axis + 1 :])
        others = [[size for i, size in enumerate(shape) if i != axis] for shape in (source.shape, indices.shape)]
        if others[0] != others[1]:
            raise self.unsupported(f"tl.gather of shape {source.shape} by indices of shape {indices.shape}")
        self.emit(
            "gather",
            *(BYTES[to.kind], to.offset, source.offset, picked.offset),
            *(before, source.shape[axis], behind, indices.shape[axis]),
        )
        return [to]

    def tt_histogram(self, operation: Operation, value: Value, mask: Value | None = None) -> Sequence[AnyValue]:
        """``tt.histogram``."""
        to = self.new(I32, self.shape(operation.result_types[0]))
        value = self.dense(self.convert(value, I64))
        self.emit("histogram", to.offset, to.count, value.offset, value.count, self.optional(mask, value.count))
        return [to]

    # Reductions. Their function is applied to many elements at once.

    def combined(self, operation: Operation, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        """The values of a reduction's function."""
        lanes, self.lanes = self.lanes, a[0].count
        (block,) = operation.regions[0]
        found: list[Value] = []

        def end(_: Operation, values: list[AnyValue]) -> None:
            for value in values:
                assert isinstance(value, Value)
                shape = (a[0].count,)
                result = self.dense(value._replace(shape=shape, is_splat=value.is_splat or value.count != shape[0]))
                self.hold(result)
                found.append(result)

        self.region([block], [*a, *b], {}, end)
        for value in found:
            self.keep(value)
        self.lanes = lanes
        return found

    def rows(self, operation: Operation, inputs: Sequence[Value]) -> tuple[int, int, list[Value]]:
        """The axis, the number of elements behind one another in a row, and the values with the axis in front."""
        (axis,) = integers(operation.attributes["axis"])
        shape = inputs[0].shape
        order = [axis, *(i for i in range(len(shape)) if i != axis)]
        values = [self.dense(self.transposed(value, order)) for value in inputs]
        return axis, math.prod(shape) // shape[axis], values

    @staticmethod
    def part(value: Value, begin: int, count: int) -> Value:
        """Consecutive elements of a value."""
        return value._replace(shape=(count,), shift=value.shift + begin * BYTES[value.kind])

    def tt_reduce(self, operation: Operation, *inputs: Value) -> Sequence[AnyValue]:
        """``tt.reduce``: the second half of the rows is combined with the first until one is left."""
        axis, width, values = self.rows(operation, inputs)
        size = inputs[0].shape[axis]
        while size > 1:
            half = 1 << (size - 1).bit_length() - 1
            more = size - half  # rows of the second part; the first part has at least as many
            first = [self.part(value, 0, more * width) for value in values]
            second = [self.part(value, half * width, more * width) for value in values]
            results = self.combined(operation, first, second)
            if more < half:
                joined = []
                for value, result in zip(values, results, strict=True):
                    to = self.new(value.kind, (half * width,))
                    self.copy(to, result, [(more * width, 1, 1)])
                    rest = self.part(value, more * width, (half - more) * width)
                    self.copy(self.part(to, more * width, rest.count), rest, [(rest.count, 1, 1)])
                    joined.append(to)
                results = joined
            values, size = results, half
        return [
            value._replace(shape=self.shape(kind), is_splat=False)
            for value, kind in zip(values, operation.result_types, strict=True)
        ]

    def tt_scan(self, operation: Operation, *inputs: Value) -> Sequence[AnyValue]:
        """``tt.scan``: each row is combined with the one before it, then two before it, then four."""
        axis, width, values = self.rows(operation, inputs)
        size = inputs[0].shape[axis]
        is_reverse = operation.attributes.get("reverse") == "true"
        if is_reverse:
            values = [self.flipped(value._replace(shape=(size, width)), 0) for value in values]
        step = 1
        while step < size:
            moved = (size - step) * width
            results = self.combined(
                operation,
                [self.part(value, 0, moved) for value in values],
                [self.part(value, step * width, moved) for value in values],
            )
            joined = []
            for value, result in zip(values, results, strict=True):
                to = self.new(value.kind, (size * width,))
                self.copy(to, value, [(step * width, 1, 1)])
                self.copy(self.part(to, step * width, moved), result, [(moved, 1, 1)])
                joined.append(to)
            values, step = joined, 2 * step
        if is_reverse:
            values = [self.flipped(value._replace(shape=(size, width)), 0) for value in values]
        shape = inputs[0].shape
        in_front = (size, *(length for i, length in enumerate(shape) if i != axis))
        order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape))]
        return [self.transposed(value._replace(shape=in_front), order) for value in values]

    def flipped(self, value: Value, axis: int) -> Value:
        """The value with a dimension in reverse order."""
        if value.is_splat:
            return value
        to = self.new(value.kind, value.shape)
        steps = strides(value.shape)
        begin = value.shift + (value.shape[axis] - 1) * steps[axis] * BYTES[value.kind]
        turned = [-step if i == axis else step for i, step in enumerate(steps)]
        self.copy(to, value._replace(shift=begin), zip(value.shape, steps, turned, strict=True))
        return to

    def tt_dot(self, operation: Operation, a: Value, b: Value, c: Value) -> Sequence[AnyValue]:
        """``tt.dot``: sums in FP32, FP64 or INT32, exact products."""
        kind = F64 if a.kind == F64 else F32 if a.kind > I64 else I32
        to = self.new(kind, c.shape)
        start = self.convert(c, kind)
        self.copy(to, start, [(to.count, 1, int(not start.is_splat))])
        left, right = (self.dense(self.convert(value, kind)) for value in (a, b))
        rows, depth = a.shape[-2:]
        sizes = (math.prod(a.shape[:-2]), rows, b.shape[-1], depth)
        self.emit("dot", kind, to.offset, left.offset, right.offset, *sizes)
        return [self.convert(to, c.kind)]

    # Memory.

    def optional(self, value: Value | None, count: int) -> int:
        """The word for an operand that may be absent."""
        return -1 if value is None else self.operand(value, count)

    def tt_addptr(self, operation: Operation, address: Value, offset: Value) -> Sequence[AnyValue]:
        """``tt.addptr``: offsets count elements."""
        (result,) = operation.result_types
        assert result.of is not None
        size = BYTES[self.kind(result.of)]
        return [self.elementwise("move_addresses", offset.kind, [address, offset], self.shape(result), I64, (size,))]

    def tt_load(self, operation: Operation, address: AnyValue, *others: Value) -> Sequence[AnyValue]:
        """``tt.load``: with or without a mask and the values where it is false; or of a block."""
        (result,) = operation.result_types
        if isinstance(address, BlockPointer):
            padding = integers(operation.attributes.get("padding", "1 : i32"))[0]
            checked = integers(operation.attributes["boundaryCheck"])
            return [self.load_block(address, address.of(2), checked, padding == 2)]
        mask = others[0] if others else None
        other = others[1] if len(others) > 1 else None
        to = self.new(self.kind(result), self.shape(result))
        words = (self.operand(address, to.count), self.optional(mask, to.count), self.optional(other, to.count))
        self.emit("load", BYTES[to.kind], to.count, to.offset, *words)
        return [to]

    def tt_store(
        self, operation: Operation, address: AnyValue, value: Value, mask: Value | None = None
    ) -> Sequence[AnyValue]:
        """``tt.store``."""
        if isinstance(address, BlockPointer):
            self.store_block(address, address.of(2), integers(operation.attributes["boundaryCheck"]), value)
            return []
        count = value.count
        words = (self.operand(address, count), self.operand(value, count), self.optional(mask, count))
        self.emit("store", BYTES[value.kind], count, *words)
        return []

    def sides(self, block: BlockPointer, offsets: Sequence[Value], checked: Sequence[int]) -> list[int]:
        """The words for the dimensions of a block."""
        assert block.type.shape is not None
        words = []
        for axis, size in enumerate(block.type.shape):
            step, offset, bound = block.of(1)[axis], offsets[axis], block.of(0)[axis]
            words += [size, step.offset, offset.offset, bound.offset, int(axis in checked)]
        return words

    def load_block(self, block: BlockPointer, offsets: Sequence[Value], checked: Sequence[int], is_nan: bool) -> Value:
        """Reads a block; elements outside the tensor are zero or NaN."""
        assert block.type.shape is not None
        kind = self.kind(block.type)
        to = self.new(kind, block.type.shape)
        outside = {F16: 0x7E00, BF16: 0x7FC0, F32: 0x7FC00000, F64: 0x7FF8 << 48}[kind] if is_nan else 0
        words = (BYTES[kind], to.offset, block.parts[0].offset, outside, len(block.type.shape))
        self.emit("load_block", *words, *self.sides(block, offsets, checked))
        return to

    def store_block(self, block: BlockPointer, offsets: Sequence[Value], checked: Sequence[int], value: Value) -> None:
        """Writes a block; elements outside the tensor are left out."""
        assert block.type.shape is not None
        words = (BYTES[value.kind], self.operand(value, value.count), block.parts[0].offset, len(block.type.shape))
        self.emit("store_block", *words, *self.sides(block, offsets, checked))

    def tt_make_tensor_ptr(self, operation: Operation, *parts: Value) -> Sequence[AnyValue]:
        """``tt.make_tensor_ptr`` and ``tt.make_tensor_descriptor``, which has no offsets."""
        of = operation.result_types[0].of
        assert of is not None and of.shape is not None
        zeros = [self.constant(I64, 0)] * (1 + 3 * len(of.shape) - len(parts))
        return [BlockPointer(of, tuple(self.convert(part, I64) for part in (*parts, *zeros)))]

    tt_make_tensor_descriptor = tt_make_tensor_ptr

    def tt_advance(self, operation: Operation, block: BlockPointer, *steps: Value) -> Sequence[AnyValue]:
        """``tt.advance``."""
        offsets = [
            self.elementwise("addi", I64, [offset, self.convert(step, I64)], ())
            for offset, step in zip(block.of(2), steps, strict=True)
        ]
        return [
            block._replace(
                parts=(*block.parts[: -len(offsets)], *(value._replace(is_splat=False) for value in offsets))
            )
        ]

    def tt_descriptor_load(self, operation: Operation, block: BlockPointer, *offsets: Value) -> Sequence[AnyValue]:
        """``tt.descriptor_load``."""
        value = self.load_block(block, [self.convert(offset, I64) for offset in offsets], range(len(offsets)), False)
        return [value._replace(shape=self.shape(operation.result_types[0]))]

    def tt_descriptor_store(
        self, operation: Operation, block: BlockPointer, value: Value, *offsets: Value
    ) -> Sequence[AnyValue]:
        """``tt.descriptor_store``."""
        self.store_block(block, [self.convert(offset, I64) for offset in offsets], range(len(offsets)), value)
        return []

    def tt_atomic_rmw(
        self, operation: Operation, address: Value, value: Value, mask: Value | None = None
    ) -> Sequence[AnyValue]:
        """``tt.atomic_rmw``."""
        (change,) = integers(operation.attributes["atomic_rmw_op"])
        to = self.new(value.kind, self.shape(operation.result_types[0]))
        words = (self.operand(address, to.count), self.operand(value, to.count), self.optional(mask, to.count))
        self.is_ordered = True
        self.emit("atomic", value.kind, to.count, to.offset, change, *words)
        return [to]

    def tt_atomic_cas(self, operation: Operation, address: Value, expected: Value, value: Value) -> Sequence[AnyValue]:
        """``tt.atomic_cas``."""
        to = self.new(value.kind, self.shape(operation.result_types[0]))
        words = (self.operand(operand, to.count) for operand in (address, expected, value))
        self.is_ordered = True
        self.emit("compare_and_swap", BYTES[value.kind], to.count, to.offset, *words)
        return [to]

    def tt_assert(self, operation: Operation, condition: Value) -> Sequence[AnyValue]:
        """``tt.assert``."""
        message = operation.attributes.get("message", operation.attributes.get("msg", "")).strip('"')
        text = self.text(f"assertion failed: {message}")
        self.emit("require", text, condition.count, self.operand(condition, condition.count))
        return []

    cf_assert = tt_assert

    # The functions of language/cann, and triton-ascend's extensions.

    def tt_extern_elementwise(self, operation: Operation, *inputs: Value) -> Sequence[AnyValue]:
        """``tt.extern_elementwise``, whose symbol is a function's name and its numbers."""
        library = operation.attributes.get("libname", "").strip('"')
        name, *rest = operation.attributes["symbol"].strip('"').split()
        if library != "aclnn":
            raise self.unsupported(f"the function {name} of a library for devices")
        numbers = [[int(number) for number in part.split(",")] for part in rest]
        (result,) = operation.result_types
        extension = getattr(self, f"extension_{name}", None)
        if extension is not None:
            return [extension(inputs, *numbers)]
        kind, shape = inputs[0].kind, self.shape(result)
        if kind in (BF16, F16):
            inputs = tuple(self.convert(value, F32) for value in inputs)
        answer = self.elementwise(name, inputs[0].kind, inputs, shape, I1 if result.element == "i1" else None)
        return [self.convert(answer, self.kind(result))]

    def slice_of(
        self, whole: Value, offsets: Sequence[Value], sizes: Sequence[int], steps: Sequence[int]
    ) -> tuple[int, list[int]]:
        """The register with the distance at which a slice begins, and its strides in the whole."""
        to = self.new(I64, ())
        words: list[int] = []
        for axis, offset in enumerate(offsets):
            begin = self.convert(offset, I64)
            words += [begin.offset, whole.shape[axis], sizes[axis], steps[axis], strides(whole.shape)[axis]]
        self.emit("slice", to.offset, len(sizes), *words)
        return to.offset, [step * stride for step, stride in zip(steps, strides(whole.shape), strict=True)]

    def extension_extract_slice(self, inputs: Sequence[Value], sizes: list[int], steps: list[int]) -> Value:
        """Elements of a value at regular distances."""
        whole, *offsets = inputs
        whole = self.dense(whole)
        to = self.new(whole.kind, sizes)
        distance, jumps = self.slice_of(whole, offsets, sizes, steps)
        self.copy(to, whole, zip(sizes, strides(sizes), jumps, strict=True), (-1, distance))
        return to

    def extension_insert_slice(self, inputs: Sequence[Value], sizes: list[int], steps: list[int]) -> Value:
        """A value with elements at regular distances replaced."""
        whole, part, *offsets = inputs
        to = self.new(whole.kind, whole.shape)
        self.copy(to, whole, [(to.count, 1, int(not whole.is_splat))])
        distance, jumps = self.slice_of(whole, offsets, sizes, steps)
        part = self.dense(part)
        self.copy(to, part, zip(sizes, jumps, strides(sizes), strict=True), (distance, -1))
        return to

    def extension_get_element(self, inputs: Sequence[Value]) -> Value:
        """One element."""
        ones = [1] * (len(inputs) - 1)
        return self.extension_extract_slice(inputs, ones, ones)._replace(shape=())

    def extension_flip(self, inputs: Sequence[Value], axis: list[int]) -> Value:
        """A dimension in reverse order."""
        return self.flipped(inputs[0], axis[0])

    def extension_sort(self, inputs: Sequence[Value], descends: list[int]) -> Value:
        """The last dimension in order."""
        (value,) = inputs
        kind = F32 if value.kind in (F16, BF16) else value.kind
        to = self.new(kind, value.shape)
        start = self.convert(value, kind)
        self.copy(to, start, [(to.count, 1, int(not start.is_splat))])
        self.emit("sort", kind, to.offset, to.count // to.shape[-1], to.shape[-1], descends[0])
        return self.convert(to, value.kind)


def lower(text: str, kernel: str, operations: Sequence[str], library: str) -> bytes:
    """The code of a kernel, as the text of a JSON object.

    Args:
        text: the module in MLIR's generic form.
        kernel: the name of the kernel's function.
        operations: the names of the operations of libaclnn_triton.so, in the order of their numbers.
        library: the folder of Triton's own functions.
    """
    functions = ttir.read(text)
    function = functions[kernel]
    lowering = Lowering(functions, kernel, operations, library)
    lowering.place = lowering.text(function.place)
    lowering.end = 8 * MOST_CONSTANTS
    arguments = []
    for _, kind in function.regions[0][0].arguments:
        if kind.element == "block":
            raise lowering.unsupported("an argument that is a tensor descriptor; make it in the kernel")
        arguments.append(Value(lowering.kind(kind), (), Storage(len(lowering.image), 8, 1)))
        lowering.image += bytes(8)
    lowering.fresh.append([])
    lowering.function(function, arguments, None)
    result = {
        "code": lowering.code,
        "places": lowering.places,
        "image": lowering.image.hex(),
        "bytes": lowering.end,
        "is_ordered": lowering.is_ordered,
        "work": lowering.work,
        "arguments": [kind.element for _, kind in function.regions[0][0].arguments],
    }
    return json.dumps(result).encode()


def entry(text: str) -> str:
    """The name of the only public function."""
    names = re.findall(r'sym_name = "([^"]+)", sym_visibility = "public"', text)
    return str(names[0])
