"""CANN's Python interface (the module acl) of the installed host CANN."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aclnn_torch import host
from tests import LONGEST, cabi

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("acl", "acl.rt", "acl.util", "acl.prof")

# The kinds of copies and the statuses, of acl_rt.h and acl_base.h.
HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3
INVALID_PARAM, REPEAT_INITIALIZE, REPEAT_FINALIZE = 100000, 100002, 100037
RT_PARAM_INVALID, NO_CONTEXT, NOT_SUPPORTED = 107000, 107002, 207000


@pytest.fixture(scope="module")
def acl() -> Iterator[Any]:
    """The module, as `aclnn-torch run` puts it on the path, before the process begins to use devices.

    Other tests of the process may have begun and not ended; they find it as they left it.
    """
    sys.path.insert(0, str(host.PYACL))
    module = importlib.import_module("acl")
    begun = module.finalize() == 0
    yield module
    if begun:
        assert module.init() == 0
    sys.path.remove(str(host.PYACL))


@pytest.fixture
def device(acl: Any) -> Iterator[int]:
    """Device 0, between the calls with which programs begin and end."""
    assert acl.init() == 0
    assert acl.rt.set_device(0) == 0
    yield 0
    assert acl.rt.reset_device(0) == 0
    assert acl.finalize() == 0


@pytest.fixture
def stream(acl: Any, device: int) -> Iterator[int]:
    stream, ret = acl.rt.create_stream()
    assert ret == 0
    yield stream
    assert acl.rt.destroy_stream(stream) == 0


def prototypes(module: Any) -> dict[str, Any]:
    """The functions that are made of C prototypes."""
    text = " ".join(getattr(module, "_FUNCTIONS", "").split())
    parse = importlib.import_module("acl._prototypes").parse
    return {name: parse(line) for name, line in re.findall(r"(\w+) = (.*?\))(?= \w+ = |$)", text)}


# ---- names, arguments and results, against CANN

# How CANN's module takes arguments and builds results, in the letters of Python's C interface (hicann/runtime at
# 134e2edb, python/pyACL: PyArg_ParseTuple and Py_BuildValue of each function). "-" is nothing.
OF_CANN = """
init |s i, finalize - i, get_version - iiii, get_soc_name - s, get_recent_err_msg - s, get_cann_version I OI,
get_version_str s si, get_cann_attribute i ii, get_cann_attribute_list - Oki, get_device_capability Ii Li,
data_type_size i k, float16_to_float H f, float_to_float16 f H, create_data_buffer kk k, destroy_data_buffer k i,
update_data_buffer kkk i, get_data_buffer_addr k k, get_data_buffer_size k k, get_data_buffer_size_v2 k k,
create_tensor_desc iOi k, destroy_tensor_desc k -, get_tensor_desc_type k i, get_tensor_desc_format k i,
get_tensor_desc_num_dims k k, get_tensor_desc_dim_v2 kk Li, get_tensor_desc_name k s, set_tensor_desc_name ks -,
set_tensor_format ki i, set_tensor_shape kO i, set_tensor_place_ment ki i, set_tensor_const kkk i, app_log is -,

rt.set_device i i, rt.reset_device i i, rt.reset_device_force i i, rt.get_device - ii, rt.get_device_count - Ii,
rt.get_device_info II ii, rt.get_device_utilization_rate i OI, rt.get_run_mode - ii, rt.set_device_sat_mode i i,
rt.get_device_sat_mode - ki, rt.set_device_res_limit iII i, rt.get_device_res_limit iI Ii,
rt.reset_device_res_limit i i, rt.get_res_in_current_thread i Ii, rt.device_can_access_peer ii ii,
rt.device_enable_peer_access iI i, rt.device_disable_peer_access i i, rt.device_peer_access_status ii ii,
rt.device_get_bare_tgid - ii, rt.synchronize_device - i, rt.synchronize_device_with_timeout i i,
rt.set_op_wait_timeout I i, rt.set_op_execute_time_out I i, rt.set_op_execute_timeout_v2 K Ki,
rt.get_last_error i i, rt.peek_at_last_error i i,

rt.create_context i ki, rt.destroy_context k i, rt.set_context k i, rt.get_context - ki,
rt.get_primary_ctx_state i iki, rt.set_sys_param_opt il i, rt.get_sys_param_opt i li,
rt.ctx_set_sys_param_opt il i, rt.ctx_get_sys_param_opt i li,

rt.malloc ki ki, rt.malloc_align32 ki ki, rt.free k i, rt.malloc_host k ki, rt.free_host k i, rt.get_mem_info i kki,
rt.memset kkik i, rt.memset_async kkikk i, rt.memcpy kkkki i, rt.memcpy_async kkkkik i, rt.cmo_async kkik i,
rt.host_register kki ki, rt.host_register_v2 KKI i, rt.host_get_device_pointer KI Ki, rt.host_unregister k i,
rt.reserve_mem_address kkkK ki, rt.release_mem_address k i, rt.malloc_physical kOK ki, rt.free_physical k i,
rt.map_mem kkkkK i, rt.unmap_mem k i, rt.mem_get_allocation_granularity Oi ki,
rt.mem_export_to_shareable_handle kiK Ki, rt.mem_import_from_shareable_handle Ki ki,
rt.mem_set_pid_to_shareable_handle KO i, rt.ipc_mem_get_export_key kkkK si, rt.ipc_mem_set_import_pid sO i,
rt.ipc_mem_import_by_key sK ki, rt.ipc_mem_close s i,

