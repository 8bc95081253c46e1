"""aclnn_torch.convert on models of Transformers."""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from torch.nn.modules import module as everyones
from torch.utils._python_dispatch import TorchDispatchMode

import aclnn_torch
from aclnn_torch._waiting_logits import WaitingHead
from aclnn_torch.conversion import _CrossEntropy

VOCABULARY = 96
# Model -> the number of RMSNorms per layer; there is one more at the end.
NORMS = {"Llama": 2, "Qwen2": 2, "Qwen3": 4, "Mistral": 2}


def build(family: str, head: str = "ForCausalLM", **options: Any) -> Any:
    """A model with random weights, including those of its norms."""
    config = getattr(transformers, f"{family}Config")(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        pad_token_id=0,
        **options,
    )
    torch.manual_seed(0)
    model = getattr(transformers, f"{family}{head}")(config).eval()  # some heads have a dropout
    for name, parameter in model.named_parameters():
        if name.endswith("norm.weight"):
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    return model


def tokens(rows: int = 3, length: int = 10) -> Tensor:
    return torch.randint(1, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(1))


class Called(TorchDispatchMode):
    """Counts the operators that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = operator._opname
        self.counts[name] = self.counts.get(name, 0) + 1
        return operator(*args, **kwargs or {})


def loss_and_gradients(model: Any, **inputs: Any) -> list[Tensor]:
    loss = model(**inputs).loss
    return [loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))]


@pytest.mark.parametrize("family", NORMS)
def test_every_norm_and_the_loss_are_ours(family: str) -> None:
    model = build(family)
    ids = tokens()
    expected = loss_and_gradients(model, input_ids=ids, labels=ids)
    swapped = aclnn_torch.convert(model)
    norms = 2 * NORMS[family] + 1
    assert list(swapped)[-1] == "loss_function"
    assert len(swapped) == norms + 1
    with Called() as called:
        found = loss_and_gradients(model, input_ids=ids, labels=ids)
    assert called.counts["rms_norm"] == called.counts["rms_norm_grad"] == norms
    assert called.counts["cross_entropy_loss"] == called.counts["cross_entropy_loss_grad"] == 1
    assert not {"rsqrt", "_log_softmax", "nll_loss_forward"} & set(called.counts)
    for a, b in zip(found, expected, strict=True):
        # Sums of a few hundred FP32 products, with some cancellation.
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5 * float(b.abs().max()))


def test_gemma_has_another_norm() -> None:
    """Its norm multiplies by 1 + weight: only its loss is converted."""
    assert list(aclnn_torch.convert(build("Gemma"))) == ["loss_function"]


@pytest.mark.parametrize("family", [*NORMS, "Mixtral", "Gemma"])
@pytest.mark.parametrize("tied", [False, True])
def test_in_training_the_loss_has_no_logits(family: str, tied: bool) -> None:
    model = build(family, tie_word_embeddings=tied).train()
    ids = tokens()
    labels = torch.where(ids % 3 == 0, -100, ids)
    expected = loss_and_gradients(model, input_ids=ids, labels=labels)
    aclnn_torch.convert(model, linear_loss=True)
    with Called() as called:
        found = loss_and_gradients(model, input_ids=ids, labels=labels)
    assert called.counts["_linear_cross_entropy"] == 1
    assert not {"cross_entropy_loss", "_log_softmax"} & set(called.counts)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5 * float(b.abs().max()))


def test_logits_that_somebody_looks_at_are_computed() -> None:
    """Once, with a gradient, whatever the current mode."""
    model = build("Llama").train()
    ids = tokens()
    expected = model(input_ids=ids).logits
    (gradient,) = torch.autograd.grad(expected.square().sum(), model.lm_head.weight)
    aclnn_torch.convert(model, linear_loss=True)
    logits = model(input_ids=ids, labels=ids).logits
    assert isinstance(logits, Tensor)
    assert logits.shape == expected.shape
    assert logits.dtype == expected.dtype
    with torch.no_grad():
        assert torch.equal(logits.argmax(-1), expected.argmax(-1))
    torch.testing.assert_close(logits + 0, expected)
    torch.testing.assert_close(torch.log_softmax(logits[:, -1], -1), torch.log_softmax(expected[:, -1], -1))
    (found,) = torch.autograd.grad(logits.square().sum(), model.lm_head.weight)
    torch.testing.assert_close(found, gradient, rtol=1e-4, atol=1e-4)


def test_logits_are_refused_once_the_weight_has_changed() -> None:
    model = build("Llama").train()
    aclnn_torch.convert(model, linear_loss=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    outputs, seen = (model(input_ids=tokens(), labels=tokens()) for _ in range(2))
    before = seen.logits.sum()
    outputs.loss.backward()
    optimizer.step()
    assert seen.logits.sum() == before
    with pytest.raises(RuntimeError, match="look at them before the optimizer's step"):
        outputs.logits.sum()


def test_capped_logits_are_computed() -> None:
    """As in Gemma 2."""
    model = build("Gemma2", final_logit_softcapping=2.0, attn_implementation="eager").train()
    ids = tokens()
    expected = loss_and_gradients(model, input_ids=ids, labels=ids)
    aclnn_torch.convert(model, linear_loss=True)
    with Called() as called:
        found = loss_and_gradients(model, input_ids=ids, labels=ids)
    assert "_linear_cross_entropy" not in called.counts
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5 * float(b.abs().max()))


# Registers hooks on every module, and a hook that changes nothing.
EVERYONES_HOOKS: dict[str, tuple[Callable[..., Any], Callable[..., None]]] = {
    "everyone's pre hook": (everyones.register_module_forward_pre_hook, lambda module, arguments: None),
    "everyone's hook": (everyones.register_module_forward_hook, lambda module, arguments, result: None),
    "everyone's backward pre hook": (everyones.register_module_full_backward_pre_hook, lambda module, gradients: None),
    "everyone's backward hook": (everyones.register_module_full_backward_hook, lambda module, *gradients: None),
}


@pytest.mark.filterwarnings("ignore:For backward hooks to be called")  # for results that are not tensors
@pytest.mark.parametrize("why", ["linear_loss", "hook", *EVERYONES_HOOKS, "eval", "no_grad"])
def test_heads_that_compute_at_once(why: str) -> None:
    model = build("Llama").train(why != "eval")
    ids = tokens()
    assert ("lm_head" in aclnn_torch.convert(model, linear_loss=why != "linear_loss")) == (why != "linear_loss")
    if why == "hook":
        model.lm_head.register_forward_hook(lambda module, arguments, result: None)
    register, hook = EVERYONES_HOOKS.get(why, (None, None))
    handle = register(hook) if register is not None else contextlib.nullcontext()
    with handle, torch.set_grad_enabled(why != "no_grad"), Called() as called:
        model(input_ids=ids, labels=ids)
    assert "_linear_cross_entropy" not in called.counts


@pytest.mark.parametrize("autocast", [False, True])
def test_the_loss_of_16_bits_has_float32(autocast: bool) -> None:
    """The library casts 16-bit logits; here they were never rounded."""
    model = build("Llama").train()
    ids = tokens()
    exact = copy.deepcopy(model).double()(input_ids=ids, labels=ids).loss
    aclnn_torch.convert(model if autocast else model.bfloat16(), linear_loss=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast), Called() as called:
        outputs = model(input_ids=ids, labels=ids)
    assert called.counts["_linear_cross_entropy"] == 1
    assert outputs.loss.dtype == torch.float32
    assert outputs.logits.sum().dtype == torch.bfloat16
    torch.testing.assert_close(outputs.loss, exact, rtol=0.01, atol=0)


def test_logits_that_were_written_to_are_what_counts() -> None:
    model = build("Llama").train()
    ids = tokens()
    labels = ids.flatten()

    def loss() -> Tensor:
        logits = model(input_ids=ids).logits
        logits[..., 0] = 3.0
        return torch.nn.functional.cross_entropy(logits.view(-1, VOCABULARY), labels)

    expected = loss()
    aclnn_torch.convert(model, linear_loss=True)
    torch.testing.assert_close(loss(), expected)


# Operations that return a view of logits [2, 3, 6] in float32, and those that return a copy in bfloat16.
VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "view": lambda logits: logits.view(-1, 6),
    "reshape": lambda logits: logits.reshape(6, 6),
    "rows": lambda logits: logits[1:, :, :],
    "rows by fewer places": lambda logits: logits[1:, :],
    "rows of a view": lambda logits: logits.float().view(-1, 6)[1:4, :],
    "itself": lambda logits: logits.contiguous().to(torch.float32),
}
COPIES: dict[str, Callable[[Tensor], Tensor]] = {
    "float": lambda logits: logits.float(),
    "contiguous": lambda logits: logits[..., :-1, :].contiguous(),
    "reshape": lambda logits: logits[..., :-1, :].reshape(-1, 6),
    "view of a copy": lambda logits: logits.float()[..., 1:, :],
}


def heads(dtype: torch.dtype) -> tuple[torch.nn.Linear, torch.nn.Linear, Tensor]:
    """A head with waiting logits, the same without, and hidden states."""
    torch.manual_seed(0)
    plain = torch.nn.Linear(4, 6, dtype=dtype)
    waiting = copy.deepcopy(plain)
    waiting.__class__ = WaitingHead
    return waiting, plain, torch.randn(2, 3, 4, dtype=dtype)


def outcome(head: torch.nn.Linear, hidden: Tensor, function: Callable[[Tensor], list[Tensor]]) -> list[Tensor]:
    """A function's result on a head's logits, and the gradients of the head and its input."""
    leaf = hidden.clone().requires_grad_()
    results = function(head(leaf))
    total = sum((result.float() * torch.arange(1.0, result.numel() + 1).view_as(result)).sum() for result in results)
    return [*(result + 0 for result in results), *torch.autograd.grad(total, [leaf, *head.parameters()])]


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("written", ["view", "logits", "computed logits"])
def test_a_view_of_logits_that_wait_is_one(written: str, name: str) -> None:
    """A write to either appears in both, and has no gradient in either."""
    waiting, plain, hidden = heads(torch.float32)

    def write(logits: Tensor) -> list[Tensor]:
        if written == "computed logits":
            logits.sum()
        view = VIEWS[name](logits)
        target = view if written == "view" else logits
        target[0].mul_(3)
        target[1:].zero_()
        return [logits, view, VIEWS[name](logits)]

    torch.testing.assert_close(outcome(waiting, hidden, write), outcome(plain, hidden, write))


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("written", ["copy", "logits"])
def test_a_copy_of_logits_that_wait_is_one(written: str, name: str) -> None:
    waiting, plain, hidden = heads(torch.bfloat16)

    def write(logits: Tensor) -> list[Tensor]:
        copied = COPIES[name](logits)
        (copied if written == "copy" else logits).zero_()
        return [logits, copied]

    # Their gradients are summed in another order.
    torch.testing.assert_close(outcome(waiting, hidden, write), outcome(plain, hidden, write), rtol=2**-6, atol=2**-4)


def test_a_view_of_logits_that_were_written_to_has_their_loss() -> None:
    waiting, plain, hidden = heads(torch.float32)

    def write(logits: Tensor) -> list[Tensor]:
        view = logits[:, 1:, :].contiguous().view(-1, 6)
        whole = logits.view(-1, 6)
        logits[..., 2] = 5
        losses = [torch.nn.functional.cross_entropy(each, torch.arange(len(each))) for each in (view, whole)]
        return [*losses, logits]

    torch.testing.assert_close(outcome(waiting, hidden, write), outcome(plain, hidden, write))


def test_a_view_that_torch_refuses() -> None:
    for head in heads(torch.float32)[:2]:
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            head(torch.randn(2, 3, 4))[:, 1:, :].view(-1, 6)


def test_the_loss_of_shifted_logits_computes_none() -> None:
    waiting, plain, hidden = heads(torch.float32)
    target = torch.tensor([1, -100, 5, 2])

    def loss(logits: Tensor) -> list[Tensor]:
        return [torch.nn.functional.cross_entropy(logits.float()[..., :-1, :].contiguous().view(-1, 6), target)]

    with Called() as called:
        found = outcome(waiting, hidden, loss)
    assert called.counts["_linear_cross_entropy"] == 1
    assert not {"addmm", "mm", "linear"} & set(called.counts)
    torch.testing.assert_close(found, outcome(plain, hidden, loss))


def test_logits_under_no_grad_have_no_graph() -> None:
    model = build("Llama").bfloat16().train()
    aclnn_torch.convert(model, linear_loss=True)
    logits = model(input_ids=tokens()).logits
    with torch.no_grad():
        target = logits.float()
    assert not target.requires_grad
    with torch.inference_mode():
        logits.argmax(-1)
    assert logits.sum().requires_grad


def test_revert_gives_the_model_back() -> None:
    model = build("Llama")
    before = [type(module) for module in model.modules()], model.loss_function
    ids = tokens()
    expected = loss_and_gradients(model, input_ids=ids, labels=ids)
    swapped = aclnn_torch.convert(model)
    assert swapped["loss_function"] is before[1]
    assert aclnn_torch.convert(model) == {}
    assert set(aclnn_torch.revert(model)) == set(swapped)
    assert ([type(module) for module in model.modules()], model.loss_function) == before
    assert all(map(torch.equal, loss_and_gradients(model, input_ids=ids, labels=ids), expected))
    assert aclnn_torch.revert(model) == {}


def test_the_loss_takes_what_the_librarys_takes() -> None:
    """The trainer passes the number of items; labels may be ignored; a custom loss is kept underneath."""
    model = build("Llama")
    ids = tokens()
    labels = torch.where(ids % 3 == 0, -100, ids)
    for options in ({}, {"num_items_in_batch": 7}, {"num_items_in_batch": torch.tensor(7)}):
        aclnn_torch.revert(model)
        expected = model(input_ids=ids, labels=labels, **options).loss
        aclnn_torch.convert(model)
        torch.testing.assert_close(model(input_ids=ids, labels=labels, **options).loss, expected)

    def doubled(**arguments: Any) -> Tensor:
        return 2 * original(**arguments)

    aclnn_torch.revert(model)
    original, model.loss_function = model.loss_function, doubled
    single = original(logits=model(input_ids=ids).logits, labels=ids, vocab_size=VOCABULARY)
    assert aclnn_torch.convert(model)["loss_function"] is doubled
    with Called() as called:
        torch.testing.assert_close(model(input_ids=ids, labels=ids).loss, 2 * single)
    assert called.counts["cross_entropy_loss"] == 1


def test_a_loss_that_names_its_target() -> None:
    """torch's function itself gives modes the target by position, torch.compile as it is written."""
    logits, labels = torch.randn(3, 4), torch.tensor([0, 1, 3])

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        with _CrossEntropy():
            return torch.nn.functional.cross_entropy(logits, target=labels)

    expected = torch.nn.functional.cross_entropy(logits, labels)
    torch.testing.assert_close(loss(logits, labels), expected)
    torch.testing.assert_close(torch.compile(loss, backend="eager", fullgraph=True)(logits, labels), expected)


