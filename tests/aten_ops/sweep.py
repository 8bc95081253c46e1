"""Calls every row with every dtype: `python -m tests.aten_ops.sweep` prints the outcomes.

`samples.txt` has one call of each function. The tensors of its main dtype take every dtype in turn, indices INT32 and
INT64. Each call must be computed, or be refused by stage 1; results in FLOAT16 and BFLOAT16 are compared with the same
call in FLOAT. The calls use the C ABI of the prefix, in a separate process: run it through sweep().
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tests import cabi
from tests.aten_ops import server
from tests.aten_ops.stored import FORMATS, TRANSPOSED, StoredMemory, is_stored_apart
from tests.cabi import PARAM_INVALID, SUCCESS, Dtype
from tests.published import c_type, rows

ROOT = Path(__file__).resolve().parents[2]
# The package that Python finds, possibly that of a variant of the build.
PACKAGE = Path(str(find_spec("aclnn_torch").submodule_search_locations[0]))  # type: ignore[union-attr,index]
LIBRARY = PACKAGE / "cann" / "lib64" / "libopapi.so"
# The environment for a separate process to find that package and the tests.
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(ROOT)])}
SAMPLES = Path(__file__).with_name("samples.txt")
# What the variant `mutants` reads at each call (tests/mutants).
OF_MUTANTS = ("PYTEST_CURRENT_TEST", "ACLNN_TEST_MUTANT", "ACLNN_TEST_MUTANT_OUTPUT", "ACLNN_TEST_MUTANT_NAME")

# The dtypes that the main tensors take.
DTYPES = (
    *("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "INT8", "INT16", "INT32", "INT64", "UINT8"),
    *("UINT16", "UINT32", "UINT64", "BOOL", "COMPLEX32", "COMPLEX64", "COMPLEX128"),
)
INDICES = ("INT64", "INT32")
REDUCED = ("FLOAT16", "BFLOAT16")
# The number of fills for which 16-bit results are compared with those in FLOAT: FILLS=20 tests more.
FILLS = int(os.environ.get("FILLS", "1"))
# The allowed difference of two summation orders, in FLOAT's units in the last place.
FLOAT_SUMS = 64


@dataclass(frozen=True)
class Tensor:
    """A tensor of a sample; its elements are the values in turn, if given."""

    dtype: str
    shape: tuple[int, ...]
    values: tuple[float, ...] = ()
    format: str = ""  # a private one or TRANSPOSED, as named in stored.py


@dataclass(frozen=True)
class Number:
    """An aclScalar of a sample."""

    dtype: str
    value: float


def is_output(kind: str) -> bool:
    """True if an argument of this kind is written but not read."""
    return re.search(r"(?<!In)Outs?$", kind) is not None


def _value(text: str) -> Any:
    if text.startswith("{"):
        return [_value(part) for part in text[1:-1].split()]
    if match := re.fullmatch(r"([A-Z]\w*)(?:@(\w+))?\[([\d,]*)\](?::(.*))?", text):
        shape = tuple(int(size) for size in match[3].split(",") if size)
        values = tuple(float(x) for x in (match[4] or "").split(",") if x)
        return Tensor(match[1], shape, values, match[2] or "")
    if match := re.fullmatch(r"([A-Z]\w*)\((.*)\)", text):
        return Number(match[1], float(json.loads(match[2])))
    return json.loads(text)


def samples() -> list[tuple[str, dict[str, Any]]]:
    """The functions with one or more calls each, and the calls' arguments, by name."""
    return [parse(line) for line in SAMPLES.read_text().splitlines()]


def parse(line: str) -> tuple[str, dict[str, Any]]:
    """A call in the syntax of samples.txt."""
    name, *arguments = re.findall(r'(?:\{[^}]*\}|"[^"]*"|\S)+', line)
    return name, {key: _value(text) for key, _, text in (each.partition("=") for each in arguments)}


# ---- One call


def library() -> ctypes.CDLL:
    """The prefix's operators, with the prototypes from the headers and of the rows."""
    found = ctypes.CDLL(str(LIBRARY))
    for name, (result, parameters) in cabi.prototypes().items():
        if hasattr(found, name):
            function = getattr(found, name)
            function.restype, function.argtypes = result, parameters
    for name, row in rows(LIBRARY).items():
        types = [_ctype(kind) for kind, _ in row]
        getattr(found, f"{name}GetWorkspaceSize").argtypes = [*types, ctypes.c_void_p, ctypes.c_void_p]
        getattr(found, name).argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
    return found


