"""Models that nobody wrote for warpwright, from transformers, timm and torch: is each captured, is what is written right, is it faster?

    python -m benchmarks.third_party [NAME ...] [--out FILE]
    python -m benchmarks.third_party [NAME ...] --budget 60s [--device cpu] [--limit N] [--out FILE]   24 times the budget: 24 minutes, 12 with 30s
    python -m benchmarks.third_party --budget 30s --device cuda --jobs 4 --minutes 4 --out FILE        several at once, on a GPU
    python -m benchmarks.third_party --more ...           those of models/more.py instead (--fifth, --sixth: of models/fifth.py, ...)

Small configurations, random weights. Each model goes through the front door as `optimize` does it: saved as a task, captured, rewritten by every
rewrite that folds or drops work, loaded again from its text. Its error against float64 may be twice the original's. With a budget each is given
to `warpwright.optimize` with calibrated weights, in a process of its own, and a row has the verdict, the times and the reason. A row says what did
not work and why. Packages that are missing give rows that say so. With `--out FOLDER/rows.jsonl` the rows are there after each model, and a
README.md at the end, whose table `python -m benchmarks.tables` writes; with `--trace`, FOLDER/logs/MODEL.txt says where the time of each went.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import inspect
import json
import logging
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.models import eighth, fifth, more, real_draws, seventh, sixth
from benchmarks.models.small_configs import NotMade
from benchmarks.timing import phases
from warpwright.base import Budget, Record
from warpwright.domains import graph
from warpwright.domains.graph.capture import results
from warpwright.errors import WarpwrightError
from warpwright.tasks import taskfile
from warpwright.tasks.modules import saved_module
from warpwright.timing import facts

TECHNIQUES = (
    "remove_dead", "identity", "unused_indices", "merge_clamps", "scalar_into_linear", "bias_into_linear", "fold_batch_norm", "fold_parameters",
)  # fmt: skip
MOST = 60
GRACE = 1.1

Inputs = tuple[Any, ...] | Mapping[str, Any]
Maker = Callable[[], tuple[nn.Module, Inputs]]


def _tokens(length: int = 12) -> torch.Tensor:
    return torch.randint(5, 90, (2, length))


def _text(name: str, *, cache: bool = False, mask: bool = True, **config: Any) -> Maker:
    def make() -> tuple[nn.Module, Inputs]:
        import transformers

        sizes = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
        kind = name.removesuffix("Model").removesuffix("ForCausalLM").removesuffix("LMHead")
        made = getattr(transformers, f"{kind}Config")(**{**sizes, **config})
        made.use_cache = cache
        ids = _tokens()
        inputs = {"input_ids": ids} | ({"attention_mask": torch.ones_like(ids)} if mask else {})
        return getattr(transformers, name)(made), inputs

    return make


def _seq2seq() -> tuple[nn.Module, Inputs]:
    import transformers

    config = transformers.T5Config(vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False)
    return transformers.T5Model(config), {"input_ids": _tokens(), "decoder_input_ids": _tokens(6)}


def _image(name: str, **config: Any) -> Maker:
    def make() -> tuple[nn.Module, Inputs]:
        import transformers

        made = getattr(transformers, name.removesuffix("Model") + "Config")(**config)
        return getattr(transformers, name)(made), {"pixel_values": torch.rand(1, 3, 32, 32)}

    return make


def _with_cache() -> tuple[nn.Module, Inputs]:
    import transformers

    model, inputs = _text("GPT2Model", cache=True, n_embd=32, n_layer=2, n_head=4)()
    cache = transformers.DynamicCache(config=model.config)
    name = next(name for name in ("cache", "past_key_values") if name in inspect.signature(model.forward).parameters)  # the newer one first
    model(inputs["input_ids"], **{name: cache})  # type: ignore[call-overload]
    return model, {"input_ids": _tokens(1), name: cache}


def _timm(name: str, size: int = 64, **options: Any) -> Maker:
    def make() -> tuple[nn.Module, Inputs]:
        import timm  # type: ignore[import-not-found]

        return timm.create_model(name, pretrained=False, num_classes=10, **options), (torch.rand(1, 3, size, size),)

    return make


class ResidualBlock(nn.Module):
    """A UNet's block as diffusers has it: group norms, SiLU, a time embedding, a skip connection, and attention."""

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (nn.GroupNorm(8, channels) for _ in range(3))
        self.conv1, self.conv2 = nn.Conv2d(channels, channels, 3, padding=1), nn.Conv2d(channels, channels, 3, padding=1)
        self.time = nn.Linear(64, channels)
        self.attention = nn.MultiheadAttention(channels, 4, batch_first=True)

    def forward(self, sample: torch.Tensor, temb: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the block's sample."""
        hidden = self.conv1(nn.functional.silu(self.norm1(sample)))
        hidden = hidden + self.time(nn.functional.silu(temb))[:, :, None, None]
        hidden = sample + self.conv2(nn.functional.silu(self.norm2(hidden)))
        flat = self.norm3(hidden).flatten(2).transpose(1, 2)
        return {"sample": hidden + self.attention(flat, flat, flat, need_weights=False)[0].transpose(1, 2).view_as(hidden)}


def _own(model: Callable[[], nn.Module], *inputs: Callable[[], torch.Tensor], **keywords: Callable[[], torch.Tensor]) -> Maker:
    return lambda: (model(), {name: make() for name, make in keywords.items()} or tuple(make() for make in inputs))


_SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32, "patch_size": 8}

