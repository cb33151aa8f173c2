"""Tensors between the parent and its workers: described in bytes, carried in shared memory, read out of stopped processes."""