_CTYPES = {
    "bool": ctypes.c_bool,
    "int": ctypes.c_int,
    "aclDataType": ctypes.c_int,
    "int8_t": ctypes.c_int8,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "char*": ctypes.c_char_p,
    "const char*": ctypes.c_char_p,
}


def _ctype(kind: str) -> Any:
    found = c_type(kind)
    return _CTYPES[kind] if found == kind else ctypes.c_void_p


def _values(tensor: Tensor, dtype: Dtype, fill: int) -> np.ndarray:
    """The tensor's contents: small positive numbers, exact in every dtype of its kind, unless specified.

    Each fill has different fractions.
    """
    count = math.prod(tensor.shape)
    if tensor.values:
        return cabi.repeated(tensor.values, tensor.shape)
    if dtype in cabi.INTEGER or dtype == Dtype.INT4:
        numbers = [0] if isinstance(tensor, _Index) else [1, 2, 3] if dtype != Dtype.BOOL else [1, 0, 1]
        return cabi.repeated(numbers, tensor.shape)
    # In (0, 1), using all 8 bits of BFLOAT16's significand; neighbours differ.
    places = np.arange(count) + 29 * fill
    return ((129 + places * 74 % 127) / 256 * np.where(places % 3 == 1, 0.5, 1)).reshape(tensor.shape)


def dtype_of(tensor: Tensor) -> Dtype:
    return Dtype[tensor.dtype.replace("BFLOAT16", "BF16")]


def contents(tensor: Tensor) -> np.ndarray:
    """What a tensor of a call holds before it runs: in the values of its dtype, integers as int64."""
    dtype = dtype_of(tensor)
    values = _values(tensor, dtype, 0)
    if is_stored_apart(dtype, "") and dtype not in cabi.INTEGER:
        memory = StoredMemory(dtype, tensor.shape)
        memory.write(values)
        return memory.read()
    return values.astype(np.int64) if dtype in cabi.INTEGER else cabi.round_to(dtype, values)


