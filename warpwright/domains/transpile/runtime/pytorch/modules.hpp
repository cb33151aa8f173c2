// Modules of torch's C++ library: recurrent layers and attention, with the weights that the host code gives them.
#include <memory>
namespace torch { namespace nn {
struct RecurrentOptions {
  int64_t in, hidden, layers = 1;
  bool first = false, both = false, biases = true;
  double drop = 0;
  RecurrentOptions(int64_t i, int64_t h) : in(i), hidden(h) {}
  RecurrentOptions& num_layers(int64_t n) { layers = n; return *this; }
  RecurrentOptions& batch_first(bool v) { first = v; return *this; }
  RecurrentOptions& bidirectional(bool v) { both = v; return *this; }
  RecurrentOptions& bias(bool v) { biases = v; return *this; }
  RecurrentOptions& dropout(double v) { drop = v; return *this; }
};
using LSTMOptions = RecurrentOptions;
using GRUOptions = RecurrentOptions;
template <int GATES> struct Recurrent {
  RecurrentOptions o;
  std::map<std::string, Tensor> named;
  std::vector<std::string> order;
  bool training = true;
  explicit Recurrent(RecurrentOptions options) : o(options) {
    for (int64_t l = 0; l < o.layers; ++l)
      for (const char* back : o.both ? std::vector<const char*>{"", "_reverse"} : std::vector<const char*>{""}) {
        const auto put = [&](const char* name, std::vector<int64_t> sizes) {  // weights have to be given: those of torch are random
          order.push_back(name + std::to_string(l) + back);
          named[order.back()] = full(sizes, std::nan(""));
        };
        put("weight_ih_l", {GATES * o.hidden, l ? o.hidden * (o.both ? 2 : 1) : o.in}), put("weight_hh_l", {GATES * o.hidden, o.hidden});
        if (o.biases) put("bias_ih_l", {GATES * o.hidden}), put("bias_hh_l", {GATES * o.hidden});
      }
  }
  template <class D> void to(const D&) {}
  void train(bool v = true) { training = v; }
  void eval() { training = false; }
  std::map<std::string, Tensor>& named_parameters() { return named; }
  std::vector<Tensor> parameters() { std::vector<Tensor> all; for (const auto& name : order) all.push_back(named[name]); return all; }
  Tensor start(const Tensor& x) const { return zeros({o.layers * (o.both ? 2 : 1), x.size(o.first ? 0 : 1), o.hidden}, x.options()); }
};
struct LSTMImpl : Recurrent<4> {
  using Recurrent<4>::Recurrent;
  std::tuple<Tensor, std::tuple<Tensor, Tensor>> forward(const Tensor& x, c10::optional<std::tuple<Tensor, Tensor>> state = {}) {
    const Tensor h = state ? std::get<0>(*state) : start(x), c = state ? std::get<1>(*state) : start(x);
    const auto [y, hn, cn] = at::lstm(x, {h, c}, parameters(), o.biases, o.layers, o.drop, training, o.both, o.first);
    return {y, {hn, cn}};
  }
};
struct GRUImpl : Recurrent<3> {
  using Recurrent<3>::Recurrent;
  std::tuple<Tensor, Tensor> forward(const Tensor& x, Tensor h = {}) {
    return at::gru(x, h.defined() ? h : start(x), parameters(), o.biases, o.layers, o.drop, training, o.both, o.first);
  }
};
struct MultiheadAttentionOptions {
  int64_t width, count;
  double drop = 0;
  MultiheadAttentionOptions(int64_t w, int64_t n) : width(w), count(n) {}
  MultiheadAttentionOptions& dropout(double v) { drop = v; return *this; }
};
struct Projection { Tensor weight, bias; };
struct MultiheadAttentionImpl {
  MultiheadAttentionOptions o;
  Tensor in_proj_weight, in_proj_bias;
  std::shared_ptr<Projection> out_proj = std::make_shared<Projection>();
  bool training = true;
  explicit MultiheadAttentionImpl(MultiheadAttentionOptions options) : o(options) {}
  template <class D> void to(const D&) {}
  void train(bool v = true) { training = v; }
  void eval() { training = false; }
  std::tuple<Tensor, Tensor> forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& padding = {}, bool weights = true, const Tensor& mask = {}, bool average = true) {
    const at::Some none;
    const auto made = ww::items_of(ww::ask_value("functional.multi_head_attention_forward", q, k, v, o.width, o.count, in_proj_weight, in_proj_bias, none, none, false, o.drop,
                                                 out_proj->weight, out_proj->bias, training, padding, weights, mask, false, none, none, none, none, none, average));
    return {ww::tensor_of(made.at(0)), weights ? ww::tensor_of(made.at(1)) : Tensor()};
  }
};
#define WW_HOLDER(NAME) struct NAME : std::shared_ptr<NAME##Impl> { template <class... A> explicit NAME(A... a) : std::shared_ptr<NAME##Impl>(std::make_shared<NAME##Impl>(NAME##Options(a...))) {} };
WW_HOLDER(LSTM) WW_HOLDER(GRU) WW_HOLDER(MultiheadAttention)
}}  // namespace torch::nn
