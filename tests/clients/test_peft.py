"""PEFT's LoRA on a small Llama: attached, trained, saved, merged."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor, nn
from transformers import LlamaForCausalLM

from tests.clients.llama import llama, sentences
from tests.clients.training import Training, expect_alike, flat


def train(start: nn.Module, tokens: Tensor, device: str) -> tuple[Training, nn.Module]:
    """The adapters learn one batch on the device."""
    model = copy.deepcopy(start).to(device).train()
    tokens = tokens.to(device)
    optimizer = torch.optim.AdamW((value for value in model.parameters() if value.requires_grad), lr=1e-2)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return Training(losses, flat(model)), model.eval()


def test_lora_is_trained_saved_and_merged(tmp_path: Path) -> None:
    base, tokens = llama(), sentences(4)
    adapters = LoraConfig(
        task_type="CAUSAL_LM", r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], use_rslora=True, lora_dropout=0.0
    )
    start = get_peft_model(copy.deepcopy(base), adapters)
    expected, _ = train(start, tokens, "cpu")
    found, model = train(start, tokens, "npu")
    expect_alike(found, expected, flat(start))

    with torch.inference_mode():
        logits = model(tokens.npu()).logits.cpu()
        with model.disable_adapter():
            torch.testing.assert_close(model(tokens.npu()).logits.cpu(), base(tokens).logits)
    model.save_pretrained(tmp_path)
    on_cpu = PeftModel.from_pretrained(copy.deepcopy(base), tmp_path, torch_device="cpu").eval()
    merged = model.merge_and_unload()
    assert type(merged) is LlamaForCausalLM
    with torch.inference_mode():
        torch.testing.assert_close(on_cpu(tokens).logits, logits)
        torch.testing.assert_close(merged(tokens.npu()).logits.cpu(), logits)
