"""Answers of the policy's model while they are written: what may come next at each token, and which words the tokens stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from warpwright.policy.spreading import Spread
from warpwright.policy.writing import END, Writing
from warpwright.search.moves import Recipe

PAD, UNKNOWN = "<pad>", "<unknown>"


@dataclass(frozen=True)
class Written:
    """One answer of the model."""

    recipe: Recipe
    prompt_tokens: list[int]
    tokens: list[int]
    allowed: list[tuple[int, ...]]
    """At each token, which were legal: where it is one the model decided nothing."""
    words: list[str]


class Answers:
    """The answers to a batch of prompts of `start` tokens each, within what `writings` allow and `known` has not; `number`: the token of a word."""

    def __init__(
        self, writings: Sequence[Writing], known: Sequence[Iterable[Recipe]], spreads: Sequence[Spread | None], number: Mapping[str, int],
        start: int, most: int, seed: int,
    ) -> None:  # fmt: skip
        """`most`: words of a recipe at most."""
        self._writings, self._spreads, self._number, self._start, self._most = writings, spreads, number, start, most
        self._drawing = Random(seed)
        sets = {id(one): frozenset(one) for one in known}
        self._excluded = [sets[id(one)] for one in known]
        self._seen: dict[tuple[Writing, frozenset[Recipe], tuple[str, ...]], list[str]] = {}
        """What may come next: answers to one program begin alike."""
        self._spelt: list[dict[tuple[int, ...], tuple[str, ...]]] = [{(): ()} for _ in writings]
        """Of each answer: the tokens so far -> the words that they stand for, which differ where the vocabulary lacks a word."""
        self._chosen_among: list[list[tuple[int, ...]]] = [[] for _ in writings]
        self._legal_words = [0] * len(writings)

    def allowed(self, index: int, ids: Any) -> list[int]:
        """Return the tokens that may follow `ids`, prompt and answer `index` so far."""
        tokens = tuple(ids[self._start :].tolist())
        if self._ended(tokens):
            return [self._number[PAD]]
        words = self._spelt[index][tokens]
        legal = self._legal(index, words)
        following = self._following(index, legal)
        for token, word in following.items():
            self._spelt[index][(*tokens, token)] = (*words, word)
        self._chosen_among[index].append(tuple(following))
        self._legal_words[index] = len(legal)
        return list(following)

    def spread_out(self, ids: Any, scores: Any) -> Any:
        """Weigh the words of each answer that has a spread, after those that may not be written were ruled out."""
        import torch

        for index, spread in enumerate(self._spreads):
            tokens = tuple(ids[index, self._start :].tolist())
            if spread is not None and not self._ended(tokens) and len(self._chosen_among[index][-1]) > 1:
                among = list(self._chosen_among[index][-1])
                weights = self._weights(index, spread, tokens, among, scores[index, among].softmax(0).tolist())
                scores[index, among] = torch.tensor(weights).log()
        return scores

    def written(self, index: int, row: list[int], prompt: list[int], words_of: Any) -> Written:
        """Return answer `index`, whose tokens and what pads them are `row`."""
        end = self._number[END]
        tokens = row[: row.index(end) + 1] if end in row else row
        words = self._spelt[index][tuple(tokens)]
        return Written(self._writings[index].read(words)[0], prompt, tokens, self._chosen_among[index][: len(tokens)], words_of(tokens))

    def _ended(self, tokens: Sequence[int]) -> bool:
        return bool(tokens) and tokens[-1] in (self._number[END], self._number[PAD])

    def _legal(self, index: int, words: tuple[str, ...]) -> list[str]:
        """Return the words that may come next."""
        writing, excluded = self._writings[index], self._excluded[index]
        asked = (writing, excluded, words)
        if asked not in self._seen:
            self._seen[asked] = writing.allowed(words, excluded) if len(words) < self._most else [END]
        return self._seen[asked]

    def _following(self, index: int, legal: Sequence[str]) -> dict[int, str]:
        """Return the legal words by their tokens; one token stands for all that the vocabulary lacks."""
        following = {self._number[word]: word for word in legal if word in self._number}
        unread, spread = [word for word in legal if word not in self._number], self._spreads[index] is not None
        if unread and (spread or not following):
            following[self._number[UNKNOWN]] = self._drawing.choice(unread) if spread else unread[0]
        return following

    def _weights(self, index: int, spread: Spread, tokens: tuple[int, ...], among: Sequence[int], chances: list[float]) -> list[float]:
        spelt = self._spelt[index]
        if self._number[UNKNOWN] in among:
            chances[among.index(self._number[UNKNOWN])] = 0.0  # of a word that it never read the model says nothing
        words = [spelt[(*tokens, token)][-1] for token in among]
        return spread.weights(spelt[tokens], words, chances, self._legal_words[index])