rt.create_stream - ki, rt.create_stream_with_config ii ki, rt.destroy_stream k i, rt.destroy_stream_force k i,
rt.synchronize_stream k i, rt.synchronize_stream_with_timeout ki i, rt.stream_query k Ii, rt.stream_get_id k ii,
rt.stream_wait_event kk i, rt.set_stream_failure_mode kI i, rt.set_stream_overflow_switch kI i,
rt.get_stream_overflow_switch k ki, rt.set_stream_attribute kiO i, rt.get_stream_attribute ki Oi,
rt.set_stream_res_limit kiI i, rt.get_stream_res_limit ki Ii, rt.reset_stream_res_limit k i,
rt.use_stream_res_in_current_thread k i, rt.unuse_stream_res_in_current_thread k i,

rt.create_event - ki, rt.create_event_with_flag I ki, rt.create_event_ex_with_flag I ki, rt.destroy_event k i,
rt.record_event kk i, rt.reset_event kk i, rt.query_event k Ii, rt.query_event_status k Ii,
rt.query_event_wait_status k ki, rt.synchronize_event k i, rt.synchronize_event_with_timeout ki i,
rt.event_elapsed_time kk fi, rt.event_get_timestamp k Ki, rt.subscribe_report Kk i, rt.unsubscribe_report Kk i,
rt.process_report i i, rt.launch_callback OOik i,

util.bytes_to_ptr O k, util.ptr_to_bytes kk O, util.numpy_to_ptr O k, util.numpy_contiguous_to_ptr O kO,
util.ptr_to_numpy kOi O, util.start_thread OO Ki, util.stop_thread K i,

