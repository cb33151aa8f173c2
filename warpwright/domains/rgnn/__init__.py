"""Relational graph neural network layers: a front end over symbolic graph tensors, a two-level IR, and emitters (docs/rgnn.md)."""
