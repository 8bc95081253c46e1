"""The examples do what they say, and their checks can fail."""

import copy
import importlib
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import aclnn_torch

EXAMPLES = Path(__file__).parents[1] / "examples"
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


@pytest.fixture(scope="module", autouse=True)
def examples_on_path():
    """The examples are programs: they find one another beside themselves."""
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
    assert len(run.step_seconds) == 5 * 22  # 1347 images in batches of 64


def test_held_out_images_are_not_trained_on(digits):
    train, test, train_digits, test_digits = digits.load_data(0, torch.device("cpu"))
    assert len(train) + len(test) == 1797
    assert len(train) == len(train_digits)
    assert len(test) == len(test_digits) == 450
    known = {bytes(image) for image in train.numpy()}
    assert not any(bytes(image) in known for image in test.numpy())


def test_gradients_lie_within_rounding_in_every_dtype(report):
    assert [check.dtype for check in report.gradients] == [torch.float32, torch.bfloat16, torch.float16]
    for check in report.gradients:
        assert check.passed, check
        # A bound that says something: far below the gradients themselves.
        assert check.bound < 0.1 * check.gradient


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
    """SELU with a gradient of one's own."""

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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("which", GRADIENTS)
def test_gradient_check_tells_right_from_wrong(digits, rounding, which, dtype):
    torch.manual_seed(0)
    images, target = digits.load_data(0, torch.device("cpu"))[::2]
    plain = digits.build_model(nn.ELU(), nn.SELU()).to(dtype)
    other = digits.build_model(nn.ELU(), Selu(GRADIENTS[which])).to(dtype)
    other.load_state_dict(plain.state_dict())
    check = rounding.check_gradients(other, plain, images[:64].to(dtype), target[:64])
    assert check.passed is (which == "right"), check


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
