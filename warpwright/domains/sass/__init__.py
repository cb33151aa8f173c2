"""The sass domain: reorders the finished machine code of an NVIDIA kernel, within what a model of its hazards allows (docs/sass.md)."""
