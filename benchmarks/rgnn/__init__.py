"""Relational graph layers: ours beside plain torch and PyG."""
