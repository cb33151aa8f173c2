"""Model classes of transformers at the sizes of their own default configurations, and inputs as large as people use, by rules.

Where the defaults have over MOST parameters, layers are left out until two are there, then experts and words of the vocabulary: the widths, which
decide the shapes of every kernel, stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from benchmarks.models.small_configs import RULES, NotMade, Sizes, candidates, numbers

MOST = 300_000_000
"""Parameters: four processes keep each model three times, in float64 too."""
FEWER = (None, 12, 8, 6, 4, 2)
"""Layers."""
LAYERS = RULES[4][0]
EXPERTS, WORDS = r"(.*_)?num_(local_|routed_)?experts|n_routed_experts|moe_num_experts", r"vocab_size(_per_layer_input)?"
POSITIONS = ("max_position_embeddings", "n_positions", "max_source_positions", "max_target_positions")
LENGTHS, SIDE = (512, 256, 64, 16), 224
LIGHT, LIGHT_BATCH, BATCH = 50_000_000, 8, 4
"""A model of fewer parameters than LIGHT is given 8 texts or images at once, a larger one 4."""


def shortened(config: Any, most: int) -> dict[str, Any]:
    """Return the arguments that make `config` one of at most so many layers, those of its parts in dictionaries."""
    values = {name: value for name, value in config.to_dict().items() if name not in ("model_type", "transformers_version", "_name_or_path")}
    layers = {value for name, value in values.items() if isinstance(value, int) and re.fullmatch(LAYERS, name)}
    given: dict[str, Any] = {}
    for name, value in values.items():
        part: Any = getattr(config, name, None) if name in (config.sub_configs or {}) or name.endswith("_config") else None
        if hasattr(part, "to_dict"):
            given[name] = {**part.to_dict(), **shortened(part, most)}
        elif isinstance(value, int) and not isinstance(value, bool):
            given |= _fewer(name, value, most)
        elif isinstance(value, list) and len(value) in layers and len(value) > most:
            given[name] = value[: most - 1] + value[-1:]
    return given


def _fewer(name: str, value: int, most: int) -> dict[str, int]:
    limits = {LAYERS: most, **({EXPERTS: 8, WORDS: 32_000} if most <= 2 else {})}
    for pattern, limit in limits.items():
        if re.fullmatch(pattern, name):
            return {name: min(value, limit)}
    return {name: 3} if most <= 2 and value >= 32_000 and re.fullmatch(r".*token_(id|index)|.*_token", name) else {}


def config_of(name: str) -> Any:
    """Return the configuration of a class; raise NotMade."""
    import transformers

    kind = getattr(transformers, name)
    said = ""
    for most in FEWER:
        try:
            config = kind.config_class() if most is None else kind.config_class(**shortened(kind.config_class(), most))
            with torch.device("meta"):
                count = sum(parameter.numel() for parameter in kind(config).parameters())
        except Exception as error:  # of the library, of whatever kind
            said = f"{type(error).__name__}: {str(error)[:100]}"
            continue
        if count <= MOST:
            return config
        said = f"over {MOST} parameters"
    raise NotMade(f"no real {name}: {said}")


def make(name: str) -> tuple[torch.nn.Module, Iterator[Mapping[str, torch.Tensor]]]:
    """Return a model of a class of transformers with drawn parameters, and sets of inputs of which it takes one; raise NotMade."""
    import transformers

    model = getattr(transformers, name)(config_of(name))
    return model, sets(model)


def sets(model: Any) -> Iterator[Mapping[str, torch.Tensor]]:
    """Yield sets of inputs, those of long texts first."""
    vision = getattr(model.config, "vision_config", model.config)
    side = getattr(vision, "image_size", SIDE) or SIDE
    light = sum(parameter.numel() for parameter in model.parameters()) < LIGHT
    batch = 1 if max(side if isinstance(side, (list, tuple)) else [side]) > 384 else LIGHT_BATCH if light else BATCH
    config = model.config.to_dict()
    words = min([32_000, *numbers(config, "vocab_size")])
    longest = min([LENGTHS[0], *numbers(config, *POSITIONS)])
    for length in [length for length in LENGTHS if length <= longest] or [longest]:
        yield from candidates(model, Sizes(batch, length, words, (3000, 1024), 64_000, SIDE))
