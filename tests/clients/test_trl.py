"""TRL's trainers with a small Llama: supervised, of preferences, of rewards."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from tests.clients.llama import VOCABULARY, llama
from tests.clients.training import Training, expect_alike, flat

EXAMPLES, MEMBERS = 16, 4
SPECIAL = ["<pad>", "<end>", "<unknown>"]
WORDS = VOCABULARY - len(SPECIAL)


def tokenizer() -> PreTrainedTokenizerFast:
    """A token for each word, which is a number."""
    words = [*SPECIAL, *(str(number) for number in range(WORDS))]
    model = models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unknown>")
    tokens = Tokenizer(model)
    tokens.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokens, pad_token="<pad>", eos_token="<end>", unk_token="<unknown>")


def numbers(first: int, step: int, count: int) -> str:
    return " ".join(str((first + step * index) % WORDS) for index in range(count))


def supervised(model: LlamaForCausalLM, arguments: dict[str, object]) -> SFTTrainer:
    data = Dataset.from_list([{"text": numbers(index, 2, 8 + index % 5)} for index in range(EXAMPLES)])
    return SFTTrainer(model, SFTConfig(max_length=16, **arguments), train_dataset=data, processing_class=tokenizer())


def preferences(model: LlamaForCausalLM, arguments: dict[str, object]) -> DPOTrainer:
    data = Dataset.from_list(
        [
            {"prompt": numbers(index, 2, 4), "chosen": numbers(index + 8, 2, 5), "rejected": numbers(index + 9, 3, 4)}
            for index in range(EXAMPLES)
        ]
    )
    settings = DPOConfig(max_length=24, **arguments)
    return DPOTrainer(model, copy.deepcopy(model), settings, train_dataset=data, processing_class=tokenizer())


def rollouts(prompts: list[str], trainer: GRPOTrainer) -> dict[str, object]:
    """Continues each prompt by a word that differs within a group, and greedily from there."""
    words = trainer.processing_class
    starts = [words(prompt)["input_ids"] for prompt in prompts]
    firsts = [[len(SPECIAL) + 7 * (index % MEMBERS)] for index in range(len(prompts))]
    tokens = torch.tensor([start + first for start, first in zip(starts, firsts, strict=True)])
    model = trainer.accelerator.unwrap_model(trainer.model)
    whole = model.generate(tokens.to(model.device), do_sample=False, max_new_tokens=6, min_new_tokens=6)
    completions = whole[:, len(starts[0]) :].tolist()
    return {"prompt_ids": starts, "completion_ids": completions, "logprobs": None}


def evenness(completions: list[str], **columns: object) -> list[float]:
    """The reward: how many of a completion's words are even numbers."""
    return [sum(word.isdigit() and int(word) % 2 == 0 for word in text.split()) / 8 for text in completions]


def rewards(model: LlamaForCausalLM, arguments: dict[str, object]) -> GRPOTrainer:
    data = Dataset.from_list([{"prompt": numbers(index, 2, 4)} for index in range(EXAMPLES)])
    settings = GRPOConfig(num_generations=MEMBERS, max_completion_length=8, **arguments)
    return GRPOTrainer(
        model,
        evenness,
        args=settings,
        train_dataset=data,
        processing_class=tokenizer(),
        rollout_func=rollouts,
    )


def train(
    make: Callable[[LlamaForCausalLM, dict[str, object]], SFTTrainer | DPOTrainer | GRPOTrainer],
    start: LlamaForCausalLM,
    **arguments: object,
) -> Training:
    """Two epochs of batches of eight. GRPO's losses are zero but for roundings; its rewards take their place."""
    trainer = make(
        copy.deepcopy(start),
        {
            "per_device_train_batch_size": 8,
            "num_train_epochs": 2,
            "learning_rate": 3e-3,
            "logging_steps": 1,
            "report_to": "none",
            "disable_tqdm": True,
            "save_strategy": "no",
            "bf16": False,
            "optim": "adamw_torch",
            **arguments,
        },
    )
    trainer.train()
    name = "reward" if isinstance(trainer, GRPOTrainer) else "loss"
    return Training([entry[name] for entry in trainer.state.log_history if name in entry], flat(trainer.model))


@pytest.mark.parametrize("make", [supervised, preferences, rewards])
def test_a_model_learns_as_on_the_cpu(
    make: Callable[[LlamaForCausalLM, dict[str, object]], SFTTrainer | DPOTrainer | GRPOTrainer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")  # no warning that rollout_func is experimental
    start = llama()
    start.config.pad_token_id, start.config.eos_token_id = 0, 1
    start.generation_config.pad_token_id, start.generation_config.eos_token_id = 0, 1
    expected = train(make, start, output_dir=str(tmp_path), use_cpu=True)
    found = train(make, start, output_dir=str(tmp_path))
    assert len(found.losses) >= 4  # GRPO takes more steps
    expect_alike(found, expected, flat(start))
