"""The three stages of training, each TRL's own trainer: fine-tuning on verified variants, on the policy's own correct answers, and contrastive RL.

    1  supervised        every variant that passed, whatever its speed                       SFTTrainer
    2  self-supervised   sample, evaluate, keep what passed, fine-tune on it                 SFTTrainer
    3  contrastive       exemplars with speeds in the prompt, speed-up as the reward         GRPOTrainer

After CUDA-L1 (arXiv 2507.14111, sections 2.2 to 2.4). A stage goes on from the last whole checkpoint in its folder. Random numbers of the data come
from seed, stage and step alone, so that a stage that was killed ends as one that was not.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from warpwright.errors import MissingExtra, UsageError
from warpwright.learn.policy import rewards
from warpwright.learn.policy.config import Config
from warpwright.learn.policy.constrained import Constrained
from warpwright.learn.policy.log import Log, callback, last_whole
from warpwright.policy.model import NOTES, Policy, rng_of
from warpwright.policy.prompt import Exemplars
from warpwright.policy.search import Asking
from warpwright.policy.writing import END
from warpwright.search.moves import Recipe, distinct

WRITTEN_AT_ONCE = 128
"""Answers in one call of the model."""


ADVANTAGES: Mapping[str, Mapping[str, str]] = {
    "leave_one_out": {"scale_rewards": "none", "loss_type": "dr_grpo"},
    "group": {"scale_rewards": "group", "loss_type": "grpo"},
}
"""What the trainer is told. Over the group's own mean, an advantage is the leave-one-out advantage times (group - 1) / group: a part of the rate."""


TYPICAL = 16
"""Words of a recipe: a constant that the loss `dr_grpo` is divided by; no answer is cut at it."""


class Answering(Protocol):
    """A task that answers: from what was recorded (`recorded.py`), or by the evaluator (`live.py`)."""

    @property
    def name(self) -> str:
        """Tells it from the others."""
        ...

    @property
    def roof(self) -> float | None:
        """Where the original stands under the roof."""
        ...

    @property
    def speedups(self) -> Mapping[Recipe, float]:
        """What is known of it, the original's () included."""
        ...

    def asking(self) -> Asking:
        """Return it as the policy is asked about it."""
        ...

    def answers(self, recipes: Sequence[Recipe]) -> list[float]:
        """Return the speed-up of each recipe, 0 for what did not pass."""
        ...


def known_part(task: Answering, rng: Any, most: int, without: Recipe | None = None) -> dict[Recipe, float]:
    """Return the original and up to `most` other recipes of a task, drawn: what is known when a prompt is made."""
    others = [recipe for recipe in task.speedups if recipe and recipe != without]
    drawn = rng.sample(others, min(len(others) - 1, rng.randint(0, most))) if len(others) > 1 else []
    return {(): 1.0, **{recipe: task.speedups[recipe] for recipe in drawn}}


def supervised(policy: Policy, tasks: Sequence[Answering], config: Config, seed: int, folder: Path, log: Log) -> None:
    """Fine-tune on every verified variant of the training tasks."""
    pairs = [(task, recipe) for task in tasks for recipe, speedup in task.speedups.items() if recipe and speedup > 0]
    chosen = pairs * config.supervised.prompts
    examples = _examples(policy, chosen, config.contrastive.exemplars, config.contrastive.known, f"{seed} supervised")
    _fine_tune(policy, examples, config, config.supervised.epochs, config.supervised.rate, seed, folder, log)


def self_supervised(policy: Policy, tasks: Sequence[Answering], config: Config, seed: int, folder: Path, log: Log) -> None:
    """Fine-tune on those of the policy's own answers that pass. Speed plays no role."""
    stage = config.self_supervised
    for number in range(stage.rounds):
        asked = [task for task in tasks for _ in range(stage.samples)]
        exploring = replace(policy, notes=replace(policy.notes, temperature=config.contrastive.temperature))
        answers = sampled(exploring, asked, config.contrastive.known, f"{seed} round {number}")
        passed = _answers(asked, answers, config.data.jobs)
        kept = [(task, recipe) for task, recipe, speedup in zip(asked, answers, passed, strict=True) if recipe and speedup > 0]
        log.add(stage="self_supervised", round=number, sampled=len(answers), passed=len(kept))
        examples = _examples(policy, kept, config.contrastive.exemplars, config.contrastive.known, f"{seed} kept {number}")
        _fine_tune(policy, examples, config, stage.epochs, stage.rate, seed, folder / f"round_{number}", log)