@pytest.mark.parametrize(
    ("head", "labels"),
    [("ForSequenceClassification", torch.tensor([0, 4, 2])), ("ForTokenClassification", tokens() % 5)],
)
def test_other_heads(head: str, labels: Tensor) -> None:
    model = build("Llama", head, num_labels=5)
    inputs = {"input_ids": tokens(), "labels": labels}
    expected = model(**inputs).loss
    assert "loss_function" in aclnn_torch.convert(model)
    with Called() as called:
        torch.testing.assert_close(model(**inputs).loss, expected)
    assert called.counts["cross_entropy_loss"] == 1


def test_a_loss_without_class_indices_is_left_to_torch() -> None:
    model = build("Llama", "ForSequenceClassification", num_labels=1)  # regression
    inputs = {"input_ids": tokens(), "labels": torch.tensor([0.5, -1.0, 2.0])}
    expected = model(**inputs).loss
    aclnn_torch.convert(model)
    torch.testing.assert_close(model(**inputs).loss, expected)


def test_a_model_inside_another_module() -> None:
    outer = torch.nn.Sequential(build("Llama"))
    assert list(aclnn_torch.convert(outer))[-1] == "0.loss_function"


def test_a_converted_model_is_copied_and_saved() -> None:
    model = build("Llama")
    aclnn_torch.convert(model, rounding="library")
    ids = tokens()
    expected = model(input_ids=ids, labels=ids).loss
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(twin(input_ids=ids, labels=ids).loss, expected)
        assert aclnn_torch.convert(twin, rounding="library") == {}
        aclnn_torch.revert(twin)
        assert type(twin.model.norm) is type(model.model.norm)._aclnn_torch_original


