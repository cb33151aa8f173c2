"""How long a host takes to ask a GPU for a program's call: what decides where all of its kernels together are shorter than that.

Calls back to back wait for whichever is longer, the host or the GPU. Microseconds are of an H200's host, a quick core (results/launch_plan_h200, the
fourth run): eager 8.9 to 10.5 an operator; two layers of 1,024 with four operators between took 97, so a product some 25; a kernel from Python 11 to
13, a plan 8.0 to 8.4 whatever it launches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import fx

from warpwright.domains.graph.cuda.kernel import CudaKernel
from warpwright.domains.graph.cuda.launches import Launches
from warpwright.domains.graph.ir import GraphIR, aten, is_op
from warpwright.domains.graph.kernels import FromFile
from warpwright.domains.graph.techniques.convolutions.convolution import read as convolution_of

GUARD = 5.5e-6
"""Seconds that the checks before any program take, and the module's call."""
OPERATOR, PRODUCT, CONVOLUTION = 9e-6, 22e-6, 24e-6
"""Of torch: one kernel, and a library's call, which chooses an algorithm each time. A convolution by the ratio of times below 0.05 ms
(results/cuda_l1_beside_h200: L1-76 0.032, L1-24 0.012)."""
KERNEL, PLAN, DESCRIBED = 12e-6, 8.2e-6, 70e-6
"""Of ours: launched from Python, any number of them by a plan, and by Triton with descriptors of tensors: 0.066 ms, and 0.070 to 0.107 beside other
processes, where the GPU's part is some 0.02 (1024 x 1024 -> 4096, results/fused_product_h200); x x^T of 4096 x 1024 took 0.125, of which the GPU's
part is some 0.04 by the rows of larger ones (results/product_ends_h200). So a product that takes a GPU less than that is the library's, or a CUDA
graph's."""
WITH_DESCRIPTORS = ("fused_product", "symmetric_product")
"""Files of kernels that are launched so."""
TRITON = 25e-6
"""One of ours that Triton launches without such: the four of a convolution and of the pass that cuts x took 0.09 to 0.14 ms whatever the GPU's part
(31^2 and 14^2 places in results/implicit_convolution_h200), and KernelBench's 3:8, which has twelve, 0.73 to 0.93."""
RECORDED, COPIED = 8.5e-6, 1.2e-6
"""A CUDA graph with its copies, and each new result. Predicted so by their parts; with the guard three kernels took 12.8 us (the fifth run)."""
COMPILED = 40e-6
"""torch.compile's program, of one to three kernels: 50 to 93 with the module's call."""
BESIDE = 0.3
"""Share of the GPU's time that counts beside the host's where that is longer: all of it from an idle GPU, nothing in calls back to back. Of a CUDA
graph, which all take a host alike, it counts in full."""
PRODUCTS = (aten.linear.default, aten.matmul.default, aten.mm.default, aten.bmm.default, aten.addmm.default, aten.baddbmm.default)


def seconds(ir: GraphIR, calls: Iterable[fx.Node], busy: float, launches: Callable[[fx.Node], float]) -> float:
    """Return the estimate of a call of which the GPU takes `busy` seconds. `launches`: of a call of torch, how many kernels it launches."""
    if ir.scheduled("cuda_graph"):
        return GUARD + RECORDED + COPIED * len(ir.results) + busy
    if ir.scheduled("compile"):
        return GUARD + COMPILED + BESIDE * busy
    return GUARD + sum(call_seconds(node, launches(node)) for node in calls) + BESIDE * busy


def call_seconds(node: fx.Node, launched: float) -> float:
    """Return the estimate of one call that launches so many kernels; 0 for a view."""
    if not launched:
        return 0.0
    if isinstance(node.target, Launches):
        return PLAN
    if isinstance(node.target, CudaKernel):
        return KERNEL
    name = getattr(node.target, "__name__", "")
    if name == "view_product":
        return PRODUCT * launched
    if isinstance(node.target, FromFile):
        return DESCRIBED + OPERATOR * node.target.zeros if node.target.file in WITH_DESCRIPTORS else TRITON * launched
    first = PRODUCT if is_op(node, *PRODUCTS) else CONVOLUTION if convolution_of(node) is not None else OPERATOR
    return first + OPERATOR * (launched - 1)
