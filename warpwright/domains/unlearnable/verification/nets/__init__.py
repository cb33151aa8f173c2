"""The networks by name: each takes channels and classes, and serves images of 8 pixels and more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from warpwright.domains.unlearnable.verification.nets.densenet121 import densenet121
from warpwright.domains.unlearnable.verification.nets.resnet18 import resnet18
from warpwright.domains.unlearnable.verification.nets.small import small_cnn
from warpwright.domains.unlearnable.verification.nets.vgg16 import vgg16
from warpwright.domains.unlearnable.verification.nets.wrn34_10 import wrn34_10
from warpwright.domains.unlearnable.verification.training.recipe import MakeNet
from warpwright.errors import UsageError

NETS: Mapping[str, MakeNet] = {"small": small_cnn, "resnet18": resnet18, "vgg16": vgg16, "wrn34-10": wrn34_10, "densenet121": densenet121}


def make(name: str, channels: int, classes: int) -> nn.Module:
    """Return a new network of that name."""
    if name not in NETS:
        raise UsageError(f"there is no net {name!r}", f"known: {', '.join(NETS)}, or pass a module")
    return NETS[name](channels, classes)


def last_layer(net: nn.Module) -> nn.Linear:
    """Return the network's last fully connected layer: the one that names classes."""
    layers = [module for module in net.modules() if isinstance(module, nn.Linear)]
    if not layers:
        raise UsageError("expected a net that ends in a fully connected layer, saw none in it", "train it whole, without --frozen")
    return layers[-1]


def replace(net: nn.Module, old: nn.Module, new: nn.Module) -> None:
    """Put `new` where `old` stands in the network."""
    name = next(name for name, module in net.named_modules() if module is old)
    parent, _, own = name.rpartition(".")
    setattr(net.get_submodule(parent), own, new)


def load_weights(net: nn.Module, path: Path) -> None:
    """Take over a state dictionary; what may differ is the last layer, which then stays as it is.

    A file of this package holds names and shapes of the same network; anything else is refused.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises whatever pickle, zip and torch do
        raise UsageError(f"expected a state dictionary in {path}, saw {type(error).__name__}: {error}", "save net.state_dict()") from error
    own = net.state_dict()
    last = {f"{name}.{part}" for name, module in net.named_modules() if module is last_layer(net) for part in ("weight", "bias")}
    fitting = {name: value for name, value in state.items() if name in own and own[name].shape == value.shape}
    lacking = own.keys() - fitting.keys() - last
    if lacking:
        raise UsageError(f"expected the weights of this net in {path}, saw none for {len(lacking)} tensors, as {min(lacking)}", "name their --net")
    net.load_state_dict({**own, **fitting})
