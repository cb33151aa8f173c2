"""What an original draws from torch's default generators, on the CPU or on a GPU: repeated for each call, and in float64."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpus
import pytest

from warpwright.base import Case, Source, Task
from warpwright.tasks import taskfile
from warpwright.verifier import verify
from warpwright.verifier.draw import Draw, with_draw
from warpwright.verifier.judge.behaviour import behaviour_of
from warpwright.verifier.judge.certificate import certify
from warpwright.verifier.judge.original.device_memory import Memory
from warpwright.verifier.judge.original.draws import Draws, Repeating, is_pure
from warpwright.verifier.judge.original.reference import Original
from warpwright.workers.inside import generators

torch = pytest.importorskip("torch")

TEXT = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return {body}


def get_inputs():
    return [torch.rand(4, 32)]


def get_init_inputs():
    return []
"""

FIRST, SECOND = Case("nominal", 3), Case("nominal", 4)


def task_of(folder: Path, body: str) -> Task:
    path = folder / "task.py"
    path.write_text(TEXT.format(body=body))
    return taskfile.describe(path)


def opened(task: Task) -> tuple[Original, dict[str, Any]]:
    original = Original(task, "cpu", 7, 1 << 30)
    return original, behaviour_of(original, Memory("cpu")).facts


@pytest.fixture
def second_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.Generator]:
    """A generator that stands for a GPU's default one."""
    generator = torch.Generator()
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "default_generators", (generator,))
    yield generator


DRAWING = [
    "x + torch.randn(4, 32)", "torch.nn.functional.dropout(x, 0.5)", "x + torch.randn_like(x).cumsum(1)", "x[:, torch.randperm(32)]",
    "x * torch.empty_like(x).uniform_(1, 2)", "x * torch.randint(1, 5, (4, 1))", "x + torch.normal(0.0, 1.0, (4, 32))",
    "torch.nn.functional.dropout(x, 0.5) + torch.rand(32) * torch.empty(4, 1).exponential_()", "x.to(torch.bfloat16) * torch.randn(4, 1).bfloat16()",
]  # fmt: skip


@pytest.mark.parametrize("body", DRAWING)
def test_float64_draws_what_the_original_draws(tmp_path: Path, body: str) -> None:
    original, facts = opened(task_of(tmp_path, body))
    assert facts["random"] and original.draws.matter and not original.random and not facts["stateful"]
    answer = original.answer(FIRST, 0)
    assert answer.conditioned and answer.leaves[0].original.rms < 0.01 * answer.leaves[0].scale.rms  # bfloat16 has three digits
    exact = answer.leaves[0].exact
    original.forget()
    assert torch.equal(original.answer(FIRST, 0).leaves[0].exact, exact)
    other = with_draw(FIRST, Draw(drawn=1))
    assert torch.equal(original.inputs(other)[0], original.inputs(FIRST)[0])
    assert not torch.equal(original.answer(other, 0).leaves[0].exact, exact)


def test_the_generators_are_where_they_were(tmp_path: Path) -> None:
    original, _ = opened(task_of(tmp_path, DRAWING[0]))
    before = generators.states()
    original.answer(FIRST, 0)
    original.answer(SECOND, 0)
    assert generators.states() == before


def test_draws_from_the_generator_of_a_device_are_seen(tmp_path: Path, second_device: torch.Generator) -> None:
    """The CPU's alone were: on a GPU whoever drew as the original did was refused for a generator that had moved on."""
    body = "x + torch.randn(4, 32, generator=torch.cuda.default_generators[0])"
    original, facts = opened(task_of(tmp_path, body))
    assert facts["random"] and original.draws.matter and not original.random
    answer, before = original.answer(FIRST, 0), second_device.get_state()
    generators.begin_at(original.draws.seed_of(FIRST) or 0)
    seen = original.inputs(FIRST)[0] + torch.randn(4, 32, generator=second_device)
    assert float((seen - answer.leaves[0].exact).abs().max()) < 1e-6
    with generators.seeded(5):
        assert not torch.equal(second_device.get_state(), before)


def test_all_generators_begin_at_the_seed_and_come_back(second_device: torch.Generator) -> None:
    before = generators.states()
    assert len(before) == 2
    with generators.seeded(5):
        drawn = torch.rand(3), torch.rand(3, generator=second_device)
        assert torch.equal(*drawn)
    assert generators.states() == before


