"""Our operators run in torch_npu's order: behind what was asked for before, ahead of what was asked for later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import aclnn_torch
from tests import LONGEST

from . import order

PACKAGE = Path(aclnn_torch.__file__).parent
ROOT = PACKAGE.parent
MISORDERED = ROOT / "build" / "release" / "tests" / "libaclnn_npu_misordered.so"


@pytest.mark.parametrize("streams", order.STREAMS)
def test_rounds(streams: str) -> None:
    assert order.wrong(order.STREAMS[streams]()) == 0


def package_with(library: Path | None, folder: Path) -> None:
    """The package once more, with another library for NPU tensors, or none."""
    package = folder / "aclnn_torch"
    (package / "lib").mkdir(parents=True)
    for path in PACKAGE.iterdir():
        if path.name != "lib":
            (package / path.name).symlink_to(path)
    (package / "lib" / "libaclnn_host.so").symlink_to(PACKAGE / "lib" / "libaclnn_host.so")
    if library:
        (package / "lib" / "libaclnn_npu_real.so").symlink_to(PACKAGE / "lib" / "libaclnn_npu.so")
        (package / "lib" / "libaclnn_npu.so").symlink_to(library)


@pytest.mark.parametrize("streams", order.STREAMS)
def test_a_launch_past_the_queue_is_noticed(streams: str, tmp_path: Path) -> None:
    """With the wrong launch the same rounds go wrong; without a queue there is nothing to pass."""
    package_with(MISORDERED, tmp_path)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, order.__file__, streams]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST)
    assert result.returncode == 0, result.stderr
    if os.environ.get("TASK_QUEUE_ENABLE", "1") == "0":
        assert int(result.stdout) == 0
    else:
        assert int(result.stdout) > 0
