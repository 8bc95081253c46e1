"""transformers.Trainer with small models of random weights."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    MixtralConfig,
    MixtralForCausalLM,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
)

from tests.clients.llama import LENGTH, SIZES, VOCABULARY, llama, sentences
from tests.clients.training import Training, expect_alike, flat

EXAMPLES, CLASSES = 32, 3


class Examples(Dataset):  # type: ignore[type-arg]
    """Rows of tensors, each a keyword argument of the model's forward."""

    def __init__(self, **columns: Tensor) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return EXAMPLES

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {name: column[index] for name, column in self.columns.items()}


def text() -> dict[str, Tensor]:
    """Tokens; some rows end early."""
    lengths = torch.randint(LENGTH // 2, LENGTH + 1, (EXAMPLES, 1))
    return {"input_ids": sentences(EXAMPLES), "attention_mask": (torch.arange(LENGTH) < lengths).long()}


def language(model: nn.Module) -> tuple[nn.Module, Examples]:
    """With the model that predicts the next token of each."""
    columns = text()
    labels = columns["input_ids"].where(columns["attention_mask"].bool(), -100)
    return model, Examples(**columns, labels=labels)


def mixtral() -> tuple[nn.Module, Examples]:
    config = MixtralConfig(
        vocab_size=VOCABULARY, num_key_value_heads=2, num_local_experts=4, output_router_logits=True, **SIZES
    )
    return language(MixtralForCausalLM(config))


def bert() -> tuple[nn.Module, Examples]:
    # On Ascend910B, exact GELU is the hyperbolic tangent's formula; docs/npu.md.
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = BertConfig(vocab_size=VOCABULARY, num_labels=CLASSES, hidden_act="gelu_new", **no_dropout, **SIZES)
    columns = text()
    return BertForSequenceClassification(config), Examples(**columns, labels=columns["input_ids"][:, 0] % CLASSES)


def vit() -> tuple[nn.Module, Examples]:
    config = ViTConfig(image_size=32, patch_size=8, num_labels=CLASSES, hidden_act="gelu_new", **SIZES)
    images = torch.randn(EXAMPLES, 3, 32, 32)
    return ViTForImageClassification(config), Examples(pixel_values=images, labels=torch.randint(CLASSES, (EXAMPLES,)))


MODELS: dict[str, Callable[[], tuple[nn.Module, Examples]]] = {
    "llama": lambda: language(llama()),
    "mixtral": mixtral,
    "bert": bert,
    "vit": vit,
}


def train(
    start: nn.Module, data: Examples, folder: Path, resume: str | None = None, **arguments: object
) -> tuple[Training, Trainer]:
    """Two epochs of four batches, from the start or from a checkpoint."""
    settings = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=8,
        num_train_epochs=2,
        learning_rate=3e-3,
        lr_scheduler_type="cosine",
        warmup_steps=1,
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
        **{"save_strategy": "no"} | arguments,
    )
    model = copy.deepcopy(start)
    trainer = Trainer(model, settings, train_dataset=data, eval_dataset=data)
    trainer.train(resume_from_checkpoint=resume)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return Training(losses, flat(model)), trainer


@pytest.mark.parametrize("name", MODELS)
def test_a_model_learns_as_on_the_cpu(name: str, tmp_path: Path) -> None:
    start, data = MODELS[name]()
    expected, on_cpu = train(start, data, tmp_path, use_cpu=True)
    found, on_npu = train(start, data, tmp_path)
    assert (on_cpu.args.device.type, on_npu.args.device.type) == ("cpu", "npu")
    expect_alike(found, expected, flat(start))
    torch.testing.assert_close(on_npu.evaluate()["eval_loss"], on_cpu.evaluate()["eval_loss"], rtol=1e-5, atol=0)


@pytest.mark.parametrize("attention", ["sdpa", "flash_attention_2"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_mixed_precision_with_accumulation_and_checkpointing(
    dtype: torch.dtype, attention: str, tmp_path: Path
) -> None:
    """Compared with float32 on the CPU, which has no flash attention, and where the Trainer refuses float16."""
    start, data = language(llama())
    # torch_npu's GradScaler passes a fused optimizer an argument that torch's optimizers no longer have.
    both = {"gradient_accumulation_steps": 2, "gradient_checkpointing": True, "optim": "adamw_torch"}
    expected, _ = train(start, data, tmp_path, use_cpu=True, **both)
    start.set_attn_implementation(attention)
    found, _ = train(start, data, tmp_path, bf16=dtype is torch.bfloat16, fp16=dtype is torch.float16, **both)
    expect_alike(found, expected, flat(start), dtype)


def test_a_training_is_resumed(tmp_path: Path) -> None:
    """From the checkpoint of its first epoch, with the order of examples and the optimizer's state: bitwise equal."""
    start, data = language(llama())
    expected, _ = train(start, data, tmp_path, save_strategy="epoch")
    found, _ = train(start, data, tmp_path, resume=str(tmp_path / "checkpoint-4"))
    assert found.losses == expected.losses
    assert torch.equal(found.parameters, expected.parameters)