MODELS: Mapping[str, Maker] = {
    "bert": _text("BertModel"),
    "distilbert": _text("DistilBertModel", dim=32, hidden_dim=64, n_layers=2, n_heads=4),
    "roberta": _text("RobertaModel"),
    "electra": _text("ElectraModel", embedding_size=32),
    "albert": _text("AlbertModel", embedding_size=16),
    "gpt2": _text("GPT2Model", n_embd=32, n_layer=2, n_head=4),
    "gpt2_lm": _text("GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=4),
    "gpt2_given_a_cache": _with_cache,
    "opt": _text("OPTModel", ffn_dim=64, word_embed_proj_dim=32),
    "llama": _text("LlamaModel", num_key_value_heads=2),
    "llama_lm": _text("LlamaForCausalLM", num_key_value_heads=2),
    "mistral": _text("MistralModel", num_key_value_heads=2),
    "qwen2": _text("Qwen2Model", num_key_value_heads=2),
    "t5": _seq2seq,
    "vit_transformers": _image("ViTModel", **_SMALL),
    "dinov2": _image("Dinov2Model", **{**_SMALL, "mlp_ratio": 2}),
    "vit_timm": _timm("vit_tiny_patch16_224", img_size=64),
    "convnext_timm": _timm("convnext_atto"),
    "resnet_timm": _timm("resnet18"),
    "mobilenet_timm": _timm("mobilenetv3_small_050"),
    "efficientnet_timm": _timm("efficientnet_b0"),
    "mixer_timm": _timm("mixer_s32_224", size=224),
    "unet_block": _own(ResidualBlock, sample=lambda: torch.randn(1, 32, 8, 8), temb=lambda: torch.randn(1, 64)),
    "lstm": _own(lambda: nn.LSTM(8, 16, 2, batch_first=True), lambda: torch.randn(2, 20, 8)),
}

EVERY: Mapping[str, Maker] = {**MODELS, **more.MODELS, **fifth.MODELS, **sixth.MODELS,
                                 **seventh.MODELS, **eighth.MODELS, **real_draws.MODELS}  # fmt: skip


def in_order(model: nn.Module, inputs: Inputs) -> list[Any]:
    """Return the inputs as positional arguments; keywords take their places in the signature, with defaults between."""
    if not isinstance(inputs, Mapping):
        return list(inputs)
    bound = inspect.signature(model.forward).bind(**inputs)
    last = list(bound.arguments)[-1]
    bound.apply_defaults()
    values = list(bound.arguments.items())
    return [value for _, value in values[: [name for name, _ in values].index(last) + 1]]


def exact_steps(space: Any) -> list[Any]:
    """Return a recipe of exact rewrites, MOST at most, each at the first place that is legal."""
    recipe: list[Any] = []
    ir = space.start
    while len(recipe) < MOST:
        action = next((a for t in space.techniques if t.name in TECHNIQUES for a in t.sites(ir)), None)
        if action is None:
            break
        ir = space.apply(ir, action)
        recipe.append(action)
    return recipe


def leaves(value: Any) -> list[torch.Tensor]:
    """Return the tensors of what a call returned, in float64."""
    flat: list[Any] = []
    results.flatten(value, flat)
    return [leaf.double() for leaf in flat if isinstance(leaf, torch.Tensor)]


def error_of(found: list[torch.Tensor], exact: list[torch.Tensor]) -> float:
    """Return the largest error of a result over its largest number, of the worst result."""
    errors = [float((a - b).abs().max() / b.abs().max().clamp_min(1e-30)) for a, b in zip(found, exact, strict=True)]
    return max(errors, default=0.0)  # of no numbers, as a detector's that finds nothing


def attempt(name: str, folder: Path) -> dict[str, Any]:
    """Return one row of the table."""
    begun = time.perf_counter()
    row: dict[str, Any] = {"model": name, "captured": False, "verified": "", "reason": "", "nodes": 0, "steps": 0}
    try:
        torch.manual_seed(0)
        model, inputs = EVERY[name]()
        model.eval()
        given = in_order(model, inputs)
    except ImportError as error:
        return row | {"reason": f"not installed: {error.name}"}
    try:
        saved_module.write(model, given, folder / f"{name}.pt")
        space = graph.space(taskfile.describe(folder / f"{name}.pt"))
        if space.start.unreadable:
            return row | {"reason": space.start.unreadable, "seconds": round(time.perf_counter() - begun, 1)}
        recipe = exact_steps(space)
        candidate = space.candidate(recipe)
        row |= {"captured": True, "nodes": sum(node.op == "call_function" for node in space.start.graph.nodes), "steps": len(recipe)}
        new = taskfile.run_text(candidate.source.text, f"<{name}>", f"third_party_{name}").ModelNew()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # a call that falls back proves nothing
            original, found = leaves(model(*given)), leaves(new(*given))
            wide = [value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value for value in given]
            exact = leaves(copy.deepcopy(model).double()(*wide))
        ours, theirs = error_of(found, exact), error_of(original, exact)
        row["verified"] = "right" if ours <= max(2 * theirs, 1e-6) else "WRONG"
        row |= {"error": ours, "error_original": theirs}
    except (WarpwrightError, RuntimeWarning, RuntimeError, TypeError, ValueError, AttributeError, AssertionError) as error:
        row["reason"] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    return row | {"seconds": round(time.perf_counter() - begun, 1)}


# --- under a budget --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Conditions:
    """How every model is optimised."""

    budget: str
    device: str = "cpu"
    baselines: str = ""
    """Their names with commas between; empty: all that the device has."""
    jobs: int = 1
    """Models at once: one alone is timed at a time."""
    seconds: float = float("inf")
    """Of wall time for all; no model is begun that would not be done by then."""
    logs: str = ""
    """A folder for what each printed, and where its time went."""
    together: bool = False
    """One process takes several models, one after another, as a session does: packages and the server that forks its workers are loaded before."""

    @property
    def each(self) -> float:
        """Seconds of one model, its packages' imports with it."""
        return (Budget.parse(self.budget).seconds or 60.0) + (SOON_SECONDS if self.together else IMPORT_SECONDS)

    @property
    def arguments(self) -> list[str]:
        """Those of the command for one model."""
        chosen = ["--budget", self.budget, "--device", self.device]
        chosen += ["--baselines", self.baselines] if self.baselines else []
        return [*chosen, *(["--trace"] if self.logs else []), *(["--together"] if self.together else [])]


IMPORT_SECONDS, SOON_SECONDS = 15.0, 2.0


def timed(name: str, conditions: Conditions) -> dict[str, Any]:
    """Return the row of a model that `warpwright.optimize` was given: in this process."""
    if not conditions.logs:
        return _timed(name, conditions)
    with phases.traced() as events:
        row = _timed(name, conditions)
    print(phases.text(events), file=sys.stderr, flush=True)
    return row


def _timed(name: str, conditions: Conditions) -> dict[str, Any]:
    import warpwright

    budget, chosen = conditions.budget, tuple(filter(None, conditions.baselines.split(",")))
    row: dict[str, Any] = {"table": "third_party", "model": name, "verdict": "", "speedup": "", "interval": "", "over_eager": "", "seconds": 0.0}
    try:
        torch.manual_seed(0)
        model, inputs = EVERY[name]()
    except ImportError as error:
        return row | {"reason": f"not installed: {error.name}"}
    except NotMade as error:
        return row | {"verdict": "ERROR", "reason": str(error)}
    tried: list[dict[str, Any]] = []
    arguments: dict[str, Any] = {"kwargs": inputs} if isinstance(inputs, Mapping) else {"args": inputs}
    begun = time.perf_counter()
    try:
        result = warpwright.optimize(
            model, **arguments, budget=budget, target=conditions.device, calibrate=True, progress=False, again=True, baselines=chosen,
            callback=lambda record: tried.append(_tried(record)),
        )  # fmt: skip
    except Exception as error:  # of whatever kind: the others go on
        traceback.print_exc()
        row |= {"tried": tried, "verdict": "ERROR", "seconds": round(time.perf_counter() - begun, 1)}
        return row | {"reason": f"{type(error).__name__}: {str(error)[:300]}"}
    seconds, line = round(time.perf_counter() - begun, 1), result.line
    measured = line["baselines"] and {baseline: time and round(time, 4) for baseline, time in line["baselines"].items()}
    low_high = "" if result.interval is None else f"[{result.interval[0]:.2f}, {result.interval[1]:.2f}]"
    allowed = Budget.parse(budget).seconds
    row |= {"kept": allowed is None or seconds <= GRACE * allowed}
    row |= {"verdict": result.verdict, "speedup": f"{result.speedup:.2f}", "interval": low_high, "seconds": seconds}
    row |= {"tried": tried}
    over = f"{result.speedup_over_eager:.2f}" if result.speedup_over_eager else ""
    row |= {"regimes": line["regimes"], "candidates": line["candidates"], "rejected": line["rejected"][:5], "status": line["status"]}
    row |= {"over_eager": over, "ours_ms": line["ours_ms"], "baselines_ms": measured}
    said = "; ".join([*filter(None, [result.reason]), *(f"no time for {what}" for what in result.left_out)])
    return row | {"recipe": "; ".join(result.recipe), "reason": said[:400], "error": line["error"], "error_original": line["error_original"]}


def _tried(record: Record) -> dict[str, Any]:
    """Return what a row keeps of one program."""
    made, recipe = record.measurement, "; ".join(map(str, record.candidate.actions)) or record.candidate.proposer
    said: dict[str, Any] = {"recipe": recipe if len(recipe) < 200 else f"... {recipe[-200:]}"}
    said |= {"status": record.status, "seconds": round(record.seconds, 1)}
    if made is None:
        return said | {"detail": record.detail[:200]}
    names = ("pairs", "correlation_time", "spread_of_pairs", "note")
    said |= {"verdict": made.verdict, "speedup": round(made.speedup, 3), "interval": [round(end, 3) for end in made.interval]}
    return said | {name: made.conditions[name] for name in names if name in made.conditions}


def each_timed(names: list[str], conditions: Conditions) -> Iterator[dict[str, Any]]:
    """Yield the row of each model as soon as it is known; each job's process takes one model, or one after another."""
    end = time.monotonic() + conditions.seconds
    waiting, rows = queue.SimpleQueue[str](), queue.SimpleQueue[dict[str, Any]]()
    for name in names:
        waiting.put(name)

    def work(number: int) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                taken = [waiting.get_nowait()]
                if time.monotonic() + conditions.each > end:
                    rows.put({"table": "third_party", "model": taken[0], "verdict": "", "reason": "not begun: no time was left"})
                    continue
                session = Session(conditions, number)
                try:
                    while session.alive and taken and time.monotonic() + conditions.each <= end:
                        rows.put(session.row(taken.pop()))
                        if conditions.together:
                            taken.append(waiting.get_nowait())
                finally:
                    session.close()
                    for name in taken:
                        waiting.put(name)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(conditions.jobs)]
    for thread in threads:
        thread.start()
    for _ in names:
        yield rows.get()


