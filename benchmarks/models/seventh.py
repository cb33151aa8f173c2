"""A seventh set of public models that nobody had opened here before: twelve of small packages, eight of transformers.

    pip install --no-deps --target LIB einops einx frozendict loguru hyper-connections torch-einops-utils beartype rotary-embedding-torch \
        local-attention product-key-memory axial-positional-embedding colt5-attention soft-moe-pytorch memory-efficient-attention-pytorch \
        megabyte-pytorch glom-pytorch hourglass-transformer-pytorch bidirectional-cross-attention isab-pytorch fast-transformer-pytorch \
        charformer-pytorch mingru-pytorch gateloop-transformer rtdl-revisiting-models routing-transformer
    PYTHONPATH=LIB python -m benchmarks.outside_models --seventh [NAME ...] [--out FOLDER]

Small configurations, random weights, written from the packages' front pages; what is done with them is `outside_models.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import torch

from benchmarks.models.third import Maker, normal, of, tokens

SMALL: Mapping[str, Any] = {
    "vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 64,
    "use_cache": False, "pad_token_id": 0,
}  # fmt: skip


def _transformers(name: str, inputs: Callable[[], tuple[Any, ...]], **config: Any) -> Maker:
    def make() -> tuple[torch.nn.Module, tuple[Any, ...]]:
        package = import_module("transformers")
        return getattr(package, f"{name}Model")(getattr(package, f"{name}Config")(**config)), inputs()

    return make


def _text(name: str, **config: Any) -> Maker:
    return _transformers(name, tokens(2, 16), **{**SMALL, **config})


MODELS: Mapping[str, Maker] = {
    "soft_moe": of("soft_moe_pytorch", "SoftMoE", normal(2, 64, 32), dim=32, seq_len=64, num_experts=4),
    "memory_efficient_attention": of(
        "memory_efficient_attention_pytorch", "Attention", normal(1, 128, 32), dim=32, dim_head=16, heads=2, causal=True, memory_efficient=True,
        q_bucket_size=32, k_bucket_size=64
    ),
    "megabyte": of("MEGABYTE_pytorch", "MEGABYTE", tokens(1, 16, 4), num_tokens=100, dim=(32, 16), max_seq_len=(16, 4), depth=(2, 1), dim_head=16,
                   heads=2),
    "glom": of("glom_pytorch", "Glom", normal(1, 3, 32, 32), dim=32, levels=3, image_size=32, patch_size=8),
    "hourglass": of("hourglass_transformer_pytorch", "HourglassTransformerLM", tokens(1, 64), num_tokens=100, dim=32, max_seq_len=64, heads=2,
                    dim_head=16, shorten_factor=2, depth=(1, 1, 1)),
    "routed_feed_forward": of("colt5_attention", "ConditionalRoutedFeedForward", normal(1, 64, 32), 32, num_heavy_tokens=16),
    "cross_attention_both_ways": of(
        "bidirectional_cross_attention", "BidirectionalCrossAttention", lambda: (torch.randn(1, 64, 32), torch.randn(1, 48, 24)), dim=32, heads=2,
        dim_head=16, context_dim=24
    ),
    "set_attention": of("isab_pytorch", "ISAB", normal(1, 64, 32), dim=32, heads=2, num_latents=8),
    "fast_transformer": of("fast_transformer_pytorch", "FastTransformer", tokens(1, 64), num_tokens=100, dim=32, depth=2, max_seq_len=64),
    "charformer": of("charformer_pytorch", "GBST", tokens(1, 64), num_tokens=100, dim=32, max_block_size=4, downsample_factor=4),
    "min_gru": of("minGRU_pytorch", "minGRU", normal(2, 64, 32), 32),
    "tabular_resnet": of("rtdl_revisiting_models", "ResNet", normal(16, 12), d_in=12, d_out=3, n_blocks=2, d_block=32, d_hidden=None,
                         d_hidden_multiplier=2.0, dropout1=0.3, dropout2=0.0),
    "fnet": _text("FNet"),
    "ro_former": _text("RoFormer", embedding_size=32),
    "gpt_neox": _text("GPTNeoX"),
    "starcoder2": _text("Starcoder2", num_key_value_heads=2),
    "squeeze_bert": _text("SqueezeBert", embedding_size=32),
    "pool_former": _transformers("PoolFormer", normal(1, 3, 64, 64), hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1]),
    "focal_net": _transformers("FocalNet", normal(1, 3, 64, 64), image_size=64, embed_dim=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1]),
    "patch_ts_mixer": _transformers("PatchTSMixer", normal(2, 64, 3), context_length=64, patch_length=8, patch_stride=8, num_input_channels=3,
                                    d_model=16, num_layers=2),
}  # fmt: skip
