"""The search that asks a policy: legal, new, and its answers go into the next prompt."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest
from toy_space import BEST, STEPS, TASK, Toy, program

from warpwright.base import Budget
from warpwright.errors import UsageError
from warpwright.learn.policy import random_tasks
from warpwright.loop import Course, optimize
from warpwright.policy.answering import Written
from warpwright.policy.model import SHIPPED, Notes, Policy, Shape, make
from warpwright.policy.search import WIDTH, Asking, PolicySearch
from warpwright.policy.spreading import Spread
from warpwright.policy.words import STOP, Places
from warpwright.policy.writing import END, Writing
from warpwright.run import Settings, open_space
from warpwright.search import SEARCHES
from warpwright.search.costs import NOTHING, Prior
from warpwright.search.moves import Moves, Recipe
from warpwright.space import Space

SPACE = Space(frozenset(), STEPS, lambda ir, actions: program(ir, actions))


@dataclass
class Guessing:
    """Writes at random what it may, as a model without any knowledge does."""

    notes: Notes = field(default_factory=Notes)
    prior: Prior = NOTHING
    prompts: list[str] = field(default_factory=list)
    strange: Sequence[str] = ()
    spreads: list[Spread | None] = field(default_factory=list)
    written: list[Recipe] = field(default_factory=list)
    words: Sequence[str] = ()

    def unread(self, words: Iterable[str]) -> list[str]:
        return [word for word in words if word in self.strange]

    def write(
        self, prompts: Sequence[str], writings: Sequence[Writing], known: Sequence[Iterable[Recipe]], seed: int, spreads: Sequence[Spread | None]
    ) -> list[Written]:
        self.spreads += spreads
        rng, answers = Random(seed), []
        for prompt, writing, one in zip(prompts, writings, known, strict=True):
            words: list[str] = []
            while not words or words[-1] != END:
                words.append(rng.choice(writing.allowed(words, frozenset(one))))
            answers.append(Written(writing.read(words)[0], [], [], [], words))
            self.written.append(answers[-1].recipe)
            self.prompts.append(prompt)
        return answers


def test_it_proposes_legal_new_recipes_and_shows_what_it_was_answered() -> None:
    policy = Guessing()
    proposer = PolicySearch(policy)(SPACE, Random(0), 2)  # type: ignore[arg-type]
    evaluator = Toy()
    asked, seen = next(proposer), set[Recipe]()
    for _ in range(15):
        assert all(Moves(SPACE).legal(recipe) for recipe in asked) and not seen & set(asked)
        seen.update(asked)
        asked = proposer.send(list(evaluator.evaluate([SPACE.candidate(recipe) for recipe in asked])))
    assert all(prompt.startswith("program roof? ") and prompt.endswith(" write") for prompt in policy.prompts)
    assert policy.spreads[0] is None and policy.spreads[-1] is not None  # the first answer is the policy's own
    assert "try" not in policy.prompts[0].replace("try x+0", "") and policy.prompts[-1].count("try") == 2


def test_of_several_answers_the_one_is_proposed_that_the_cost_model_holds_for_the_cheapest() -> None:
    policy, space = Guessing(), replace(SPACE, estimate=lambda ir: 1.0 / (1 + len(ir)))
    proposer = PolicySearch(policy)(space, Random(0), 1)  # type: ignore[arg-type]
    next(proposer)
    [proposed] = proposer.send(list(Toy().evaluate([space.candidate(())])))
    assert len(policy.written) == WIDTH and proposed in policy.written
    assert len(proposed) == max(map(len, policy.written)) > min(map(len, policy.written))


def test_a_program_that_it_cannot_read_is_the_ladders() -> None:
    for strange in ([step.name for step in STEPS], ["sum"]):
        search = PolicySearch(Guessing(strange=strange))  # type: ignore[arg-type]
        proposer, evaluator = search(replace(SPACE, words=lambda ir: ("sum", "e20")), Random(0), 4), Toy()
        first = next(proposer)
        assert first == next(SEARCHES["ladder"](SPACE, Random(0), 4))
        records = list(evaluator.evaluate([SPACE.candidate(recipe) for recipe in first]))
        assert proposer.send(records) and strange[0] in search.note and "ladder" in search.note
    search = PolicySearch(Guessing(strange=["mean"]))  # type: ignore[arg-type]
    assert next(search(SPACE, Random(0), 4)) == [()] and not search.note


def test_for_a_word_that_it_never_read_one_of_its_kind_stands() -> None:
    space = replace(
        SPACE, words=lambda ir: ("roll", "e20", "axes9", "tile", "sum"), stand_ins=lambda ir: {"roll": ("copy", "add"), "axes9": (), "sum": ("tile",)}
    )
    assert Asking(space, read=("add", "e20", "tile", "sum")).program == ("add", "e20", "tile", "sum")  # what it has read stays
    assert Asking(space).program == ("roll", "e20", "axes9", "tile", "sum")  # nobody is asked
    assert Asking(space, read=("e20", "tile")).program == ("roll", "e20", "tile", "tile")  # nothing of its kind: unread
    assert Asking(replace(space, stand_ins=None), read=("e20",)).program == ("roll", "e20", "axes9", "tile", "sum")
    search = PolicySearch(Guessing(words=("add", "e20", "tile", "sum"), strange=["roll", "axes9"]))  # type: ignore[arg-type]
    assert next(search(space, Random(0), 4)) == [()] and not search.note


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of random weights."""
    pytest.importorskip("transformers", reason="the policy's model needs transformers (extra learn)")
    folder = tmp_path_factory.mktemp("policy")
    Policy(*make([step.name for step in STEPS], Shape(32, 1, 2, 128), 0)).save(folder)
    return folder


