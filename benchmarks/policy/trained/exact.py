"""What a policy would write first to a recorded task, exactly: the probability of each recorded recipe, from one call of the model."""

from __future__ import annotations

import math

from warpwright.learn.policy.recorded import RecordedTask
from warpwright.policy.model import Policy, rng_of
from warpwright.policy.writing import END
from warpwright.search.moves import Recipe


def probabilities(policy: Policy, task: RecordedTask) -> dict[Recipe, float]:
    """Return the probability of each recipe with the original alone known; 0 for those with a word that the policy never read."""
    import torch

    asking, vocabulary = task.asking(), policy.tokenizer.get_vocab()
    spelt: dict[Recipe, list[tuple[int, list[int]]]] = {}
    for recipe in filter(None, task.speedups):
        words = [*asking.places.recipe(recipe), END]
        if all(word in vocabulary for word in words):
            legal = [[vocabulary[word] for word in asking.writing.allowed(words[:place]) if word in vocabulary] for place in range(len(words))]
            spelt[recipe] = [(vocabulary[word], among) for word, among in zip(words, legal, strict=True)]
    if not spelt:
        return dict.fromkeys(filter(None, task.speedups), 0.0)
    asked = policy.tokenizer(asking.prompt({(): 1.0}, rng_of("exact"), task.roof, policy.notes.exemplars))["input_ids"]
    longest = max(map(len, spelt.values()))
    rows = [[*asked, *(token for token, _ in tokens), *[policy.tokenizer.pad_token_id] * (longest - len(tokens))] for tokens in spelt.values()]
    policy.model.eval()
    with torch.no_grad():
        logits = policy.model(torch.tensor(rows), use_cache=False).logits[:, len(asked) - 1 :] / policy.notes.temperature
    found = dict.fromkeys(filter(None, task.speedups), 0.0)
    for row, (recipe, tokens) in zip(logits, spelt.items(), strict=True):
        found[recipe] = math.exp(sum(float(row[place, token] - row[place, among].logsumexp(0)) for place, (token, among) in enumerate(tokens)))
    return found
