"""Relational graph neural networks: `accelerate(model)` swaps PyG's layers for compiled ones (docs/rgnn.md)."""

from warpwright.domains.rgnn.index import forget
from warpwright.domains.rgnn.nn import FastRGCNConv, HGTConv, RGATConv, RGCNConv, accelerate, captured

__all__ = ["FastRGCNConv", "HGTConv", "RGATConv", "RGCNConv", "accelerate", "captured", "forget"]
