"""The library of the operators on NPU tensors, and errors if something is missing or fails there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aclnn_torch.host import PREFIX
from tests import LONGEST

from .programs import ROOT, package_with

# A custom aclnnElu: stage 1 fails for 3 elements; stage 2 always fails.
CUSTOM = """
#include "aclnnop/aclnn_elu.h"
#include "aclnn/acl_meta.h"

static aclnnStatus status_of_elements(const aclTensor* self) {
  int64_t* dims = nullptr;
  uint64_t count = 0;
  aclGetViewShape(self, &dims, &count);
  const bool three = count == 1 && dims[0] == 3;
  delete[] dims;
  return three ? 561000 : 0;
}

extern "C" __attribute__((visibility("default"))) aclnnStatus aclnnEluGetWorkspaceSize(
    const aclTensor* self, const aclScalar*, const aclScalar*, const aclScalar*, aclTensor*, uint64_t* size,
    aclOpExecutor** executor) {
  *size = 0;
  *executor = nullptr;
  return status_of_elements(self);
}

extern "C" __attribute__((visibility("default"))) aclnnStatus aclnnElu(void*, uint64_t, aclOpExecutor*, aclrtStream) {
  return 561003;
}
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program on the same simulated NPUs."""
    return subprocess.run(
        [sys.executable, "-c", "import torch, torch_npu, aclnn_torch\n" + code],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        cwd=PREFIX,  # outside the package's folder, which may be another one
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )


def build_custom_operators(folder: Path, code: str) -> Path:
    """Makes the folder a valid ASCEND_CUSTOM_OPP_PATH."""
    library = folder / "op_api" / "lib" / "libcust_opapi.so"
    library.parent.mkdir(parents=True)
    source = folder / "elu.cpp"
    source.write_text(code)
    lib64 = PREFIX / "lib64"
    command = ["g++", "-shared", "-fPIC", f"-I{PREFIX / 'include'}", source, f"-L{lib64}", "-lnnopbase", "-o", library]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="module")
def custom_operators(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_custom_operators(tmp_path_factory.mktemp("custom"), CUSTOM)


def test_custom_operators_come_first(custom_operators: Path) -> None:
    """As for torch_npu's own operators; other operators are CANN's."""
    code = """
try:
    torch.ops.aclnn.elu(torch.ones(3).npu())
except aclnn_torch.AclnnError as error:
    print(error.api, error.status)
print(torch.ops.aclnn.selu(torch.zeros(3).npu()).cpu().tolist())
"""
    result = run(code, ASCEND_CUSTOM_OPP_PATH=str(custom_operators))
    assert result.stdout == "aclnnEluGetWorkspaceSize 561000\n[0.0, 0.0, 0.0]\n", result.stderr


def test_half_an_operator_is_none(tmp_path: Path) -> None:
    """A library with only stage 1 is ignored: one library's stage 2 cannot run another's executor."""
    folder = build_custom_operators(tmp_path, CUSTOM[: CUSTOM.rindex('extern "C"')])
    code = "print(torch.ops.aclnn.elu(torch.ones(3).npu()).cpu().tolist())"
    result = run(code, ASCEND_CUSTOM_OPP_PATH=str(folder))
    assert result.stdout == "[1.0, 1.0, 1.0]\n", result.stderr


def test_a_failing_stage_2_is_reported(custom_operators: Path) -> None:
    """In the call, or from the queue's thread, as torch_npu reports its own operators: by name, the rest in the log."""
    code = """
try:
    torch.ops.aclnn.elu(torch.ones(4).npu())
    torch.npu.synchronize()
except RuntimeError as error:
    print(type(error).__name__, error)
"""
    result = run(code, ASCEND_CUSTOM_OPP_PATH=str(custom_operators))
    said = "aclnnElu failed with status 561003 (ACLNN_ERR_INNER_FIND_KERNEL_ERROR)"
    if os.environ.get("TASK_QUEUE_ENABLE", "1") == "0":
        assert result.stdout.startswith(f"AclnnError {said}"), result.stderr
    else:
        assert result.stdout.startswith("RuntimeError"), result.stderr
        assert "the current working operator name is aclnnElu" in result.stdout
        assert said in result.stderr


def test_custom_operators_that_everyone_may_replace_are_refused(custom_operators: Path, tmp_path: Path) -> None:
    library = tmp_path / "op_api" / "lib" / "libcust_opapi.so"
    library.parent.mkdir(parents=True)
    library.write_bytes((custom_operators / "op_api" / "lib" / "libcust_opapi.so").read_bytes())
    library.chmod(0o777)
    result = run("torch.ops.aclnn.elu(torch.ones(3).npu())", ASCEND_CUSTOM_OPP_PATH=str(tmp_path))
    assert result.returncode == 1
    assert "libcust_opapi.so may be written by everyone" in result.stderr


def test_without_the_library_the_error_says_what_to_do(tmp_path: Path) -> None:
    """CPU tensors do not need it."""
    package_with(None, tmp_path)
    code = "print(torch.ops.aclnn.elu(torch.ones(1)).item())\ntorch.ops.aclnn.elu(torch.ones(3).npu())"
    result = run(code, PYTHONPATH=str(tmp_path))
    assert result.returncode == 1
    assert result.stdout.startswith("1.0\n")
    assert "libaclnn_npu.so: cannot open shared object file" in result.stderr
    assert "build aclnn_torch again there" in result.stderr
