"""Rewrites that only remove or reorder element-wise work: what is computed twice, thrown away, or cancels."""
