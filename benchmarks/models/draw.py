"""Draw models by a seed which no file here names: `python -m benchmarks.models.draw [--seed 10] > benchmarks/models/drawn.txt`, 5 minutes.

    python -m benchmarks.models.draw --seed 12 --kinds transformers=12 timm=6 torchvision=2 torch_geometric=4 --real > benchmarks/models/drawn_12.txt

By default 40 classes of transformers, one an architecture; 20 of timm and torchvision: 12 architectures of timm, 4 of torchvision, 4 layers of timm.
An architecture counts as named where its name, or that of one of its models, is a word of a file in tests, benchmarks, docs, examples or the library,
the lists of earlier draws among them. Drawn names of which `small_configs.py` or the rules here make no model that runs by itself within 30 s are
passed over, with `--real` also those that `real_sizes.py` makes none of; nothing of warpwright sees a model here. The first half of each kind is to
be opened, the second is not until everything is mended.
"""

from __future__ import annotations

import argparse
import inspect
import random
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from benchmarks.models import geometric, real_sizes
from benchmarks.models.small_configs import MOST_PARAMETERS, NotMade
from benchmarks.models.small_configs import make as make_transformers

FOLDERS = ("tests", "benchmarks", "docs", "examples", "warpwright")
KINDS = {"transformers": 40, "timm": 12, "torchvision": 4, "timm.layers": 4}
SECONDS = 30
LAYER_WIDTHS = ("dim", "channels", "in_channels", "in_chs", "in_features", "in_planes", "num_features", "num_channels")
Inputs = Mapping[str, torch.Tensor]
Made = tuple[torch.nn.Module, dict[str, Any]]


def list_of(seed: int) -> Path:
    """Return the file in which the models of a seed stand."""
    return Path(__file__).with_name("drawn.txt" if seed == 10 else f"drawn_{seed}.txt")


def named(own: str) -> set[str]:
    """Return every word and identifier of the repository's files, in small letters; not of the list `own`, which is being drawn, and of this file."""
    files = [file for folder in FOLDERS for file in Path(folder).rglob("*") if file.suffix in (".py", ".md", ".jsonl", ".json", ".toml")]
    files += Path("benchmarks/models").glob("drawn*.txt")
    text = "\n".join(file.read_text(errors="ignore") for file in files if file.name not in (own, "draw.py")).lower()
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
    there = {kind: sorted(name for name in names if hasattr(transformers, name)) for kind, names in classes.items()}
    folders = {name: str(getattr(transformers, name).__module__).split(".")[2] for names in there.values() for name in names}
    seen = {folder for name, folder in folders.items() if not unnamed(name, words)}  # as a model's text part is read with it
    kinds = sorted(kind for kind in there if unnamed(kind, words) and there[kind] and not seen & {folders[name] for name in there[kind]})
    for kind in drawn.sample(kinds, len(kinds)):
        yield drawn.choice(there[kind])


def of_timm(words: set[str], drawn: random.Random) -> Iterator[str]:
    """Yield a small variant of each architecture that is not named."""
    import timm

    modules = [name for name in timm.list_modules() if all(unnamed(one, words) for one in [name, *timm.list_models(module=name)])]
    for module in drawn.sample(modules, len(modules)):
        names = timm.list_models(module=module)
        small = [name for name in names if re.search(r"atto|femto|pico|nano|tiny|small|_t\d*$|_s\d*$|xxs|xs", name)]
        yield drawn.choice(small or names)


def of_torchvision(words: set[str], drawn: random.Random) -> Iterator[str]:
    """Yield models that are not named."""
    import torchvision

    files = {name: torchvision.models.get_model_builder(name).__module__.rpartition(".")[2] for name in torchvision.models.list_models()}
    seen = {file for name, file in files.items() if not unnamed(name, words)}
    names = [name for name, file in files.items() if file not in seen]
    yield from drawn.sample(names, len(names))


def of_layers(words: set[str], drawn: random.Random) -> Iterator[str]:
    """Yield layers of timm that take one width and are not named."""
    import timm.layers

    kinds = [name for name, kind in vars(timm.layers).items() if inspect.isclass(kind) and issubclass(kind, torch.nn.Module)]
    yield from drawn.sample(kinds := [name for name in sorted(kinds) if unnamed(name, words)], len(kinds))


def of_geometric(words: set[str], drawn: random.Random) -> Iterator[str]:
    """Yield layers and models of PyTorch Geometric that are not named."""
    from torch_geometric.nn import conv, models

    yield from drawn.sample(kinds := sorted(name for name in {*conv.__all__, *models.__all__} if unnamed(name, words)), len(kinds))