def norm_of_16_bits(dtype: torch.dtype) -> tuple[torch.nn.Module, Tensor]:
    norm: Any = build("Llama", "Model").norm.to(dtype)
    return norm, torch.randn(2000, 32).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_where_it_rounds_can_be_chosen(dtype: torch.dtype) -> None:
    """One rounding is within half a unit in the last place of the exact result; the library's two are not."""
    norm, x = norm_of_16_bits(dtype)
    wide, weight = x.double(), norm.weight.double()
    exact = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + norm.variance_epsilon) * weight
    info = torch.finfo(dtype)
    unit = info.eps * 2.0 ** torch.floor(torch.log2(exact.abs())).clamp(math.log2(info.smallest_normal))
    by_library = norm(x)
    aclnn_torch.convert(norm, rounding="library")
    like_library = norm(x)
    aclnn_torch.convert(norm, rounding="cann")
    by_cann = norm(x)
    errors = {
        name: ((result.double() - exact).abs() / unit).max().item()
        for name, result in (("library", by_library), ("like", like_library), ("cann", by_cann))
    }
    assert errors["cann"] < 0.51
    assert errors["library"] > 0.9
    assert errors["like"] > 0.9
    # The values before the first rounding differ in FP32's last bits, which decide between two 16-bit neighbours.
    assert (like_library != by_library).float().mean() < 1e-3
    assert (by_cann != by_library).float().mean() > 0.1


