"""Edits of a CUDA text by its tokens, before libclang reads it."""
