"""Host code of torch extensions: torch's library, Python objects as arguments, modules and matrix products of cuBLAS."""

from __future__ import annotations

import shutil

import pytest
import torch
from torch import nn

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains.transpile import extension
from warpwright.domains.transpile.errors import LaunchFailed

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

KERNEL = "#include <torch/extension.h>\n__global__ void twice(float* x, int n) { const int i = threadIdx.x; if (i < n) x[i] *= 2; }\n"


def built(text: str, *functions: str) -> extension.Extension:
    return extension.compile_extension(KERNEL + text, functions)


def test_methods_and_indexing_are_torchs() -> None:
    made = built(
        r"""
        std::vector<torch::Tensor> methods(torch::Tensor x, torch::Tensor y) {
          torch::DeviceGuard guard(x.device());
          auto sum = x.clone();
          sum.add_(y).mul_(y);
          sum += 1.5;
          return {std::get<0>(x.min(1)), std::get<1>(x.max(-1, true)), x.sum(1, true), x.mean({0, 2}), sum, (2 * x - y).relu().exp(),
                  -x, x.clamp(-0.5, 0.5), x.masked_fill(~(y >= 0), -1), x.norm(2, {1}, true), x.split({1, 4}, 1)[1],
                  x.chunk(2, 2)[1], flatten(x.softmax(-1).cumsum(0), 1)};
        }
        using namespace torch::indexing;
        std::vector<torch::Tensor> indexed(torch::Tensor x, torch::Tensor which) {
          return {x.index({Slice(), -1}), x.index({Slice(1, None, 2), Slice(None, -1)}), x.index({"...", 2}), x.index({None, 0}),
                  x.index({Slice(), which}), x.slice(2, -3, 100, 2), x.index({torch::indexing::Ellipsis, Slice(1, 3)})};
        }""",
        "methods", "indexed",
    )  # fmt: skip
    x, y = torch.randn(4, 5, 6), torch.randn(4, 5, 6)
    wanted = [
        x.min(1)[0], x.max(-1, True)[1], x.sum(1, True), x.mean((0, 2)), (x + y) * y + 1.5, (2 * x - y).relu().exp(), -x, x.clamp(-0.5, 0.5),
        x.masked_fill(~(y >= 0), -1), x.norm(2, (1,), True), x.split([1, 4], 1)[1], x.chunk(2, 2)[1], x.softmax(-1).cumsum(0).flatten(1),
    ]  # fmt: skip
    for seen, right in zip(made.methods(x, y), wanted, strict=True):
        torch.testing.assert_close(seen, right)
    which = torch.tensor([[4, 0], [1, 1]])
    wanted = [x[:, -1], x[1::2, :-1], x[..., 2], x[None, 0], x[:, which], x[:, :, -3:100:2], x[..., 1:3]]
    for seen, right in zip(made.indexed(x, which), wanted, strict=True):
        assert torch.equal(seen, right)


def test_memory_lies_as_it_is_asked_for() -> None:
    made = built(
        r"""
        std::vector<torch::Tensor> forward(torch::Tensor x) {
          const auto last = torch::MemoryFormat::ChannelsLast;
          auto a = torch::empty(x.sizes(), x.options().memory_format(last)), b = torch::zeros_like(a), c = x.contiguous(last);
          return {a, b, c, torch::empty_like(c, x.options().memory_format(torch::MemoryFormat::Contiguous)),
                  c.to(x.dtype(), false, true), c.contiguous()};
        }""",
        "forward",
    )
    x = torch.randn(2, 3, 4, 5)
    seen, last = made.forward(x), x.contiguous(memory_format=torch.channels_last)
    assert [one.stride() for one in seen] == [last.stride()] * 3 + [x.stride(), last.stride(), x.stride()]
    assert seen[1].eq(0).all() and torch.equal(seen[2], x) and torch.equal(seen[4], x) and torch.equal(seen[5], x)


def test_views_of_what_does_not_lie_in_one_piece() -> None:
    made = built(
        r"""
        std::vector<torch::Tensor> forward(torch::Tensor x) {  // 4, 6, 10
          const auto turned = x.permute({1, 2, 0});
          return {turned.view({3, 2, 10, 2, 2}), turned.view({60, 1, 4}), x.narrow(2, 0, 4).view({24, 2, 2}),
                  x.transpose(0, 1).view({6, 2, 1, 2, 10})};
        }
        torch::Tensor torn(torch::Tensor x) { return x.transpose(0, 1).view({-1}); }""",
        "forward", "torn",
    )  # fmt: skip
    x = torch.randn(4, 6, 10)
    turned = x.permute(1, 2, 0)
    wanted = [turned.view(3, 2, 10, 2, 2), turned.view(60, 1, 4), x[:, :, :4].view(24, 2, 2), x.transpose(0, 1).view(6, 2, 1, 2, 10)]
    for seen, right in zip(made.forward(x), wanted, strict=True):
        assert torch.equal(seen, right) and seen.data_ptr() == x.data_ptr()
    with pytest.raises(LaunchFailed, match="not compatible"):
        made.torn(x)


