"""Launches kernels on simulated NPUs; Triton's driver."""

from __future__ import annotations

import array
import ctypes
import functools
import json
import os
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

PREFIX = Path(__file__).resolve().parents[3]
FORMATS = {"fp32": "<f", "f32": "<f", "fp64": "<d", "fp16": "<e"}
CUBE_CORES, VECTOR_CORES = 102, 201  # attributes of aclrtGetDeviceInfo


@functools.lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The library that runs kernels."""
    loaded = ctypes.CDLL(str(PREFIX / "lib64" / "libaclnn_triton.so"))
    loaded.aclHostTritonOperations.restype = ctypes.c_char_p
    loaded.aclHostTritonLoad.restype = ctypes.c_void_p
    loaded.aclHostTritonLoad.argtypes = [
        *(ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t),
        *(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_bool, ctypes.c_int64),
    ]
    loaded.aclHostTritonLaunch.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t, ctypes.c_void_p]
    return loaded


@functools.lru_cache(maxsize=1)
def runtime() -> ctypes.CDLL:
    """The host CANN's runtime."""
    loaded = ctypes.CDLL(str(PREFIX / "lib64" / "libascendcl.so"))
    loaded.aclGetRecentErrMsg.restype = ctypes.c_char_p
    loaded.aclrtGetSocName.restype = ctypes.c_char_p
    loaded.aclrtGetDeviceInfo.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p]
    return loaded


def check(status: int, what: str) -> None:
    """Raises an error of the host CANN."""
    if status != 0:
        text = runtime().aclGetRecentErrMsg()
        raise RuntimeError(f"{what}: status {status}: {text.decode() if text else 'no message'}")


def load(name: str, code: bytes) -> int:
    """Loads a kernel; returns its address in the library."""
    program = json.loads(code)
    words = array.array("q", program["code"])
    places = [text.encode() for text in program["places"]]
    image = bytes.fromhex(program["image"])
    address = library().aclHostTritonLoad(
        *(name.encode(), words.buffer_info()[0], len(words)),
        *((ctypes.c_char_p * len(places))(*places), len(places), image, len(image)),
        *(program["bytes"], program["is_ordered"], program["work"]),
    )
    if address is None:
        check(-1, name)
    return int(address)


