"""The policy's model: a causal transformer of a few hundred thousand parameters over words, kept in a folder as transformers keeps one."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from warpwright.errors import MissingExtra, UsageError
from warpwright.policy import prompt
from warpwright.policy.answering import PAD, UNKNOWN, Answers, Written
from warpwright.policy.spreading import Spread
from warpwright.policy.words import fixed_words
from warpwright.policy.writing import END, Writing
from warpwright.search.costs import NOTHING, Prior
from warpwright.search.moves import Recipe

SHIPPED = Path(__file__).parent / "shipped"
"""The policy that comes with the package; its README.md is its card."""

NOTES = "policy.json"
"""File of a checkpoint's folder that says how it is to be asked."""

PRIOR = "costs.json"
"""File of a checkpoint's folder that says how far the cost model was right of its training programs; it may be missing."""

MOST_WORDS = 120
"""Words of a recipe at most."""


@dataclass(frozen=True)
class Shape:
    """How large a model is."""

    width: int = 96
    layers: int = 3
    heads: int = 4
    context: int = 512
    """Words of prompt and recipe together at most."""


@dataclass(frozen=True)
class Notes:
    """How a checkpoint was trained to be asked."""

    exemplars: prompt.Exemplars = "contrast"
    temperature: float = 1.0


def make(words: Iterable[str], shape: Shape, seed: int) -> tuple[Any, Any]:
    """Return a model of random weights, and a tokenizer whose vocabulary is the fixed words and `words`."""
    try:
        import torch
        from tokenizers import Tokenizer, models, pre_tokenizers
        from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    except ImportError as error:
        raise MissingExtra(error.name or "transformers", "learn", "the policy") from error
    vocabulary = dict.fromkeys([PAD, UNKNOWN, END, *fixed_words(), *sorted(set(words))])
    plain = Tokenizer(models.WordLevel({word: number for number, word in enumerate(vocabulary)}, unk_token=UNKNOWN))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token=PAD, unk_token=UNKNOWN, eos_token=END, padding_side="left", model_max_length=shape.context
    )
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=shape.width, intermediate_size=3 * shape.width, num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads, num_key_value_heads=shape.heads, max_position_embeddings=shape.context, tie_word_embeddings=True,
        pad_token_id=0, eos_token_id=2, bos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config), tokenizer


@dataclass
class Policy:
    """A model with its tokenizer, and how it is asked."""

    model: Any
    tokenizer: Any
    notes: Notes = Notes()
    prior: Prior = NOTHING

    @classmethod
    def load(cls, folder: Path) -> Policy:
        """Return the policy of a checkpoint's folder; raise UsageError where there is none."""
        try:
            from transformers import AutoModelForCausalLM, AutoTokenizer
            from transformers.utils import logging
        except ImportError as error:
            raise MissingExtra(error.name or "transformers", "learn", "the policy") from error
        if not (folder / NOTES).is_file():
            raise UsageError(f"expected a policy in {folder}, saw no {NOTES}", "make one with `warpwright train`")
        logging.disable_progress_bar()  # loading 0.5 MB needs none among the lines of a run
        notes = Notes(**json.loads((folder / NOTES).read_text()))
        prior = Prior(**json.loads((folder / PRIOR).read_text())) if (folder / PRIOR).is_file() else NOTHING
        return cls(AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder), notes, prior)

    def save(self, folder: Path) -> None:
        """Write the policy to a folder; what says that it is complete comes last."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        if self.prior.weights:
            (folder / PRIOR).write_text(json.dumps(asdict(self.prior), indent=1) + "\n")
        (folder / NOTES).write_text(json.dumps(asdict(self.notes), indent=1) + "\n")

    @property
    def words(self) -> Collection[str]:
        """All words that it knows."""
        vocabulary: dict[str, int] = self.tokenizer.get_vocab()
        return vocabulary

    def unread(self, words: Iterable[str]) -> list[str]:
        """Return which of some words are not in the vocabulary, each once."""
        known = self.words
        return [word for word in dict.fromkeys(words) if word not in known]

    def write(
        self, prompts: Sequence[str], writings: Sequence[Writing], known: Sequence[Iterable[Recipe]], seed: int,
        spreads: Sequence[Spread | None] = (),
    ) -> list[Written]:  # fmt: skip
        """Return a recipe for each prompt, drawn from the model among what `writings` allow and `known` has not.

        A word that the vocabulary lacks is written only where there is no other, or where the prompt has a spread.
        """
        import torch

        batch, number = self.tokenizer(list(prompts), return_tensors="pt", padding=True), self.tokenizer.get_vocab()
        start = batch["input_ids"].shape[1]
        answers = Answers(writings, known, list(spreads) or [None] * len(prompts), number, start, MOST_WORDS, seed)
        was_training = self.model.training
        self.model.eval()
        with torch.no_grad(), torch.random.fork_rng():
            torch.manual_seed(seed)
            ids = self.model.generate(
                **batch, do_sample=True, temperature=self.notes.temperature, top_k=0, top_p=1.0, max_new_tokens=MOST_WORDS + 1,
                prefix_allowed_tokens_fn=answers.allowed, logits_processor=[answers.spread_out], pad_token_id=number[PAD], eos_token_id=number[END],
            )  # fmt: skip
        self.model.train(was_training)
        texts = [row[shown.bool()].tolist() for row, shown in zip(batch["input_ids"], batch["attention_mask"], strict=True)]
        rows = zip(ids[:, start:].tolist(), texts, strict=True)
        return [answers.written(index, row, text, self.tokenizer.convert_ids_to_tokens) for index, (row, text) in enumerate(rows)]


def rng_of(*parts: object) -> Random:
    """Return random numbers that depend on `parts` alone, so that what is resumed goes on as it would have."""
    return Random(" ".join(map(str, parts)))
