"""A CUDA text -> the IR of its kernels: preprocessor, tokens, libclang, inline PTX, shifts."""
