"""TRL's own trainer, driven from end to end on a CPU by a tiny model of random weights: rewards as a function, and the environment with its tool.

The model's vocabulary is bytes and three whole answers, a right program, a wrong one and none, and it may write the answers alone: so that a model
that knows nothing writes programs, and what it learns can be read off its rewards.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from warpwright.adapters import export, trl

END, PAD = "<|im_end|>", "<|pad|>"
STEPS, ANSWERS = 12, 4


def tokenizer(answers: Mapping[str, str]) -> Any:
    """Return a tokenizer of bytes, and of each answer as one token."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    plain = tokenizers.Tokenizer(tokenizers.models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = tokenizers.decoders.ByteLevel()
    plain.add_special_tokens([END, PAD])
    plain.add_tokens([tokenizers.AddedToken(text, normalized=False) for text in answers.values()])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=plain, eos_token=END, pad_token=PAD, padding_side="left")


def model(words: Any) -> Any:
    """Return a Llama of one layer."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}
    ends = {"pad_token_id": words.pad_token_id, "eos_token_id": words.eos_token_id, "bos_token_id": None}
    return LlamaForCausalLM(LlamaConfig(vocab_size=len(words), max_position_embeddings=8192, **sizes, **ends))


def trained(bench: Any, folder: Path, answers: Mapping[str, str], words: Any, prompt: Any, longest: int, **given: Any) -> list[float]:
    """Train by GRPO; return the mean reward of each step."""
    grpo = pytest.importorskip("trl")
    from datasets import Dataset

    allowed = {*words.convert_tokens_to_ids(list(answers.values())), words.eos_token_id}
    settings = grpo.GRPOConfig(
        output_dir=str(folder), max_steps=STEPS, per_device_train_batch_size=ANSWERS, num_generations=ANSWERS, max_completion_length=longest,
        learning_rate=0.05, use_cpu=True, report_to=[], logging_steps=1, save_strategy="no", seed=0, disable_tqdm=True,
        generation_kwargs={"suppress_tokens": [number for number in range(len(words)) if number not in allowed]},
    )  # fmt: skip
    rows = Dataset.from_list([{"prompt": prompt, "task": bench.where.task}] * (STEPS * ANSWERS))
    trainer = grpo.GRPOTrainer(model=model(words), args=settings, train_dataset=rows, processing_class=words, **given)
    trainer.train()
    return [row["reward"] for row in trainer.state.log_history if "reward" in row]


def test_a_trainer_learns_from_rewards_to_write_the_right_program(bench: Any, tmp_path: Path) -> None:
    answers = {"right": f"```python\n{bench.right}```", "wrong": f"```python\n{bench.wrong}```", "none": "I cannot."}
    words = tokenizer(answers)
    rewards = trained(bench, tmp_path, answers, words, "Faster.", 1, reward_funcs=trl.CompletionReward(bench.where))
    assert len(rewards) == STEPS and rewards[-1] > 0
    assert sum(rewards[-4:]) > sum(rewards[:4]), f"what is rewarded is written more often: {rewards}"


@pytest.mark.slow
def test_a_trainer_calls_the_environments_tool_and_takes_its_reward(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    templates = pytest.importorskip("trl").chat_template_utils
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")

    def call(arguments: Mapping[str, Any]) -> str:
        return f"<tool_call>\n{json.dumps({'name': 'evaluate', 'arguments': arguments})}\n</tool_call>{END}"

    answers = {"right": call({"program": bench.right}), "wrong": call({"program": bench.wrong}), "odd": call({"text": 1})}
    words = tokenizer(answers)
    words.chat_template = templates.qwen3_chat_template
    seen: list[str] = []

    class Watched(trl.environment(bench.where)):  # type: ignore[misc]
        """Notes what its tool answers."""

        def evaluate(self, program: str) -> str:
            """Verify a program against the reference and time it; returns what became of it.

            Args:
                program: The whole text of the program.
            """
            seen.append(super().evaluate(program))
            return seen[-1]

    prompt = [{"role": "user", "content": "Make the program faster."}]
    rewards = trained(bench, tmp_path, answers, words, prompt, 2048, environment_factory=Watched)
    assert len(rewards) == STEPS and max(rewards) > 0
    assert any("times" in told for told in seen) and any("Case: " in told for told in seen), "right and wrong programs were judged"


def test_the_script_that_is_exported_names_what_trl_has(bench: Any, tmp_path: Path) -> None:
    pytest.importorskip("trl")
    export.write("trl", bench.where, tmp_path)
    text = (tmp_path / "train.py").read_text()
    made: dict[str, Any] = {"__name__": "train"}
    exec(compile(text, "train.py", "exec"), made)
    assert made["Environment"]().reset(prompt="x") and "GRPOTrainer" in text
