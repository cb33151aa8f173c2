"""While an answer is learnt from, words that could not have been written at a place have no probability there."""

import torch

from warpwright.learn.policy.constrained import FORBIDDEN, Constrained
from warpwright.policy.answering import Written

WORDS = 6
PAD = 0


def _answer() -> Written:
    return Written((), [5, 4], [3, 2, 1], [(3, 4), (2,), (1, 3, 5)], [])


def test_only_the_words_that_were_legal_at_each_token_keep_their_logits():
    rules = Constrained()
    rules.remember([_answer()])
    ids = torch.tensor([[PAD, 5, 4, 3, 2, 1, PAD]])
    logits = torch.randn(1, 5, WORDS)  # of the last five places, as a trainer keeps them
    masked = rules.masked(ids, (ids != PAD).long(), logits)
    legal = [(3, 4), (2,), (1, 3, 5)]
    for place, allowed in enumerate(legal):  # the first token is decided at the prompt's last place, which is the first kept
        kept = [word for word in range(WORDS) if masked[0, place, word] > FORBIDDEN]
        assert kept == sorted(allowed)
        assert torch.equal(masked[0, place, list(allowed)], logits[0, place, list(allowed)])
    assert torch.equal(masked[0, 3:], logits[0, 3:])


def test_a_row_that_is_no_answer_is_left_alone():
    rules = Constrained()
    rules.remember([_answer()])
    ids = torch.tensor([[5, 4, 3, 2, 2]])
    logits = torch.randn(1, 5, WORDS)
    assert torch.equal(rules.masked(ids, torch.ones_like(ids), logits), logits)


def test_an_entropy_of_what_is_left_is_a_number_and_its_gradient_reaches_no_forbidden_word():
    rules = Constrained()
    rules.remember([_answer()])
    ids = torch.tensor([[5, 4, 3, 2, 1]])
    logits = torch.randn(1, 5, WORDS, requires_grad=True)
    logs = (rules.masked(ids, torch.ones_like(ids), logits) / 0.7).log_softmax(-1)
    entropy = -(logs.exp() * logs).sum()
    entropy.backward()
    assert torch.isfinite(entropy) and logits.grad is not None
    assert logits.grad[0, 2, [0, 1, 2, 4, 5]].abs().sum() == 0  # one word may be written there: nothing is decided


class Output:
    def __init__(self, logits: torch.Tensor) -> None:
        self.logits = logits


class Model(torch.nn.Module):
    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, labels: None = None) -> Output:
        return Output(torch.zeros(*input_ids.shape, WORDS))


def test_a_model_that_is_watched_answers_with_fewer_words():
    model, rules = Model(), Constrained()
    rules.watch(model, 1.0)
    ids = torch.tensor([[5, 4, 3, 2, 1]])
    assert not (model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits == FORBIDDEN).any()
    rules.remember([_answer()])
    assert (model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits == FORBIDDEN).sum() == (6 - 2) + (6 - 1) + (6 - 3)


def test_a_trainer_that_asks_for_probabilities_gets_those_among_the_legal_words():
    model, rules = Model(), Constrained()
    rules.watch(model, 1.0)
    rules.remember([_answer()])
    ids = torch.tensor([[PAD, 5, 4, 3, 2, 1]])
    labels = torch.tensor([[-100, -100, -100, 3, 2, 1]])
    asked = model(input_ids=ids, attention_mask=(ids != PAD).long(), labels=labels, fused_lm_head=True)
    assert torch.allclose(asked.log_probs.exp()[0, -3:], torch.tensor([1 / 2, 1.0, 1 / 3]))
    assert torch.equal(asked.log_probs[0, :2], torch.zeros(2))
    assert torch.allclose(asked.entropy[0, -3:], torch.tensor([2.0, 1.0, 3.0]).log(), atol=1e-6)