def sampled(policy: Policy, asked: Sequence[Answering], most: int, seed: str) -> list[Recipe]:
    """Return one recipe of the policy for each task asked."""
    answers: list[Recipe] = []
    for start in range(0, len(asked), WRITTEN_AT_ONCE):
        rng = rng_of(seed, start)
        part = asked[start : start + WRITTEN_AT_ONCE]
        known = [known_part(task, rng, most) for task in part]
        askings = _askings(part)
        prompts = [askings[task.name].prompt(one, rng, task.roof, policy.notes.exemplars) for task, one in zip(part, known, strict=True)]
        written = policy.write(prompts, [askings[task.name].writing for task in part], known, rng.getrandbits(32))
        answers += [one.recipe for one in written]
    return answers


def _answers(tasks: Sequence[Answering], recipes: Sequence[Recipe], at_once: int = 1) -> list[float]:
    """Return the speed-up of each recipe of its task; a task's own are evaluated together, `at_once` tasks side by side."""

    def answered(task: Answering) -> dict[tuple[str, Recipe], float]:
        own = distinct(recipe for one, recipe in zip(tasks, recipes, strict=True) if one.name == task.name)
        return {(task.name, recipe): speedup for recipe, speedup in zip(own, task.answers(own), strict=True)}

    asked = {task.name: task for task in tasks}.values()
    with ThreadPoolExecutor(at_once) if at_once > 1 else nullcontext() as threads:
        answers = list(threads.map(answered, asked) if threads is not None else map(answered, asked))
    speedups = {key: speedup for own in answers for key, speedup in own.items()}
    return [speedups[task.name, recipe] for task, recipe in zip(tasks, recipes, strict=True)]


def _askings(tasks: Sequence[Answering]) -> Mapping[str, Asking]:
    return {name: task.asking() for name, task in {task.name: task for task in tasks}.items()}


def _examples(
    policy: Policy, pairs: Sequence[tuple[Answering, Recipe]], exemplars: Exemplars, most: int, seed: str
) -> list[dict[str, Any]]:
    """Return prompt and recipe of each pair as tokens, with a mask of what is to be learnt."""
    rng, askings = rng_of(seed), _askings([task for task, _ in pairs])
    examples = []
    for task, recipe in pairs:
        asking = askings[task.name]
        asked = policy.tokenizer(asking.prompt(known_part(task, rng, most, recipe), rng, task.roof, exemplars))["input_ids"]
        answer = policy.tokenizer.convert_tokens_to_ids([*asking.places.recipe(recipe), END])
        examples.append({"input_ids": [*asked, *answer], "completion_mask": [0] * len(asked) + [1] * len(answer)})
    return examples


def _fine_tune(
    policy: Policy, examples: Sequence[Mapping[str, Any]], config: Config, epochs: float, rate: float, seed: int, folder: Path, log: Log
) -> None:
    try:
        from datasets import Dataset
        from transformers import PrinterCallback
        from trl import SFTConfig, SFTTrainer
    except ImportError as error:
        raise MissingExtra(error.name or "trl", "learn", "training the policy") from error
    if not examples:
        return
    with _quiet():
        how = SFTConfig(
            **_common(folder, seed, rate), num_train_epochs=epochs, per_device_train_batch_size=config.supervised.batch,
            max_length=config.model.context, completion_only_loss=True, save_strategy="epoch",
        )  # fmt: skip
        trainer = SFTTrainer(
            model=policy.model, args=how, train_dataset=Dataset.from_list(list(examples)), processing_class=policy.tokenizer,
            callbacks=[callback(log, folder)],
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=log.resumed(folder, last_whole(folder)))
    policy.model = trainer.model


