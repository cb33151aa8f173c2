"""The target for machine code: a child process that holds a CUDA context loads, checks and times cubins beside the original (docs/sass.md)."""
