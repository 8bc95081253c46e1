"""The requirements of torch.compile in the tests."""

from __future__ import annotations

import os

import pytest
import torch

# Inductor passes the folder of torch's libraries to the compiler without quotes (torch 2.11 to 2.15). On an emulated
# machine (tests/aarch64.py) the compiler is the host's.
WORKS = " " not in torch.__file__ and "ACLNN_TEST_EMULATOR" not in os.environ
BACKEND = "inductor" if WORKS else "aot_eager"
REASON = "torch's Inductor cannot link where the path of torch has a space, nor under emulation"
needed = pytest.mark.skipif(not WORKS, reason=REASON)
