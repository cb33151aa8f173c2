"""Models and functions that were opened after the 24 of third_party.py, from torchvision, torchaudio, transformers, diffusers and recommenders.

    python -m benchmarks.third_party --more [NAME ...] --budget 60s --out FILE

Small configurations, random weights. They are no part of the 24: what is counted there stays comparable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import torch
from torch import nn

Inputs = tuple[Any, ...] | Mapping[str, Any]
Maker = Callable[[], tuple[nn.Module, Inputs]]


def _of(module: str, name: str, inputs: Callable[[], Inputs], *args: Any, **options: Any) -> Maker:
    return lambda: (getattr(import_module(module), name)(*args, **options), inputs())


def _transformers(name: str, inputs: Callable[[], Inputs], **config: Any) -> Maker:
    def make() -> tuple[nn.Module, Inputs]:
        transformers = import_module("transformers")
        chosen = getattr(transformers, name.removesuffix("Model") + "Config")(**config)
        return getattr(transformers, name)(chosen), inputs()

    return make


def _tokens(length: int = 12) -> torch.Tensor:
    return torch.randint(5, 90, (2, length))


def _image(size: int = 64, count: int = 1) -> torch.Tensor:
    return torch.rand(count, 3, size, size)


class Recommender(nn.Module):
    """A model of clicks as DLRM has it: bags of embeddings, two stacks of layers, and the products of every pair of features."""

    def __init__(self, rows: int = 1000, width: int = 16, tables: int = 4) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        """Return the chance of a click for each row."""
        bottom = self.bottom(dense)
        features = torch.stack([bottom, *(table(sparse[:, number]) for number, table in enumerate(self.tables))], dim=1)
        products = features @ features.transpose(1, 2)
        above = torch.triu_indices(products.shape[1], products.shape[2], offset=1)
        return torch.sigmoid(self.top(torch.cat([bottom, products[:, above[0], above[1]]], dim=1)))


def rotary_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, blocks: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> torch.Tensor:
    """Attend to keys and values that lie in blocks, as servers of language models keep them; a plain function."""
    keys, values = (cache[blocks].flatten(1, 2) for cache in (key, value))
    turned = torch.cat([-query[..., query.shape[-1] // 2 :], query[..., : query.shape[-1] // 2]], dim=-1)
    query = query * cos + turned * sin
    scores = torch.einsum("bhd,bthd->bht", query, keys) / query.shape[-1] ** 0.5
    return torch.einsum("bht,bthd->bhd", scores.softmax(-1), values)


def _rotary() -> tuple[nn.Module, Inputs]:
    from warpwright.tasks.function_module import Function

    cache = (torch.randn(32, 16, 4, 32), torch.randn(32, 16, 4, 32))
    return Function(rotary_attention), (torch.randn(2, 4, 32), *cache, torch.randint(0, 32, (2, 8)), torch.rand(32), torch.rand(32))


_SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}

MODELS: Mapping[str, Maker] = {
    "swin_torchvision": _of(
        "torchvision.models.swin_transformer", "SwinTransformer", lambda: (_image(),), patch_size=[4, 4], embed_dim=24, depths=[2, 2],
        num_heads=[2, 4], window_size=[4, 4], num_classes=10,
    ),
    "densenet_torchvision": _of(
        "torchvision.models.densenet", "DenseNet", lambda: (_image(),), growth_rate=8, block_config=(2, 2, 2), num_init_features=16, num_classes=10
    ),
    "video_torchvision": _of("torchvision.models.video", "r3d_18", lambda: (torch.rand(1, 3, 4, 32, 32),), num_classes=10),
    "lraspp_torchvision": _of(
        "torchvision.models.segmentation", "lraspp_mobilenet_v3_large", lambda: (_image(),), weights=None, weights_backbone=None, num_classes=5
    ),
    "ssdlite_torchvision": _of(
        "torchvision.models.detection", "ssdlite320_mobilenet_v3_large", lambda: (_image(320),), weights=None, weights_backbone=None, num_classes=5
    ),
    "conformer_torchaudio": _of(
        "torchaudio.models", "Conformer", lambda: (torch.randn(2, 40, 16), torch.tensor([40, 31])), input_dim=16, num_heads=4, ffn_dim=32,
        num_layers=2, depthwise_conv_kernel_size=7,
    ),
    "mel_torchaudio": _of("torchaudio.transforms", "MelSpectrogram", lambda: (torch.randn(2, 4000),), sample_rate=8000, n_fft=256, n_mels=40),
    "whisper": _transformers(
        "WhisperModel", lambda: {"input_features": torch.randn(1, 80, 60), "decoder_input_ids": _tokens(6)[:1]}, vocab_size=100, d_model=32,
        encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
        max_source_positions=30, use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    ),
    "clip": _transformers(
        "CLIPModel", lambda: {"input_ids": _tokens(), "pixel_values": _image(32, 2)}, projection_dim=16,
        text_config={**_SMALL, "vocab_size": 100, "bos_token_id": 1, "eos_token_id": 2}, vision_config={**_SMALL, "image_size": 32, "patch_size": 8},
    ),
    "segformer": _transformers(
        "SegformerModel", lambda: {"pixel_values": _image()}, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4]
    ),
    "mamba": _transformers("MambaModel", lambda: {"input_ids": _tokens()}, vocab_size=100, hidden_size=32, num_hidden_layers=2, use_cache=False),
    "unet_diffusers": _of(
        "diffusers", "UNet2DConditionModel", lambda: (torch.randn(1, 4, 16, 16), torch.tensor([3]), torch.randn(1, 8, 32)), sample_size=16,
        block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8, cross_attention_dim=32, attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    ),
    "shufflenet_torchvision": _of("torchvision.models", "shufflenet_v2_x0_5", lambda: (_image(),), num_classes=10),
    "googlenet_torchvision": _of("torchvision.models", "googlenet", lambda: (_image(),), num_classes=10, aux_logits=False, init_weights=False),
    "maxvit_torchvision": _of(
        "torchvision.models.maxvit", "MaxVit", lambda: (_image(56),), input_size=(56, 56), stem_channels=16, partition_size=7,
        block_channels=[16, 32], block_layers=[1, 1], head_dim=8, stochastic_depth_prob=0.0, num_classes=10,
    ),
    "flow_torchvision": _of("torchvision.models.optical_flow", "raft_small", lambda: (_image(128), _image(128)), weights=None),
    "wav2letter_torchaudio": _of("torchaudio.models", "Wav2Letter", lambda: (torch.randn(1, 1, 800),), num_classes=10),
    "separation_torchaudio": _of(
        "torchaudio.models", "ConvTasNet", lambda: (torch.randn(1, 1, 800),), enc_num_feats=32, msk_num_feats=16, msk_num_hidden_feats=32,
        msk_num_layers=2, msk_num_stacks=1,
    ),
    "deberta": _transformers(
        "DebertaV2Model", lambda: {"input_ids": _tokens()}, **_SMALL, vocab_size=100, relative_attention=True, pos_att_type=["p2c"]
    ),
    "mixtral": _transformers(
        "MixtralModel", lambda: {"input_ids": _tokens()}, **_SMALL, vocab_size=100, num_key_value_heads=2, num_local_experts=4, use_cache=False
    ),
    "xlnet": _transformers("XLNetModel", lambda: {"input_ids": _tokens()}, vocab_size=100, d_model=32, n_layer=2, n_head=4, d_inner=64),
    "patchtst": _transformers(
        "PatchTSTModel", lambda: {"past_values": torch.randn(2, 64, 3)}, num_input_channels=3, context_length=64, patch_length=8, patch_stride=8,
        d_model=32, num_attention_heads=4, num_hidden_layers=2, ffn_dim=64,
    ),
    "autoencoder_diffusers": _of(
        "diffusers", "AutoencoderKL", lambda: (_image(32),), block_out_channels=(16, 32), norm_num_groups=8, latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    ),
    "transformer_diffusers": _of(
        "diffusers", "DiTTransformer2DModel", lambda: (torch.randn(1, 4, 8, 8), torch.tensor([3]), torch.tensor([1])), num_attention_heads=2,
        attention_head_dim=16, num_layers=2, sample_size=8, num_embeds_ada_norm=10, norm_num_groups=8,
    ),
    "levit_timm": _of("timm", "create_model", lambda: (torch.rand(1, 3, 224, 224),), "levit_128s", num_classes=10),
    "recommender": lambda: (Recommender(), (torch.randn(128, 13), torch.randint(0, 1000, (128, 4, 5)))),
    "rotary_attention": _rotary,
}  # fmt: skip
