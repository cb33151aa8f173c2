"""Draw models by a seed which no file here names: `python -m benchmarks.models.draw [--seed 10] > benchmarks/models/drawn.txt`, 5 minutes.

40 classes of transformers, one an architecture; 20 of timm and torchvision: 12 architectures of timm, 4 of torchvision, 4 layers of timm. An
architecture counts as named where its name is a word of a file in tests, benchmarks, docs, examples or the library. Drawn names of which
`small_configs.py` or the rules here make no model that runs by itself within 30 s are passed over; nothing of warpwright sees a model here. The first
half of each kind is to be opened, the second is not until everything is mended.
"""

from __future__ import annotations

import argparse
import inspect
import random
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.models.small_configs import MOST_PARAMETERS, NotMade
from benchmarks.models.small_configs import make as make_transformers

FOLDERS = ("tests", "benchmarks", "docs", "examples", "warpwright")
OWN = ("drawn.txt", "draw.py")
KINDS = {"transformers": 40, "timm": 12, "torchvision": 4, "timm.layers": 4}
SECONDS = 30
LAYER_WIDTHS = ("dim", "channels", "in_channels", "in_chs", "in_features", "in_planes", "num_features", "num_channels")
Made = tuple[torch.nn.Module, dict[str, Any]]


def named() -> set[str]:
    """Return every word and identifier of the repository's files, in small letters."""
    files = [file for folder in FOLDERS for file in Path(folder).rglob("*") if file.suffix in (".py", ".md", ".jsonl", ".json", ".toml")]
    text = "\n".join(file.read_text(errors="ignore") for file in files if file.name not in OWN).lower()
    return set(re.findall(r"[a-z0-9]+", text)) | set(re.findall(r"[a-z0-9_]+", text))


def unnamed(name: str, words: set[str]) -> bool:
    """Return whether an architecture is in no file."""
    name = name.lower()
    return name not in words and name.replace("-", "_") not in words and re.sub(r"[-_]", "", name) not in words


def of_transformers(words: set[str], drawn: random.Random) -> Iterator[str]:
    """Yield classes in a drawn order, one of each architecture that is not named."""
    import transformers
    from transformers.models.auto import modeling_auto

    classes: dict[str, set[str]] = {}
    for mapping in (getattr(modeling_auto, name) for name in dir(modeling_auto) if name.startswith("MODEL_") and name.endswith("_MAPPING_NAMES")):
        for kind, found in mapping.items():
            classes.setdefault(kind, set()).update([found] if isinstance(found, str) else found)
    kinds = sorted(kind for kind in classes if unnamed(kind, words))
    for kind in drawn.sample(kinds, len(kinds)):
        there = sorted(name for name in classes[kind] if hasattr(transformers, name))
        if there:
            yield drawn.choice(there)


def of_timm(words: set[str], drawn: random.Random) -> Iterator[str]:
    """Yield a small variant of each architecture that is not named."""
    import timm

    modules = [name for name in timm.list_modules() if unnamed(name, words)]
    for module in drawn.sample(modules, len(modules)):
        names = timm.list_models(module=module)
        small = [name for name in names if re.search(r"atto|femto|pico|nano|tiny|small|_t\d*$|_s\d*$|xxs|xs", name)]
        yield drawn.choice(small or names)


def of_torchvision(words: set[str], drawn: random.Random) -> Iterator[str]:
    """Yield models that are not named."""
    import torchvision

    names = [name for name in torchvision.models.list_models() if unnamed(name, words)]
    yield from drawn.sample(names, len(names))


def of_layers(words: set[str], drawn: random.Random) -> Iterator[str]:
    """Yield layers of timm that take one width and are not named."""
    import timm.layers

    kinds = [name for name, kind in vars(timm.layers).items() if inspect.isclass(kind) and issubclass(kind, torch.nn.Module)]
    yield from drawn.sample(kinds := [name for name in sorted(kinds) if unnamed(name, words)], len(kinds))


DRAWS: dict[str, Callable[[set[str], random.Random], Iterator[str]]] = {
    "transformers": of_transformers, "timm": of_timm, "torchvision": of_torchvision, "timm.layers": of_layers,
}  # fmt: skip


def make(kind: str, name: str) -> Made:
    """Return a drawn model in eval mode and its inputs: by keyword those of transformers, of one tensor "0" the others'; raise NotMade."""
    torch.manual_seed(0)
    if kind == "transformers":
        return make_transformers(name)
    makers = {"timm": _timm, "torchvision": _torchvision, "timm.layers": _layer}
    model, choices = makers[kind](name)
    if sum(parameter.numel() for parameter in model.parameters()) > 4 * MOST_PARAMETERS:
        raise NotMade(f"{name} has over {4 * MOST_PARAMETERS} parameters")
    model.eval()
    said = ""
    for x in choices:
        try:
            with torch.no_grad():
                model(x.clone())
        except Exception as error:  # not its inputs
            said = f"{type(error).__name__}: {str(error)[:100]}"
            continue
        return model, {"0": x}
    raise NotMade(f"no inputs for {name}: {said}")


def _timm(name: str) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    import timm

    model: Any = timm.create_model(name, pretrained=False, num_classes=10)
    height, width = model.pretrained_cfg["input_size"][1:]
    return model, [torch.randn(1, 3, *size) for size in [(96, 96), (height, width)]]


def _torchvision(name: str) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    import torchvision

    options = {} if "weights_backbone" not in inspect.signature(torchvision.models.get_model_builder(name)).parameters else {"weights_backbone": None}
    sizes = [(1, 3, 96, 96), (1, 3, 224, 224), (1, 3, 8, 64, 64)]
    return torchvision.models.get_model(name, weights=None, **options), [torch.randn(size) for size in sizes]


def _layer(name: str) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    import timm.layers

    kind = getattr(timm.layers, name)
    needed = [key for key, one in inspect.signature(kind).parameters.items() if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    if not needed or needed[0] not in LAYER_WIDTHS or len(needed) > 2:
        raise NotMade(f"{name} takes {needed}")
    try:
        return kind(*[32 for _ in needed]), [torch.randn(4, 32, 16, 16), torch.randn(4, 64, 32), torch.randn(4, 16, 16, 32)]
    except Exception as error:
        raise NotMade(f"{name}: {type(error).__name__}: {str(error)[:100]}") from error


def _late(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def main() -> None:
    """Print the drawn names, those that are passed over as comments."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    words = named()
    signal.signal(signal.SIGALRM, _late)
    print(f"# seed {options.seed}; {torch.__version__}")
    for kind, count in KINDS.items():
        found: list[str] = []
        for name in DRAWS[kind](words, random.Random(f"{options.seed} {kind}")):
            signal.alarm(SECONDS)
            try:
                make(kind, name)
                found.append(name)
            except Exception as error:  # of the libraries, of whatever kind
                signal.alarm(0)
                print(f"# {kind} {name}: {' '.join(str(error).split())[:120]}", flush=True)
            finally:
                signal.alarm(0)
            if len(found) == count:
                break
            print(kind, name, len(found), file=sys.stderr, flush=True)
        for number, name in enumerate(found):
            print("opened" if number < count // 2 else "aside", kind, name, flush=True)


if __name__ == "__main__":
    main()
