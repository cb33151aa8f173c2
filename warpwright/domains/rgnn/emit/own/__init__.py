"""Kernels written in CUDA C++, for large graphs: `kernel` loads one and proves it; the others say when theirs serves, and launch it."""