DRAWS: dict[str, Callable[[set[str], random.Random], Iterator[str]]] = {
    "transformers": of_transformers, "timm": of_timm, "torchvision": of_torchvision, "timm.layers": of_layers,
    "torch_geometric": of_geometric,
}  # fmt: skip


def make(kind: str, name: str, real: bool = False) -> Made:
    """Return a drawn model in eval mode and its inputs: by keyword, of one tensor named "0" where they are positional; raise NotMade.

    With `real` it has the size that it is used at: inputs of a batch are tried with two of it, graphs are not; else small enough for a busy CPU.
    """
    torch.manual_seed(0)
    if kind == "transformers" and not real:
        return make_transformers(name)
    model, choices = MAKERS[kind](name, real)
    if not real and sum(parameter.numel() for parameter in model.parameters()) > 4 * MOST_PARAMETERS:
        raise NotMade(f"{name} has over {4 * MOST_PARAMETERS} parameters")
    model.eval()
    said = ""
    for inputs in choices:
        if real and kind == "torch_geometric":
            return model, dict(inputs)
        given = {key: (value[:2] if real else value).clone() for key, value in inputs.items()}
        try:
            with torch.no_grad():
                model(given["0"]) if "0" in given else model(**given)
        except Exception as error:  # not its inputs
            said = said or f"{type(error).__name__}: {str(error)[:100]}"
            continue
        return model, dict(inputs)
    raise NotMade(f"no inputs for {name}: {said}")


def _positional(sizes: Iterable[tuple[int, ...]]) -> Iterator[Inputs]:
    return ({"0": torch.randn(size)} for size in sizes)


def _real(name: str, _: bool) -> tuple[torch.nn.Module, Iterable[Inputs]]:
    return real_sizes.make(name)


def _geometric(name: str, real: bool) -> tuple[torch.nn.Module, Iterable[Inputs]]:
    return geometric.make(name, geometric.REAL if real else geometric.SMALL)


def _timm(name: str, real: bool) -> tuple[torch.nn.Module, Iterable[Inputs]]:
    import timm

    model: Any = timm.create_model(name, pretrained=False, num_classes=1000 if real else 10)
    height, width = model.pretrained_cfg["input_size"][1:]
    return model, _positional([(8, 3, height, width)] if real else [(1, 3, 96, 96), (1, 3, height, width)])


def _torchvision(name: str, real: bool) -> tuple[torch.nn.Module, Iterable[Inputs]]:
    import torchvision

    options = {} if "weights_backbone" not in inspect.signature(torchvision.models.get_model_builder(name)).parameters else {"weights_backbone": None}
    small, large = [(1, 3, 96, 96), (1, 3, 224, 224), (1, 3, 8, 64, 64)], [(4, 3, 224, 224), (2, 3, 16, 224, 224), (4, 3, 16, 112, 112)]
    return torchvision.models.get_model(name, weights=None, **options), _positional(large if real else small)


def _layer(name: str, _: bool) -> tuple[torch.nn.Module, Iterable[Inputs]]:
    import timm.layers

    kind = getattr(timm.layers, name)
    needed = [key for key, one in inspect.signature(kind).parameters.items() if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    if not needed or needed[0] not in LAYER_WIDTHS or len(needed) > 2:
        raise NotMade(f"{name} takes {needed}")
    try:
        return kind(*[32 for _ in needed]), _positional([(4, 32, 16, 16), (4, 64, 32), (4, 16, 16, 32)])
    except Exception as error:
        raise NotMade(f"{name}: {type(error).__name__}: {str(error)[:100]}") from error


MAKERS: Mapping[str, Callable[[str, bool], tuple[torch.nn.Module, Iterable[Inputs]]]] = {
    "transformers": _real, "timm": _timm, "torchvision": _torchvision, "timm.layers": _layer, "torch_geometric": _geometric,
}  # fmt: skip


def _late(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def main() -> None:
    """Print the drawn names, those that are passed over as comments."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument("--kinds", nargs="+", default=[f"{kind}={count}" for kind, count in KINDS.items()], metavar="KIND=COUNT")
    parser.add_argument("--real", action="store_true", help="only models that can be made at the size they are used at")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    words = named(list_of(options.seed).name)
    signal.signal(signal.SIGALRM, _late)
    libraries = [f"{name} {version(name)}" for name in ("torch", "transformers", "timm", "torchvision")]
    print(f"# seed {options.seed}; {', '.join(libraries)}")
    for kind, count in ((kind, int(count)) for kind, _, count in (one.partition("=") for one in options.kinds)):
        found: list[str] = []
        for name in DRAWS[kind](words, random.Random(f"{options.seed} {kind}")):
            signal.alarm(SECONDS)
            try:
                make(kind, name)
                if options.real and kind == "transformers":
                    real_sizes.config_of(name)
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