def test_a_worker_asks_no_names_that_a_program_may_give_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator of a GPU's in torch's list, where there was none, was told the seed before the call, and drew ahead of the clock."""
    noted, told = generators.of_process("cpu"), []

    class Ear:
        def manual_seed(self, seed: int) -> None:
            told.append(seed)

        def __bool__(self) -> bool:
            told.append(0)
            return True

    monkeypatch.setattr(torch.cuda, "_initialized", Ear())
    monkeypatch.setattr(torch.cuda, "default_generators", (Ear(),))
    monkeypatch.setattr(torch, "default_generator", Ear())
    generators.begin_at(14, noted)
    assert len(generators.states(noted)) == 1 and not told
    assert noted[0].initial_seed() == 7


def test_other_draws_are_later_ones_of_the_same_seed(tmp_path: Path) -> None:
    """Else whoever begins anew at the seed in each call is right in all of them, and wrong for a user, who seeds once."""
    draws = opened(task_of(tmp_path, DRAWING[0]))[0].draws
    generator = torch.Generator()
    for case in (FIRST, with_draw(FIRST, Draw(drawn=1))):
        generators.begin_at(draws.seed_of(case) or 0, [generator])
        assert generator.initial_seed() == (draws.seed_of(FIRST) or 0) >> 1
    later = torch.rand(3, generator=generator)
    generator.manual_seed(generator.initial_seed())
    assert torch.equal(torch.rand(generators.AHEAD + 3, generator=generator)[-3:], later)


def test_it_is_known_where_a_call_leaves_the_generators(tmp_path: Path) -> None:
    original, _ = opened(task_of(tmp_path, "x + torch.randn(4, 32)"))
    original.run_own(original.inputs(FIRST), 0)
    with generators.seeded(original.draws.seed_of(FIRST) or 0):
        assert original.draws.left != generators.marks()
        torch.randn(4, 32)
        assert original.draws.left == generators.marks()


def test_a_generator_of_the_programs_own_is_left_alone(tmp_path: Path) -> None:
    _, facts = opened(task_of(tmp_path, "x + torch.randn(4, 32, generator=torch.Generator().manual_seed(1))"))
    assert not facts["random"]


def test_who_draws_nothing_is_given_no_seed(tmp_path: Path) -> None:
    original, facts = opened(task_of(tmp_path, "x.exp()"))
    assert not facts["random"] and original.draws.seed_of(FIRST) is None


def test_each_case_has_a_seed_and_a_variation_that_of_what_it_varies(tmp_path: Path) -> None:
    draws = opened(task_of(tmp_path, DRAWING[0]))[0].draws
    seeds = [draws.seed_of(case) for case in (FIRST, SECOND, with_draw(FIRST, Draw(drawn=1)))]
    assert len(set(seeds)) == 3
    assert draws.seed_of(with_draw(Case("edited", 99), Draw(of=3))) == draws.seed_of(FIRST)


@pytest.mark.parametrize("body", ["torch.poisson(x)", "torch.multinomial(x, 3)", "torch.normal(x, 1.0)", "torch.bernoulli(x)"])
def test_what_values_decide_of_a_draw_is_unscored(tmp_path: Path, body: str) -> None:
    original, _ = opened(task_of(tmp_path, body))
    certificate = certify(original, (FIRST,), lambda values, case, which: "")
    assert original.random and not certificate.scored
    assert f"inside aten.{body.partition('(')[0].partition('.')[2]}" in certificate.reason


def test_draws_that_change_nothing_are_no_obstacle(tmp_path: Path) -> None:
    """KernelBench's level 3 number 35: a recurrence of 512 steps has forgotten by the last where it began."""
    original, facts = opened(task_of(tmp_path, "x + 0 * torch.poisson(x)"))
    assert facts["random"] and not original.draws.matter and not original.random


def test_a_float64_run_that_draws_otherwise_is_an_error() -> None:
    with pytest.raises(Exception, match="draws otherwise in float64"), Repeating([torch.zeros(3)]):
        torch.randn(4)
    with pytest.raises(Exception, match="draws otherwise in float64"), Repeating([]):
        torch.randn(4)


def test_only_what_is_drawn_alone_is_repeated() -> None:
    aten = torch.ops.aten
    assert is_pure(aten.randn.default, {}) and is_pure(aten.bernoulli_.float, {})
    assert not is_pure(aten.bernoulli_.Tensor, {}) and not is_pure(aten.randn.out, {"out": torch.empty(3)})
    assert not is_pure(aten.rrelu_with_noise.default, {})


def test_a_dropout_of_one_kernel_keeps_what_the_originals_kept() -> None:
    """As on a GPU: there is no such kernel on a CPU, and its mask is all that is repeated."""
    x = torch.rand(4, 8)
    draws = Draws(1)
    draws.found = True
    with draws.recorded() as tape:
        own, mask = torch.native_dropout(x, 0.25, True)
    with draws.repeated(tape):
        wide, again = torch.native_dropout(x.double(), 0.25, True)
    assert torch.equal(mask, again) and torch.allclose(wide, own.double(), rtol=1e-6) and bool((wide == 0).any())


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU; what draws from a second generator runs on the CPU")
@pytest.mark.parametrize("name", ["drawn_state", "dropout_in_training"])
def test_on_a_gpu_who_draws_as_the_original_does_is_right(name: str) -> None:
    task = corpus.task(name)
    text = (corpus.HERE / "tasks" / f"{name}.py").read_text()
    with verify.Judge(task, "cuda:0") as judge:
        assert judge.facts["random"] and judge.certify().scored, judge.certify().reason
        source = Source("python", (("candidate.py", text.replace("class Model(", "class ModelNew(")),))
        built, verdict = verify.audit(task, source, "cuda:0", judge=judge)
        assert built.ok and verdict.ok, verdict.reason
        for program in [one for one in corpus.programs("cheats") if one.task == name]:
            _, refused = verify.audit(task, program.source, "cuda:0", judge=judge)
            assert not refused.ok and refused.check in program.checks, f"{program.name}: {refused.check} {refused.reason}"
