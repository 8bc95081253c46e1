"""What torch.compile compiles with in the tests."""

from __future__ import annotations

import pytest
import torch

# Inductor hands the folder of torch's libraries to the compiler without quotes (torch 2.11 to 2.15).
WORKS = " " not in torch.__file__
BACKEND = "inductor" if WORKS else "aot_eager"
REASON = "torch's Inductor cannot link where the path of torch has a space"
needed = pytest.mark.skipif(not WORKS, reason=REASON)
