"""Drop-in layers, and `accelerate`, which puts them in place of PyG's."""

from warpwright.domains.rgnn.nn.accelerate import accelerate
from warpwright.domains.rgnn.nn.hgt import HGTConv
from warpwright.domains.rgnn.nn.rgat import RGATConv
from warpwright.domains.rgnn.nn.rgcn import FastRGCNConv, RGCNConv
from warpwright.domains.rgnn.nn.steps import captured

__all__ = ["FastRGCNConv", "HGTConv", "RGATConv", "RGCNConv", "accelerate", "captured"]