def on_cores(number: int, jobs: int) -> list[str]:
    """Return the command before that of a job which keeps it to its own share of the cores, where there are two and more for each."""
    cores = sorted(os.sched_getaffinity(0))
    share = len(cores) // jobs
    if jobs == 1 or share < 2 or shutil.which("taskset") is None:
        return []
    return ["taskset", "-c", ",".join(map(str, cores[number * share : (number + 1) * share]))]


class Session:
    """A process that is given names of models and answers with their rows, one a line."""

    def __init__(self, conditions: Conditions, number: int) -> None:
        self.conditions = conditions
        self.alive = True
        self._folder = tempfile.TemporaryDirectory()
        self._said = Path(self._folder.name, "stderr.txt")
        entries = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]  # the process stands elsewhere
        place = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *entries])}
        command = [*on_cores(number, conditions.jobs), sys.executable, "-m", "benchmarks.third_party", *conditions.arguments, "--serve"]
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, cwd=self._folder.name, env=place
            )

    def row(self, name: str) -> dict[str, Any]:
        """Return the row of a model; whatever becomes of the process is one."""
        assert self._process.stdin is not None and self._process.stdout is not None
        began = self._said.stat().st_size
        most = 5 * self.conditions.each + 60.0 if self.conditions.device == "cpu" else 2 * self.conditions.each  # on a machine that does other things
        killed = threading.Event()

        def kill() -> None:
            killed.set()
            self._process.kill()

        late = threading.Timer(most, kill)
        late.start()
        try:
            self._process.stdin.write(f"{name}\n")
            self._process.stdin.flush()
            lines = iter(self._process.stdout.readline, "")
            found: dict[str, Any] = next((json.loads(line) for line in lines if line.startswith('{"table"')), {})
        except BrokenPipeError:
            found = {}
        finally:
            late.cancel()
        said = self._said.read_bytes()[began:].decode(errors="replace")
        _log(name, self.conditions, said)
        if not found:
            self.alive = False
            last = (said.strip().splitlines() or ["nothing was printed"])[-1][:300]
            how = f"did not end within {most:.0f} s" if killed.is_set() else f"ended: {last}"
            return {"table": "third_party", "model": name, "verdict": "ERROR", "reason": f"its process {how}"}
        return found

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


