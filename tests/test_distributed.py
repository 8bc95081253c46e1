"""Several processes on torch's own backends: DDP, FSDP2, DTensor, each compared with a single process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.distributed.tensor import DTensor

import aclnn_torch.distributed  # noqa: F401  (registers the rules)
from aclnn_torch.ops import OPERATORS
from aclnn_torch.ops._elementwise import sharding
from aclnn_torch.ops._operator import REPLICATE, shard
from tests import LONGEST

ROOT = Path(__file__).resolve().parents[1]
LAUNCH = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.test_all)])
def test_every_case_is_like_one_process(processes: int, tmp_path: Path) -> None:
    """All cases of tests/distributed/cases.py in one launch, since starting takes longer than most of them."""
    output = tmp_path / "outcomes.json"
    command = [*LAUNCH, str(processes), "-m", "tests.distributed.cases", str(output)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST)
    assert result.returncode == 0, result.stderr
    outcomes = json.loads(output.read_text())
    assert len(outcomes) >= 16
    problems = [f"{name}\n{problem}" for name, problem in outcomes.items() if problem is not None]
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def test_every_operator_has_a_rule() -> None:
    """Except operators composed of another one."""
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aclnn::")]
    known = {operator.name() for operator in DTensor._op_dispatcher.sharding_propagator.op_strategy_funcs}
    assert {"aclnn::rms_norm_grad", "aclnn::elu_"} <= set(names)
    assert set(names) - known == {"aclnn::_cross_entropy", "aclnn::linear_cross_entropy"}


class Placed(torch.Tensor):
    placements = ()


@pytest.mark.parametrize("rank", range(1, 5))
def test_norms_are_split_along_rows_alone(rank: int) -> None:
    """Of whatever rank: the cases of several processes have one."""
    x = torch.empty([2] * rank)
    for columns in range(1, rank + 1):
        rows = [REPLICATE, *map(shard, range(rank - columns))]
        shape, weight = [2] * columns, x[(0,) * (rank - columns)]
        statistics = torch.empty([2] * (rank - columns) + [1] * columns)
        names = ("layer_norm", "rms_norm")
        layer_norm, rms_norm = ([each.sharding for each in OPERATORS[name].overloads] for name in names)
        for found in (
            layer_norm[0](x, shape, weight, weight, 1e-5),
            layer_norm[1](x, x, shape, statistics, statistics, weight, weight, [True] * 3),
            rms_norm[0](x, weight),
            rms_norm[1](x, x, statistics, weight),
        ):
            assert [results[0] for results, _ in found] == rows
            assert [inputs[0] for _, inputs in found] == rows


def test_a_broadcast_tensor_is_not_split() -> None:
    """The tensors of a rule have placements, as DTensor's have."""
    whole, row = (torch.empty(size).as_subclass(Placed) for size in ((4, 6), (6,)))
    for tensors, places in (((whole, whole), [REPLICATE, shard(0), shard(1)]), ((whole, row), [REPLICATE])):
        assert sharding(*tensors, 1.0) == [([place], [place] * 2) for place in places]


def test_the_package_imports_no_dtensor() -> None:
    """It takes half a second, and most programs do not need it."""
    code = "import sys, torch; before = set(sys.modules); import aclnn_torch; print(*sorted(set(sys.modules) - before))"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = result.stdout.split()
    assert "aclnn_torch.functional" in imported
    assert not {"torch.distributed.tensor", "aclnn_torch.distributed"} & set(imported)
