"""The examples work as documented, and their checks can fail."""

import copy
import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import aclnn_torch
from tests import LONGEST

EXAMPLES = Path(__file__).parents[1] / "examples"
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
OPERATORS = {
    "Conv2d": ["convolution", "convolution_backward"],
    "RMSNorm": ["rms_norm", "rms_norm_grad"],
    "ELU": ["elu", "elu_backward"],
    "SELU": ["selu", "selu_backward"],
    "CrossEntropyLoss": ["cross_entropy_loss", "cross_entropy_loss_grad"],
}


@pytest.fixture(scope="module", autouse=True)
def examples_on_path():
    """The examples are programs: they import one another from their folder."""
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def digits(examples_on_path):
    return importlib.import_module("train_digits")


@pytest.fixture(scope="module")
def rounding(examples_on_path):
    return importlib.import_module("rounding")


@pytest.fixture(scope="module")
def report(digits, tmp_path_factory):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return digits.train(epochs=5, seed=0, output=tmp_path_factory.mktemp("digits"))
    finally:
        torch.set_num_threads(threads)


def test_network_learns(digits, report):
    run = report.runs[digits.OURS]
    assert report.accuracy > 0.9
    assert run.losses[-1] < run.losses[0] / 3
    assert len(run.losses) == len(run.accuracies) == 5
    assert len(run.step_seconds) == 5 * 21  # full batches of 64 in 1347 images


def test_held_out_images_are_not_trained_on(digits):
    train, test, train_digits, test_digits = digits.load_data(0)
    assert len(train) + len(test) == 1797
    assert len(train) == len(train_digits)
    assert len(test) == len(test_digits) == 450
    known = {bytes(image) for image in train.numpy()}
    assert not any(bytes(image) in known for image in test.numpy())


def test_gradients_lie_within_rounding_in_every_dtype(report):
    assert [check.dtype for check in report.gradients] == DTYPES
    for check in report.gradients:
        assert check.passed, check
        # A meaningful bound: far below the gradients themselves.
        assert check.bound < 0.2 * check.largest


def test_every_operator_lies_within_rounding_in_every_dtype(report):
    expected = [(name, dtype) for dtype in DTYPES for names in OPERATORS.values() for name in names]
    assert [(check.name, check.dtype) for check in report.operators] == expected
    for check in report.operators:
        assert check.passed, check
        assert check.bound < 0.3 * check.largest


class Called(TorchDispatchMode):
    """Records the operators that are called."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.names.add(operator.name().split(".")[0])
        return operator(*args, **kwargs or {})


def test_every_operator_is_ours(digits):
    images, target = digits.load_data(0)[::2]
    network = digits.build_model(digits.LIBRARIES[digits.OURS])
    with Called() as called:
        network.loss(network(images[:4]), target[:4]).backward()
    ours = {name for name in called.names if name.startswith("aclnn::")}
    assert ours == {f"aclnn::{name}" for names in OPERATORS.values() for name in names}
    # Only copies and views remain.
    computing = ("conv", "elu", "norm", "softmax", "nll", "mul", "div", "sum", "mean", "rsqrt", "mm", "exp")
    assert [name for name in called.names - ours if any(word in name for word in computing)] == []


def test_picture_is_drawn(report):
    assert report.picture.read_bytes().startswith(b"\x89PNG")
    assert report.picture.stat().st_size > 20_000


@pytest.mark.parametrize(("accuracy", "code"), [(0.95, 1), (0.97, 0)])
def test_exit_code_follows_the_checks(digits, report, monkeypatch, capsys, accuracy, code):
    found = copy.copy(report)
    found.runs = {name: copy.copy(run) for name, run in report.runs.items()}
    found.runs[digits.OURS].accuracies = [accuracy]
    monkeypatch.setattr(digits, "train", lambda *arguments: found)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    assert digits.main([]) == code
    assert ("FAIL" in capsys.readouterr().out) is (code == 1)


class Selu(nn.Module):
    """SELU with a custom gradient."""

    def __init__(self, gradient):
        super().__init__()

        class Function(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                result = torch.selu(x)
                ctx.save_for_backward(result)
                return result

            @staticmethod
            def backward(ctx, grad_output):
                return gradient(grad_output, *ctx.saved_tensors)

        self.function = Function

    def forward(self, x):
        return self.function.apply(x)


GRADIENTS = {
    "right": lambda g, y: torch.where(y > 0, g * SELU_SCALE, g * (y + SELU_SCALE * SELU_ALPHA)),
    "no scale above zero": lambda g, y: torch.where(y > 0, g, g * (y + SELU_SCALE * SELU_ALPHA)),
    "no scale below zero": lambda g, y: torch.where(y > 0, g * SELU_SCALE, g * (y / SELU_SCALE + SELU_ALPHA)),
    "not a number": lambda g, y: g * torch.nan,
}


class Scale(torch.autograd.Function):
    """The identity with a gradient that is a tenth too large."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return 1.1 * gradient


