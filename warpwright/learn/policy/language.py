"""A language model that writes programs, trained on an archive: fine-tuning on verified variants, then GRPO, both with a LoRA adapter of peft.

    python -m warpwright.learn.policy.language --archive FILE --model NAME --out FOLDER [--steps 100] [--rl-steps 100] [--server PLACE,PLACE]

The prompt is contrastive, after CUDA-L1 (arXiv 2507.14111, section 2.4): the program, two attempts with their measured speed-ups, and an answer in
three parts. An answer is paid what the archive says of its program's text; one that the archive does not know is paid the least. With `--server`
it is paid what resident evaluators measure, to which answers are dealt in turn, several at once: each a folder or HOST:PORT=TOKEN of
`warpwright serve`.
"""

from __future__ import annotations

import argparse
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.adapters.judge import Judge, Where, judged, no_program
from warpwright.archive import Archive
from warpwright.base import BASELINE, Record
from warpwright.errors import MissingExtra, UsageError
from warpwright.learn.policy import rewards
from warpwright.learn.sft import load
from warpwright.policy import prompt
from warpwright.policy.model import rng_of
from warpwright.search.llm.answers import program_of
from warpwright.server.cluster import Evaluators
from warpwright.server.verbs import Verbs

TEMPLATE = Path(__file__).parent / "prompts" / "contrast.txt"


@dataclass(frozen=True)
class Variant:
    """A verified program of a task."""

    text: str
    recipe: str
    speedup: float


@dataclass(frozen=True)
class Written:
    """A task as a language model is asked about it: the original's text, and what is known to be right."""

    name: str
    original: str
    variants: tuple[Variant, ...]
    path: str = ""
    """Of the task's file."""

    def paid(self, text: str) -> float:
        """Return the recorded speed-up of a program's text; 0 where none was recorded."""
        return next((one.speedup for one in self.variants if one.text.strip() == text.strip()), 0.0)


@dataclass(frozen=True)
class Settings:
    """How to train."""

    steps: int = 100
    rate: float = 2e-4
    batch: int = 4
    rl_steps: int = 100
    rl_rate: float = 1e-5
    group: int = 4
    answer: int = 2048
    """Tokens of an answer at most."""
    length: int = 8192
    """Tokens of prompt and answer."""
    rank: int = 16
    modules: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj")
    most: float = 4.0
    """Rewards are log2 of the speed-up, clipped to this either way."""
    seed: int = 0
    at_once: int = 1
    """Answers whose pay is asked for at once."""
    vllm: str = ""
    """`colocate` or `server`: vLLM writes the answers, on the trainer's GPUs or where `trl vllm-serve` runs; "": the trainer's own model."""