prof.init s i, prof.finalize - i, prof.create_config OikK k, prof.destroy_config k i, prof.set_config is i,
prof.start k i, prof.stop k i, prof.create_stamp - k, prof.destroy_stamp k -, prof.set_stamp_trace_message ksI i,
prof.mark k i, prof.mark_ex sk i, prof.push k i, prof.pop - i, prof.range_start k Ii, prof.range_stop I i,
prof.create_step_info - k, prof.destroy_step_info k -, prof.get_step_timestamp kik i
"""
FORMATS = {f"acl.{name}": formats for name, *formats in (each.split() for each in OF_CANN.split(",") if each.strip())}
# One letter for what is alike in Python: integers that must be ints (u), those with an index (i), results (n).
TAKEN = str.maketrans({"k": "u", "K": "u", "I": "u", "H": "u", "l": "i", "L": "i", "|": None, "-": None})
GIVEN = str.maketrans({**dict.fromkeys("kKIHlLi", "n"), "-": None})


def taken(parameter: Any) -> str:
    """The letter of a parameter that Python passes."""
    if parameter.type.endswith("[]") or parameter.type.startswith("aclrt"):
        return "O"
    return {"char*": "s", "float": "f", "int32_t": "i", "int64_t": "i"}.get(parameter.type, "u")


def given(type_: str) -> str:
    """The letter of a result."""
    if type_.startswith("acl"):
        return "O"
    return "s" if type_.startswith("char") else {"float": "f", "void": ""}.get(type_, "n")


@pytest.mark.parametrize("name", MODULES)
def test_every_function_has_the_arguments_and_results_of_cann(acl: Any, name: str) -> None:
    module = importlib.import_module(name)
    for function, prototype in prototypes(module).items():
        results = [prototype.result] if prototype.result else [p.type for p in prototype.parameters if p.kind == "out"]
        letters = "".join(map(given, results)) + ("" if prototype.result else "n")
        arguments = "".join(map(taken, prototype.inputs))
        expected = FORMATS[f"{name}.{function}"]
        assert [arguments, letters] == [expected[0].translate(TAKEN), expected[1].translate(GIVEN)], function
    for function in set(module.__all__) - {"blas", "fv", "himpi", "mdl", "media", "op", "prof", "rt", "util"}:
        call = getattr(module, function)
        results, arguments = re.match(rf"``(?:(.*) = )?{name}\.{function}\((.*)\)``", call.__doc__).groups()
        most = len(FORMATS[f"{name}.{function}"][0].strip("|-"))
        assert len(arguments.split(", ") if arguments else []) == most, function
        expected = FORMATS[f"{name}.{function}"][1].strip("-")
        assert len(results.split(", ") if results not in (None, "None") else []) == len(expected), function
        assert (call.__module__, call.__name__) == (name, function)
        pattern = rf"^{re.escape(name)}\.{function}\({re.escape(arguments)}\) takes {most} arguments, got {most + 1}$"
        with pytest.raises(TypeError, match=pattern):
            call(*[None] * (most + 1))


def test_every_function_of_cann_that_is_served_is_in_the_table(acl: Any) -> None:
    served = {f"{name}.{function}" for name in MODULES for function in importlib.import_module(name).__all__}
    assert served - {f"acl.{name}" for name in dir(acl) if isinstance(getattr(acl, name), types.ModuleType)} == set(
        FORMATS
    )


def size_and_kind(type_: str) -> tuple[int, str]:
    """The size of a C type, and if it is a pointer, a fraction or an integer."""
    if type_.endswith(("*", "[]")):
        return 8, "pointer"
    return {"float": (4, "float"), "size_t": (8, "integer")}.get(type_) or (int(type_.strip("uint_")) // 8, "integer")


def size_and_kind_in_c(type_: Any) -> tuple[int, str]:
    if type_ in (ctypes.c_void_p, ctypes.c_char_p):
        return 8, "pointer"
    return ctypes.sizeof(type_), "float" if type_ is ctypes.c_float else "integer"


def type_behind(declaration: str) -> str:
    """The type of what a pointer parameter of a header leads to, as the tables write it."""
    words = declaration.replace("const", "").replace("*", " * ").split()
    base, stars = words[0], words.count("*") - 1
    text = cabi.header_text()
    if stars or re.search(rf"typedef void\* {base};", text):
        return "void*"
    return "int32_t" if re.search(rf"typedef enum [^;]*}} {base};", text) else base


@pytest.mark.parametrize("name", MODULES)
def test_outputs_have_the_types_of_the_headers(acl: Any, name: str) -> None:
    for prototype in prototypes(importlib.import_module(name)).values():
        listed = re.search(rf"\b{prototype.name}\s*\(([^;]*?)\)\s*;", cabi.header_text())[1].split(",")
        for parameter, declaration in zip(prototype.parameters, listed, strict=False):
            if parameter.kind == "out" and not parameter.type.startswith("char["):
                assert type_behind(declaration) == parameter.type, (prototype.name, parameter.name)


@pytest.mark.parametrize("name", MODULES)
def test_prototypes_are_those_of_the_headers(acl: Any, name: str) -> None:
    declared = cabi.prototypes()
    for prototype in prototypes(importlib.import_module(name)).values():
        result, parameters = declared[prototype.name]
        mine = [(8, "pointer") if p.kind == "out" else size_and_kind(p.type) for p in prototype.parameters]
        assert mine == [size_and_kind_in_c(parameter) for parameter in parameters], prototype.name
        if prototype.result == "void":
            assert result is None
        else:
            assert size_and_kind(prototype.result or "int32_t") == size_and_kind_in_c(result), prototype.name


def test_what_public_programs_use_is_served_or_refused_by_name(acl: Any) -> None:
    """pyacl_usage.tsv: functions of acl, acl.rt, acl.util and acl.prof, and the number of programs that use each."""
    missing = []
    rows = [line.split("\t") for line in (ROOT / "tests" / "pyacl_usage.tsv").read_text().splitlines()]
    for name, _ in rows:
        module, _, function = f"acl.{name}".rpartition(".")
        try:
            assert callable(getattr(importlib.import_module(module), function))
        except AttributeError as error:
            assert str(error).startswith(f"{module}.{function} is not in the host CANN: ")
            missing.append(name)
    assert missing == ["get_tensor_desc_size"]  # all four programs call it for offline models
    assert len(rows) == 55


def test_the_page_has_the_numbers(acl: Any) -> None:
    page = (ROOT / "docs" / "emulation" / "python.md").read_text()
    used = dict(line.split("\t") for line in (ROOT / "tests" / "pyacl_usage.tsv").read_text().splitlines())
    of_page = {name: number for name, number in re.findall(r"\| `acl\.([\w.]+)` \| (\d+) (?=\|)", page) if name in used}
    assert len(of_page) == 18
    assert of_page == {name: used[name] for name in of_page}
    assert min(map(int, of_page.values())) >= max(int(number) for name, number in used.items() if name not in of_page)
    served = {name: sum(function.rpartition(".")[0] == name for function in FORMATS) for name in MODULES}
    for name, number in served.items():
        assert f"\n| `{name}` | {number} | " in page
    assert f"[{sum(served.values())} functions](emulation/python.md)" in (ROOT / "docs" / "npu.md").read_text()


# ---- refusals

MODELS = "offline models (OM files) are compiled for a device; run the model itself, in PyTorch on torch_npu"
INSTEAD = "compiled into offline models (OM files) need a device; call those of torch_npu, or aclnn functions"
DVPP = "it simulates no unit for images and videos (DVPP)"
NOT_HERE = {
    "acl.mdl.load_from_file": MODELS,
    "acl.media.dvpp_malloc": DVPP,
    "acl.himpi.sys_init": DVPP,
    "acl.op.execute_v2": f"operators {INSTEAD}",
    "acl.blas.hgemm": f"products {INSTEAD}",
    "acl.fv.init": "it simulates no unit for the retrieval of features",
    "acl.rt.launch_kernel": "kernels are compiled for a device, and it runs no device code",
    "acl.rt.memcpy2d": "it does not implement this function of the runtime",
    "acl.finalize_reference": "it does not implement this function of the runtime",
    "acl.get_tensor_desc_size": "its descriptions of tensors are for offline models (OM files), which it does not run",
    "acl.prof.model_subscribe": "subscriptions are for offline models (OM files), which it does not run",
}


@pytest.mark.parametrize("name", NOT_HERE)
def test_a_function_that_is_not_here_says_why(acl: Any, name: str) -> None:
    module, _, function = name.rpartition(".")
    with pytest.raises(AttributeError) as refusal:
        getattr(importlib.import_module(module), function)
    assert str(refusal.value) == f"{name} is not in the host CANN: {NOT_HERE[name]}"


def test_unknown_names_are_no_functions_of_cann(acl: Any) -> None:
    for name in ("acl", *(f"acl.{each}" for each in ("rt", "util", "prof"))):
        with pytest.raises(AttributeError, match=f"^module '{name}' has no attribute 'no_such'$"):
            _ = importlib.import_module(name).no_such
    with pytest.raises(AttributeError, match="has no attribute '__no_such__'"):
        _ = acl.mdl.__no_such__
    for constant in ("acl.ACL_MEMCPY_HOST_TO_DEVICE", "acl.rt.ACL_MEM_MALLOC_HUGE_FIRST"):
        module, _, name = constant.rpartition(".")
        with pytest.raises(AttributeError) as refusal:
            getattr(importlib.import_module(module), name)
        assert str(refusal.value) == f"{constant}: CANN's Python module has no constants; write the number"


WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "bytes for an address": (
        lambda acl: acl.rt.memcpy(b"", 1, 0, 1, 1),
        "acl.rt.memcpy: dst is bytes, expected int, the number that is an address",
    ),
    "a fraction": (lambda acl: acl.rt.malloc(1.0, 0), "acl.rt.malloc: size is float, expected int"),
    "NumPy's integer, as in CANN": (
        lambda acl: acl.rt.malloc(np.int64(8), 0),
        "acl.rt.malloc: size is numpy.int64, expected int",
    ),
    "a text for a number": (lambda acl: acl.rt.set_device("0"), "acl.rt.set_device: device_id is str, expected int"),
    "more than 32 bits": (
        lambda acl: acl.rt.set_device(1 << 31),
        "acl.rt.set_device: device_id is 2147483648, expected a number from -2147483648 to 2147483647",
    ),
    "more than 64 bits": (
        lambda acl: acl.rt.free(1 << 64),
        "acl.rt.free: dev_ptr is 18446744073709551616, expected a number from "
        "-9223372036854775808 to 18446744073709551615",
    ),
    "a number for a text": (lambda acl: acl.prof.init(1), "acl.prof.init: profiler_result_path is int, expected str"),
    "a null character": (lambda acl: acl.init("a\0b"), "acl.init: config_path has a null character"),
    "a tuple for a list": (
        lambda acl: acl.create_tensor_desc(0, (2, 3), 2),
        "acl.create_tensor_desc: dims is tuple, expected list",
    ),
    "a text in a list": (
        lambda acl: acl.create_tensor_desc(0, [2, "3"], 2),
        "acl.create_tensor_desc: dims[1] is str, expected int",
    ),
    "a text for a fraction": (
        lambda acl: acl.float_to_float16("1"),
        "acl.float_to_float16: value is str, expected float",
    ),
    "a list for a dict": (
        lambda acl: acl.rt.malloc_physical(1, [], 0),
        "acl.rt.malloc_physical: prop is list, expected dict",
    ),
    "a text in a dict": (
        lambda acl: acl.rt.malloc_physical(1, {"location": {"id": "0"}}, 0),
        "acl.rt.malloc_physical: prop['location']['id'] is str, expected int",
    ),
    "too few arguments": (lambda acl: acl.rt.malloc(8), "acl.rt.malloc(size, policy) takes 2 arguments, got 1"),
    "no function": (
        lambda acl: acl.rt.launch_callback(1, [], 1, 0),
        "acl.rt.launch_callback: fn is int, expected a function",
    ),
    "no thread's function": (
        lambda acl: acl.util.start_thread(None, []),
        "acl.util.start_thread: fn is NoneType, expected a function",
    ),
    "a value that is no dict": (
        lambda acl: acl.rt.set_stream_attribute(0, 1, 1),
        "acl.rt.set_stream_attribute: value is int, expected dict",
    ),
    "an array for bytes": (
        lambda acl: acl.util.bytes_to_ptr(np.zeros(1)),
        "acl.util.bytes_to_ptr: data is ndarray, expected bytes",
    ),
    "bytes for an array": (
        lambda acl: acl.util.numpy_to_ptr(b""),
        "acl.util.numpy_to_ptr: array is bytes, expected numpy.ndarray",
    ),
    "a list for a shape": (
        lambda acl: acl.util.ptr_to_numpy(1, [2], 11),
        "acl.util.ptr_to_numpy: shape is [2], expected a tuple of ints",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_argument_of_the_wrong_type_is_named(acl: Any, case: str) -> None:
    call, text = WRONG[case]
    with pytest.raises(TypeError) as refusal:
        call(acl)
    assert str(refusal.value) == text


def test_addresses_that_no_memory_has(acl: Any) -> None:
    text = "ptr is 0, expected the address of memory of the host"
    with pytest.raises(ValueError, match=rf"^acl\.util\.ptr_to_bytes: {text}$"):
        acl.util.ptr_to_bytes(0, 1)
    assert acl.util.ptr_to_bytes(0, 0) == b""
    with pytest.raises(
        ValueError, match=r"^acl\.util\.ptr_to_numpy: type is 17, expected the number of a numeric type"
    ):
        acl.util.ptr_to_numpy(1, (1,), np.dtype(object).num)
    with pytest.raises(ValueError, match=r"^acl\.util\.ptr_to_numpy: shape is \(-1,\), expected sizes of 0 or more$"):
        acl.util.ptr_to_numpy(1, (-1,), 11)
    with pytest.raises(ValueError, match=r"^acl\.rt\.ipc_mem_get_export_key: len is 1024, expected at most 1023$"):
        acl.rt.ipc_mem_get_export_key(1, 1, 1024, 0)


# ---- behaviour, which is that of the C functions


def test_the_process_begins_and_ends_once(acl: Any, device: int) -> None:
    assert acl.init() == REPEAT_INITIALIZE
    assert acl.rt.get_device() == (0, 0)
    assert acl.rt.get_device_count() == (1, 0)
    assert acl.rt.get_run_mode() == (1, 0)  # ACL_HOST
    assert acl.get_version() == (1, 17, 0, 0)  # of acl_rt.h
    assert acl.rt.get_primary_ctx_state(0) == (1, 0, 0)


def test_an_end_without_a_beginning_is_an_error_with_a_text(acl: Any) -> None:
    acl.get_recent_err_msg()
    assert acl.finalize() == REPEAT_FINALIZE
    assert "aclFinalize" in acl.get_recent_err_msg()
    assert acl.get_recent_err_msg() is None


def test_a_configuration_is_read(acl: Any, tmp_path: Path) -> None:
    assert acl.init(str(tmp_path / "no such.json")) == 100003  # ACL_ERROR_INVALID_FILE


def test_the_product(acl: Any, device: int) -> None:
    assert acl.get_soc_name() == "Ascend910B2"
    cores, ret = acl.rt.get_device_info(0, 101)  # ACL_DEV_ATTR_AICORE_CORE_NUM
    assert ret == 0
    assert acl.get_device_capability(0, 0) == (cores, 0)
    assert acl.rt.get_device_res_limit(0, 0) == (cores, 0)
    assert acl.rt.set_device_res_limit(0, 0, cores + 1) == RT_PARAM_INVALID
    attributes, number, ret = acl.get_cann_attribute_list()
    assert (len(attributes), ret) == (number, 0)
    assert acl.get_cann_attribute(1) == (1, 0)  # ACL_CANN_ATTR_BF16, which Ascend910B has
    assert 1 in attributes
    version, ret = acl.get_cann_version(0)
    assert ret == 0
    assert set(version) == {
        *("version", "major_version", "minor_version", "release_version", "patch_version", "reserved")
    }
    assert version["version"].startswith(version["major_version"])
    assert acl.get_version_str("runtime") == (version["version"], 0)
    utilization, ret = acl.rt.get_device_utilization_rate(0)
    assert ret == 0
    assert (utilization["cube_utilization"], utilization["utilization_extend"]) == (-1, 0)


def test_numbers_of_half_precision(acl: Any) -> None:
    """IEEE binary16: 1.5 is 1.1 in binary, exponent 0, so 0 01111 1000000000."""
    assert acl.float_to_float16(1.5) == 0b0_01111_1000000000
    assert acl.float16_to_float(0b0_01111_1000000000) == 1.5
    assert acl.float_to_float16(-2) == 0b1_10000_0000000000
    assert [acl.data_type_size(dtype) for dtype in (0, 1, 9, 27)] == [4, 2, 8, 2]  # FLOAT, FLOAT16, INT64, BF16


def test_bytes_go_to_a_device_and_back(acl: Any, device: int) -> None:
    """The copies of CANN's development guide: host to device, device to device, device to host."""
    data = bytes(range(256)) * 5
    first, ret = acl.rt.malloc(len(data), 0)
    assert ret == 0
    second, ret = acl.rt.malloc_align32(len(data), 2)
    assert ret == 0
    back, ret = acl.rt.malloc_host(len(data))
    assert ret == 0
    assert acl.rt.memcpy(first, len(data), acl.util.bytes_to_ptr(data), len(data), HOST_TO_DEVICE) == 0
    assert acl.rt.memcpy(second, len(data), first, len(data), DEVICE_TO_DEVICE) == 0
    assert acl.rt.memset(first, len(data), 0x5A, 3) == 0
    assert acl.rt.memcpy(back, len(data), second, len(data), DEVICE_TO_HOST) == 0
    assert acl.util.ptr_to_bytes(back, len(data)) == data
    assert acl.rt.memcpy(back, len(data), first, 4, DEVICE_TO_HOST) == 0
    assert acl.util.ptr_to_bytes(back, 5) == b"\x5a\x5a\x5a\x03\x04"
    acl.get_recent_err_msg()
    assert acl.rt.memcpy(first, 3, second, 4, DEVICE_TO_DEVICE) == RT_PARAM_INVALID
    assert "aclrtMemcpy: " in acl.get_recent_err_msg()
    assert acl.rt.get_last_error(0) == RT_PARAM_INVALID
    assert [acl.rt.free(first), acl.rt.free(second), acl.rt.free_host(back)] == [0, 0, 0]
    assert acl.rt.malloc(0, 0) == (0, INVALID_PARAM)


