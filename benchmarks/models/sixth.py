"""A sixth set of public models that nobody had opened here before: five convolutional networks of one package, five vision transformers of another.

    pip install --no-deps --target LIB pytorchcv vit-pytorch einops
    PYTHONPATH=LIB python -m benchmarks.third_party --sixth --budget "60s, until faster" --device cuda --baselines eager,compile --jobs 3 --together \
        --trace --minutes 3.4 --out OUT/rows.jsonl

Random weights. The convolutional networks are as published, with ten classes, on two images of 224 x 224; the transformers are small. What is done
with them is `third_party.py`'s (faster?) and `outside_models.py`'s (captured, right?).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.models.third import Maker, normal, of

IMAGES, LARGE = normal(2, 3, 64, 64), normal(2, 3, 224, 224)
SIZES: Mapping[str, Any] = {"num_classes": 10, "dim": 64, "depth": 3, "heads": 4, "mlp_dim": 128}


def _network(module: str, name: str) -> Maker:
    return of(f"pytorchcv.models.{module}", name, LARGE, num_classes=10)


def _vit(module: str, name: str, **options: Any) -> Maker:
    return of(f"vit_pytorch.{module}", name, IMAGES, **{**SIZES, "image_size": 64, "patch_size": 8, **options})


MODELS: Mapping[str, Maker] = {
    "parallel_vit": _vit("parallel_vit", "ViT"),
    "preresnet_cv": _network("preresnet", "preresnet18"),
    "vit_1d": of("vit_pytorch.vit_1d", "ViT", normal(4, 3, 256), **SIZES, seq_len=256, patch_size=16),
    "vovnet_cv": _network("vovnet", "vovnet27s"),
    "u_vit": _vit("simple_uvit", "SimpleUViT"),
    "peleenet_cv": _network("peleenet", "peleenet"),
    "merger_vit": _vit("vit_with_patch_merger", "ViT", patch_merge_layer=2),
    "mixnet_cv": _network("mixnet", "mixnet_s"),
    "twins_svt": of("vit_pytorch.twins_svt", "TwinsSVT", LARGE, num_classes=10, s1_emb_dim=32, s2_emb_dim=64, s3_emb_dim=96, s4_emb_dim=128),
    "hrnet_cv": _network("hrnet", "hrnet_w18_small_v1"),
}