def test_functionals_take_their_options() -> None:
    made = built(
        r"""
        namespace F = torch::nn::functional;
        std::vector<torch::Tensor> forward(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
          auto y = F::conv_transpose2d(x, w, F::ConvTranspose2dFuncOptions().bias(b).stride(2).padding({1, 0}).output_padding(1));
          return {y, F::normalize(x, F::NormalizeFuncOptions().p(1).dim(2)), F::softmax(x, F::SoftmaxFuncOptions(1)), F::relu(x),
                  F::dropout(x, F::DropoutFuncOptions().p(0.3).training(false)), F::max_pool2d(x, F::MaxPool2dFuncOptions(2).stride(1)),
                  torch::clamp(x, c10::nullopt, torch::tensor(0.25, x.options())),
                  torch::conv2d(x.to(torch::MemoryFormat::ChannelsLast), w.transpose(0, 1))};
        }""",
        "forward",
    )
    x, w, b = torch.randn(2, 3, 5, 5), torch.randn(3, 4, 3, 3), torch.randn(4)
    f = nn.functional
    wanted = [
        f.conv_transpose2d(x, w, b, 2, (1, 0), 1), f.normalize(x, 1, 2), x.softmax(1), x.relu(), x, f.max_pool2d(x, 2, 1), x.clamp(max=0.25),
        f.conv2d(x, w.transpose(0, 1)),
    ]  # fmt: skip
    for seen, right in zip(made.forward(x, w, b), wanted, strict=True):
        torch.testing.assert_close(seen, right)


OBJECTS = r"""
#include <pybind11/pybind11.h>
torch::Tensor gathered(py::object params, bool last) {
  auto total = params.attr("get")("first").cast<torch::Tensor>().clone();
  py::list blocks = params.attr("__getitem__")(py::str("blocks"));
  for (auto block : blocks) {
    py::dict one = block.cast<py::dict>();
    const auto by = one["by"].cast<double>();
    for (auto item : one) {
      const std::string key = py::cast<std::string>(item.first);
      if (key.rfind("w", 0) == 0) total += py::cast<torch::Tensor>(item.second) * by;
    }
    if (py::bool_(block.attr("__contains__")("extra"))) total += one["extra"].cast<py::tuple>()[1].cast<torch::Tensor>();
    if (one.contains("none") && !one["none"].is_none()) total = total * 0;
  }
  return last ? total + py::object(params).cast<py::dict>().size() : total;
}
torch::Tensor mapped(std::map<std::string, torch::Tensor> all, std::vector<std::vector<int64_t>> lists, std::tuple<int, double> pair,
                     std::vector<torch::Tensor> more) {
  return all.at("a") + all.at("b") * lists[1][0] + std::get<0>(pair) * std::get<1>(pair) + (double)more.size();
}
bool same(py::object a, py::object b) { return a.is(b) || (a.is(py::none()) && py::isinstance<py::int_>(b)); }
torch::Tensor missing(py::dict d) { return d["absent"].cast<torch::Tensor>(); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("gathered", &gathered, py::arg("params"), py::arg("last") = true);
  m.def("mapped", &mapped);
  m.def("same", &same);
  m.def("missing", &missing);
}
"""


def test_python_objects_are_asked() -> None:
    made = built(OBJECTS)
    first, w, v, e = torch.randn(4, 3).unbind()
    blocks = [{"by": 2.0, "w0": w, "w1": v, "x": e}, {"by": 1, "extra": (None, e), "none": None}]
    params = nn.ParameterDict({"first": first})
    params["blocks"] = blocks
    for given in (params, {"first": first, "blocks": blocks}):
        torch.testing.assert_close(made.gathered(given), first + 2 * (w + v) + e + 2)
        torch.testing.assert_close(made.gathered(given, False), first + 2 * (w + v) + e)
    torch.testing.assert_close(made.mapped({"a": w, "b": v}, [[1], [3, 4]], (2, 0.5), nn.ParameterList([first, e])), w + 3 * v + 3)
    torch.testing.assert_close(made.mapped({"a": w, "b": v}, [[1], [3, 4]], (2, 0.5), []), w + 3 * v + 1)
    assert made.same(blocks, blocks) is False and made.same(None, None) is True and made.same(None, 3) is True and made.same(w, v) is False
    with pytest.raises(LaunchFailed, match="KeyError: 'absent'"):
        made.missing({})
    with pytest.raises(LaunchFailed, match="expected a dict as argument"):
        made.missing(params)


