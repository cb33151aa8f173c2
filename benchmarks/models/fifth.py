"""A fifth set of public models that nobody had opened here before: ten vision transformers of one package, ten of timm, transformers, torchvision.

    pip install --no-deps --target LIB vit-pytorch einops
    PYTHONPATH=LIB python -m benchmarks.outside_models --fifth [NAME ...] [--out FOLDER]
    PYTHONPATH=LIB python -m benchmarks.third_party --fifth --limit 10 --budget "20s, until faster" --device cuda --jobs 5 --together --minutes 1.2

The first ten need nothing beside torch but those two packages. Small configurations, random weights; what is done with them is `outside_models.py`'s
(captured, right?) and `third_party.py`'s (faster?).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import torch

from benchmarks.models.third import Maker, normal, of, tokens

IMAGES, LARGE = normal(2, 3, 64, 64), normal(1, 3, 224, 224)
SIZES: Mapping[str, Any] = {"num_classes": 10, "dim": 32, "depth": 2, "heads": 2, "mlp_dim": 64, "image_size": 64, "patch_size": 16}


def _transformers(name: str, *inputs: int, **config: Any) -> Maker:
    def make() -> tuple[torch.nn.Module, tuple[Any, ...]]:
        package = import_module("transformers")
        model = getattr(package, name)(getattr(package, name.removesuffix("Model") + "Config")(**config))
        return model, tokens(*inputs)() if len(inputs) == 2 else normal(*inputs)()

    return make


def _timm(name: str, size: int = 64) -> Maker:
    return lambda: (import_module("timm").create_model(name, pretrained=False, num_classes=10), normal(1, 3, size, size)())


def _vision(module: str, name: str, **options: Any) -> Maker:
    return of(f"torchvision.models{module}", name, IMAGES, weights=None, num_classes=10, **options)


def _vit(module: str, name: str) -> Maker:
    return of(f"vit_pytorch.{module}", name, IMAGES, **SIZES)


_staged: Mapping[str, Any] = {"num_classes": 10, "dim": 16, "depth": (1, 1, 1, 1), "heads": (1, 1, 2, 2)}
_layers: Mapping[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 100}

MODELS: Mapping[str, Maker] = {
    "deep_vit": _vit("deepvit", "DeepViT"),
    "registers_vit": _vit("simple_vit_with_register_tokens", "SimpleViT"),
    "rotary_vit": _vit("rvt", "RvT"),
    "qk_norm_vit": _vit("simple_vit_with_qk_norm", "SimpleViT"),
    "jumbo_vit": _vit("jumbo_vit", "JumboViT"),
    "t2t_vit": of("vit_pytorch.t2t", "T2TViT", IMAGES, image_size=64, num_classes=10, dim=32, depth=2, heads=2, mlp_dim=64),
    "look_vit": of(
        "vit_pytorch.look_vit", "LookViT", IMAGES, dim=32, image_size=64, num_classes=10, depth=2, heads=2, patch_size=16, highres_patch_size=8
    ),
    "cross_former": of("vit_pytorch.crossformer", "CrossFormer", LARGE, num_classes=10, depth=(1, 1, 1, 1)),
    "sep_vit": of("vit_pytorch.sep_vit", "SepViT", LARGE, **_staged),
    "scalable_vit": of("vit_pytorch.scalable_vit", "ScalableViT", LARGE, reduction_factor=(8, 4, 2, 1), window_size=None, **_staged),
    "regnet_timm": _timm("regnetx_002"),
    "ghostnet_timm": _timm("ghostnet_050"),
    "edgenext_timm": _timm("edgenext_xx_small"),
    "poolformer_timm": _timm("poolformer_s12"),
    "repvgg_timm": _timm("repvgg_a0"),
    "f_net": _transformers("FNetModel", 2, 16, hidden_size=32, num_hidden_layers=2, intermediate_size=64, vocab_size=100),
    "squeeze_bert": _transformers("SqueezeBertModel", 2, 16, **{**_layers, "embedding_size": 32, "num_attention_heads": 4}),
    "gpt_neox": _transformers("GPTNeoXModel", 2, 16, **_layers, use_cache=False),
    "squeezenet_torchvision": _vision("", "squeezenet1_1"),
    "deeplab_torchvision": _vision(".segmentation", "deeplabv3_mobilenet_v3_large", weights_backbone=None),
}