class Utilities:
    """What Triton asks about devices, and how it loads kernels."""

    @staticmethod
    @functools.lru_cache(maxsize=64)
    def get_device_properties(device: int) -> dict[str, int]:
        """The properties that kernels for Ascend read, with what upstream's Triton compares."""
        cores = {}
        for name, attribute in (("num_aicore", CUBE_CORES), ("num_vectorcore", VECTOR_CORES)):
            value = ctypes.c_int64()
            check(runtime().aclrtGetDeviceInfo(device, attribute, ctypes.byref(value)), "aclrtGetDeviceInfo")
            cores[name] = value.value
        return {
            **cores,
            "max_shared_mem": 1 << 30,
            "multiprocessor_count": cores["num_vectorcore"],
            "max_num_regs": 1 << 16,
            "warpSize": 1,
        }

    @staticmethod
    def load_binary(name: str, kernel: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """Module, function, and figures that have no meaning here."""
        address = load(name, kernel)
        return address, address, 0, 0, 1 << 20

    @staticmethod
    def get_aicore_num() -> int:
        """The number of cube cores of the current device."""
        return Utilities.get_device_properties(current_device())["num_aicore"]

    @staticmethod
    def get_aivector_core_num() -> int:
        """The number of vector cores of the current device."""
        return Utilities.get_device_properties(current_device())["num_vectorcore"]

    @staticmethod
    def get_arch() -> str:
        """The name of the SoC."""
        return soc_name()


def soc_name() -> str:
    """The name of the SoC, such as Ascend910B2."""
    return str(runtime().aclrtGetSocName().decode())


def current_device() -> int:
    """The current NPU."""
    import torch

    return int(torch.npu.current_device())


def leaves(kinds: Sequence[Any], arguments: Sequence[Any], names: Sequence[str]) -> list[tuple[str, Any, str]]:
    """Kind, argument and name of all that are no constants, those in tuples too."""
    found = []
    for kind, argument, name in zip(kinds, arguments, names, strict=True):
        if isinstance(kind, tuple):
            found += leaves(kind, argument, [f"{name}[{i}]" for i in range(len(kind))])
        elif kind != "constexpr":
            found.append((kind, argument, name))
    return found


class Launcher:
    """Launches one kernel with arguments of certain kinds."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self.names = list(source.signature)
        self.kinds = list(source.signature.values())
        self.name = metadata.name
        self.is_flat = not any(isinstance(kind, tuple) for kind in self.kinds)

    def word(self, kind: str, argument: Any, name: str, device: int) -> int:
        """The bits of an argument."""
        if kind.startswith("*"):
            if argument is None:
                return 0
            if isinstance(argument, int):
                return argument
            where = getattr(argument, "device", None)
            is_here = where is None or (where.type == "npu" and where.index == device)
            if not is_here and (where.type != "cpu" or not argument.is_pinned()):
                target = f"the kernel runs on npu:{device}; move it there"
                raise ValueError(f"{self.name}: argument {name} is on {where}, but {target}")
            return int(argument.data_ptr())
        if kind in FORMATS:
            return int.from_bytes(struct.pack(FORMATS[kind], argument), "little")
        if kind == "bf16":
            bits = int.from_bytes(struct.pack("<f", argument), "little")
            return bits + 0x7FFF + (bits >> 16 & 1) >> 16
        return int(argument)

    def __call__(
        self,
        x: int,
        y: int,
        z: int,
        stream: int,
        function: int,
        packed_metadata: object,
        launch_metadata: object,
        enter: Callable[[object], None] | None,
        leave: Callable[[object], None] | None,
        *arguments: Any,
    ) -> None:
        """Launches the kernel's grid on a stream as one task."""
        if 0 in (x, y, z):
            return
        device = current_device()
        words = [
            self.word(kind, argument, name, device)
            for kind, argument, name in leaves(self.kinds, arguments, self.names)
        ]
        packed = array.array("Q", [word & 0xFFFFFFFFFFFFFFFF for word in words])
        grid = array.array("q", (x, y, z))
        if enter is not None:
            enter(launch_metadata)
        status = library().aclHostTritonLaunch(
            function, grid.buffer_info()[0], packed.buffer_info()[0], len(packed), stream
        )
        check(status, self.name)
        if leave is not None:
            leave(launch_metadata)


def measure_once(call: Callable[[], object], *, quantiles: Sequence[float], **_: object) -> list[float]:
    """The milliseconds of one run. They say nothing about an NPU, so autotuning tries every configuration once."""
    import torch

    torch.npu.synchronize()
    begin = time.perf_counter()
    call()
    torch.npu.synchronize()
    return [1e3 * (time.perf_counter() - begin)] * len(quantiles)


class SimulatedNpuDriver(DriverBase):  # type: ignore[misc]
    """Triton's driver for simulated NPUs."""

    launcher_cls = Launcher
    utils = Utilities

    @classmethod
    def is_active(cls) -> bool:
        """True in a process that runs torch_npu on this host CANN."""
        return os.environ.get("ASCEND_HOME_PATH") == str(PREFIX)

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Triton's launchers in C++ are not used."""
        return {"i64": "int64_t", "fp32": "float", "fp64": "double"}.get(ty, "void*" if ty[0] == "*" else "int32_t")

    def get_current_target(self) -> GPUTarget:
        """The current NPU."""
        return GPUTarget("npu", soc_name(), 1)

    def get_current_device(self) -> int:
        """The number of the current NPU."""
        return current_device()

    def set_current_device(self, device: int) -> None:
        """Makes another NPU current."""
        import torch

        torch.npu.set_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        """The address of the current stream, behind what torch_npu has queued for it."""
        import torch

        return int(torch.npu.current_stream(device).npu_stream)

    def get_active_torch_device(self) -> Any:
        """The current NPU for torch."""
        import torch

        return torch.device("npu", current_device())

    def get_device_interface(self) -> Any:
        """The functions of torch for NPUs."""
        import torch

        return torch.npu

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """What autotuning measures with."""
        return measure_once

    def get_empty_cache_for_benchmark(self) -> Any:
        """A tensor for ``triton.testing`` to clear."""
        import torch

        return torch.empty(1, dtype=torch.int, device="npu")

    def clear_cache(self, cache: Any) -> None:
        """Clears it."""
        cache.zero_()