def test_memory_of_a_device_is_counted(acl: Any, device: int) -> None:
    before, total, ret = acl.rt.get_mem_info(1)
    assert ret == 0
    block, _ = acl.rt.malloc(1 << 20, 0)
    after, _, _ = acl.rt.get_mem_info(1)
    assert 1 << 20 <= before - after <= (1 << 20) + (1 << 10)
    assert before <= total
    assert acl.rt.free(block) == 0


def test_buffers_and_descriptions(acl: Any) -> None:
    buffer = acl.create_data_buffer(4096, 12)
    assert (acl.get_data_buffer_addr(buffer), acl.get_data_buffer_size_v2(buffer)) == (4096, 12)
    assert acl.update_data_buffer(buffer, 8192, 16) == 0
    assert (acl.get_data_buffer_addr(buffer), acl.get_data_buffer_size(buffer)) == (8192, 16)
    assert acl.destroy_data_buffer(buffer) == 0
    desc = acl.create_tensor_desc(1, [2, 3], 2)
    assert acl.set_tensor_desc_name(desc, "x") is None
    assert acl.get_tensor_desc_name(desc) == "x"
    assert (acl.get_tensor_desc_type(desc), acl.get_tensor_desc_format(desc)) == (1, 2)
    assert acl.get_tensor_desc_num_dims(desc) == 2
    assert acl.get_tensor_desc_dim_v2(desc, 1) == (3, 0)
    assert acl.get_tensor_desc_dim_v2(desc, 2)[1] == INVALID_PARAM
    assert acl.destroy_tensor_desc(desc) is None
    assert acl.app_log(1, "nobody reads it") is None


