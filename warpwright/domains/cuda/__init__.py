"""CUDA kernels as programs: a .cu file and a task file beside it, made faster by rewrites of the CUDA text (docs/cuda.md)."""
