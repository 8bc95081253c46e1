"""The tables of csrc/cann/rows and the cases of the tests are consistent; and tests of all operators."""

from __future__ import annotations

import ctypes
import importlib
import re
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from aclnn_torch.host import PREFIX
from tests.aten_ops.formulas import FORMULAS, WITHOUT_FORMULA
from tests.cabi import exported_operators
from tests.published import OF_FORMATS, refused, refused_to_torch_npu

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIBRARY = PREFIX / "lib64" / "libopapi.so"


def declared() -> set[str]:
    """The functions that have their own header, and are not rows."""
    text = "".join(path.read_text() for path in (ROOT / "csrc" / "host_cann" / "include" / "aclnnop").glob("*.h"))
    return set(re.findall(r"(aclnn\w+)GetWorkspaceSize\(", text))


def with_cases() -> set[str]:
    """The functions named by a case, the C++ test, a formula, a call with values, or a test instead of a formula."""
    modules = [importlib.import_module(f"tests.npu.{path.stem}") for path in HERE.glob("test_aten_ops_*.py")]
    cases = {f"aclnn{name}" for module in modules for case in module.CASES for name in case.functions.split()}
    calls = "".join(path.read_text() for path in (ROOT / "tests" / "aten_ops" / "values").glob("*.txt"))
    cases |= {f"aclnn{name}" for names in WITHOUT_FORMULA.values() for name in names}
    cases |= set(FORMULAS) | set(re.findall(r"^(acl\w+) [^\t]*\t\[", calls, re.MULTILINE))
    return cases | set(re.findall(r"(aclnn\w+)GetWorkspaceSize\(", (ROOT / "tests/cpp/test_aten_ops.cpp").read_text()))


def test_every_operator_has_a_case() -> None:
    """Only a caller detects a wrong prototype."""
    refusing = refused() | set(refused_to_torch_npu())
    assert exported_operators(LIBRARY) - declared() - with_cases() - OF_FORMATS - refusing == set()


def test_cases_name_operators_that_exist() -> None:
    assert with_cases() - exported_operators(LIBRARY) == set()


def test_stage_1_sees_no_mode_of_the_thread() -> None:
    """Where ATen queries Python functions, they run without the caller's modes, which stay active."""
    seen = []

    class Spy(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
            seen.append(function.__name__)
            return function(*arguments, **(named or {}))

    library = ctypes.CDLL(str(PREFIX / "lib64" / "libopapi.so"))
    library.aclCreateTensor.restype = ctypes.c_void_p
    memory = ctypes.create_string_buffer(1024)

    def tensor(dtype: int, *shape: int) -> ctypes.c_void_p:
        sizes, rank = (ctypes.c_int64 * len(shape))(*shape), ctypes.c_uint64(len(shape))
        start = ctypes.c_int64(0)
        return ctypes.c_void_p(library.aclCreateTensor(sizes, rank, dtype, None, start, 2, sizes, rank, memory))

    gradient, indices, out = tensor(0, 3, 11), tensor(9, 3), tensor(0, 5, 11)
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    numbers = (ctypes.c_uint64(5), ctypes.c_uint64(2**64 - 1), ctypes.c_bool(False))
    with Spy():
        status = library.aclnnEmbeddingDenseBackwardGetWorkspaceSize(
            gradient, indices, *numbers, out, ctypes.byref(size), ctypes.byref(executor)
        )
        assert (status, seen) == (0, [])
        torch.empty(1)
    assert seen == ["empty"]
    assert library.aclDestroyAclOpExecutor(executor) == 0
    for each in (gradient, indices, out):
        assert library.aclDestroyTensor(each) == 0
