"""How much of the attention of public models `flash_attention` takes, and whether what is left computes the same: one row a program, on a CPU.

    python -m benchmarks.kernels.attention_models --out OUT [--models gpt2,timm] [--seconds 600]

Needs transformers, timm and vit-pytorch; models are made with random weights, one small layer or a few of each. Graphs are compared in float64,
by torch's calls in the kernel's place: what is shown is that the reading is right, not the kernel.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import logging
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.kernels.row_file import run as run_cases
from warpwright.domains.graph.capture.model import from_module
from warpwright.domains.graph.ir import GraphIR, copy, run
from warpwright.domains.graph.techniques.algebra.einsum import EINSUM
from warpwright.domains.graph.techniques.kernels.attention import technique
from warpwright.domains.graph.techniques.kernels.attention.calls import FLASH_ATTENTION

Made = tuple[nn.Module, torch.Tensor]
_SMALL = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 32, "vocab_size": 50}
_GPT = {"n_embd": 32, "n_layer": 1, "n_head": 4, "vocab_size": 50}
_IMAGES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 32, "image_size": 32, "patch_size": 8}
_OPT = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "ffn_dim": 32, "vocab_size": 50, "word_embed_proj_dim": 32}
_BOTH: dict[str, dict[str, Any]] = {
    "GPT2": _GPT | {"n_positions": 64}, "Llama": _SMALL | {"num_key_value_heads": 2}, "Bert": _SMALL,
    "Mistral": _SMALL | {"num_key_value_heads": 2, "sliding_window": 8}, "Gemma2": _SMALL | {"num_key_value_heads": 2, "head_dim": 8}, "ViT": _IMAGES,
    "CLIPText": _SMALL, "OPT": _OPT, "GPTNeoX": _SMALL, "Qwen2": _SMALL | {"num_key_value_heads": 2},
}  # fmt: skip
_EAGER: dict[str, dict[str, Any]] = {
    "T5Encoder": {"d_model": 32, "d_kv": 8, "num_heads": 4, "num_layers": 1, "d_ff": 32, "vocab_size": 50},
    "Bloom": {"hidden_size": 32, "n_layer": 1, "n_head": 4, "vocab_size": 50},
    "DistilBert": {"dim": 32, "n_layers": 1, "n_heads": 4, "hidden_dim": 32, "vocab_size": 50}, "GPTJ": _GPT | {"rotary_dim": 4},
    "GPTNeo": {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "vocab_size": 50, "attention_types": [[["global", "local"], 1]], "window_size": 8},
    "Electra": _SMALL, "DebertaV2": _SMALL, "Mpt": {"d_model": 32, "n_layers": 1, "n_heads": 4, "vocab_size": 50},
    "Falcon": {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 50},
}  # fmt: skip
_TIMM: dict[str, dict[str, Any]] = {
    "vit_tiny_patch16_224": {"img_size": 64, "depth": 1}, "swin_tiny_patch4_window7_224": {"img_size": 112, "depths": (2, 1), "num_classes": 3},
    "swinv2_tiny_window8_256": {"img_size": 128, "depths": (2, 1)}, "beit_base_patch16_224": {"img_size": 64, "depth": 1},
    "cait_xxs24_224": {"img_size": 64, "depth": 1}, "xcit_nano_12_p16_224": {"img_size": 64, "depth": 1}, "maxvit_nano_rw_256": {"img_size": 256},
    "levit_128s": {"img_size": 224}, "coatnet_nano_rw_224": {"img_size": 224},
}  # fmt: skip
_VIT = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 32, "depth": 1, "heads": 4, "mlp_dim": 32}
_STAGES = {f"s{stage}_{what}": size for stage in (1, 2, 3) for what, size in (("emb_dim", 16), ("depth", 1), ("heads", min(stage, 2)))}
_MAX = {"dim_conv_stem": 8, "dim": 16, "dim_head": 8, "depth": (1, 1), "window_size": 7, "mbconv_expansion_rate": 4, "mbconv_shrinkage_rate": 0.25}
_LUCID: dict[str, tuple[str, int, dict[str, Any]]] = {
    "vit": ("ViT", 32, _VIT), "simple_vit": ("SimpleViT", 32, _VIT), "deepvit": ("DeepViT", 32, _VIT),
    "simple_vit_with_qk_norm": ("SimpleViT", 32, _VIT), "parallel_vit": ("ViT", 32, _VIT),
    "vit_for_small_dataset": ("ViT", 32, _VIT), "simple_vit_with_value_residual": ("SimpleViT", 32, _VIT),
    "max_vit": ("MaxViT", 224, _MAX | {"num_classes": 3, "dropout": 0.0}), "cvt": ("CvT", 64, _STAGES | {"num_classes": 3}),
    "twins_svt": ("TwinsSVT", 224, {"num_classes": 3, "s1_emb_dim": 8, "s2_emb_dim": 8, "s3_emb_dim": 8, "s4_emb_dim": 8, "s3_depth": 1}),
    "nest": ("NesT", 32, {"image_size": 32, "patch_size": 4, "dim": 16, "heads": 2, "num_hierarchies": 2, "block_repeats": (1, 1), "num_classes": 3}),
    "cross_vit": ("CrossViT", 64, {"image_size": 64, "num_classes": 3, "sm_dim": 16, "lg_dim": 16, "sm_patch_size": 8, "lg_patch_size": 16}),
}  # fmt: skip


class _First(nn.Module):
    """A model of transformers, whose first result alone counts."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> Any:
        """Return it."""
        return self.model(x)[0]


