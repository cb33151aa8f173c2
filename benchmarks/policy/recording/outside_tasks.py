"""Tasks from packages' model code that was not opened before: written to a folder as task files, each of which imports one block of a package.

    python -m benchmarks.policy.recording.outside_tasks FOLDER [--second | --third | --fourth | --fifth] [--small]

The packages are MONAI 1.6.1, pytorch_msssim 1.0 and zuko 1.6; those of `--second` are antialiased-cnns 0.3, efficientnet-pytorch 0.7.1 and geffnet
1.0.2; those of `--third` julius 0.2.8, nflows 0.14, rtdl_num_embeddings 0.0.12 and unet 0.8.1; those of `--fourth` pytorchcv 0.0.74, piqa 1.3.2 and
normflows 1.7.3; those of `--fifth` torchsr 1.0.4, torchgan 0.1.0 and monotonicnetworks 1.5.1. All but the first set were written down before anything
of them had been run; of the third and later ones the signatures alone had been read. Nothing of them is copied. `--small` is for a trial on a CPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path

TASKS = {
    "resnet_block_3d": ("from monai.networks.blocks.segresnet_block import ResBlock", "ResBlock(3, 32, norm=('GROUP', {'num_groups': 8}))",
                        "torch.rand(4, 32, 64, 64, 64)", "torch.rand(1, 32, 8, 8, 8)"),
    "unet_block_3d": ("from monai.networks.blocks.dynunet_block import UnetResBlock", "UnetResBlock(3, 32, 64, 3, 1, 'instance')",
                      "torch.rand(2, 32, 64, 64, 64)", "torch.rand(1, 32, 8, 8, 8)"),
    "mlp_block": ("from monai.networks.blocks import MLPBlock", "MLPBlock(1024, 4096)", "torch.rand(16, 1024, 1024)", "torch.rand(2, 16, 1024)"),
    "excite_block": ("from monai.networks.blocks import ResidualSELayer", "ResidualSELayer(2, 64)",
                     "torch.rand(64, 64, 128, 128)", "torch.rand(2, 64, 8, 8)"),
    "pyramid": ("from monai.networks.blocks import SimpleASPP", "SimpleASPP(2, 64, 32)", "torch.rand(32, 64, 96, 96)", "torch.rand(1, 64, 16, 16)"),
    "down_sample": ("from monai.networks.blocks import MaxAvgPool", "MaxAvgPool(2, 2)", "torch.rand(64, 32, 256, 256)", "torch.rand(2, 4, 16, 16)"),
    "convolution_3d": ("from monai.networks.blocks import Convolution", "Convolution(3, 16, 32, adn_ordering='NDA', norm='batch', act='prelu')",
                       "torch.rand(4, 16, 64, 64, 64)", "torch.rand(1, 16, 8, 8, 8)"),
    "dice": ("from monai.losses import DiceLoss", "DiceLoss(sigmoid=True)", "torch.rand(16, 4, 64, 128, 128), torch.rand(16, 4, 64, 128, 128)",
             "torch.rand(2, 4, 8, 8, 8), torch.rand(2, 4, 8, 8, 8)"),
    "focal": ("from monai.losses import FocalLoss", "FocalLoss()", "torch.rand(64, 4, 512, 512), torch.rand(64, 4, 512, 512).round()",
              "torch.rand(2, 4, 8, 8), torch.rand(2, 4, 8, 8).round()"),
    "tversky": ("from monai.losses import TverskyLoss", "TverskyLoss(softmax=True)",
                "torch.rand(64, 4, 512, 512), torch.rand(64, 4, 512, 512).round()", "torch.rand(2, 4, 8, 8), torch.rand(2, 4, 8, 8).round()"),
    "structural_similarity": ("from pytorch_msssim import SSIM", "SSIM(data_range=1.0, channel=3)",
                              "torch.rand(32, 3, 512, 512), torch.rand(32, 3, 512, 512)", "torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)"),
    "masked_mlp": ("from zuko.nn import MaskedMLP", "MaskedMLP(torch.rand(64, 256) < 0.5, hidden_features=(1024, 1024))",
                   "torch.rand(65536, 256)", "torch.rand(64, 256)"),
}  # fmt: skip
"""Name -> import, model, inputs on a GPU, inputs on a CPU."""

_EFFICIENT, _GENERIC = "from efficientnet_pytorch import EfficientNet", "import geffnet"

SECOND = {
    "blur_pool": ("from antialiased_cnns import BlurPool", "BlurPool(64, stride=2)", "torch.rand(64, 64, 112, 112)", "torch.rand(2, 64, 8, 8)"),
    "antialiased_basic": ("import antialiased_cnns", "antialiased_cnns.resnet18().layer1[0]",
                          "torch.rand(64, 64, 56, 56)", "torch.rand(2, 64, 8, 8)"),
    "antialiased_bottleneck": ("import antialiased_cnns", "antialiased_cnns.resnet50().layer2[0]",
                               "torch.rand(32, 256, 56, 56)", "torch.rand(2, 256, 8, 8)"),
    "antialiased_inverted": ("import antialiased_cnns", "antialiased_cnns.mobilenet_v2().features[2]",
                             "torch.rand(64, 16, 112, 112)", "torch.rand(2, 16, 8, 8)"),
    "efficient_early": (_EFFICIENT, "EfficientNet.from_name('efficientnet-b0')._blocks[1]",
                        "torch.rand(64, 16, 112, 112)", "torch.rand(2, 16, 112, 112)"),
    "efficient_late": (_EFFICIENT, "EfficientNet.from_name('efficientnet-b0')._blocks[10]",
                       "torch.rand(128, 112, 14, 14)", "torch.rand(2, 112, 14, 14)"),
    "mobile_excite": (_GENERIC, "geffnet.create_model('mobilenetv3_large_100').blocks[4][0]",
                      "torch.rand(128, 80, 14, 14)", "torch.rand(2, 80, 8, 8)"),
    "mnas_block": (_GENERIC, "geffnet.create_model('mnasnet_b1').blocks[2][1]", "torch.rand(64, 40, 28, 28)", "torch.rand(2, 40, 8, 8)"),
    "mixed_kernels": (_GENERIC, "geffnet.create_model('mixnet_s').blocks[1][0]",
                      "torch.rand(64, 16, 112, 112)", "torch.rand(2, 16, 8, 8)"),
    "efficient_lite": (_GENERIC, "geffnet.create_model('efficientnet_lite0').blocks[1][1]", "torch.rand(64, 24, 56, 56)", "torch.rand(2, 24, 8, 8)"),
}  # fmt: skip

_AUDIO = "torch.rand(64, 44100)"

THIRD = {
    "low_pass": ("import julius", "julius.LowPassFilters([0.1, 0.2, 0.3], fft=False)", _AUDIO, "torch.rand(2, 500)"),
    "band_pass": ("import julius", "julius.BandPassFilter(0.05, 0.2, fft=False)", _AUDIO, "torch.rand(2, 500)"),
    "split_bands": ("import julius", "julius.SplitBands(44100, n_bands=8, fft=False)", "torch.rand(16, 44100)", "torch.rand(2, 500)"),
    "resample": ("import julius", "julius.ResampleFrac(4, 5)", _AUDIO, "torch.rand(2, 500)"),
    "residual_net": ("from nflows.nn.nets import ResidualNet", "ResidualNet(256, 256, 1024, use_batch_norm=True)",
                     "torch.rand(16384, 256)", "torch.rand(8, 256)"),
    "residual_convolutions": ("from nflows.nn.nets import ConvResidualNet", "ConvResidualNet(32, 32, 64)",
                              "torch.rand(64, 32, 56, 56)", "torch.rand(2, 32, 8, 8)"),
    "flow_mlp": ("from nflows.nn.nets import MLP", "MLP((512,), (512,), [2048, 2048])", "torch.rand(8192, 512)", "torch.rand(8, 512)"),
    "masked_network": ("from nflows.transforms.made import MADE", "MADE(256, 1024)", "torch.rand(16384, 256)", "torch.rand(8, 256)"),
    "periodic_embeddings": ("from rtdl_num_embeddings import PeriodicEmbeddings", "PeriodicEmbeddings(64, 32, lite=False)",
                            "torch.rand(8192, 64)", "torch.rand(8, 64)"),
    "linear_embeddings": ("from rtdl_num_embeddings import LinearReLUEmbeddings", "LinearReLUEmbeddings(64, 32)",
                          "torch.rand(16384, 64)", "torch.rand(8, 64)"),
    "unet_block": ("from unet.conv import ConvolutionalBlock", "ConvolutionalBlock(3, 16, 32, normalization='Batch', activation='PReLU', padding=1)",
                   "torch.rand(4, 16, 64, 64, 64)", "torch.rand(1, 16, 8, 8, 8)"),
    "unet": ("from unet import UNet2D", "UNet2D(normalization='batch', padding=1, num_encoding_blocks=3, out_channels_first_layer=16)",
             "torch.rand(8, 1, 256, 256)", "torch.rand(1, 1, 16, 16)"),
}  # fmt: skip

_ZOO, _NORM, _IMAGES = "from pytorchcv.models.", "norm.lambda_batchnorm2d()", "torch.rand(32, 64, 56, 56)"

_BLOCKS, _FEW_IMAGES = "from pytorchcv.models.common import norm\nfrom pytorchcv.models.", "torch.rand(2, 64, 8, 8)"

FOURTH = {
    "bag_unit": (f"{_ZOO}bagnet import BagNetUnit", "BagNetUnit(64, 256, 3, 1)", _IMAGES, _FEW_IMAGES),
    "aggregated_bottleneck": (f"{_ZOO}dla import DLABottleneck", "DLABottleneck(64, 128, 1)", _IMAGES, _FEW_IMAGES),
    "aggregated_first": (f"{_ZOO}dla import DLAInitBlock", "DLAInitBlock(3, 16)", "torch.rand(32, 3, 224, 224)", "torch.rand(2, 3, 16, 16)"),
    "dilated_unit": (f"{_ZOO}drn import DRNUnit", "DRNUnit(64, 64, 1, 2, False, False, True)", _IMAGES, _FEW_IMAGES),
    "dark_unit": (f"{_ZOO}darknet53 import DarkUnit", "DarkUnit(64, 64, lambda: torch.nn.LeakyReLU(0.1))", _IMAGES, _FEW_IMAGES),
    "pyramid_block": (f"{_BLOCKS}espcnet import ESPBlock", f"ESPBlock(64, 64, False, True, {_NORM})", _IMAGES, _FEW_IMAGES),
    "asymmetric_block": (f"{_BLOCKS}dabnet import DABBlock", f"DABBlock(64, 2, {_NORM})", _IMAGES, _FEW_IMAGES),
    "guided_block": (f"{_BLOCKS}cgnet import CGBlock", f"CGBlock(64, 64, 2, 8, False, {_NORM})", _IMAGES, _FEW_IMAGES),
    "factorised_unit": (f"{_BLOCKS}erfnet import FCU", f"FCU(64, 3, 2, 0.3, {_NORM})", _IMAGES, _FEW_IMAGES),
    "gradient_similarity": ("from piqa.gmsd import GMSD", "GMSD()", "torch.rand(32, 3, 256, 256), torch.rand(32, 3, 256, 256)",
                            "torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)"),
    "total_variation": ("from piqa.tv import TV", "TV()", "torch.rand(64, 3, 256, 256)", "torch.rand(2, 3, 32, 32)"),
    "flow_convolutions": ("from normflows.nets.cnn import ConvNet2d", "ConvNet2d([16, 64, 64, 32], [3, 1, 3], init_zeros=False)",
                          "torch.rand(32, 16, 64, 64)", "torch.rand(2, 16, 8, 8)"),
}  # fmt: skip

_CONVOLUTION = "lambda i, o, k, bias=True: torch.nn.Conv2d(i, o, k, padding=k // 2, bias=bias)"

_PATCHES, _FEW_PATCHES = "torch.rand(16, 64, 96, 96)", "torch.rand(2, 64, 12, 12)"

FIFTH = {
    "strided_attention": ("from torchsr.models.ninasr import AttentionBlock", "AttentionBlock(64)", _PATCHES, "torch.rand(2, 64, 48, 48)"),
    "scaled_residual": ("from torchsr.models.ninasr import ResBlock", "ResBlock(64, 128, 0.5, 0.5)", _PATCHES, "torch.rand(2, 64, 48, 48)"),
    "channel_attention_unit": ("from torchsr.models.rcan import RCAB", f"RCAB({_CONVOLUTION}, 64, 3, 16)", _PATCHES, _FEW_PATCHES),
    "growing_block": ("from torchsr.models.rdn import RDB", "RDB(64, 32, 4)", _PATCHES, _FEW_PATCHES),
    "grouped_residual": ("from torchsr.models.carn import EResidualBlock", "EResidualBlock(64, 64, 4)", _PATCHES, _FEW_PATCHES),
    "cascading_block": ("from torchsr.models.carn import CARNMBlock", "CARNMBlock(64, 64, 4)", _PATCHES, _FEW_PATCHES),
    "normalised_residual": ("from torchsr.models.edsr import ResBlock", f"ResBlock({_CONVOLUTION}, 64, 3, bn=True)", _PATCHES, _FEW_PATCHES),
    "generator_residual": ("from torchgan.layers import ResidualBlock2d", "ResidualBlock2d([64, 64, 64], [3, 3], paddings=[1, 1])",
                           _IMAGES, _FEW_IMAGES),
    "generator_dense": ("from torchgan.layers import BasicBlock2d, DenseBlock2d", "DenseBlock2d(4, 32, 16, BasicBlock2d, 3, padding=1)",
                        "torch.rand(16, 32, 64, 64)", "torch.rand(2, 32, 8, 8)"),
    "picture_attention": ("from torchgan.layers import SelfAttention2d", "SelfAttention2d(64)",
                          "torch.rand(8, 64, 32, 32)", "torch.rand(1, 64, 6, 6)"),
    "batch_discrimination": ("from torchgan.layers import MinibatchDiscrimination1d", "MinibatchDiscrimination1d(512, 64)",
                             "torch.rand(512, 512)", "torch.rand(8, 512)"),
    "sorting_network": ("from monotonicnetworks import GroupSort",
                        "torch.nn.Sequential(torch.nn.Linear(256, 1024), GroupSort(512), torch.nn.Linear(1024, 256))",
                        "torch.rand(16384, 256)", "torch.rand(8, 256)"),
}  # fmt: skip

SETS = {"second": SECOND, "third": THIRD, "fourth": FOURTH, "fifth": FIFTH}


def text(name: str, small: bool) -> str:
    """Return a task file."""
    imported, made, large_inputs, small_inputs = {name: one for blocks in (TASKS, *SETS.values()) for name, one in blocks.items()}[name]
    arguments = ", ".join("xy"[: 1 + ("), torch" in small_inputs)])
    lines = [
        f'"""{name}, of a package."""', "", "import torch", imported, "", "", "class Model(torch.nn.Module):", "    def __init__(self):",
        "        super().__init__()", f"        self.own = {made}", "",
        f"    def forward(self, {arguments}):", f"        return self.own({arguments})", "", "",
        "def get_inputs():", f"    return [{small_inputs if small else large_inputs}]", "", "", "def get_init_inputs():", "    return []", "",
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    for which, blocks in SETS.items():
        parser.add_argument(f"--{which}", action="store_const", dest="blocks", const=blocks, default=TASKS)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.blocks:
        (options.folder / f"{name}.py").write_text(text(name, options.small))


if __name__ == "__main__":
    main()
