"""A third set of public models that nobody had opened here before, of vision, time series, point clouds, audio, recommendation and science.

    pip install --no-deps --target LIB einops einx frozendict loguru local-attention axial-positional-embedding product-key-memory linformer \
        rotary-embedding-torch hyper-connections torch-einops-utils beartype scikit-learn scipy joblib threadpoolctl tqdm opt_einsum_fx opt_einsum \
        kornia_rs narwhals gateloop-transformer vector-quantize-pytorch colt5-attention pytorch-msssim deepctr-torch itransformer slot-attention \
        point-transformer-pytorch deformable-attention nbeats-pytorch \
        pytorch-tabnet linear-attention-transformer sinkhorn-transformer geometric-vector-perceptron h-transformer-1d e3nn \
        recurrent-memory-transformer-pytorch asteroid-filterbanks pytorch-tsmixer nnaudio kornia segmentation-models-pytorch
    PYTHONPATH=LIB python -m benchmarks.outside_models --third [NAME ...] [--out FOLDER]

Small configurations, random weights; what is done with them is `outside_models.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import torch

Maker = Callable[[], tuple[torch.nn.Module, tuple[Any, ...]]]


def of(module: str, name: str, inputs: Callable[[], tuple[Any, ...]], *args: Any, **options: Any) -> Maker:
    """Return what makes a class of a package and its inputs."""
    return lambda: (getattr(import_module(module), name)(*args, **options), inputs())


def tokens(*sizes: int) -> Callable[[], tuple[Any, ...]]:
    """Return what draws numbers of tokens."""
    return lambda: (torch.randint(0, 100, sizes),)


def normal(*sizes: int) -> Callable[[], tuple[Any, ...]]:
    """Return what draws normal values."""
    return lambda: (torch.randn(sizes),)


def _deep_fm() -> tuple[torch.nn.Module, tuple[Any, ...]]:
    inputs, models = import_module("deepctr_torch.inputs"), import_module("deepctr_torch.models")
    columns = [inputs.SparseFeat(f"s{number}", 20, embedding_dim=8) for number in range(4)]
    columns += [inputs.DenseFeat(f"d{number}", 1) for number in range(3)]
    model = models.DeepFM(columns, columns, dnn_hidden_units=(32, 16), device="cpu")
    return model, (torch.cat([torch.randint(0, 20, (16, 4)).float(), torch.randn(16, 3)], 1),)


def _tensor_product() -> tuple[torch.nn.Module, tuple[Any, ...]]:
    product = import_module("e3nn.o3").FullyConnectedTensorProduct("4x0e + 2x1o", "1x0e + 1x1o", "4x0e + 2x1o")
    return product, (torch.randn(8, 10), torch.randn(8, 4))


def _filterbank() -> tuple[torch.nn.Module, tuple[Any, ...]]:
    banks = import_module("asteroid_filterbanks")
    return banks.Encoder(banks.STFTFB(n_filters=64, kernel_size=64)), (torch.randn(2, 1, 512),)


MODELS: Mapping[str, Maker] = {
    "ms_ssim": of("pytorch_msssim", "MS_SSIM", lambda: (torch.rand(2, 3, 176, 176), torch.rand(2, 3, 176, 176)), data_range=1.0, channel=3),
    "deep_fm": _deep_fm,
    "i_transformer": of("iTransformer", "iTransformer", normal(2, 32, 7), num_variates=7, lookback_len=32, dim=32, depth=2, heads=2, dim_head=16,
                         pred_length=(4, 8)),
    "slot_attention": of("slot_attention", "SlotAttention", normal(2, 64, 32), num_slots=5, dim=32, iters=3),
    "point_transformer": of("point_transformer_pytorch", "PointTransformerLayer", lambda: (torch.randn(1, 16, 32), torch.randn(1, 16, 3)), dim=32,
                             pos_mlp_hidden_dim=16, attn_mlp_hidden_mult=2, num_neighbors=4),
    "deformable_attention": of("deformable_attention", "DeformableAttention", normal(1, 32, 16, 16), dim=32, dim_head=16, heads=2, dropout=0.0,
                                downsample_factor=4, offset_scale=4, offset_kernel_size=6),
    "n_beats": of("nbeats_pytorch.model", "NBeatsNet", normal(4, 10), backcast_length=10, forecast_length=5, hidden_layer_units=32),
    "tab_net": of("pytorch_tabnet.tab_network", "TabNet", normal(8, 12), input_dim=12, output_dim=3, group_attention_matrix=torch.eye(12)),
    "linear_attention": of("linear_attention_transformer", "LinearAttentionTransformerLM", tokens(1, 64), num_tokens=100, dim=32, heads=2, depth=2,
                            max_seq_len=64),
    "sinkhorn": of("sinkhorn_transformer", "SinkhornTransformerLM", tokens(1, 64), num_tokens=100, dim=32, heads=2, depth=2, bucket_size=16,
                    max_seq_len=64, causal=False),
    "vector_perceptron": of("geometric_vector_perceptron", "GVP", lambda: ((torch.randn(4, 16), torch.randn(4, 8, 3)),), dim_vectors_in=8,
                             dim_vectors_out=4, dim_feats_in=16, dim_feats_out=8),
    "h_transformer": of("h_transformer_1d", "HTransformer1D", tokens(1, 64), num_tokens=100, dim=32, depth=2, causal=False, max_seq_len=64, heads=2,
                         dim_head=16, block_size=16),
    "tensor_product": _tensor_product,
    "spherical_harmonics": of("e3nn.o3", "SphericalHarmonics", normal(16, 3), [0, 1, 2], True),
    "recurrent_memory": of("recurrent_memory_transformer_pytorch", "RecurrentMemoryTransformer", tokens(1, 32), num_tokens=100, num_memory_tokens=8,
                            dim=32, depth=2, causal=True, dim_head=16, heads=2, seq_len=32),
    "filterbank": _filterbank,
    "ts_mixer": of("torchtsmixer", "TSMixer", normal(2, 32, 4), sequence_length=32, prediction_length=8, input_channels=4, output_channels=4),
    "mel_spectrogram": of("nnAudio.features", "MelSpectrogram", normal(2, 4000), sr=8000, n_fft=256, n_mels=32, verbose=False),
    "hard_net": of("kornia.feature", "HardNet", normal(2, 1, 32, 32), pretrained=False),
    "u_net": of("segmentation_models_pytorch", "Unet", normal(1, 3, 64, 64), "resnet18", encoder_weights=None),
}  # fmt: skip