def serve(conditions: Conditions) -> None:
    """Answer names on standard input with rows: what a session's process does."""
    if conditions.together:
        _load_packages()
    for line in sys.stdin:
        print(json.dumps(timed(line.strip(), conditions)), flush=True)


def _load_packages() -> None:
    """Import what the models need, and have the server ready from which workers are forked."""
    from warpwright.workers import fork_server

    names = {"warpwright.tasks.modules.saved_module"}
    for name in ("bert", "resnet_timm"):
        with contextlib.suppress(ImportError):
            names |= saved_module._modules(MODELS[name]()[0])
    preload = sorted(name for name in names if name.partition(".")[0] in ("transformers", "timm"))
    began = time.monotonic()
    fork_server.the_fork_server(preload)
    print(f"the fork server was ready after {time.monotonic() - began:.1f} s", file=sys.stderr)


def _log(name: str, conditions: Conditions, said: str) -> None:
    if conditions.logs not in ("", "-"):
        folder = Path(conditions.logs)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.txt").write_text(said)


def print_timed(names: list[str], conditions: Conditions, out: Path | None) -> None:
    """Print and write a row a model under a budget."""
    rows = []
    for row in each_timed(names, conditions):
        rows.append(row)
        shown = [row.get(key, "") for key in ("model", "verdict", "speedup", "interval", "over_eager", "seconds", "reason")]
        print(f"| {' | '.join(map(str, shown))} |", flush=True)
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text("".join(json.dumps(one) + "\n" for one in apart(rows)))
    print(f"\n{headline(rows)}")
    if out is not None:
        (out.parent / "README.md").write_text(page(rows, conditions.budget, conditions.device))