def test_streams_and_events(acl: Any, stream: int) -> None:
    size = 1 << 20
    block, _ = acl.rt.malloc(size, 0)
    page, _ = acl.rt.malloc_host(size)
    start, ret = acl.rt.create_event_with_flag(8)  # ACL_EVENT_TIME_LINE
    assert ret == 0
    end, _ = acl.rt.create_event_with_flag(8)
    assert acl.rt.record_event(start, stream) == 0
    assert acl.rt.memset_async(block, size, 7, size, stream) == 0
    assert acl.rt.memcpy_async(page, size, block, size, DEVICE_TO_HOST, stream) == 0
    assert acl.rt.record_event(end, stream) == 0
    assert acl.rt.synchronize_event(end) == 0
    assert acl.util.ptr_to_bytes(page, size) == b"\x07" * size
    assert acl.rt.query_event_status(end) == (1, 0)  # ACL_EVENT_RECORDED_STATUS_COMPLETE
    milliseconds, ret = acl.rt.event_elapsed_time(start, end)
    assert ret == 0
    first, second = acl.rt.event_get_timestamp(start), acl.rt.event_get_timestamp(end)
    assert first[1] == second[1] == 0
    assert abs(milliseconds - (second[0] - first[0]) / 1000) <= 0.002
    assert acl.rt.synchronize_stream(stream) == 0
    assert acl.rt.stream_query(stream) == (0, 0)
    other, ret = acl.rt.create_stream_with_config(0, 1)
    assert ret == 0
    assert acl.rt.stream_get_id(stream)[0] != acl.rt.stream_get_id(other)[0]
    assert acl.rt.stream_wait_event(other, end) == 0
    assert acl.rt.synchronize_stream_with_timeout(other, 10_000) == 0
    assert acl.rt.synchronize_device() == 0
    for event in (start, end):
        assert acl.rt.destroy_event(event) == 0
    assert acl.rt.destroy_stream(other) == 0
    assert [acl.rt.free(block), acl.rt.free_host(page)] == [0, 0]


