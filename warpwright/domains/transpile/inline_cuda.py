"""Python programs that build CUDA kernels inline: are they such, and how they run where there is no GPU."""

from __future__ import annotations

import re

MODULE = "warpwright.targets.cuda_on_cpu"
"""What an adapted program imports in place of torch.utils.cpp_extension when it is run."""


def has_cuda(text: str) -> bool:
    """Does this program text build CUDA kernels of its own?"""
    return "cpp_extension" in text and ("__global__" in text or re.search(r"\bcuda_sources\b|\.cu\b", text) is not None)


def adapt(text: str) -> str:
    """Return the program text with torch.utils.cpp_extension replaced by MODULE, in every form of import. Lines keep their numbers."""
    text = re.sub(r"\bfrom\s+torch\.utils\s+import\s+cpp_extension\b(?!\s+as)", "from warpwright.targets import cuda_on_cpu as cpp_extension", text)
    text = re.sub(r"\bfrom\s+torch\.utils\s+import\s+cpp_extension\s+as\b", "from warpwright.targets import cuda_on_cpu as", text)
    return re.sub(r"\btorch\.utils\.cpp_extension\b", MODULE, text)