def apart(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without what is nested in them, and rows of other tables for that: the programs that were tried, the ways of calling, and why
    programs did not pass."""
    nested = {"tried": "programs", "rejected": "rejected", "regimes": "regimes"}
    lines = [{key: value for key, value in row.items() if key not in nested} for row in rows]
    for key, table in nested.items():
        for row in rows:
            held = row.get(key) or []
            held = [{"regime": name, **one} for name, one in held.items()] if isinstance(held, dict) else held
            lines += [{"table": table, "model": row["model"], **one} for one in held]
    return lines


def headline(rows: list[dict[str, Any]]) -> str:
    """Return what the rows come to."""
    ran = [row for row in rows if row["verdict"] not in ("", "ERROR")]
    said = f"{sum(row['verdict'] == 'FASTER' for row in rows)} of {len(rows)} models FASTER than the best of the baselines that fitted, "
    said += f"{sum(bool(row.get('kept')) for row in rows)} within their budget and 10 %; {sum(row['verdict'] == 'SAME' for row in rows)} SAME, "
    said += f"{len(rows) - len(ran)} gave an error or were not installed."
    return textwrap.fill(said, 100)


def page(rows: list[dict[str, Any]], budget: str, device: str) -> str:
    """Return the README of the rows' folder, its table still empty."""
    machine = f"{facts.device_facts(device)['name']}, {os.cpu_count()} cores; torch {torch.__version__}, {time.strftime('%Y-%m-%d')}."
    said = f"{machine} `python -m benchmarks.third_party --budget {budget} --device {device}`: small configurations, drawn well-scaled parameters."
    limits = "- Small configurations: times of a call are milliseconds and below, and most of it is torch's own overhead."
    return (
        f"# Models that nobody wrote for warpwright\n\n## Conditions\n\n{textwrap.fill(said, 100)}\n\n## Headline\n\n{headline(rows)}\n\n"
        f"<!-- table: third_party -->\n<!-- end -->\n\n## Limits\n\n{textwrap.fill(limits, 100)}\n"
    )


def main() -> None:
    """Print a row a model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *EVERY], default=[])
    parser.add_argument("--more", action="store_true", help="where no name is chosen: the models of models/more.py")
    parser.add_argument("--fifth", action="store_true", help="where no name is chosen: the models of models/fifth.py")
    parser.add_argument("--sixth", action="store_true", help="where no name is chosen: the models of models/sixth.py")
    parser.add_argument("--seventh", action="store_true", help="where no name is chosen: the models of models/seventh.py")
    parser.add_argument("--eighth", action="store_true", help="where no name is chosen: the models of models/eighth.py")
    parser.add_argument("--drawn", type=int, choices=list(real_draws.DRAWS), help="where no name is chosen: the models that this seed drew")
    parser.add_argument("--out", type=Path, help="write the rows here too, one JSON object a line")
    parser.add_argument("--budget", help="time each model under this budget of wall time")
    parser.add_argument("--device", "--target", default="cpu")
    parser.add_argument("--baselines", default="", help="those to be timed beside, with commas between (default: all that the device has)")
    parser.add_argument("--jobs", type=int, default=1, help="models at once")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no model is begun that would not be done by then")
    parser.add_argument("--trace", action="store_true", help="write where the time of each model went into logs/ beside the rows")
    parser.add_argument("--limit", type=int, default=len(EVERY), help="no more models than this")
    parser.add_argument("--together", action="store_true", help="a job takes its models in one process, with packages and fork server loaded before")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sets = {"more": more, "fifth": fifth, "sixth": sixth}
    sets |= {"seventh": seventh, "eighth": eighth}
    chosen = next((module.MODELS for name, module in sets.items() if getattr(options, name)), real_draws.DRAWS.get(options.drawn, MODELS))
    names = (options.names or list(chosen))[: options.limit]
    logs = str(options.out.absolute().parent / "logs") if options.trace and options.out is not None else "-" if options.trace else ""
    if options.budget:
        conditions = Conditions(
            options.budget, options.device, options.baselines, options.jobs, 60 * options.minutes, logs, options.together
        )
    if options.serve:
        serve(conditions)
        return
    if options.budget:
        print("| model | verdict | vs best | interval | vs eager | s | reason |\n| --- | --- | --- | --- | --- | --- | --- |")
        print_timed(names, conditions, options.out)
        return
    logging.disable(logging.WARNING)
    rows = []
    print("| model | captured | verified | calls | steps | error / original's | s | reason |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            row = attempt(name, Path(folder))
            rows.append(row)
            errors = f"{row['error']:.1e} / {row['error_original']:.1e}" if "error" in row else ""
            captured = "yes" if row["captured"] else "no"
            shown = [name, captured, row["verified"], row["nodes"] or "", row["steps"] or "", errors, row.get("seconds", "")]
            print(f"| {' | '.join(map(str, shown))} | {row['reason']} |", flush=True)
    print(f"\n{sum(row['captured'] for row in rows)} of {len(rows)} captured, {sum(row['verified'] == 'right' for row in rows)} right")
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    from benchmarks import third_party  # so that the classes above belong to a module that can be imported

    third_party.main()
