"""Explicit vectors of neighbouring threads, or of a warp's lanes: techniques that write a loop over threads with vectors for single values."""
