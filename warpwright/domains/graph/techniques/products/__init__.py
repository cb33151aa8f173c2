"""Techniques that make products of matrices by kernels of ours, with what follows them; `product.py` reads the calls."""