def test_where_it_rounds_does_not_matter_in_float32() -> None:
    norm, x = norm_of_16_bits(torch.float32)
    aclnn_torch.convert(norm)
    expected = norm(x)
    assert list(aclnn_torch.convert(norm, rounding="library")) == [""]
    assert torch.equal(norm(x), expected)


def test_gradients_with_the_librarys_rounding() -> None:
    norm, x = norm_of_16_bits(torch.bfloat16)
    x.requires_grad_()
    dy = torch.randn(x.shape).bfloat16()
    expected = torch.autograd.grad(norm(x), (x, norm.weight), dy)
    aclnn_torch.convert(norm, rounding="library")
    dx, dweight = torch.autograd.grad(norm(x), (x, norm.weight), dy)
    # Both round dy * weight to 16 bits on the way, and dx once more.
    torch.testing.assert_close(dx, expected[0], rtol=2**-6, atol=2**-6 * float(dy.abs().max()) / math.sqrt(32))
    torch.testing.assert_close(dweight, expected[1], rtol=2**-7, atol=0)


def test_another_rounding_is_refused() -> None:
    with pytest.raises(ValueError, match="rounding is 'both', expected one of 'cann', 'library'"):
        aclnn_torch.convert(torch.nn.Sequential(), rounding="both")


@pytest.mark.parametrize("training", [False, True])
def test_a_converted_model_compiles_without_graph_breaks(training: bool) -> None:
    """Compiled, its logits do not wait."""
    torch._dynamo.reset()
    model = build("Llama").train(training)
    aclnn_torch.convert(model, linear_loss=training)
    found: list[str] = []

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        found.extend(str(node.target) for node in graph.graph.nodes if "aclnn" in str(node.target))
        return graph

    ids = tokens()
    loss = torch.compile(model, fullgraph=True, backend=backend)(input_ids=ids, labels=ids).loss
    torch.testing.assert_close(loss, model(input_ids=ids, labels=ids).loss)
    assert found == ["aclnn.rms_norm.default"] * 5 + ["aclnn._cross_entropy.default"]