def test_attributes_of_a_stream_are_members_of_a_dict(acl: Any, stream: int) -> None:
    assert acl.rt.set_stream_attribute(stream, 1, {"failureMode": 1}) == 0
    assert acl.rt.get_stream_attribute(stream, 1) == ({"failureMode": 1}, 0)
    assert acl.rt.set_stream_attribute(stream, 3, {"userCustomTag": 77}) == 0
    assert acl.rt.get_stream_attribute(stream, 3) == ({"userCustomTag": 77}, 0)
    assert acl.rt.set_stream_attribute(stream, 5, {"reserved": [3]}) == 0
    value, ret = acl.rt.get_stream_attribute(stream, 5)
    assert (value["reserved"][0], ret) == (3, 0)
    assert acl.rt.set_stream_overflow_switch(stream, 1) == 0
    assert acl.rt.get_stream_overflow_switch(stream) == (1, 0)
    assert acl.rt.get_stream_attribute(stream, 2) == ({"overflowSwitch": 1}, 0)
    with pytest.raises(TypeError, match=r"value\['reserved'\] has 5 numbers, expected at most 4$"):
        acl.rt.set_stream_attribute(stream, 5, {"reserved": [0] * 5})


def test_virtual_memory(acl: Any, device: int) -> None:
    prop = {"handleType": 0, "allocationType": 0, "memAttr": 4, "location": {"id": 0, "type": 1}, "reserve": 0}
    size, ret = acl.rt.mem_get_allocation_granularity(prop, 0)
    assert (size, ret) == (2 << 20, 0)
    address, ret = acl.rt.reserve_mem_address(size, 0, 0, 1)
    assert ret == 0
    handle, ret = acl.rt.malloc_physical(size, prop, 0)
    assert ret == 0
    assert acl.rt.map_mem(address, size, 0, handle, 0) == 0
    assert acl.rt.memset(address, size, 9, size) == 0
    assert [acl.rt.unmap_mem(address), acl.rt.free_physical(handle), acl.rt.release_mem_address(address)] == [0, 0, 0]
    host_side = prop | {"location": {"id": 0, "type": 0}}
    assert acl.rt.malloc_physical(size, host_side, 0) == (0, NOT_SUPPORTED)


