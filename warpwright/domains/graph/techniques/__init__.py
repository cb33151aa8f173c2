"""The graph domain's techniques: small checked rewrites, one family a file. The order is that in which a search tries them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from warpwright.domains.graph.techniques import differentiate, fold, library, linear_reduce, norm, precision, schedule  # fmt: skip
from warpwright.domains.graph.techniques.algebra import common, dead, diagonal, einsum, identity, monotone, pools, scalars
from warpwright.domains.graph.techniques.convolutions import (
    activated,
    conv_pool,
    conv_reduce,
    conv_transpose,
    direct_convolution,
    forms,
    fourier,
    half,
    implicit,
    lattice,
)
from warpwright.domains.graph.techniques.kernels import (
    attention,
    fuse,
    launch_plan,
    libraries,
    recurrent,
    scans,
    top_k,
    windows,
)
from warpwright.domains.graph.techniques.products import (
    fused_product,
    half_products,
    int8,
    short_products,
    small_products,
    symmetric_product,
    tf32x3,
    triangular_product,
    view_products,
)

REWRITES: tuple[Any, ...] = (
    *dead.TECHNIQUES,
    *identity.TECHNIQUES,
    *pools.TECHNIQUES,
    *einsum.TECHNIQUES,
    *diagonal.TECHNIQUES,
    *library.TECHNIQUES,
    *attention.REWRITES,
    *monotone.TECHNIQUES,
    *norm.TECHNIQUES,
    *linear_reduce.TECHNIQUES,
    *conv_reduce.TECHNIQUES,
    *conv_pool.TECHNIQUES,
    *scalars.TECHNIQUES,
    *fourier.TECHNIQUES,
    *lattice.TECHNIQUES,
    *conv_transpose.TECHNIQUES,
    *common.TECHNIQUES,
)
"""What changes the graph, for any target.

Reductions come before scalars (a factor is cheaper on a reduced result than on a weight), and both before the forms of a
convolution, which hide it from the rules that look for one.
"""

ON_CPU: tuple[Any, ...] = (*fold.TECHNIQUES, *forms.TECHNIQUES, *fuse.TECHNIQUES, *schedule.TECHNIQUES, *schedule.CPU_TECHNIQUES)
_KERNELS: tuple[Any, ...] = (
    *recurrent.TECHNIQUES, *attention.TECHNIQUES, *view_products.TECHNIQUES, *short_products.TECHNIQUES, *symmetric_product.TECHNIQUES,
    *triangular_product.TECHNIQUES,
    *fused_product.TECHNIQUES, *small_products.TECHNIQUES, *half_products.TECHNIQUES, *int8.TECHNIQUES,
    *tf32x3.TECHNIQUES, *precision.TECHNIQUES, *direct_convolution.TECHNIQUES, *implicit.TECHNIQUES, *half.TECHNIQUES, *windows.TECHNIQUES,
    *scans.TECHNIQUES, *activated.TECHNIQUES, *top_k.TECHNIQUES, *libraries.TECHNIQUES, *fuse.CUDA_TECHNIQUES,
)  # fmt: skip
ON_CUDA: tuple[Any, ...] = (
    *fold.TECHNIQUES, *forms.TECHNIQUES, *_KERNELS, *schedule.TECHNIQUES, *launch_plan.CUDA_TECHNIQUES, *schedule.CUDA_TECHNIQUES,
)  # fmt: skip
"""How to run it, by target."""

OF_STEPS: tuple[Any, ...] = (schedule.ChannelsLast(), schedule.Compile())
"""How to run a training step, on any target: values that are kept from call to call have no gradients."""

NOT_OF_STEPS = (norm.NORM_CANCELS_SHIFT,)
"""It writes running statistics again, which autograd keeps for the backward."""

TECHNIQUES: tuple[Any, ...] = (*REWRITES, *dict.fromkeys((*ON_CPU, *ON_CUDA)))


def techniques(target: str, backward: bool = False, tf32: bool = False) -> tuple[Any, ...]:
    """Return the techniques for a target (cpu or cuda), in a fixed order; with `backward`, for training steps; `tf32`: does the task permit it?"""
    if backward:
        kernels = fuse.CUDA_TECHNIQUES if target == "cuda" else fuse.TECHNIQUES
        rewrites = [technique for technique in REWRITES if technique not in NOT_OF_STEPS]
        return (*rewrites, differentiate.Differentiate(target), *kernels, *OF_STEPS)
    schedules = ON_CUDA if target == "cuda" else ON_CPU
    return (*REWRITES, *(replace(technique, tf32=tf32) if hasattr(technique, "tf32") else technique for technique in schedules))
