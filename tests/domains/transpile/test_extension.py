"""Torch extensions on the CPU: host code with tensors, checks, dispatch on types, several results, views and errors."""

from __future__ import annotations

import shutil

import pytest
import torch

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains.transpile import extension
from warpwright.domains.transpile.errors import LaunchFailed, Refusal
from warpwright.errors import UsageError

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

TEXT = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAGuard.h>
#define CHECK_INPUT(x) TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor"); TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
template <typename scalar_t>
__global__ void relu_kernel(const scalar_t* __restrict__ x, scalar_t* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > (scalar_t)0 ? x[i] : (scalar_t)0;
}
__global__ void row_sums(at::PackedTensorAccessor32<float, 2, at::RestrictPtrTraits> x, float* y) {
  __shared__ float part[128];
  float sum = 0;
  for (int j = threadIdx.x; j < x.size(1); j += blockDim.x) sum += x[blockIdx.x][j];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int o = blockDim.x / 2; o > 0; o >>= 1) {
    if (threadIdx.x < o) part[threadIdx.x] += part[threadIdx.x + o];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
torch::Tensor relu(torch::Tensor x) {
  CHECK_INPUT(x);
  const at::cuda::CUDAGuard guard(x.device());
  auto y = torch::empty_like(x);
  const int n = x.numel();
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "relu", ([&] {
    relu_kernel<scalar_t><<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n);
  }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
std::vector<torch::Tensor> several(const torch::Tensor& x, double scale, c10::optional<torch::Tensor> bias, std::vector<int64_t> sizes) {
  auto y = torch::zeros({x.size(0)}, x.options());
  row_sums<<<dim3(x.size(0)), dim3(128)>>>(x.packed_accessor32<float, 2, at::RestrictPtrTraits>(), y.data_ptr<float>());
  auto filled = torch::full(sizes, scale, torch::dtype(torch::kFloat64));
  TORCH_CHECK(std::abs(torch::mean(filled).item<double>() - scale) < 1e-12, "mean");
  TORCH_CHECK((filled * 2.0).sum().item<double>() == 2 * scale * filled.numel(), "sum");
  return {y, x.transpose(0, 1), x.narrow(1, 2, 3).contiguous(), filled, bias.has_value() ? bias.value() : torch::ones({1}, torch::kInt64)};
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("relu", &relu, "x where it is above zero");
  m.def("several", &several, py::arg("x"), py::arg("scale") = 0.5, py::arg("bias"), py::arg("sizes"));
}
"""


@pytest.fixture(scope="module")
def built() -> extension.Extension:
    return extension.compile_extension(TEXT)


def test_a_kernel_for_each_type(built: extension.Extension) -> None:
    for dtype in (torch.float32, torch.float64, torch.float16):
        x = torch.randn(33, 17).to(dtype)
        assert torch.equal(built.relu(x), x.relu())


def test_a_text_that_was_compiled_twice_keeps_its_tensors_apart(built: extension.Extension) -> None:
    """The second one is the same library: the first one's new tensors were looked for among the second one's."""
    x = torch.randn(40, 70)
    again = extension.compile_extension(TEXT)
    for function in (built.relu, again.relu, built.relu):
        assert torch.equal(function(x), x.relu())


def test_results_are_tensors_views_and_lists(built: extension.Extension) -> None:
    x = torch.randn(5, 300)
    sums, turned, part, filled, one = built.several(x, bias=None, sizes=[2, 3])
    torch.testing.assert_close(sums, x.sum(1))
    assert turned.data_ptr() == x.data_ptr() and torch.equal(turned, x.t())
    assert torch.equal(part, x[:, 2:5]) and part.is_contiguous()
    assert torch.equal(filled, torch.full((2, 3), 0.5, dtype=torch.float64)) and torch.equal(one, torch.ones(1, dtype=torch.int64))
    bias = torch.randn(4)
    assert built.several(x, 2.0, bias, [1])[4] is bias


def test_checks_say_what_they_say(built: extension.Extension) -> None:
    with pytest.raises(LaunchFailed, match="x must be contiguous"):
        built.relu(torch.randn(4, 5).t())
    with pytest.raises(LaunchFailed, match="not implemented for 'Int'"):
        built.relu(torch.ones(3, dtype=torch.int32))
    with pytest.raises(TypeError, match="expected tensors, numbers"):
        built.relu("text")
    with pytest.raises(AttributeError, match="relu, several"):
        built.other()


def test_what_is_not_translated_is_named() -> None:
    text = TEXT.split("PYBIND11_MODULE")[0] + "torch::Tensor other(torch::Tensor x) { return torch::fft_rfft(relu(x)); }"
    with pytest.raises(Refusal, match="fft_rfft"):
        extension.compile_extension(text, ["other"])
    with pytest.raises(UsageError, match="define absent"):
        extension.compile_extension(TEXT, ["absent"])


LIBRARY = r"""
#include <torch/extension.h>
template <typename T> __global__ void twice(T* x, int n) { at::acc_type<T, true> two = 2; const int i = threadIdx.x; if (i < n) x[i] = x[i] * two; }
torch::Tensor forward(torch::Tensor x, torch::Tensor w, c10::optional<torch::Tensor> b, torch::Tensor last) {
  auto y = at::conv2d(x, w, b, {2, 1}, {1, 1});
  y = torch::relu(y) + y * 0.5;
  auto z = at::max_pool2d(torch::cat({y, y}, 1), 2, 2, 0, 1, false);
  z = torch::softmax(torch::gelu(torch::linear(z.flatten(1), last, c10::nullopt), "tanh"), 1).contiguous();
  twice<float><<<1, 64>>>(z.data_ptr<float>(), z.numel());
  return torch::matmul(z, torch::einsum("ij->ji", {z}));
}
torch::Tensor plain(py::object o) { return o.cast<torch::Tensor>(); }
torch::Tensor shifted(pybind11::object x, py::object by = py::none(), double f = 2) {
  auto t = plain(py::hasattr(x, "data") ? x.attr("data") : x);
  return by.is_none() ? t * f : t + plain(by);
}
torch::Tensor wrong(torch::Tensor x) { return torch::linear(x, x.narrow(1, 0, 2)); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); m.def("wrong", &wrong); m.def("shifted", &shifted); }
"""


@pytest.mark.compiler
def test_torchs_functions_around_the_kernels_are_torchs() -> None:
    built = extension.compile_extension(LIBRARY)
    x, w, b = torch.randn(3, 4, 8, 8), torch.randn(5, 4, 3, 3), torch.randn(5)
    for bias in (b, None):
        y = torch.nn.functional.conv2d(x, w, bias, (2, 1), (1, 1))
        y = torch.relu(y) + y * 0.5
        z = torch.nn.functional.max_pool2d(torch.cat([y, y], 1), 2, 2).flatten(1)
        last = torch.randn(7, z.shape[1])
        z = 2 * torch.softmax(torch.nn.functional.gelu(z @ last.T, approximate="tanh"), 1)
        assert torch.allclose(built.forward(x, w, bias, last), z @ z.T, rtol=1e-5)
    assert torch.equal(built.shifted(x, None, 3.0), x * 3) and torch.equal(built.shifted(x, w[:1, :, :1, :1], 1.0), x + w[:1, :, :1, :1])
    with pytest.raises(LaunchFailed, match=r"torch's linear failed.*cannot be multiplied"):
        built.wrong(torch.randn(3, 4))
    assert torch.allclose(built.forward(x, w, None, last), z @ z.T, rtol=1e-5)  # the failure is forgotten
