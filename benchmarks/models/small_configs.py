"""Small configurations of transformers' model classes, and inputs for them, made by rules from the names of their settings, not of the classes.

`make(CLASS)` returns the model with drawn parameters and its inputs by keyword, or raises NotMade. Widths are 32, layers 2, heads 4, 128 words,
images of 32 or 64 points; a setting that no rule knows keeps its default. The inputs are the first of a few usual sets that forward takes.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

MOST_PARAMETERS = 8_000_000
WORDS, LENGTH = 128, 16

Rule = tuple[str, Callable[[Any], Any]]

RULES: tuple[Rule, ...] = (
    (r"vocab_size(_per_layer_input)?", lambda value: min(value, WORDS)),
    (r".*token_(id|index)|.*_token", lambda value: value if value < WORDS else 3),
    (r"(num|n)_(key_value|kv)_heads|.*_key_value_heads|multi_query_group_num", lambda _: 2),
    (r"(.*_)?(num_attention_heads|n_heads?|num_heads|attention_heads|num_.*_heads)", lambda _: 4),
    (r"(.*_)?num_(.*_)?layers|n_layers?|(encoder|decoder)_layers|depth|num_(.*_)?blocks", lambda value: min(value, 2)),
    (r"(n|num)_group|topk_group|n_groups", lambda _: 1),
    (r"(.*_)?num_(local_|routed_)?experts|n_routed_experts|moe_num_experts", lambda value: min(value, 4)),
    (r"num_experts_per_tok(en)?|moe_k|moe_topk|top_k_experts", lambda value: min(value, 2)),
    (r"(qk_(nope|rope)_|v_|.*_)?head_dim|d_kv|rotary_dim|.*_head_size|head_size", lambda value: min(value, 8)),
    (r"(q|kv|o)_lora_rank", lambda value: min(value, 16)),
    (r"moe_(.*_)?intermediate_size|shared_expert_intermediate_size", lambda value: min(value, 32)),
    (r"(.*_)?(intermediate_size|ffn_dim|d_ff|d_inner|n_inner|ffn_hidden_size|feed_forward.*_size|dim_feedforward)", lambda value: min(value, 64)),
    (r"(.*_)?(max_position_embeddings|n_positions|max_(source|target)_positions|max_sequence_length)", lambda value: min(value, 64)),
    (r"image_size|img_size", lambda value: 32 if value <= 256 else 64),
    (r"patch_size", lambda value: 8 if value > 8 else value),
    (r"(.*_)?(hidden_size(_.*)?|d_model|n_embd|embed_dim|embedding_size|hidden_dim|dim|projection_dim|proj_dim|n_embed|conv_dim|embed_proj_dim)"
     r"|encoder_hidden_dim|decoder_hidden_dim|embed_size|feature_size|hidden_channels", lambda value: min(value, 32)),
)  # fmt: skip
"""Settings by their names, the first that matches: what becomes of their numbers."""

DIVIDED = r"embed_dims?|hidden_sizes|dims|embed_dim|conv_dim|encoder_channels|stage_.*channels|decoder_channels"
"""Lists of widths, of which each is divided so that the first is 16."""


class NotMade(Exception):
    """The rules make no small model of this class, or no inputs that it takes."""


def settings(config: Any) -> dict[str, Any]:
    """Return the arguments that make `config` small, those of its parts in dictionaries."""
    kinds = config.sub_configs or {}
    given: dict[str, Any] = {}
    values = {name: value for name, value in config.to_dict().items() if name not in ("model_type", "transformers_version", "_name_or_path")}
    layers = {value for name, value in values.items() if isinstance(value, int) and re.fullmatch(RULES[4][0], name)}
    for name, value in values.items():
        if name in kinds or name.endswith("_config"):
            part: Any = getattr(config, name, None)
            if hasattr(part, "to_dict"):
                given[name] = {**part.to_dict(), **settings(part)}
        elif isinstance(value, bool) or value is None:
            continue
        elif isinstance(value, int):
            change = next((change for pattern, change in RULES if re.fullmatch(pattern, name)), None)
            given |= {} if change is None else {name: change(value)}
        elif isinstance(value, list) and value and name in ("layer_types", "mlp_layer_types", "layers_block_type") and len(value) in layers:
            given[name] = value[:1] + value[-1:]
        elif isinstance(value, list) and len(value) in layers and len(value) > 6:
            given[name] = value[:2]
        elif isinstance(value, list) and value and all(isinstance(one, int) and not isinstance(one, bool) for one in value):
            given |= _smaller_list(name, value)
    return given


def _smaller_list(name: str, value: list[int]) -> dict[str, Any]:
    if re.fullmatch(r"depths|.*_depths|num_blocks|layers", name):
        return {name: [min(one, 2) for one in value]}
    if re.fullmatch(DIVIDED, name) and min(value) >= 32:
        return {name: [max(one * 16 // min(value), 16) for one in value]}
    if re.fullmatch(r"image_size", name):
        return {name: [64 for _ in value]}
    return {}


def make(name: str) -> tuple[torch.nn.Module, dict[str, Any]]:
    """Return a small model of a class of transformers, and inputs by keyword that it takes."""
    import transformers

    kind = getattr(transformers, name)
    try:
        model = kind(_config(kind.config_class))
    except Exception as error:  # of the library, of whatever kind
        raise NotMade(f"no small {name}: {type(error).__name__}: {str(error)[:100]}") from error
    if sum(parameter.numel() for parameter in model.parameters()) > MOST_PARAMETERS:
        raise NotMade(f"no small {name}: over {MOST_PARAMETERS} parameters")
    model.eval()
    said: Exception | None = None
    for inputs in candidates(model):
        try:
            with torch.no_grad():
                model(**_copied(inputs))
        except Exception as error:  # not its inputs
            said = said or error
            continue
        return model, inputs
    raise NotMade(f"no inputs for {name}: {type(said).__name__}: {str(said)[:100]}")


def _config(kind: Any) -> Any:
    default = kind()
    small = settings(default)
    for left in ((), ("layer_types", "mlp_layer_types", "layers_block_type")):
        with contextlib.suppress(Exception):
            return kind(**{name: value for name, value in small.items() if name not in left})
    return kind(**small)


def _copied(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.clone() for name, value in inputs.items()}


@dataclass(frozen=True)
class Sizes:
    """How large inputs are."""

    batch: int = 2
    length: int = LENGTH
    """Of texts, in words; those of decoders are half as long."""
    words: int = WORDS
    """Of the vocabulary, at most."""
    frames: tuple[int, ...] = (128, 3000)
    """Of sounds by their spectra, the first that is taken."""
    samples: int = 4000
    """Of sounds as they are."""
    side: int = 64
    """Of images for models that name none."""


def candidates(model: Any, sizes: Sizes = Sizes()) -> Iterator[dict[str, torch.Tensor]]:
    """Yield sets of inputs: all that have usual names, then fewer, with the layouts that each kind has."""
    batch, length, most = sizes.batch, sizes.length, sizes.words
    names = inspect.signature(model.forward).parameters
    config = model.config
    text, vision = getattr(config, "text_config", config), getattr(config, "vision_config", config)
    size = getattr(vision, "image_size", sizes.side) or sizes.side
    oblong = tuple(size) if isinstance(size, (list, tuple)) else ()
    size = oblong[0] if oblong else size
    channels = getattr(vision, "num_channels", 3)
    ids = torch.randint(5, min(getattr(text, "vocab_size", most) or most, most) - 1, (batch, length))
    mask = torch.ones_like(ids)
    mask[-1, -4:] = 0
    written: dict[str, torch.Tensor] = {"input_ids": ids, "attention_mask": mask}
    boxes = torch.randint(0, 50, (batch, length, 2))
    extra = {"bbox": torch.cat([boxes, boxes + 10], -1), "token_type_ids": torch.zeros_like(ids)}
    extra |= {"decoder_input_ids": ids[:, : length // 2].contiguous()}
    bins = getattr(config, "num_mel_bins", None) or getattr(config, "feature_size", None) or 80
    first, last = sizes.frames[0], sizes.frames[-1]
    heard = [torch.randn(batch, *shape) for shape in ((bins, first), (first // 2, bins), (first, bins), (last, bins))]
    heard += [torch.randn(batch, first, one) for one in sorted(set(numbers(config.to_dict(), "num_mel_bins", "feature_size")) - {bins})]
    waves = [torch.randn(batch, *shape) for shape in ((sizes.samples,), (1, sizes.samples), (1024, bins))]
    seen = [torch.randn(batch, channels, side, side) for side in dict.fromkeys([size, 64, 224])] + [torch.randn(1, 4, channels, size, size)]
    seen += [torch.randn(batch, channels, *oblong)] if len(set(oblong)) == 2 else []
    known = [{"pixel_values": one} for one in seen] if "pixel_values" in names else []
    known += [{key: one} for key in ("input_features",) if key in names for one in heard]
    known += [{key: one} for key in ("input_values",) if key in names for one in waves]
    known += [{"hidden_states": torch.randn(batch, length, getattr(config, "hidden_size", 32))}] if "hidden_states" in names else []
    words = {name: value for name, value in {**written, **extra}.items() if name in names} if "input_ids" in names else {}
    for one in known:
        if words:
            yield {**words, **one}
        yield one
        if "decoder_input_ids" in names:
            yield {**one, "decoder_input_ids": extra["decoder_input_ids"]}
    if words:
        yield words
        yield {name: value for name, value in words.items() if name != "token_type_ids"}
        yield {"input_ids": ids}


def numbers(config: Mapping[str, Any], *names: str) -> Iterator[int]:
    """Yield the whole numbers of these names in a configuration and its parts."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from numbers(value, *names)
        elif name in names and isinstance(value, int) and value > 0:
            yield value