def wrong_gradient(module):
    """A module of torch.nn with a gradient that is a tenth too large."""

    class Wrong(module):
        def forward(self, *arguments):
            return Scale.apply(super().forward(*arguments))

    return Wrong


class DetachedRMSNorm(nn.RMSNorm):
    """An RMSNorm that ignores the dependency of rstd on its input."""

    def forward(self, x):
        rstd = x.detach().float().square().mean((-3, -2, -1), keepdim=True).add(self.eps).rsqrt()
        return (x.float() * rstd * self.weight).type_as(x)


class Float16Conv2d(nn.Conv2d):
    """A convolution with weights rounded to float16, as in some matrix units."""

    def forward(self, x):
        return self._conv_forward(x, self.weight.half().float(), self.bias)


def networks(digits, dtype, batch=8, **replacements):
    """A network of plain torch with some modules replaced, the same without replacement, and a batch."""
    torch.manual_seed(0)
    images, target = digits.load_data(0)[::2]
    plain = digits.build_model(nn).to(dtype)
    other = digits.build_model(SimpleNamespace(**{name: getattr(nn, name) for name in OPERATORS} | replacements))
    other.to(dtype).load_state_dict(plain.state_dict())
    return other, plain, images[:batch].to(dtype), target[:batch]


@pytest.mark.test_all
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("which", GRADIENTS)
def test_gradient_check_tells_right_from_wrong(digits, rounding, which, dtype):
    """In bfloat16 a 5% error of a slope may be within the rounding of a whole network, but not of that operator."""
    check = rounding.check_gradients(*networks(digits, dtype, batch=64, SELU=lambda: Selu(GRADIENTS[which])))
    assert check.passed is (which == "right"), check


@pytest.mark.test_all
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("which", GRADIENTS)
def test_operator_check_tells_right_from_wrong(digits, rounding, which, dtype):
    checks = rounding.check_operators(*networks(digits, dtype, SELU=lambda: Selu(GRADIENTS[which])))
    assert [check.name for check in checks if not check.passed] == ([] if which == "right" else ["selu_backward"])


@pytest.mark.test_all
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("module", OPERATORS)
def test_operator_check_finds_the_wrong_one(digits, rounding, module, dtype):
    example = networks(digits, dtype, **{module: wrong_gradient(getattr(nn, module))})
    failed = [check.name for check in rounding.check_operators(*example) if not check.passed]
    assert failed == OPERATORS[module][1:]