def test_a_model_of_random_weights_finds_the_best_recipe_of_a_toy_space(trained: Path) -> None:
    outcome = optimize(TASK, SPACE, Toy(), PolicySearch(Policy.load(trained)), Budget(None, proposals=60), course=Course(seed=3))
    assert outcome.best is not None and {action.technique for action in outcome.best.candidate.actions} == BEST


def test_what_a_model_writes_depends_on_its_seed_alone(trained: Path) -> None:
    policy = Policy.load(trained)
    writing = Writing(Moves(SPACE), Places())
    texts = ["program roof? collapse write", "program roof1 sum e20 prune try x+2 collapse ; write"]
    one, again, other = (policy.write(texts, [writing] * 2, [[()]] * 2, seed) for seed in (1, 1, 2))
    assert one == again and one != other
    for answer in itertools.chain(one, other):
        assert answer.words[-1] == END and answer.words[-2] == STOP and len(answer.tokens) == len(answer.allowed) == len(answer.words)


def test_a_folder_without_a_policy_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the policy's model needs transformers (extra learn)")
    with pytest.raises(UsageError, match=r"policy\.json"):
        Policy.load(tmp_path)


def test_the_policy_that_ships_is_small_and_reads_a_program_of_its_kind(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the policy's model needs transformers (extra learn)")
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 10_000_000 and (SHIPPED / "README.md").is_file()
    policy = Policy.load(SHIPPED)
    words = {"@0", "input", "softmax", "linear", "conv2d", "e20", "axes2", "fuse_cuda", "block", "128"}
    assert not policy.unread(words) and policy.unread(["cdist"]) == ["cdist"]
    [file] = random_tasks.write(tmp_path, 1, 2, "large")
    space = open_space(Settings(device="cuda").describe(file), "cuda")
    asking = Asking(space)
    known: dict[Recipe, float] = {(): 1.0}
    for seed in range(3):
        [one] = policy.write([asking.prompt(known, Random(seed), 0.5, "contrast")], [asking.writing], [known], seed)
        assert one.recipe not in known and Moves(space).legal(one.recipe) and not policy.unread(one.words)
        known[one.recipe] = 1.5
