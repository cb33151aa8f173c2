"""Emitters: what runs an ordered program. `eager` is plain torch and always there; `rows` lowers to kernels of rows, which `gpu` and `cpp` write."""
