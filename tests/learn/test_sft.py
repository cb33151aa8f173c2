"""Fine-tuning, end to end with a tiny model of random weights, where trl and peft are installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warpwright.errors import UsageError
from warpwright.learn import sft
from warpwright.translation.pairs import worker
from warpwright.translation.pairs.draft import Options

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    options = Options(seed=1, tune=1, operators=("exp", "tanh"), verify_cuda=False)
    return [{**said["pair"], "split": "train"} for said in worker.work(range(4), options) if "pair" in said]


def test_examples_are_the_benchmarks_prompt_and_the_c_half(rows: list[dict[str, Any]]) -> None:
    one = sft.examples(rows)[0]
    assert [message["role"] for message in one["prompt"]] == ["system", "user"]
    assert "__global__" in one["prompt"][1]["content"] and "Launches" in one["prompt"][1]["content"]
    assert rows[0]["c"].strip() in one["completion"][0]["content"]
    with pytest.raises(UsageError, match="split"):
        sft.examples(rows, "test")


def tiny(folder: Path) -> tuple[Any, Any]:
    """Return a model of random weights and a tokenizer of bytes."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = Tokenizer(models.BPE({letter: number for number, letter in enumerate(["<pad>", "<end>", *alphabet])}, []))
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<end>")
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=len(alphabet) + 2, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        max_position_embeddings=4096, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    model = LlamaForCausalLM(shape)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def test_a_tiny_model_learns_an_adapter(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="fine-tuning needs trl (extra learn)")
    pytest.importorskip("peft", reason="fine-tuning needs peft (extra learn)")
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    tiny(tmp_path / "model")
    model, tokenizer = sft.load(str(tmp_path / "model"), False)
    settings = sft.Settings(steps=6, accumulate=1, length=2048, rate=5e-2)
    first = sft.train(rows, model, tokenizer, tmp_path / "one", sft.Settings(steps=1, accumulate=1, length=2048, rate=0.0))
    loss = sft.train(rows, sft.load(str(tmp_path / "model"), False)[0], tokenizer, tmp_path / "out", settings)
    assert 0 < loss < first
    said = json.loads((tmp_path / "out" / "adapter_config.json").read_text())
    assert said["r"] == 8 and set(said["target_modules"]) == {"q_proj", "k_proj", "v_proj"}
    again = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tmp_path / "model"), tmp_path / "out")
    moved = [float(value.abs().max()) for name, value in again.named_parameters() if "lora_B" in name]
    assert moved and max(moved) > 0