def test_memory_is_not_shared_between_processes(acl: Any, device: int) -> None:
    block, _ = acl.rt.malloc(64, 0)
    assert acl.rt.ipc_mem_get_export_key(block, 64, 65, 0) == ("", NOT_SUPPORTED)
    assert acl.rt.ipc_mem_set_import_pid("key", [1]) == NOT_SUPPORTED
    assert acl.rt.mem_set_pid_to_shareable_handle(1, [1, 2]) == NOT_SUPPORTED
    assert acl.rt.free(block) == 0


def test_contexts_belong_to_threads(acl: Any, device: int) -> None:
    context, ret = acl.rt.get_context()
    assert ret == 0
    seen: list[Any] = []

    def run(given: list[int]) -> None:
        seen.append(acl.rt.get_context())
        seen.append(acl.rt.set_context(given[0]))
        seen.append(acl.rt.get_context())
        seen.append(threading.get_ident())

    thread, ret = acl.util.start_thread(run, [context])
    assert ret == 0
    assert acl.util.stop_thread(thread) == 0
    assert seen == [(0, NO_CONTEXT), 0, (context, 0), thread]
    other, ret = acl.rt.create_context(0)
    assert ret == 0
    assert acl.rt.get_context() == (other, 0)
    assert acl.rt.destroy_context(other) == 0
    assert acl.rt.set_context(context) == 0


def test_callbacks_come_in_order_to_the_thread_that_serves_the_stream(acl: Any, stream: int) -> None:
    """The example of CANN's guide: a thread processes reports while another one waits for the stream."""
    called: list[Any] = []
    served = threading.Event()
    context, _ = acl.rt.get_context()

    def serve(arguments: list[int]) -> None:
        acl.rt.set_context(arguments[0])
        while not served.is_set():
            acl.rt.process_report(50)

    def note(arguments: list[Any]) -> None:
        called.append((arguments, threading.get_ident()))

    thread, _ = acl.util.start_thread(serve, [context])
    assert acl.rt.subscribe_report(thread, stream) == 0
    block, _ = acl.rt.malloc(4, 0)
    for i in range(3):
        assert acl.rt.memset_async(block, 4, i, 4, stream) == 0
        assert acl.rt.launch_callback(note, [i, "text"], 1, stream) == 0
    assert acl.rt.synchronize_stream_with_timeout(stream, 60_000) == 0  # without Python's lock, or nobody would serve
    assert acl.rt.unsubscribe_report(thread, stream) == 0
    served.set()
    assert acl.util.stop_thread(thread) == 0
    assert called == [([i, "text"], thread) for i in range(3)]
    assert acl.rt.free(block) == 0
    assert importlib.import_module("acl.rt")._waiting == {}


def test_a_callback_that_cannot_be_launched_is_forgotten(acl: Any, stream: int) -> None:
    assert acl.rt.launch_callback(print, [], 1, stream) == 107015  # ACL_ERROR_RT_STREAM_NO_CB_REG: nobody serves it
    assert importlib.import_module("acl.rt")._waiting == {}
    assert acl.rt.process_report(0) != 0


