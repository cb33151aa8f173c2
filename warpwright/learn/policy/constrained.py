"""Training under the rules of writing: the model's own logits at each token of an answer, without the words that could not have been written there.

Answers are drawn among the legal words only. Were their probabilities taken over the whole vocabulary, every step would move weight between
words of which one can never be written, and the divergence from the reference, exp(log p_ref - log p), would be dominated by exactly those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from warpwright.policy.model import Written

FORBIDDEN = -1e9
"""Logit of a word that may not be written. Not -inf: an entropy would be 0 * -inf."""


class Constrained:
    """A forward hook of a causal language model (`watch`): where a row of its input is one of the last answers, illegal words lose their logits."""

    def __init__(self) -> None:
        self._answers: Mapping[tuple[int, ...], Written] = {}

    def remember(self, written: Iterable[Written]) -> None:
        """Take these answers in place of those before."""
        self._answers = {(*one.prompt_tokens, *one.tokens): one for one in written}

    def watch(self, model: Any) -> None:
        """Apply it to every call of `model` that returns logits."""
        model.register_forward_hook(self._hook, with_kwargs=True)

    def _hook(self, model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any) -> Any:
        ids, attended = kwargs.get("input_ids"), kwargs.get("attention_mask")
        if self._answers and ids is not None and attended is not None and ids.shape == attended.shape:
            output.logits = self.masked(ids, attended, output.logits)
        return output

    def masked(self, ids: Any, attended: Any, logits: Any) -> Any:
        """Return logits [rows, kept, words] of the last `kept` places of `ids` [rows, length], those of illegal words set to FORBIDDEN."""
        import torch

        forbidden = torch.zeros(logits.shape, dtype=torch.bool)
        dropped = ids.shape[1] - logits.shape[1]
        for row, (tokens, shown) in enumerate(zip(ids.tolist(), attended.tolist(), strict=True)):
            places = [place for place, there in enumerate(shown) if there]
            answer = self._answers.get(tuple(tokens[place] for place in places))
            if answer is None:
                continue
            for number, allowed in enumerate(answer.allowed):
                place = places[len(answer.prompt_tokens) + number - 1] - dropped  # the place before a token is where it was decided
                if place >= 0:
                    forbidden[row, place] = True
                    forbidden[row, place, list(allowed)] = False
        return logits.masked_fill(forbidden.to(logits.device), FORBIDDEN)
