"""The code of Triton's kernels on simulated NPUs, from TTIR on; tests/clients/test_triton.py has kernels in Triton.

The texts are MLIR's generic form of what Triton's front end makes. Their programs need neither Triton nor torch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from aclnn_torch import host
from tests import LONGEST

# Stores x[i] + 1 for 6 places of each program; 6 is no power of two.
ADD = """
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32) -> (), sym_name = "add", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32> loc("x"(#loc)), %n: i32 loc("n"(#loc))):
    %0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32 loc(#loc1)
    %1 = "arith.constant"() <{value = 6 : i32}> : () -> i32 loc(#loc1)
    %2 = "arith.muli"(%0, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32 loc(#loc1)
    %3 = "tt.make_range"() <{end = 6 : i32, start = 0 : i32}> : () -> tensor<6xi32> loc(#loc1)
    %4 = "tt.splat"(%2) : (i32) -> tensor<6xi32> loc(#loc1)
    %5 = "arith.addi"(%4, %3) <{overflowFlags = #arith.overflow<none>}> : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32> loc(#loc1)
    %6 = "tt.splat"(%n) : (i32) -> tensor<6xi32> loc(#loc1)
    %7 = "arith.cmpi"(%5, %6) <{predicate = 2 : i64}> : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1> loc(#loc1)
    %8 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<6x!tt.ptr<f32>> loc(#loc1)
    %9 = "tt.addptr"(%8, %5) : (tensor<6x!tt.ptr<f32>>, tensor<6xi32>) -> tensor<6x!tt.ptr<f32>> loc(#loc1)
    %10 = "tt.load"(%9, %7) <{boundaryCheck = array<i32>, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<6x!tt.ptr<f32>>, tensor<6xi1>) -> tensor<6xf32> loc(#loc2)
    %11 = "arith.constant"() <{value = dense<1.000000e+00> : tensor<6xf32>}> : () -> tensor<6xf32> loc(#loc1)
    %12 = "arith.addf"(%10, %11) <{fastmath = #arith.fastmath<none>}> : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32> loc(#loc1)
    "tt.store"(%9, %12, %7) <{boundaryCheck = array<i32>}> : (tensor<6x!tt.ptr<f32>>, tensor<6xf32>, tensor<6xi1>) -> () loc(#loc3)
    "tt.return"() : () -> () loc(#loc)
  }) {noinline = false} : () -> () loc(#loc)
}) : () -> () loc(#loc)
#loc = loc("kernels.py":1:0)
#loc1 = loc("kernels.py":2:4)
#loc2 = loc("kernels.py":3:4)
#loc3 = loc("x"(#loc4))
#loc4 = loc("kernels.py":4:4)
"""  # noqa: E501

# Stores the sum of i * i for i from 0 to n - 1, doubled if it is more than 20, by a call, a loop, a branch.
LOOP = """
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32) -> (), sym_name = "loop", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = 0 : i32}> : () -> i32 loc(#loc)
    %1 = "arith.constant"() <{value = 1 : i32}> : () -> i32 loc(#loc)
    %2 = "scf.for"(%0, %n, %1, %0) ({
    ^bb0(%i: i32, %sum: i32):
      %6 = "tt.call"(%i) <{callee = @square}> : (i32) -> i32 loc(#loc)
      %7 = "arith.addi"(%sum, %6) : (i32, i32) -> i32 loc(#loc)
      "scf.yield"(%7) : (i32) -> () loc(#loc)
    }) : (i32, i32, i32, i32) -> i32 loc(#loc)
    %3 = "arith.constant"() <{value = 20 : i32}> : () -> i32 loc(#loc)
    %4 = "arith.cmpi"(%2, %3) <{predicate = 4 : i64}> : (i32, i32) -> i1 loc(#loc)
    %5 = "scf.if"(%4) ({
      %8 = "arith.addi"(%2, %2) : (i32, i32) -> i32 loc(#loc)
      "scf.yield"(%8) : (i32) -> () loc(#loc)
    }, {
      "scf.yield"(%2) : (i32) -> () loc(#loc)
    }) : (i1) -> i32 loc(#loc)
    %9 = "arith.sitofp"(%5) : (i32) -> f32 loc(#loc)
    "tt.store"(%x, %9) <{boundaryCheck = array<i32>}> : (!tt.ptr<f32>, f32) -> () loc(#loc)
    "tt.return"() : () -> () loc(#loc)
  }) : () -> () loc(#loc)
  "tt.func"() <{function_type = (i32) -> i32, sym_name = "square", sym_visibility = "private"}> ({
  ^bb0(%i: i32):
    %0 = "arith.muli"(%i, %i) : (i32, i32) -> i32 loc(#loc)
    "tt.return"(%0) : (i32) -> () loc(#loc)
  }) : () -> () loc(#loc)
}) : () -> () loc(#loc)
#loc = loc("kernels.py":1:0)
"""

# x[0] counts the programs; each stores the number that it finds there.
TAKE = """
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32) -> (), sym_name = "take", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32 loc(#loc)
    %1 = "arith.constant"() <{value = true}> : () -> i1 loc(#loc)
    %2 = "tt.atomic_rmw"(%x, %0, %1) <{atomic_rmw_op = 5 : i32, scope = 1 : i32, sem = 4 : i32}> : (!tt.ptr<f32>, f32, i1) -> f32 loc(#loc)
    %3 = "arith.constant"() <{value = 1 : i32}> : () -> i32 loc(#loc)
    %4 = "tt.addptr"(%x, %3) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32> loc(#loc)
    %5 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32 loc(#loc)
    %6 = "tt.addptr"(%4, %5) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32> loc(#loc)
    "tt.store"(%6, %2) <{boundaryCheck = array<i32>}> : (!tt.ptr<f32>, f32) -> () loc(#loc)
    "tt.return"() : () -> () loc(#loc)
  }) : () -> () loc(#loc)
}) : () -> () loc(#loc)
#loc = loc("kernels.py":1:0)
"""  # noqa: E501

# Each program p changes the integer at x[0] from p to p + 1, and stores what it found.
SWAP = """
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32) -> (), sym_name = "swap", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32):
    %0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32 loc(#loc)
    %1 = "tt.bitcast"(%x) : (!tt.ptr<f32>) -> !tt.ptr<i32> loc(#loc)
    %2 = "arith.constant"() <{value = 1 : i32}> : () -> i32 loc(#loc)
    %3 = "arith.addi"(%0, %2) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32 loc(#loc)
    %4 = "tt.atomic_cas"(%1, %0, %3) <{scope = 1 : i32, sem = 4 : i32}> : (!tt.ptr<i32>, i32, i32) -> i32 loc(#loc)
    %5 = "tt.addptr"(%x, %3) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32> loc(#loc)
    %6 = "arith.sitofp"(%4) : (i32) -> f32 loc(#loc)
    "tt.store"(%5, %6) <{boundaryCheck = array<i32>}> : (!tt.ptr<f32>, f32) -> () loc(#loc)
    "tt.return"() : () -> () loc(#loc)
  }) : () -> () loc(#loc)
}) : () -> () loc(#loc)
#loc = loc("kernels.py":1:0)
"""

PROGRAM = """
import ctypes, json, os, struct, sys
prefix, name, count, n, grid = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), json.loads(sys.argv[5])
sys.path.insert(0, os.path.join(prefix, "python", "site-packages"))
import acl
from aclnn_triton import lowering

library = ctypes.CDLL(os.path.join(prefix, "lib64", "libaclnn_triton.so"))
library.aclHostTritonOperations.restype = ctypes.c_char_p
library.aclHostTritonLoad.restype = ctypes.c_void_p
operations = library.aclHostTritonOperations().decode().split()
try:
    code = json.loads(lowering.lower(sys.stdin.read(), name, operations, "/triton/"))
except lowering.Unsupported as error:
    sys.exit(str(error))
words = (ctypes.c_int64 * len(code["code"]))(*code["code"])
places = (ctypes.c_char_p * len(code["places"]))(*(text.encode() for text in code["places"]))
image = bytes.fromhex(code["image"])
program = library.aclHostTritonLoad(
    name.encode(), words, ctypes.c_size_t(len(words)), places, ctypes.c_size_t(len(places)),
    image, ctypes.c_size_t(len(image)), ctypes.c_size_t(code["bytes"]), ctypes.c_bool(code["is_ordered"]),
    ctypes.c_int64(code["work"]))
acl.init()
acl.rt.set_device(0)
stream, _ = acl.rt.create_stream()
memory, _ = acl.rt.malloc(4 * count, 0)
acl.rt.memset_async(memory, 4 * count, 0, 4 * count, stream)  # starts the stream's own thread
acl.rt.synchronize_stream(stream)
values = (ctypes.c_float * count)(*range(count))
acl.rt.memcpy(memory, 4 * count, ctypes.addressof(values), 4 * count, 1)
arguments = (ctypes.c_int64 * 2)(memory, n)
threads = len(os.listdir("/proc/self/task"))
status = library.aclHostTritonLaunch(
    ctypes.c_void_p(program), (ctypes.c_int64 * 3)(*grid), arguments, ctypes.c_size_t(2), ctypes.c_void_p(stream))
status = status or acl.rt.synchronize_stream(stream)
text = acl.get_recent_err_msg() if status else ""
acl.rt.memcpy(ctypes.addressof(values), 4 * count, memory, 4 * count, 2)
print(json.dumps([status, text, list(values), len(os.listdir("/proc/self/task")) - threads]))
"""


Grid = int | tuple[int, int, int]


def start(name: str, text: str, count: int, n: int, grid: Grid, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a kernel on so many floats, 0, 1, 2 and so on."""
    sizes = json.dumps((grid, 1, 1) if isinstance(grid, int) else grid)
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROGRAM, host.PREFIX, name, str(count), str(n), sizes],
        input=text,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )


def run(name: str, text: str, count: int, n: int, grid: Grid, **variables: str) -> list[Any]:
    """The status, its text and the floats behind the kernel, and the number of threads that it started."""
    result = start(name, text, count, n, grid, **variables)
    assert (result.stderr, result.returncode) == ("", 0)
    return json.loads(result.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("strict", ["0", "1"])
def test_a_kernel_changes_what_its_mask_lets_through(strict: str) -> None:
    expected = [i + 1.0 if i < 16 else i for i in range(20)]
    assert run("add", ADD, 20, 16, 3, ACLNN_TORCH_STRICT=strict) == [0, "", expected, 0]


@pytest.mark.parametrize("n", [0, 4, 5])
def test_a_kernel_with_a_loop_a_branch_and_a_call(n: int) -> None:
    total = sum(i * i for i in range(n))
    status, _, values, _ = run("loop", LOOP, 2, n, 1)
    assert (status, values) == (0, [2 * total if total > 20 else total, 1])


def test_an_access_outside_of_the_memory_names_kernel_line_and_program() -> None:
    """The block has 8 floats and 32 bytes of padding; program 2 begins at the 12th, and its run ends at the 17th."""
    status, text, values, _ = run("add", ADD, 8, 1 << 20, 4)
    assert status == 507015
    begin, end = "add: kernels.py:3, program (2, 0, 0): reads 24 bytes at 0x", ", which is not device memory; "
    assert text.startswith(begin)
    assert text.endswith(f"{end}check the mask and the sizes that the kernel gets")
    assert values == [i + 1.0 for i in range(8)]  # by the programs before


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_programs_on_several_threads(threads: int) -> None:
    """All programs run, the last of which has less to do; of those that fail the first one is named."""
    count, environment = 30000, {"OMP_NUM_THREADS": str(threads)}
    expected = [i + 1.0 if i < count - 4 else i for i in range(count)]
    assert run("add", ADD, count, count - 4, count // 6, **environment) == [0, "", expected, threads - 1]
    # The block has 32 bytes of padding, in which program 5000 ends; 5001 ends 16 bytes behind it.
    status, text, *_ = run("add", ADD, count, 1 << 20, 9000, **environment)
    assert status == 507015
    assert text.startswith("add: kernels.py:3, program (5001, 0, 0): reads 24 bytes at 0x")


def test_little_work_starts_no_threads() -> None:
    assert run("add", ADD, 600, 0, 100, OMP_NUM_THREADS="2")[3] == 0


@pytest.mark.parametrize("name", ["take", "swap"])
def test_programs_with_atomic_operations_run_in_their_order(name: str) -> None:
    """Each finds what the one before it left. So many programs of another kernel start threads."""
    programs = 30000
    status, text, values, threads = run(
        name, {"take": TAKE, "swap": SWAP}[name], programs + 1, 0, programs, OMP_NUM_THREADS="3"
    )
    assert (status, text, threads) == (0, "", 0)
    assert values[1:] == list(range(programs))


@pytest.mark.parametrize("grid", [(0, 1, 1), (3, 0, 7)], ids=str)
def test_an_empty_grid_runs_nothing(grid: tuple[int, int, int]) -> None:
    assert run("add", ADD, 8, 8, grid)[:3] == [0, "", list(range(8))]


@pytest.mark.parametrize("grid", [(-1, -1, 1), (1 << 32, 1 << 32, 1), (1 << 31, 1, 1)], ids=str)
def test_a_grid_that_is_none_is_refused(grid: tuple[int, int, int]) -> None:
    status, text, values, _ = run("add", ADD, 8, 8, grid)
    expected = "expected sizes of 0 or more, and at most 2147483647 programs"
    assert (status, values) == (100000, list(range(8)))
    assert text == f"add: the grid is {grid}, {expected}"


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('"arith.addf"(%10, %11)', '"math.cbrt"(%10)', "the operation math.cbrt"),
        ("dense<1.000000e+00>", "dense<[1.0, 2.0]>", "a constant with different elements"),
        ("!tt.ptr<f32>", "!tt.ptr<f8E5M2>", "elements of the type f8E5M2"),
    ],
)
def test_what_is_not_computed_is_refused_with_kernel_and_line(old: str, new: str, what: str) -> None:
    result = start("add", ADD.replace(old, new), 8, 8, 1)
    assert result.stderr == f"add: kernels.py:2: simulated NPUs do not compute {what}\n"
