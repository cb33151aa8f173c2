"""An eighth set: twelve forward passes of model code in ten GitHub repositories that nobody had opened here before, run where the code stands.

    git clone https://github.com/OWNER/NAME REPOSITORIES/FOLDER          (each of FOLDERS, at the commit named there)
    PYTHONPATH=REPOSITORIES/FOLDER python -m benchmarks.third_party --eighth NAME --budget "120s, until faster" --device cpu --out OUT/rows.jsonl

One at a time: several of the repositories call a module of theirs `models`, `utils` or `layers`. Small configurations with random weights, written
from the repositories' READMEs and training scripts before any of them was run here; the inputs are as large as two busy cores bear. einops,
matplotlib and reformer-pytorch have to be installed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from benchmarks.models.third import Maker, normal, of, tokens

FOLDERS: Mapping[str, tuple[str, str]] = {
    "u2net_repository": ("xuebinqin/U-2-Net@ac7e1c81", "."),
    "pointnet_repository": ("fxia22/pointnet.pytorch@bafbf401", "."),
    "pointnet_segmentation": ("fxia22/pointnet.pytorch@bafbf401", "."),
    "conv_lstm_repository": ("ndrplz/ConvLSTM_pytorch@9f662ba2", "."),
    "mamba_minimal": ("johnma2006/mamba-minimal@03de542a", "."),
    "hifi_gan": ("jik876/hifi-gan@4769534d", "."),
    "efficient_kan": ("Blealtan/efficient-kan@7b6ce1c8", "src"),
    "transformer_xl": ("kimiyoung/transformer-xl@44781ed2", "pytorch:pytorch/utils"),
    "guided_diffusion": ("openai/guided-diffusion@22e0df81", "."),
    "tcn_repository": ("locuslab/TCN@2f8c2b81", "TCN"),
    "times_net": ("thuml/Time-Series-Library@4e938a17", "."),
    "patch_tst": ("thuml/Time-Series-Library@4e938a17", "."),
}
"""Of each the repository, and the folder in it that stands in PYTHONPATH."""


def _hifi_gan() -> tuple[torch.nn.Module, tuple[Any, ...]]:
    models = import_module("models")
    config = json.loads((Path(str(models.__file__)).parent / "config_v3.json").read_text())
    return models.Generator(import_module("env").AttrDict(config)), (torch.randn(1, 80, 16),)


def _mamba() -> tuple[torch.nn.Module, tuple[Any, ...]]:
    model = import_module("model")
    return model.Mamba(model.ModelArgs(d_model=64, n_layer=2, vocab_size=100)), tokens(2, 32)()


def _transformer_xl() -> tuple[torch.nn.Module, tuple[Any, ...]]:
    lengths, groups = {"tgt_len": 16, "ext_len": 0, "mem_len": 16}, {"cutoffs": [20, 60], "tie_projs": [False, False, False]}
    model = import_module("mem_transformer").MemTransformerLM(100, 2, 4, 32, 8, 64, 0.0, 0.0, **lengths, **groups)
    return model, (torch.randint(0, 100, (16, 2)), torch.randint(0, 100, (16, 2)))


def _series(name: str) -> Maker:
    config = SimpleNamespace(
        task_name="long_term_forecast", seq_len=48, label_len=24, pred_len=24, e_layers=2, d_layers=1, d_model=16, d_ff=16, n_heads=4, enc_in=7,
        dec_in=7, c_out=7,
        embed="timeF", freq="h", dropout=0.0, factor=3, top_k=3, num_kernels=4, activation="gelu", moving_avg=25, output_attention=False,
    )  # fmt: skip
    inputs = lambda: (torch.randn(2, 48, 7), torch.randn(2, 48, 4), torch.randn(2, 48, 7), torch.randn(2, 48, 4))  # noqa: E731
    return lambda: (import_module(f"models.{name}").Model(config), inputs())


MODELS: Mapping[str, Maker] = {
    "u2net_repository": of("model.u2net", "U2NETP", normal(1, 3, 96, 96), 3, 1),
    "pointnet_repository": of("pointnet.model", "PointNetCls", normal(2, 3, 256), k=16),
    "pointnet_segmentation": of("pointnet.model", "PointNetDenseCls", normal(2, 3, 256), k=4, feature_transform=True),
    "conv_lstm_repository": of("convlstm", "ConvLSTM", normal(1, 4, 3, 24, 24), 3, [16, 16], (3, 3), 2, batch_first=True),
    "mamba_minimal": _mamba,
    "hifi_gan": _hifi_gan,
    "efficient_kan": of("efficient_kan", "KAN", normal(16, 64), [64, 32, 10]),
    "transformer_xl": _transformer_xl,
    "guided_diffusion": of(
        "guided_diffusion.unet", "UNetModel", lambda: (torch.randn(1, 3, 32, 32), torch.randint(0, 1000, (1,))), image_size=32, in_channels=3,
        model_channels=32, out_channels=6, num_res_blocks=1, attention_resolutions=(2,), channel_mult=(1, 2), num_heads=2, use_scale_shift_norm=True
    ),
    "tcn_repository": of("tcn", "TemporalConvNet", normal(4, 4, 64), 4, [16, 16, 16], kernel_size=3, dropout=0.0),
    "times_net": _series("TimesNet"),
    "patch_tst": _series("PatchTST"),
}
