"""Convolutions, and what stands before and after them."""