def test_modules_have_the_weights_they_are_given() -> None:
    made = built(
        r"""
        torch::Tensor lstm(torch::Tensor x, torch::Tensor h, torch::Tensor c, std::vector<torch::Tensor> w) {
          torch::nn::LSTM m(torch::nn::LSTMOptions(x.size(2), h.size(2)).num_layers(1).batch_first(true));
          const char* names[] = {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"};
          for (int i = 0; i < 4; ++i) m->named_parameters()[names[i]].copy_(w[i]);
          auto made = m->forward(x, std::make_tuple(h, c));
          return std::get<0>(made) + std::get<1>(std::get<1>(made)).transpose(0, 1);
        }
        torch::Tensor gru(torch::Tensor x, torch::Tensor h, std::vector<torch::Tensor> w) {
          return std::get<1>(torch::gru(x, h, w, true, 1, 0.0, false, false, true));
        }
        torch::Tensor attention(torch::Tensor x, torch::Tensor w, torch::Tensor b, torch::Tensor out, torch::Tensor out_bias) {
          auto m = torch::nn::MultiheadAttention(torch::nn::MultiheadAttentionOptions(x.size(2), 2));
          m->in_proj_weight = w, m->in_proj_bias = b, m->out_proj->weight = out, m->out_proj->bias = out_bias;
          return std::get<0>(m->forward(x, x, x, torch::Tensor(), false, torch::Tensor(), true));
        }""",
        "lstm", "gru", "attention",
    )  # fmt: skip
    x = torch.randn(3, 7, 4)
    with torch.no_grad():
        lstm, h, c = nn.LSTM(4, 5, batch_first=True), torch.randn(1, 3, 5), torch.randn(1, 3, 5)
        y, (_, cn) = lstm(x, (h, c))
        torch.testing.assert_close(made.lstm(x, h, c, list(lstm.parameters())), y + cn.transpose(0, 1))
        gru = nn.GRU(4, 5, batch_first=True)
        torch.testing.assert_close(made.gru(x, h, list(gru.parameters())), gru(x, h)[1])
        attention = nn.MultiheadAttention(4, 2)
        given = (attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.weight, attention.out_proj.bias)
        torch.testing.assert_close(made.attention(x, *given), attention(x, x, x, need_weights=False)[0])


@pytest.mark.parametrize(("ta", "tb"), [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_cublas_are_column_major(ta: bool, tb: bool) -> None:
    made = built(
        r"""
        #include <cublas_v2.h>
        torch::Tensor product(torch::Tensor a, torch::Tensor b, torch::Tensor c, bool ta, bool tb, float alpha, float beta) {
          static cublasHandle_t handle = nullptr;
          if (handle == nullptr) cublasCreate(&handle);
          const int m = c.size(1), n = c.size(0), k = ta ? a.size(1) : a.size(0);
          auto out = c.clone();
          const auto turn_a = ta ? CUBLAS_OP_T : CUBLAS_OP_N, turn_b = tb ? CUBLAS_OP_T : CUBLAS_OP_N;
          const auto status = cublasSgemm(handle, turn_a, turn_b, m, n, k, &alpha, a.data_ptr<float>(), a.size(1), b.data_ptr<float>(), b.size(1),
                                          &beta, out.data_ptr<float>(), m);
          TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "refused");
          return out;
        }""",
        "product",
    )
    m, n, k = 5, 3, 7  # a column-major matrix is the transposed of what torch sees
    a, b, c = torch.randn(m, k) if ta else torch.randn(k, m), torch.randn(k, n) if tb else torch.randn(n, k), torch.randn(n, m)
    wanted = 2 * (a if ta else a.t()) @ (b.t() if not tb else b) + 0.5 * c.t()
    torch.testing.assert_close(made.product(a, b, c, ta, tb, 2.0, 0.5).t(), wanted)
    c.fill_(float("nan"))  # with beta 0 it is not read
    assert made.product(a, b, c, ta, tb, 1.0, 0.0).isfinite().all()
