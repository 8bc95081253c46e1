"""The library that allows loading torch_npu next to torch's CUDA build, tested with stand-ins for torch's libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from aclnn_torch.host import PREFIX
from tests.builds import CXX

# The relevant declarations of c10, and a function that returns the registered keys.
C10 = """
#include <string>
#include <unordered_set>
using Keys = std::unordered_set<std::string>;
namespace c10::CachingAllocator {
struct AcceleratorAllocatorConfig { static Keys& getMutableKeys(); };
Keys& AcceleratorAllocatorConfig::getMutableKeys() {
  static Keys keys{"expandable_segments", "pinned_reserve_segment_size_mb", "backend"};
  return keys;
}
}
extern "C" int count() { return c10::CachingAllocator::AcceleratorAllocatorConfig::getMutableKeys().size(); }
extern "C" int has(const char* key) {
  return c10::CachingAllocator::AcceleratorAllocatorConfig::getMutableKeys().count(key);
}
"""
C10_CUDA = """
#include <string>
#include <unordered_set>
namespace c10::cuda::CUDACachingAllocator {
struct CUDAAllocatorConfig {
  static const std::unordered_set<std::string>& getKeys() {
    static std::unordered_set<std::string> keys{"pinned_reserve_segment_size_mb", "backend"};
    return keys;
  }
};
const void* used = &CUDAAllocatorConfig::getKeys();
}
"""
PROGRAM = """
import ctypes, sys
c10, *others = [ctypes.CDLL(path) for path in sys.argv[1:]]
print(c10.count(), c10.has(b"expandable_segments"))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("torch")
    for name, source in (("libc10.so", C10), ("libc10_cuda.so", C10_CUDA)):
        command = [*CXX, "-std=c++17", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-xc++", "-", "-o", folder / name]
        subprocess.run(command, input=source, text=True, check=True)
    return folder


def keys_after(*libraries: Path) -> str:
    """The number of registered keys after loading the libraries, and if the common one is among them."""
    command = [sys.executable, "-c", PROGRAM, *map(str, libraries)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_keys_of_cuda_are_withdrawn(folder: Path) -> None:
    """Before torch_npu's library, which needs libge_runner.so, registers its own."""
    ours = PREFIX / "lib64" / "libge_runner.so"
    assert keys_after(folder / "libc10.so", folder / "libc10_cuda.so") == "3 1"
    assert keys_after(folder / "libc10.so", folder / "libc10_cuda.so", ours) == "1 1"


def test_nothing_is_done_without_cuda(folder: Path) -> None:
    """Nor is anything done without torch."""
    assert keys_after(folder / "libc10.so", PREFIX / "lib64" / "libge_runner.so") == "3 1"
