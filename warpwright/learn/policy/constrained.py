"""Training under the rules of writing: the model's probabilities at each token of an answer, over the words that could have been written there.

Answers are drawn among the legal words only. Were their probabilities taken over the whole vocabulary, every step would move weight between
words of which one can never be written, and the divergence from the reference, exp(log p_ref - log p), would be dominated by exactly those.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from warpwright.policy.answering import Written

FORBIDDEN = -1e9
"""Logit of a word that may not be written. Not -inf: an entropy would be 0 * -inf."""


class Constrained:
    """The last answers, and what of the model's probabilities is theirs."""

    def __init__(self) -> None:
        self._answers: Mapping[tuple[int, ...], Written] = {}

    def remember(self, written: Iterable[Written]) -> None:
        """Take these answers in place of those before."""
        self._answers = {(*one.prompt_tokens, *one.tokens): one for one in written}

    def watch(self, model: Any, temperature: float) -> None:
        """Let `model`, which a trainer has made ready, score the answers under the rules.

        A trainer asks for logits, or, with `fused_lm_head=True`, for the labels' log-probabilities [rows, length - 1] and entropies.
        """
        plain = functools.partial(type(model).forward, model)

        @functools.wraps(type(model).forward)
        def forward(*args: Any, fused_lm_head: bool = False, labels: Any = None, **kwargs: Any) -> Any:
            if not fused_lm_head:
                output = plain(*args, labels=labels, **kwargs)
                output.logits = self._under_the_rules(kwargs, output.logits)
                return output
            logits = self._under_the_rules(kwargs, plain(*args, **kwargs).logits)
            return _scored(logits[:, :-1] / temperature, labels[:, 1:])

        model.forward = forward

    def _under_the_rules(self, inputs: Mapping[str, Any], logits: Any) -> Any:
        ids, attended = inputs.get("input_ids"), inputs.get("attention_mask")
        if not self._answers or ids is None or attended is None or ids.shape != attended.shape:
            return logits  # while it writes, a call gets one more token, and `allowed` of `Policy.write` holds the rules
        return self.masked(ids, attended, logits)

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


def _scored(logits: Any, labels: Any) -> SimpleNamespace:
    """Return log-probability and entropy at each place [rows, length], 0 where the label is -100."""
    logs = logits.log_softmax(-1)
    there = labels != -100
    chosen = logs.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    entropy = -(logs.exp() * logs).sum(-1)
    return SimpleNamespace(log_probs=chosen * there, entropy=entropy * there, label_mask=there, aux_loss=None)