def tasks_of(records: Sequence[Record]) -> list[Written]:
    """Return the tasks of some records that have the original and a verified variant."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.task.key, []).append(record)
    tasks = []
    for group in groups.values():
        first = next((one for one in group if one.candidate.proposer == f"{BASELINE}eager"), None)
        passed = [one for one in group if one.speedup > 0 and one.candidate.actions]
        variants = tuple(Variant(one.candidate.source.text, ", ".join(map(str, one.candidate.actions)), one.speedup) for one in passed)
        if first is not None and variants:
            tasks.append(Written(first.task.name, first.candidate.source.text, variants, first.task.path))
    return tasks


def question(task: Written, exemplars: Sequence[Variant]) -> str:
    """Return the prompt."""
    named = zip("AB", exemplars, strict=False)
    shown = [f"\nAttempt {letter}, {one.speedup:.2f} times as fast:\n```\n{one.text}\n```\n" for letter, one in named]
    return TEMPLATE.read_text().format(original=task.original, attempts="".join(shown))


def answer(variant: Variant, exemplars: Sequence[Variant]) -> str:
    """Return the answer that a verified variant stands for; what it says is what was measured."""
    analysis = "There is no other attempt to compare with."
    if len(exemplars) == 2 and exemplars[1].speedup > 0:
        ratio = exemplars[0].speedup / exemplars[1].speedup
        analysis = f"Attempt A is {ratio:.2f} times as fast as attempt B: {exemplars[0].recipe} against {exemplars[1].recipe}."
    return f"1. Analysis: {analysis}\n2. Design: {variant.recipe}.\n3. Code:\n```\n{variant.text}\n```\n"


def exemplars_of(task: Written, seed: str, without: Variant | None = None) -> list[Variant]:
    """Return two variants of distinct speeds, the faster one first."""
    known: dict[Any, float] = {one: one.speedup for one in task.variants if one is not without}
    return [one for one, _ in prompt.draw(known, rng_of(seed, task.name))]  # type: ignore[misc]


def examples(tasks: Sequence[Written], seed: int) -> list[dict[str, str]]:
    """Return a prompt and an answer for each verified variant."""
    pairs = []
    for task in tasks:
        for number, variant in enumerate(task.variants):
            shown = exemplars_of(task, f"{seed} {number}", variant)
            pairs.append({"prompt": question(task, shown), "completion": answer(variant, shown)})
    if not pairs:
        raise UsageError("expected records of verified variants, saw none", "fill the archive with `warpwright collect`")
    return pairs


Paid = Callable[[str, str], float]
"""The speed-up of a program's text, by the task's name and the text; 0 where it did not pass."""


def evaluated(tasks: Sequence[Written], servers: Sequence[tuple[str, str]], device: str) -> Paid:
    """Return what pays the speed-up that resident evaluators measure; texts are dealt to `servers`, places and their tokens, in turn."""
    paths = {task.name: task.path for task in tasks}
    judges: dict[tuple[str, str], Judge] = {}
    turns, lock = itertools.count(), threading.Lock()

    def paid(name: str, text: str) -> float:
        with lock:
            server, token = servers[next(turns) % len(servers)]
            if (name, server) not in judges:
                judges[name, server] = Judge(Where(paths[name], server, token, device=device, baselines=("eager",)))
        return judges[name, server].score(text).score

    return paid


def over(verbs: Verbs, tasks: Sequence[Written], device: str) -> Paid:
    """Return what pays the speed-up that `verbs` measure, such as evaluators on a cluster; 0 for what is no program, too."""
    paths = {task.name: task.path for task in tasks}

    def paid(name: str, text: str) -> float:
        if no_program(text):
            return 0.0
        return judged(verbs.evaluate(Path(paths[name]), {"text": text}, device=device, baselines=["eager"])).score

    return paid


def train(
    tasks: Sequence[Written], model: Any, tokenizer: Any, out: Path, settings: Settings, paid: Paid | None = None
) -> Mapping[str, list[float]]:
    """Train an adapter in two stages, merge it into the model and save that in `out`; return the losses of the first stage, rewards of the second."""
    try:
        from datasets import Dataset
        from peft import LoraConfig
        from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
    except ImportError as error:
        raise MissingExtra(error.name or "trl", "learn", "training a language model") from error
    by_name = {task.name: task for task in tasks}
    pay = paid or (lambda name, text: by_name[name].paid(text))
    common = {"learning_rate": settings.rate, "seed": settings.seed, "report_to": [], "save_strategy": "no", "logging_steps": 1, "disable_tqdm": True}
    adapter = LoraConfig(r=settings.rank, lora_alpha=2 * settings.rank, target_modules=list(settings.modules), task_type="CAUSAL_LM")
    how = SFTConfig(
        output_dir=str(out / "supervised"), max_steps=settings.steps, per_device_train_batch_size=settings.batch, max_length=settings.length,
        completion_only_loss=True, bf16=_has_bfloat16(), **common,
    )  # fmt: skip
    data = Dataset.from_list(examples(tasks, settings.seed))
    first = SFTTrainer(model=model, args=how, train_dataset=data, processing_class=tokenizer, peft_config=adapter)
    first.train()
    losses = [line["loss"] for line in first.state.log_history if "loss" in line]

    def reward(completions: list[str], task: list[str], **others: Any) -> list[float]:
        with ThreadPoolExecutor(settings.at_once) as threads:
            speedups = threads.map(pay, task, [program_of(text, ("",)) for text in completions])
            return [rewards.log(one, settings.most) for one in speedups]

    rows = [{"prompt": question(task, exemplars_of(task, f"{settings.seed} rl {n}")), "task": task.name} for task in tasks for n in range(8)]
    rl = GRPOConfig(
        output_dir=str(out / "contrastive"), max_steps=settings.rl_steps, per_device_train_batch_size=settings.group, num_generations=settings.group,
        max_completion_length=settings.answer, scale_rewards="none", loss_type="dr_grpo", bf16=_has_bfloat16(),
        **{**common, "learning_rate": settings.rl_rate}, **({"use_vllm": True, "vllm_mode": settings.vllm} if settings.vllm else {}),
    )  # fmt: skip
    paid_rewards: list[float] = []
    if settings.rl_steps:
        second = GRPOTrainer(model=first.model, reward_funcs=reward, args=rl, train_dataset=Dataset.from_list(rows), processing_class=tokenizer)
        second.train()
        paid_rewards = [line["reward"] for line in second.state.log_history if "reward" in line]
    merged = first.model.merge_and_unload()
    merged.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return {"losses": losses, "rewards": paid_rewards}


def _has_bfloat16() -> bool:
    import torch

    return torch.cuda.is_available() and torch.cuda.is_bf16_supported()


def main(arguments: Sequence[str] | None = None) -> None:
    """Train from the command line."""
    parser = argparse.ArgumentParser(prog="python -m warpwright.learn.policy.language", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--archive", required=True, type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--steps", type=int, default=Settings.steps)
    parser.add_argument("--rl-steps", type=int, default=Settings.rl_steps)
    parser.add_argument("--server", default="", help="resident evaluators that pay for answers: folders or HOST:PORT=TOKEN, comma-separated")
    parser.add_argument("--evaluators", type=int, default=0, help="in their place so many actors of the Ray cluster of RAY_ADDRESS, one a GPU")
    parser.add_argument("--device", default="cuda", help="of these (%(default)s)")
    parser.add_argument("--jobs", type=int, default=8, help="answers that these are asked for at once (%(default)s)")
    parser.add_argument("--vllm", default="", choices=["", "colocate", "server"], help="have vLLM write the answers")
    options = parser.parse_args(arguments)
    with Archive(options.archive, readonly=True) as archive:
        tasks = tasks_of(archive.records())
    model, tokenizer = load(options.model, False)
    servers = [(place, token) for place, _, token in (one.partition("=") for one in options.server.split(","))]
    with ExitStack() as held:
        paid = evaluated(tasks, servers, options.device) if options.server else None
        if options.evaluators:
            paid = over(held.enter_context(Evaluators(options.evaluators)), tasks, options.device)
        settings = Settings(steps=options.steps, rl_steps=options.rl_steps, at_once=options.jobs if paid else 1, vllm=options.vllm)
        summary = train(tasks, model, tokenizer, options.out, settings, paid)
    print(f"loss {summary['losses'][0]:.3f} -> {summary['losses'][-1]:.3f}; merged model in {options.out}")


if __name__ == "__main__":
    main()
