"""The status and the whole text of every refusal of the runtime, the descriptors, the profiler and HCCL's management.

A process of its own makes all calls (tests/runtime_refusals), because devices, captures and profiles belong to a
process.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import LONGEST, cabi
from tests.runtime_refusals.process import Answer
from tests.runtime_refusals.refusal import Refusal
from tests.runtime_refusals.table import ALL, IDS

ROOT = Path(__file__).resolve().parents[1]


@functools.cache
def statuses() -> dict[str, int]:
    """The status codes in the headers."""
    found = re.findall(r"\b(ACL_SUCCESS|(?:ACL_ERROR|ACLNN_ERR|HCCL_E)_\w+)\s*=?\s*(\d+)\b", cabi.header_text())
    return {name: int(value) for name, value in found}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    from aclnn_torch.host import PREFIX  # not at the top: the process that makes the calls needs no torch

    folder = tmp_path_factory.mktemp("refusals")
    (folder / "wrong.json").write_text('{"a": 1,\n b}\n')
    with (folder / "large.json").open("w") as file:
        file.truncate(10 * 2**20 + 1)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("ACLNN_TORCH_", "ASCEND_"))
    }
    environment |= {
        "ACLNN_TORCH_DEVICES": "2",
        "ACLNN_TORCH_DEVICE_MEMORY": "1G",
        "ACLNN_TORCH_DUMP_DIR": "missing",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    code = f"from tests.runtime_refusals.process import call_all; call_all({str(PREFIX / 'lib64')!r})"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST
    )
    assert ran.returncode == 0, ran.stderr
    return {name: Answer(*answer) for name, answer in zip(IDS, json.loads(ran.stdout), strict=True)}


@pytest.mark.parametrize(("name", "refusal"), list(zip(IDS, ALL, strict=True)), ids=IDS)
def test_refusal(answers: dict[str, Answer], name: str, refusal: Refusal) -> None:
    answer, status = answers[name], statuses()[refusal.status]
    assert answer.text == re.sub(r"{([\w+]+)}", lambda found: answer.objects[found[1]], refusal.text)
    if refusal.is_status:
        assert answer.returned == status
    if refusal.status.startswith("ACL_"):
        assert answer.last_error == status
    elif "\n" not in refusal.text:  # with two lines, the first one's failure is the runtime's
        assert answer.last_error == 0  # aclnn's and HCCL's statuses are not stored
