"""Tier fibers: the kernel's own text with small edits, and its two checked forms, lockstep and the sanitizer."""
