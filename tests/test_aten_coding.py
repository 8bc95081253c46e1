"""Codes of exponents: what the encoder writes, and that the decoder restores its input."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.aten_ops.sweep import run_call
from tests.cabi import SUCCESS

COUNT = 32768


def call(name: str, **arguments: str) -> list[np.ndarray]:
    """The outputs of a call that must succeed."""
    line = " ".join([name, *(f"{argument}={value}" for argument, value in arguments.items())])
    stage1, stage2, text, outputs = run_call(line)
    assert (stage1, stage2, text) == (SUCCESS, SUCCESS, "")
    return [np.array(output, np.float32).ravel() for output in outputs]


def tensor(values: np.ndarray, dtype: str = "FLOAT") -> str:
    return f"{dtype}[1,{values.size}]:{json.dumps(values.tolist())[1:-1].replace(' ', '')}"


@pytest.mark.parametrize("room", [COUNT // 4 - 1000, COUNT], ids=["some codes are in varOut", "all are in fixedOut"])
def test_exponents_are_coded_and_decoded(room: int) -> None:
    numbers = np.resize(np.array([1, -2, 0.5, 0.75], np.float32), COUNT)
    counts, mantissas, fixed, rest = call(
        "aclnnHansEncode",
        inputTensor=tensor(numbers[:4]).replace("[1,4]", f"[1,{COUNT}]"),
        pdfRef="INT32[1,256]:0",
        statistic="true",
        reshuff="false",
        mantissaOut=f"FLOAT[1,{3 * COUNT // 4}]",
        fixedOut=f"FLOAT[1,{room}]",
        varOut="FLOAT[1,8192]",
    )
    exponents = numbers.view(np.uint8)[3::4]
    np.testing.assert_array_equal(counts, np.bincount(exponents, minlength=256))
    assert mantissas.view(np.uint8).tolist() == np.delete(numbers.view(np.uint8), np.s_[3::4]).tolist()
    codes = np.concatenate([fixed, rest]).view(np.uint8)  # 512 zeros and the exponents, as docs/emulation/rows.md says
    expected = np.zeros_like(codes)
    expected[512 : 512 + COUNT] = exponents
    np.testing.assert_array_equal(codes, expected)
    decoded = call(
        "aclnnHansDecode",
        mantissa=tensor(mantissas),
        fixed=tensor(fixed),
        var=tensor(rest),
        pdf=tensor(counts.astype(int), "INT32"),
        reshuff="false",
        out=f"FLOAT[1,{COUNT}]",
    )
    np.testing.assert_array_equal(decoded[0], numbers)