def contrastive(policy: Policy, tasks: Sequence[Answering], config: Config, seed: int, folder: Path, log: Log) -> None:
    """Reinforce what is fast. A prompt's group of answers is compared with itself."""
    try:
        from datasets import Dataset
        from transformers import PrinterCallback
        from trl import GRPOConfig, GRPOTrainer
    except ImportError as error:
        raise MissingExtra(error.name or "trl", "learn", "training the policy") from error
    stage = config.contrastive
    by_name = {task.name: task for task in tasks}
    askings = _askings(tasks)
    paid = rewards.of(stage)
    rules = Constrained()
    exploring = replace(policy.notes, temperature=stage.temperature)

    def rollout(prompts: list[str], trainer: Any) -> dict[str, Any]:
        """Write and evaluate a step's answers. A data set's prompt is a task's name; the real one is made here, one for each group."""
        rng = rng_of(seed, "contrastive", trainer.state.global_step)
        texts: list[str] = []
        known: list[dict[Recipe, float]] = []
        for name in prompts[:: stage.group]:
            one = known_part(by_name[name], rng, stage.known)
            texts += [askings[name].prompt(one, rng, by_name[name].roof, stage.exemplars)] * stage.group
            known += [one] * stage.group
        asked = Policy(trainer.accelerator.unwrap_model(trainer.model), policy.tokenizer, exploring)
        written = asked.write(texts, [askings[name].writing for name in prompts], known, rng.getrandbits(32))
        rules.remember(written)
        return {
            "prompt_ids": [one.prompt_tokens for one in written],
            "completion_ids": [one.tokens for one in written],
            "logprobs": None,
            "env_mask": [[int(len(legal) > 1) for legal in one.allowed] for one in written],
            "speedup": _answers([by_name[name] for name in prompts], [one.recipe for one in written], config.data.jobs),
        }

    def reward(completions: list[str], speedup: list[float], **others: Any) -> list[float]:
        return [paid(one) for one in speedup]

    batch = stage.groups * stage.group
    rows = [{"prompt": name} for name in in_order([task.name for task in tasks for _ in range(stage.groups)], stage.groups, stage.steps, seed)]
    reference = folder / "reference"  # the trainer reads from a folder what the policy is not to leave too far
    if not (reference / NOTES).is_file():
        policy.save(reference)
    with _quiet():
        how = GRPOConfig(
            **_common(folder, seed, stage.rate), **ADVANTAGES[stage.baseline], max_steps=stage.steps, per_device_train_batch_size=batch,
            num_generations=stage.group, steps_per_generation=1, max_completion_length=TYPICAL, temperature=stage.temperature, beta=stage.beta,
            epsilon=stage.clip, save_strategy="steps", save_steps=stage.checkpoint, shuffle_dataset=False,
        )  # fmt: skip
        trainer = GRPOTrainer(
            model=Policy.load(reference).model, reward_funcs=reward, args=how, train_dataset=Dataset.from_list(rows),
            processing_class=policy.tokenizer, callbacks=[callback(log, folder)], rollout_func=rollout,
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)
        for model in filter(None, (trainer.model, trainer.ref_model)):
            rules.watch(model, stage.temperature)
        trainer.train(resume_from_checkpoint=log.resumed(folder, last_whole(folder)))
    policy.model, policy.notes = trainer.model, replace(policy.notes, temperature=stage.asked_at)


def in_order(names: Sequence[str], count: int, steps: int, seed: int) -> list[str]:
    """Return `count` prompts for each step: all of `names` in a drawn order, then in another one.

    As the trainer would shuffle them. But its sampler begins with its first order again when a training goes on from a checkpoint, whatever that
    training had come to: one that was killed after its first round ended with other weights.
    """
    import torch

    generator, found, most = torch.Generator().manual_seed(seed), list[str](), len(names) // count * count
    if not most:
        raise UsageError("expected tasks to train on, saw none", "collect more")
    while len(found) < steps * count:
        drawn = torch.randperm(len(names), generator=generator).tolist()
        found += [names[number] for number in drawn[:most]]
    return found[: steps * count]


def _common(folder: Path, seed: int, rate: float) -> dict[str, Any]:
    """Return what both trainers are told."""
    return {
        "output_dir": str(folder), "learning_rate": rate, "seed": seed, "data_seed": seed, "report_to": [], "use_cpu": True, "bf16": False,
        "gradient_checkpointing": False, "disable_tqdm": True, "logging_steps": 1, "save_total_limit": 2, "lr_scheduler_type": "cosine",
        "full_determinism": False, "dataloader_pin_memory": False,
    }  # fmt: skip


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what the trainers say of features that we chose on purpose, and their bars: the log says how far a stage is."""
    from datasets import disable_progress_bars
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    disable_progress_bars()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