@pytest.mark.parametrize(
    ("replacement", "dtype", "expected"),
    [
        ({"RMSNorm": DetachedRMSNorm}, torch.float32, ["rms_norm_grad"]),
        ({"RMSNorm": DetachedRMSNorm}, torch.bfloat16, ["rms_norm_grad"]),
        ({"RMSNorm": lambda shape, eps: nn.RMSNorm(shape, eps=1e-3)}, torch.float32, ["rms_norm", "rms_norm_grad"]),
        ({"Conv2d": Float16Conv2d}, torch.float32, ["convolution", "convolution_backward"]),
    ],
    ids=["rms_norm-detached-float32", "rms_norm-detached-bfloat16", "rms_norm-eps", "convolution-float16"],
)
def test_operator_check_finds_subtle_errors(digits, rounding, replacement, dtype, expected):
    checks = rounding.check_operators(*networks(digits, dtype, **replacement))
    assert [check.name for check in checks if not check.passed] == expected


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bounds_cover_kernels_that_round_more_often(digits, rounding, dtype):
    """Without oneDNN, ATen's convolution stores partial sums in the dtype."""
    example = networks(digits, dtype, **{name: getattr(aclnn_torch.nn, name) for name in OPERATORS})
    with torch.backends.mkldnn.flags(enabled=False):
        checks = rounding.check_operators(*example)
    assert [check for check in checks if not check.passed] == []


LAYERS = {
    "convolution": (lambda: nn.Conv2d(2, 3, 3, padding=1), (2, 2, 4, 5)),
    "convolution, strided": (lambda: nn.Conv2d(2, 3, (3, 2), stride=(1, 2), dilation=(2, 1)), (1, 2, 6, 5)),
    "rms_norm": (lambda: nn.RMSNorm([2, 3], eps=1e-3), (4, 2, 3)),
    "elu": (nn.ELU, (3, 5)),
    "selu": (nn.SELU, (3, 5)),
    "flatten": (nn.Flatten, (2, 3, 4)),
    "cross_entropy": (nn.CrossEntropyLoss, (4, 3)),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_rules_follow_from_the_derivatives(rounding, layer):
    """Values equal those of float64 autograd; errors are at least those that its Jacobian propagates, and close."""
    make, shape = LAYERS[layer]
    generator = torch.Generator().manual_seed(0)
    module = make().double()
    parameters = list(module.parameters())
    for parameter in parameters:
        torch.nn.init.uniform_(parameter, 0.5, 1.5, generator=generator)
    target = torch.tensor([0, 2, 1, 0])
    further = (target,) if layer == "cross_entropy" else ()
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    dy = torch.randn(module(x, *further).shape, generator=generator, dtype=torch.float64)
    errors = [1e-3 * torch.rand(t.shape, generator=generator, dtype=torch.float64) for t in (x, dy)]

    def both_passes(x, dy):
        y = module(x, *further)
        gradients = torch.autograd.grad(y, [x, *parameters], dy, create_graph=True)
        return torch.cat([part.flatten() for part in (y, *gradients)])

    jacobians = torch.autograd.functional.jacobian(both_passes, (x.requires_grad_(), dy.requires_grad_()))
    jacobians = [jacobian.reshape(len(jacobian), -1) for jacobian in jacobians]
    passed_on = sum(j.square() @ e.flatten().square() for j, e in zip(jacobians, errors, strict=True))

    arithmetic = rounding.Arithmetic(torch.float64, torch.float64)
    x_rounded, dy_rounded = (rounding.Rounded(t.detach(), e) for t, e in zip((x, dy), errors, strict=True))
    y, backward = rounding.propagate(module, x_rounded, target, arithmetic)
    dx, of_parameters = backward(dy_rounded)
    value = torch.cat([part.value.flatten() for part in (y, dx, *of_parameters)])
    error = torch.cat([part.error.flatten() for part in (y, dx, *of_parameters)])
    torch.testing.assert_close(value, both_passes(x, dy).detach(), rtol=1e-12, atol=1e-12)
    assert (error >= passed_on.sqrt() * (1 - 1e-9)).all()
    assert error.norm() <= 2 * passed_on.sqrt().norm() + 1e-6


def test_rounding_bound_holds_for_a_product_of_matrices(rounding):
    torch.manual_seed(0)
    a, b = torch.randn(64, 100).bfloat16(), torch.randn(100, 64).bfloat16()
    bounded = rounding.matmul(rounding.exact(a), rounding.exact(b)).stored(torch.bfloat16)
    error = (a @ b).double() - a.double() @ b.double()
    assert (error.abs() <= rounding.CONFIDENCE * bounded.error).all()
    assert (error.abs() > bounded.error / 4).any()


def test_custom_autograd_function_proves_itself(examples_on_path, capsys):
    example = importlib.import_module("custom_autograd_function")
    product = aclnn_torch.get_product()
    assert example.main() == 0
    assert aclnn_torch.get_product() == product
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("ok") for line in lines)