def models() -> dict[str, Callable[[], Made]]:
    """Return what makes each model and its input, by name."""
    found: dict[str, Callable[[], Made]] = {}
    for kind, options in (*_BOTH.items(), *_EAGER.items()):
        for way in ("eager", "sdpa") if kind in _BOTH else ("eager",):
            found[f"transformers {kind} {way}"] = partial(_of_transformers, kind, options, way)
    return found | {f"timm {name}": partial(_of_timm, name, options) for name, options in _TIMM.items()} | {
        f"vit-pytorch {name}": partial(_of_vit_pytorch, name, *rest) for name, rest in _LUCID.items()
    }  # fmt: skip


def _of_transformers(kind: str, options: dict[str, Any], way: str) -> Made:
    library = importlib.import_module("transformers")
    config = getattr(library, f"{kind.removesuffix('Encoder')}Config")(**options)
    config._attn_implementation = way
    config.use_cache = False
    x = torch.randn(2, 3, 32, 32) if kind == "ViT" else torch.randint(0, 50, (2, 24))
    return _First(getattr(library, f"{kind}Model")(config).eval()), x


def _of_timm(name: str, options: dict[str, Any]) -> Made:
    model = importlib.import_module("timm").create_model(name, pretrained=False, **options).eval()
    return model, torch.randn(1, 3, options["img_size"], options["img_size"])


def _of_vit_pytorch(name: str, kind: str, size: int, options: dict[str, Any]) -> Made:
    return getattr(importlib.import_module(f"vit_pytorch.{name}"), kind)(**options).eval(), torch.randn(1, 3, size, size)


def rows(name: str, make: Callable[[], Made]) -> Iterator[dict[str, Any]]:
    """Yield the row of a model."""
    torch.manual_seed(0)
    model, x = make()
    with torch.no_grad():
        before = from_module(model, (x,))
        for action in list(EINSUM.sites(before)):
            before = EINSUM.apply(before, action)
        calls = [str(node.target) for node in before.graph.nodes if node.op == "call_function"]
        row = {"table": "models", "model": name, "attentions": sum("softmax" in call or "scaled_dot" in call for call in calls), "taken": 0}
        flash = technique.FlashAttentions()
        for action in list(flash.sites(before))[:1]:
            after = flash.apply(before, action)
            taken = [node for node in after.graph.nodes if node.target is FLASH_ATTENTION]
            words, biases = (sum(node.args[at] not in (None, False) for node in taken) for at in (4, 10))
            row |= {"taken": len(taken), "said in words": words, "with a bias": biases}
            a, b = (_in_double(ir, model, x) for ir in (before, after))
            row["differs by"] = max(float((one - other).abs().max() / one.abs().max().clamp_min(1.0)) for one, other in zip(a, b, strict=True))
    yield row


def _in_double(ir: GraphIR, model: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    wide = copy(ir)
    for node in wide.graph.nodes:
        node.args = tuple(torch.float64 if arg is torch.float32 else arg for arg in node.args)
        node.kwargs = {key: torch.float64 if arg is torch.float32 else arg for key, arg in node.kwargs.items()}
    named = (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))
    state = {name: tensor.double() if tensor.is_floating_point() else tensor.clone() for name, tensor in named}
    constants = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in ir.constants.items()}
    given = x.double() if x.is_floating_point() else x
    return list(run(dataclasses.replace(wide, constants=constants), [given], state, flat=True))


def main() -> None:
    """Write rows.jsonl, and print each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--models", default="", help="parts of names, divided by commas")
    parser.add_argument("--seconds", type=float, default=600.0, help="no model is begun after that many")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    technique.LEAST_FLOPS = 0.0
    chosen = {name: make for name, make in models().items() if any(part in name for part in options.models.split(","))}
    run_cases([({"model": name}, partial(rows, name, make)) for name, make in chosen.items()], options.out, options.seconds)


if __name__ == "__main__":
    main()