def _first(values: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The first elements in another shape."""
    count = math.prod(shape)
    assert count <= values.size, f"an output with room for {values.size} elements has shape {shape}"
    return values.reshape(-1)[:count].reshape(shape)


@dataclass
class Outcome:
    """The outcome of a call: its statuses, the text of the nonzero one, and its outputs."""

    stage1: int
    stage2: int
    text: str
    outputs: list[np.ndarray]
    dtypes: list[Dtype]  # of the outputs


class Caller:
    """Calls functions of a library."""

    def __init__(self) -> None:
        self.library = library()
        cabi.host = lambda: self.library  # used to make descriptors, too
        self.gone: set[Any] = set()  # destroyed handles
        self.fill = 0  # of tensors without specified contents

    def tensor(self, value: Tensor, kind: str, strided: bool, memories: list[tuple[cabi.Memory, str]]) -> int:
        """A new aclTensor, whose memory is added to the memories."""
        dtype = dtype_of(value)
        layout = value.format if value.format in (*FORMATS, TRANSPOSED) else ""
        apart = is_stored_apart(dtype, layout)
        gaps = strided and not apart
        strides = [2 * stride for stride in cabi.contiguous_strides(value.shape)] if gaps else None
        memory = (
            StoredMemory(dtype, value.shape, layout)
            if apart
            else cabi.Memory(dtype, value.shape, strides, offset=int(gaps))
        )
        if not is_output(kind):
            # Tensors of the same shape also differ, from fill 1 on.
            memory.write(_values(value, dtype, self.fill * (1 + len(memories))))
        memories.append((memory, kind))
        return memory.descriptor(cabi.Format[value.format]) if value.format and not layout else memory.descriptor()

    def call(self, name: str, arguments: dict[str, Any], strided: bool = False, only_stage1: bool = False) -> Outcome:
        """Runs both stages on new memory; strided tensors have a gap after each element."""
        lib = self.library
        destroy: list[tuple[Any, Any]] = []
        memories: list[tuple[cabi.Memory, str]] = []
        sized: dict[cabi.Memory, Any] = {}  # the handles of outputs whose sizes follow from the data

        def kept(handle: Any, release: Any) -> Any:
            destroy.append((release, handle))
            return handle

        def make(kind: str, value: Any) -> Any:
            if value is None:
                return None
            if isinstance(value, Tensor):
                handle = kept(self.tensor(value, kind, strided, memories), lib.aclDestroyTensor)
                if kind == "SizedOut":
                    sized[memories[-1][0]] = handle
                return handle
            if isinstance(value, Number):
                return kept(cabi.create_scalar(value.value, Dtype[value.dtype]), lib.aclDestroyScalar)
            if kind.endswith("Ints"):
                return kept(cabi.create_int_array(value), lib.aclDestroyIntArray)
            if kind in ("Floats", "OptionalFloats"):
                array = (ctypes.c_float * len(value))(*value)
                return kept(lib.aclCreateFloatArray(array, len(value)), lib.aclDestroyFloatArray)
            if kind.endswith("Bools"):
                return kept(cabi.create_bool_array(value), lib.aclDestroyBoolArray)
            if kind.endswith("Numbers"):
                handles = [cabi.create_scalar(x.value, Dtype[x.dtype]) for x in value]
                return kept(
                    lib.aclCreateScalarList((ctypes.c_void_p * len(handles))(*handles), len(handles)),
                    lib.aclDestroyScalarList,
                )
            if kind.endswith(("Ins", "Outs")):
                handles = [self.tensor(x, kind, strided, memories) for x in value]
                return kept(
                    lib.aclCreateTensorList((ctypes.c_void_p * len(handles))(*handles), len(handles)),
                    lib.aclDestroyTensorList,
                )
            return value.encode() if isinstance(value, str) else value

        row = rows(LIBRARY)[name]
        given = [make(kind, arguments[argument]) for kind, argument in row]
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        status = getattr(lib, f"{name}GetWorkspaceSize")(*given, ctypes.byref(size), ctypes.byref(executor))
        stage2 = SUCCESS
        if status == SUCCESS and only_stage1:
            lib.aclDestroyAclOpExecutor(executor)
        elif status == SUCCESS:
            stage2 = getattr(lib, name)(None, size.value, executor, None) or lib.aclrtSynchronizeStream(None)
        text = "" if status == stage2 == SUCCESS else cabi.error_text().strip().splitlines()[0]
        written = [memory for memory, kind in memories if "Out" in kind]
        dtypes = [memory.dtype for memory in written]
        ran = status == stage2 == SUCCESS and not only_stage1  # only then does a sized output have its shape
        outputs = [
            _first(memory.read(), cabi.dims_of("aclGetViewShape", sized[memory]))
            if ran and memory in sized
            else memory.read()
            for memory in written
        ]
        intact = all(memory.untouched() for memory, _ in memories)
        for release, handle in destroy:
            if handle not in self.gone:
                release(handle)
        assert intact, f"{name} wrote beside its outputs"
        return Outcome(status, stage2, text, outputs, dtypes)


# ---- The sweep


def main_dtype(name: str, arguments: dict[str, Any]) -> str:
    """The dtype of a sample that is varied."""
    tensors = {False: [], True: []}
    for kind, argument in rows(LIBRARY)[name]:
        value = arguments[argument]
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Tensor):
                tensors[is_output(kind)].append(each.dtype)
    found = tensors[False] or tensors[True]
    return "FLOAT" if "FLOAT" in found or not found else found[0]


def with_dtypes(name: str, arguments: dict[str, Any], dtype: str, index: str, out: str) -> dict[str, Any]:
    """The sample with another main dtype, another dtype of its indices, and another one of its main outputs."""
    main = main_dtype(name, arguments)

    def changed(kind: str, value: Any) -> Any:
        if isinstance(value, list):
            return [changed(kind, each) for each in value]
        if not isinstance(value, Tensor):
            return value
        output = is_output(kind)
        if value.dtype == main:
            return Tensor(out if output else dtype, value.shape, value.values, value.format)
        if value.dtype in INDICES and not output:
            return _Index(index, value.shape, value.values, value.format)
        return value

    kinds = dict((argument, kind) for kind, argument in rows(LIBRARY)[name])
    return {argument: changed(kinds[argument], value) for argument, value in arguments.items()}


class _Index(Tensor):
    """A tensor of indices."""


def has_indices(name: str, arguments: dict[str, Any]) -> bool:
    """True if a sample has INT32 or INT64 inputs besides the main ones."""
    varied = with_dtypes(name, arguments, "FLOAT", "INT32", "FLOAT")
    return any(
        isinstance(x, _Index) for value in varied.values() for x in (value if isinstance(value, list) else [value])
    )


@dataclass(frozen=True)
class Result:
    """The outcome for one dtype: "computed", "refused" (by stage 1), or "failed" (in stage 2)."""

    function: str
    dtype: str
    index: str  # the indices' dtype; empty without indices
    out: str
    verdict: str
    text: str
    rounding: float = 0.0  # for REDUCED: distance from the FLOAT result in ULP
    strided: str = ""  # difference with non-contiguous tensors


def outs_for(dtype: str) -> Sequence[str]:
    """The possible dtypes of the main outputs for one of the inputs, most natural first."""
    real = {"COMPLEX32": "FLOAT16", "COMPLEX64": "FLOAT", "COMPLEX128": "DOUBLE"}
    return list(dict.fromkeys([dtype, "FLOAT", "BOOL", "INT64", real.get(dtype, "INT32")]))


def roundings(dtype: str, reduced: Outcome, wide: Outcome) -> float:
    """The distance of the outputs from those in FLOAT, in units in the last place of the dtype.

    An output in FLOAT equals the FLOAT result, up to the order of sums, or that result rounded once to the dtype.
    """
    kind = Dtype[dtype.replace("BFLOAT16", "BF16")]
    most = 0.0
    for mine, exact, stored in zip(reduced.outputs, wide.outputs, reduced.dtypes, strict=True):
        with np.errstate(all="ignore"):
            # 0, and inf, which rounds to inf.
            rounded = cabi.round_to(kind, exact)
            same = (mine == rounded) | (np.isnan(mine) & np.isnan(rounded))
            distance = np.where(same, 0, np.abs(mine - exact) / cabi.ulp(kind, exact))
            if stored == Dtype.FLOAT:
                is_rounded = mine == cabi.round_to(kind, mine)
                in_float = np.abs(mine - exact) / (FLOAT_SUMS * cabi.ulp(Dtype.FLOAT, exact))
                distance = np.where(same | is_rounded, distance, in_float)
        most = max(most, float(np.max(np.nan_to_num(distance, nan=math.inf), initial=0)))
    return most


def odd(arguments: dict[str, Any]) -> dict[str, Any]:
    """The same with fractional numbers that need more than 16 bits, also in place of the 1 in CANN's samples."""

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [changed(each) for each in value]
        return Number("FLOAT", value.value + 0.1) if isinstance(value, Number) else value

    return {name: changed(value) for name, value in arguments.items()}


def rounding_of(caller: Caller, name: str, arguments: dict[str, Any], dtype: str, index: str) -> float:
    """The distance of a call with outputs of the dtype or FLOAT from the same in FLOAT; 0 if one is not computed."""
    most = 0.0
    for each, caller.fill in itertools.product((arguments, odd(arguments)), range(1, FILLS + 1)):
        wide = caller.call(name, with_dtypes(name, each, "FLOAT", index, "FLOAT"))
        if wide.stage1 or wide.stage2:
            continue
        for out in (dtype, "FLOAT"):
            reduced = caller.call(name, with_dtypes(name, each, dtype, index, out))
            if reduced.stage1 == SUCCESS == reduced.stage2:
                most = max(most, roundings(dtype, reduced, wide))
    caller.fill = 0
    return most


def is_sized_by_data(name: str) -> bool:
    """Whether the data decides how many elements a function's output has; it must be contiguous then."""
    return any(kind == "SizedOut" for kind, _ in rows(LIBRARY)[name])


def strided_difference(caller: Caller, name: str, arguments: dict[str, Any], expected: Outcome) -> str:
    """The call's difference with non-contiguous tensors; empty if there is none."""
    found = caller.call(name, arguments, strided=True)
    if found.stage1 or found.stage2:
        return found.text
    pairs = zip(found.outputs, expected.outputs, strict=True)
    # The order of a sum may depend on the layout.
    same = all(np.allclose(mine, other, rtol=1e-6, atol=1e-6, equal_nan=True) for mine, other in pairs)
    return "" if same else "the result is another one"


def results(caller: Caller, name: str, arguments: dict[str, Any]) -> Iterator[Result]:
    """The outcomes of every dtype of one function."""
    indices = INDICES if has_indices(name, arguments) else ("",)
    main = main_dtype(name, arguments)
    dtypes = DTYPES if main in DTYPES else (*DTYPES, main)
    inputs = [arguments[argument] for kind, argument in rows(LIBRARY)[name] if not is_output(kind)]
    has_tensors = any(isinstance(value, (Tensor, list)) for value in inputs)
    for dtype, index in itertools.product(dtypes, indices):
        for out in outs_for(dtype) if has_tensors else [dtype]:  # without tensors, only the output has the dtype
            outcome = caller.call(name, with_dtypes(name, arguments, dtype, index, out))
            if outcome.stage1 == SUCCESS:
                break
        if outcome.stage1 != SUCCESS:
            assert outcome.stage1 == PARAM_INVALID, (name, dtype, outcome)
            first = caller.call(name, with_dtypes(name, arguments, dtype, index, dtype))
            yield Result(name, dtype, index, "", "refused", first.text)
            continue
        verdict = "computed" if outcome.stage2 == SUCCESS else "failed"
        rounding, strided = 0.0, ""
        if verdict == "computed" and (dtype == main or dtype in INDICES) and not is_sized_by_data(name):
            strided = strided_difference(caller, name, with_dtypes(name, arguments, dtype, index, out), outcome)
        if verdict == "computed" and dtype in REDUCED and out == dtype:
            rounding = rounding_of(caller, name, arguments, dtype, index)
        yield Result(name, dtype, index, out, verdict, outcome.text, rounding, strided)


def as_reals(values: np.ndarray) -> np.ndarray:
    """Complex numbers as pairs."""
    return np.stack([values.real, values.imag], -1) if np.iscomplexobj(values) else values


def main() -> None:
    """Prints the results as JSON lines; names after the command select functions.

    With -, runs the calls of the input instead, each as it arrives, on the product in the next argument; imports torch
    first if that is last. A line of the input has the variables of OF_MUTANTS, the call, and whether it is strided.
    """
    runs_input, *options = sys.argv[1:] or [""]
    if options[1:] == ["torch"]:
        importlib.import_module("torch")
    caller = Caller()
    product = options[0] if runs_input == "-" else "host"
    assert caller.library.aclHostSetProduct(product.encode()) == SUCCESS
    if runs_input == "-":
        for number, text in enumerate(sys.stdin, 1):
            variables, line, strided = json.loads(text)
            os.environ.update(variables)
            try:
                outcome = caller.call(*parse(line), strided=strided)
            except AssertionError as error:
                print(json.dumps([number, str(error)]), flush=True)
                continue
            outputs = (
                [as_reals(output).tolist() for output in outcome.outputs]
                if outcome.stage2 == SUCCESS == outcome.stage1
                else []
            )
            print(json.dumps([number, [outcome.stage1, outcome.stage2, outcome.text, outputs]]), flush=True)
        return
    for name, arguments in samples():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        for result in results(caller, name, arguments):
            print(json.dumps(asdict(result)), flush=True)


COMMAND = [sys.executable, "-W", "ignore", "-m", "tests.aten_ops.sweep"]


def sweep(*names: str) -> list[Result]:
    """The results, from a separate process."""
    done = subprocess.run([*COMMAND, *names], cwd=PACKAGE.parent, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-500:]}{done.stderr[-3000:]}"
    assert done.stderr == "", done.stderr[-3000:]  # the host CANN prints nothing
    return [Result(**json.loads(line)) for line in done.stdout.splitlines()]


def run_call(
    line: str,
    product: str = "host",
    *,
    with_torch: bool = False,
    strided: bool = False,
    environment: Mapping[str, str] | None = None,
) -> tuple[int, int, str, list[Any]]:
    """Both statuses, the text and the outputs, complex numbers as pairs, of a call in the syntax of samples.txt.

    The calls of a test process run in one process per product and environment, which has loaded torch's libraries and,
    with with_torch, also Python's torch. Strided tensors have a gap after each element.
    """
    command = [*COMMAND, "-", product, *(["torch"] if with_torch else [])]
    request = [{name: os.environ.get(name, "") for name in OF_MUTANTS}, line, strided]
    answer = server.ask(command, ENVIRONMENT | (environment or {}), PACKAGE.parent, request)
    assert not isinstance(answer, str), answer
    return tuple(answer)


def run_calls(
    lines: Sequence[str],
    product: str = "host",
    *,
    with_torch: bool = False,
    environment: Mapping[str, str] | None = None,
) -> list[tuple[int, int, str, list[Any]]]:
    """The outcomes of several calls, one after the other."""
    return [run_call(line, product, with_torch=with_torch, environment=environment) for line in lines]


if __name__ == "__main__":
    main()