@pytest.fixture(scope="module")
def llama(examples_on_path):
    return importlib.import_module("finetune_llama")


@pytest.fixture(scope="module")
def llama_report(llama, tmp_path_factory):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return llama.train(steps=40, seed=0, output=tmp_path_factory.mktemp("llama"))
    finally:
        torch.set_num_threads(threads)


@pytest.mark.test_all
def test_llama_learns_what_transformers_learns(llama, llama_report):
    assert llama_report.passed
    assert len(llama_report.replaced) == 10  # two norms in each of four layers, one at the end, and the loss
    ours, plain = (llama_report.runs[name] for name in (llama.OURS, llama.PLAIN))
    assert ours.losses[-1] < 0.6 * ours.losses[0]
    assert ours.held_out == pytest.approx(plain.held_out, rel=llama.LARGEST_DIFFERENCE)
    assert len(ours.step_seconds) == len(plain.step_seconds) == 40
    assert llama_report.picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.test_all
def test_llama_is_held_to_its_checks(llama, llama_report, monkeypatch, capsys):
    found = copy.copy(llama_report)
    found.runs = {name: copy.copy(run) for name, run in llama_report.runs.items()}
    monkeypatch.setattr(llama, "train", lambda *arguments, **options: found)
    assert llama.main([]) == 0
    found.runs[llama.OURS].losses = [1.01 * loss for loss in found.runs[llama.PLAIN].losses]
    assert llama.main([]) == 1
    assert "FAIL" in capsys.readouterr().out
    found.runs[llama.OURS] = copy.copy(llama_report.runs[llama.OURS])
    found.runs[llama.OURS].held_out = found.guess
    assert llama.main([]) == 1


@pytest.mark.test_all
def test_llama_without_logits_learns_what_transformers_learns(llama, tmp_path):
    report = llama.train(steps=3, seed=0, output=tmp_path, vocabulary=2000, linear_loss=True)
    assert "lm_head" in report.replaced
    assert report.runs[llama.OURS].model.config.vocab_size == 2000
    assert report.checks["learns what Transformers learns"]


@pytest.mark.test_all
def test_llama_trains_as_the_command_says(llama, llama_report, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(llama, "train", lambda *arguments, **options: asked.append(options) or llama_report)
    assert llama.main([]) == llama.main(["--vocabulary", "2000", "--linear-loss"]) == 0
    assert asked == [{"vocabulary": 256, "linear_loss": False}, {"vocabulary": 2000, "linear_loss": True}]


def test_llama_knows_every_byte(llama, capsys):
    with pytest.raises(SystemExit):
        llama.main(["--vocabulary", "255"])
    assert "--vocabulary must be at least 256" in capsys.readouterr().err


def test_llama_text_is_held_out(llama):
    train, held_out = llama.load_text()
    assert len(train) > 2000
    assert held_out.shape == (llama.HELD_OUT, llama.LENGTH)


@pytest.mark.test_all
def test_tensor_parallelism_learns_what_one_process_learns():
    losses = {}
    for processes in (1, 2):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(EXAMPLES.parent)}
        command.append(str(EXAMPLES / "tensor_parallel.py"))
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST)
        assert result.returncode == 0, result.stderr
        losses[processes] = [float(line) for line in result.stdout.split()]
    assert len(losses[1]) == 5
    assert losses[1][-1] < 0.6 * losses[1][0]
    assert losses[2] == pytest.approx(losses[1], abs=5e-5)
