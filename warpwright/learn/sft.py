"""Fine-tune a language model on (CUDA, C) pairs: TRL's SFTTrainer with a LoRA adapter of peft.

    python -m warpwright.learn.sft --pairs DIR --model NAME_OR_FOLDER --out FOLDER [--epochs 5] [--rank 8] [--four-bit]

The defaults are those of the work that this data set follows (HPCTransCompile, arXiv 2506.10401): rank 8, alpha 16, dropout 0.05 on the
query, key and value projections, 5 epochs, learning rate 2e-4; its 4-bit base is an option, since it needs bitsandbytes and a GPU.
The prompt is the benchmark's (`translation.translators.prompt`), so that the model is judged on what it was trained for.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.errors import MissingExtra, UsageError
from warpwright.translation.pairs.data_set import read_pairs
from warpwright.translation.suites.pairs import item as item_of
from warpwright.translation.translators import prompt


@dataclass(frozen=True)
class Settings:
    """How to train."""

    epochs: float = 5.0
    steps: int = -1
    """Stop after this many steps; -1: after `epochs`."""
    rank: int = 8
    alpha: int = 16
    dropout: float = 0.05
    rate: float = 2e-4
    batch: int = 1
    accumulate: int = 16
    length: int = 4096
    """Tokens of prompt and completion; longer examples are cut."""
    modules: tuple[str, ...] = ("q_proj", "k_proj", "v_proj")
    four_bit: bool = False
    seed: int = 0


def examples(rows: Sequence[Mapping[str, Any]], split: str = "train") -> list[dict[str, Any]]:
    """Return prompt and completion, as chat messages, of every pair of a split. Raises UsageError where there is none."""
    selected = []
    for row in rows:
        if row["split"] == split:
            answer = f"```c\n{row['c'].strip()}\n```"
            selected.append({"prompt": prompt(item_of(row)), "completion": [{"role": "assistant", "content": answer}]})
    if not selected:
        raise UsageError(f"expected pairs of the split {split!r}, saw none among {len(rows)}", "generate more: whole operators are held out")
    return selected


def _plain(example: Mapping[str, Any]) -> dict[str, str]:
    """Return an example as text, for a tokenizer without a chat template."""
    asked = "\n\n".join(message["content"] for message in example["prompt"])
    return {"prompt": f"{asked}\n\n", "completion": example["completion"][0]["content"]}


def train(rows: Sequence[Mapping[str, Any]], model: Any, tokenizer: Any, out: Path, settings: Settings) -> float:
    """Train an adapter, save it with its tokenizer in `out`, and return the mean loss."""
    try:
        from datasets import Dataset
        from peft import LoraConfig
        from trl import SFTConfig, SFTTrainer
    except ImportError as error:
        raise MissingExtra(error.name or "trl", "learn", "fine-tuning on pairs") from error

    ready = examples(rows)
    data = Dataset.from_list(ready if getattr(tokenizer, "chat_template", None) else [_plain(one) for one in ready])
    adapter = LoraConfig(
        r=settings.rank, lora_alpha=settings.alpha, lora_dropout=settings.dropout, target_modules=list(settings.modules), task_type="CAUSAL_LM"
    )
    how = SFTConfig(
        output_dir=str(out),
        num_train_epochs=settings.epochs,
        max_steps=settings.steps,
        per_device_train_batch_size=settings.batch,
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.rate,
        max_length=settings.length,
        completion_only_loss=True,
        save_strategy="no",
        report_to=[],
        seed=settings.seed,
        bf16=_has_bfloat16(),
    )
    trainer = SFTTrainer(model=model, args=how, train_dataset=data, processing_class=tokenizer, peft_config=adapter)
    loss = trainer.train().training_loss
    trainer.save_model(str(out))
    tokenizer.save_pretrained(str(out))
    return float(loss)


def _has_bfloat16() -> bool:
    import torch

    return torch.cuda.is_available() and torch.cuda.is_bf16_supported()


def load(name: str, four_bit: bool) -> tuple[Any, Any]:
    """Return a model and its tokenizer by name or folder."""
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig
    except ImportError as error:
        raise MissingExtra("transformers", "learn", "fine-tuning on pairs") from error
    more = {"quantization_config": BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")} if four_bit else {}
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModelForCausalLM.from_pretrained(name, **more)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"expected a causal language model, saw {name!r}: {str(error).splitlines()[0]}", "name a folder or a model of the hub"
        ) from error
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return model, tokenizer


def main(arguments: Sequence[str] | None = None) -> None:
    """Train from the command line."""
    parser = argparse.ArgumentParser(prog="python -m warpwright.learn.sft", description="Fine-tune a model on (CUDA, C) pairs with LoRA.")
    parser.add_argument("--pairs", required=True, type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--epochs", type=float, default=Settings.epochs)
    parser.add_argument("--steps", type=int, default=Settings.steps)
    parser.add_argument("--rank", type=int, default=Settings.rank)
    parser.add_argument("--length", type=int, default=Settings.length)
    parser.add_argument("--four-bit", action="store_true")
    options = parser.parse_args(arguments)
    model, tokenizer = load(options.model, options.four_bit)
    settings = Settings(epochs=options.epochs, steps=options.steps, rank=options.rank, length=options.length, four_bit=options.four_bit)
    loss = train(read_pairs(options.pairs), model, tokenizer, options.out, settings)
    print(f"mean loss {loss:.4f}; adapter in {options.out}")


if __name__ == "__main__":
    main()
