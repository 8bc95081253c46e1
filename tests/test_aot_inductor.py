"""Every operator in programs exported by torch.export, and in packages compiled ahead of time by AOTInductor."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from aclnn_torch.cli.config import config_values
from tests import inductor

ops = torch.ops.aclnn
EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "aot_inductor"


class EveryOperator(torch.nn.Module):
    """Calls each operator, forward and gradients, on tensors from the previous calls."""

    def forward(self, x: Tensor, weight: Tensor, gamma: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        geometry = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        image = ops.convolution(x, weight, None, *geometry)
        active = ops.selu(ops.elu(image, 0.5, 1.0, 1.0))
        normal, rstd = ops.rms_norm(active, gamma, 1e-6)
        logits = normal.flatten(1)
        loss, log_prob, _, _ = ops.cross_entropy_loss(logits, target)
        grad = ops.cross_entropy_loss_grad(torch.ones_like(loss), log_prob, target).reshape(normal.shape)
        head = logits.t() @ logits
        of_head = ops._linear_cross_entropy(logits, head, target, output_mask=[True, True, False])[:4]
        largest, total, predicted, mask, masked, _ = ops.fused_linear_online_max_sum(
            logits.half(), head.half(), target, 0, 40
        )
        of_part, _ = ops.fused_cross_entropy_loss_with_max_sum(largest, total, predicted)
        of_matrices = ops.fused_linear_cross_entropy_loss_grad(
            of_part, logits.half(), head.half(), mask, masked, 0.0, largest, total
        )
        dx, dgamma = ops.rms_norm_grad(grad, active, rstd, gamma)
        grad = ops.selu_backward(dx, active)
        grad = ops.elu_backward(grad, 0.5, 1.0, 1.0, False, image)
        dx, dweight, dbias = ops.convolution_backward(grad, x, weight, [4], *geometry, [True, True, True])
        return loss, dgamma, dx, dweight, dbias, *of_head, of_part, *of_matrices


def example() -> tuple[torch.nn.Module, tuple[Tensor, ...], torch.export.ExportedProgram]:
    """The module, its arguments, and both as an exported program."""
    torch.manual_seed(0)
    arguments = (torch.randn(2, 3, 4, 5), torch.randn(4, 3, 3, 3), torch.randn(5), torch.tensor([3, 70]))
    module = EveryOperator()
    calls = {"elu", "elu_backward", "selu", "selu_backward", "convolution", "convolution_backward"}
    calls |= {"rms_norm", "rms_norm_grad", "cross_entropy_loss", "cross_entropy_loss_grad", "_linear_cross_entropy"}
    calls |= {"fused_linear_online_max_sum", "fused_cross_entropy_loss_with_max_sum"}
    calls |= {"fused_linear_cross_entropy_loss_grad"}
    program = torch.export.export(module, arguments)
    found = {node.target._opname for node in program.graph.nodes if "aclnn" in str(node.target)}
    assert found == calls
    return module, arguments, program


@pytest.mark.test_all
@inductor.needed
def test_every_operator(tmp_path: Path) -> None:
    module, arguments, program = example()
    package = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "every.pt2"))
    loaded = torch._inductor.aoti_load_package(package)
    for got, expected in zip(loaded(*arguments), module(*arguments), strict=True):
        torch.testing.assert_close(got, expected)


def test_a_program_is_saved_and_loaded(tmp_path: Path) -> None:
    module, arguments, program = example()
    torch.export.save(program, tmp_path / "every.pt2")
    loaded = torch.export.load(tmp_path / "every.pt2")
    assert [node.target for node in loaded.graph.nodes] == [node.target for node in program.graph.nodes]
    for got, expected in zip(loaded.module()(*arguments), module(*arguments), strict=True):
        assert torch.equal(got, expected)


def run(*command: str | Path) -> str:
    """The output of a command that must succeed, run without environment variables for libraries."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "ACLNN_TORCH_"))}
    result = subprocess.run(command, env=environment, cwd=EXAMPLE.parents[1], capture_output=True, text=True)
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


@pytest.mark.test_all
@inductor.needed
def test_a_package_runs_in_a_program_without_python(tmp_path: Path) -> None:
    cmake = shutil.which("cmake", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if cmake is None:
        pytest.skip("cmake is not installed")
    printed = run(sys.executable, "-m", "examples.aot_inductor.make_package", tmp_path / "network.pt2")
    assert len(printed.splitlines()) == 12
    define = f"-DAclnnTorch_DIR={config_values()['cmakedir'][0]}"
    run(cmake, "-S", EXAMPLE, "-B", tmp_path / "build", define)
    run(cmake, "--build", tmp_path / "build")
    program = tmp_path / "build" / "run_package"
    for got, expected in zip(run(program, tmp_path / "network.pt2").split(), printed.split(), strict=True):
        assert float(got) == pytest.approx(float(expected), abs=2e-5)
    needed = run("ldd", program)
    assert "libaclnn_torch.so" in needed
    assert not {"libpython", "libtorch_python"} & {name.split(".so")[0] for name in needed.split()}
