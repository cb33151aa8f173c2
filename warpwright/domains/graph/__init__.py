"""The graph domain: a PyTorch model as a graph of aten operators, rewritten and written back as one Python file."""

from warpwright.domains.graph.domain import space

__all__ = ["space"]