def test_an_exception_of_a_callback_does_not_reach_the_library(
    acl: Any, device: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the null stream the thread that launches a callback calls it."""
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    called: list[Any] = []
    assert acl.rt.subscribe_report(threading.get_ident(), 0) == 0
    assert acl.rt.launch_callback(called.append, "first", 1, 0) == 0
    assert acl.rt.launch_callback(lambda _: 1 // 0, None, 1, 0) == 0
    assert acl.rt.launch_callback(called.append, "last", 1, 0) == 0
    assert acl.rt.unsubscribe_report(threading.get_ident(), 0) == 0
    assert called == ["first", "last"]
    assert [each.exc_type for each in told] == [ZeroDivisionError]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_exception_of_a_thread_is_told_where_it_is_stopped(acl: Any) -> None:
    def fail(arguments: list[Any]) -> None:
        raise KeyError("no such key")

    thread, ret = acl.util.start_thread(fail, [])
    assert ret == 0
    with pytest.raises(RuntimeError, match=r"^acl\.util\.stop_thread: KeyError: 'no such key'$"):
        acl.util.stop_thread(thread)
    assert acl.util.stop_thread(thread) == 3  # ESRCH, as pthread_join has it
    called: list[int] = []
    thread, _ = acl.util.start_thread(lambda: called.append(1), None)
    assert (acl.util.stop_thread(thread), called) == (0, [1])


@pytest.mark.filterwarnings("ignore:acl.util:Warning")
def test_arrays_and_addresses(acl: Any) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    pointer = acl.util.numpy_to_ptr(array)
    assert pointer == array.ctypes.data
    back = acl.util.ptr_to_numpy(pointer, (3, 2), np.dtype(np.float32).num)
    assert (back.dtype, back.shape) == (np.float32, (3, 2))
    back[0, 1] = 7
    assert array[0, 1] == 7  # the same memory
    address, contiguous = acl.util.numpy_contiguous_to_ptr(array.T)
    assert acl.util.ptr_to_bytes(address, 24) == array.T.tobytes()
    assert contiguous.flags.c_contiguous
    address, same = acl.util.numpy_contiguous_to_ptr(array)
    assert (address, same is array) == (pointer, True)
    scalar = np.array(2.0)
    assert acl.util.numpy_contiguous_to_ptr(scalar)[1].shape == ()
    assert acl.util.ptr_to_numpy(0, (0, 2), 11).shape == (0, 2)
    data = b"with\0zero"
    assert acl.util.ptr_to_bytes(acl.util.bytes_to_ptr(data), len(data)) == data


def test_what_cann_deprecates_warns(acl: Any) -> None:
    array = np.zeros((2, 3))
    for name, call in {
        "numpy_to_ptr": lambda: acl.util.numpy_to_ptr(array),
        "numpy_contiguous_to_ptr": lambda: acl.util.numpy_contiguous_to_ptr(array),
        "ptr_to_numpy": lambda: acl.util.ptr_to_numpy(array.ctypes.data, (2, 3), 12),
    }.items():
        with pytest.warns(Warning, match=rf"^acl\.util\.{name} is deprecated in CANN; acl\.util\.") as told:
            call()
        assert told[0].filename == __file__
    with pytest.warns(Warning) as told:
        acl.util.numpy_to_ptr(array.T)
    assert (
        str(told[1].message) == "acl.util.numpy_to_ptr: the array is not contiguous, and its elements are not in order"
    )


def test_the_profiler(acl: Any, stream: int, tmp_path: Path) -> None:
    assert acl.prof.init(str(tmp_path)) == 0
    config = acl.prof.create_config([0], 0xFF, 0, 0x0001 | 0x0002 | 0x0080)  # ACL_API, TASK_TIME, MSPROFTX
    assert config != 0
    assert acl.prof.start(config) == 0
    stamp = acl.prof.create_stamp()
    assert acl.prof.set_stamp_trace_message(stamp, "a mark", 6) == 0
    assert acl.prof.mark(stamp) == 0
    number, ret = acl.prof.range_start(stamp)
    assert ret == 0
    assert acl.prof.range_stop(number) == 0
    assert acl.prof.mark_ex("on a stream", stream) == 0
    assert acl.prof.destroy_stamp(stamp) is None
    assert acl.rt.synchronize_stream(stream) == 0
    assert [acl.prof.stop(config), acl.prof.destroy_config(config), acl.prof.finalize()] == [0, 0, 0]
    (records,) = tmp_path.glob("PROF_*/host/data/profile.jsonl")
    found = [json.loads(line) for line in records.read_text().splitlines()]
    marks = [(record["message"], record["type"], "stream" in record) for record in found if record["kind"] == "mark"]
    of_the_host = [("a mark", "mark", False), ("a mark", "start/end", False), ("on a stream", "mark", False)]
    assert marks == [*of_the_host, ("on a stream", "mark", True)]


# ---- where Python finds it


def run(command: list[Any], **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ASCEND", "PYTHONPATH"))}
    variables = clean | environment
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True, timeout=LONGEST).stdout


CODE = "import acl; from acl.rt import memcpy; import acl.util; print(acl.__file__, acl.init(), memcpy.__name__)"
EXPECTED = f"{host.PYACL / 'acl' / '__init__.py'} 0 memcpy\n"


def test_set_env_puts_it_on_the_path() -> None:
    script = '. "$1/set_env.sh"; . "$1/set_env.sh"; "$2" -c "$3"; echo "$PYTHONPATH"'
    command = ["bash", "-c", script, "bash", host.PREFIX, sys.executable, CODE]
    assert run(command) == f"{EXPECTED}{host.PYACL}\n"
    assert run(command, PYTHONPATH="/somewhere") == f"{EXPECTED}{host.PYACL}:/somewhere\n"


def test_the_environment_of_run_puts_it_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    assert host.environment()["PYTHONPATH"] == f"{host.PYACL}:/somewhere"
    assert run([sys.executable, "-c", CODE], PYTHONPATH=host.environment()["PYTHONPATH"]) == EXPECTED


def test_a_thread_that_nobody_stops_ends_with_the_process() -> None:
    code = "import acl, threading; print(acl.util.start_thread(lambda: threading.Event().wait(), None)[1])"
    assert run([sys.executable, "-c", code], PYTHONPATH=str(host.PYACL)) == "0\n"


def test_memory_of_a_device_is_closed_to_the_host_in_strict_mode() -> None:
    """Copies open it. Without strict mode both give the same bytes."""
    code = """
import acl
acl.rt.set_device(0)
block, _ = acl.rt.malloc(2, 0)
acl.rt.memset(block, 2, 65, 2)
page, _ = acl.rt.malloc_host(2)
acl.rt.memcpy(page, 2, block, 2, 2)
print(acl.util.ptr_to_bytes(page, 2), flush=True)
print(acl.util.ptr_to_bytes(block, 2))
"""
    assert run([sys.executable, "-c", code], PYTHONPATH=str(host.PYACL)) == "b'AA'\nb'AA'\n"
    with pytest.raises(subprocess.CalledProcessError) as ended:
        run([sys.executable, "-c", code], PYTHONPATH=str(host.PYACL), ACLNN_TORCH_STRICT="1")
    assert (ended.value.returncode, ended.value.output) == (-signal.SIGSEGV, "b'AA'\n")


def test_the_module_loads_neither_torch_nor_numpy() -> None:
    code = "import acl, sys; acl.rt.malloc; acl.util.bytes_to_ptr; print({'torch', 'numpy'} & set(sys.modules))"
    assert run([sys.executable, "-c", code], PYTHONPATH=str(host.PYACL)) == "set()\n"
