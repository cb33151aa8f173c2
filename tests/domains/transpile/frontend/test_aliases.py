"""Types of a class that have the name of the class template that they are instances of, deduced arguments of class templates."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

import warpwright.transpile

BOXES = """
namespace kd { inline namespace v1 {
template <class T> struct box_t { T low, high; __host__ __device__ T size() const { return high - low; } };
template <class T> struct node {
  box_t<T> first;
  using box_t = box_t<T>;
  box_t second;
};
} }
template <class T> class item { public: T x; };
struct user { item<int> one; using item = item<float>; item two; };
__global__ void boxes(float* out) {
  kd::node<float> n{{1, 4}, {2, 7}};
  user u;
  u.one.x = 1, u.two.x = .5f;
  *out = n.first.size() * n.second.size() + u.one.x + u.two.x;
}
"""

PAIRS = """
namespace lib {
template <class A, class B> struct Pair { A a; B b; __device__ Pair(A x, B y) : a(x), b(y) {} };
template <class A, class B> __device__ auto make(A a, B b) { return Pair<A, B>(a, b); }
}
using lib::Pair;
template <class T = int> struct Unit { T v = 0; };
template <class T> __global__ void pairs(T* x) {
  __shared__ T s[64];
  Pair p = lib::make(x[threadIdx.x], 2);
  s[threadIdx.x] = p.a;
  __syncthreads();
  Unit u;
  lib::Pair q = lib::make(s[63 - threadIdx.x], p.b);
  Pair r(q.a, 3.f), t{q.b, 1.f};
  Pair<T, int> z{r.a, t.a};
  x[threadIdx.x] = z.a * z.b + r.b + t.b + u.v;
}
"""


def test_a_class_may_give_the_name_of_its_template_to_a_type() -> None:
    out = np.zeros(1, np.float32)
    warpwright.transpile.loads(BOXES).boxes[1, 1](out)
    assert out[0] == 16.5


@pytest.mark.parametrize("tier", ["fibers", None])
def test_class_templates_whose_arguments_are_deduced(tier: str | None) -> None:
    x = np.arange(64, dtype=np.float32)
    warpwright.transpile.loads(PAIRS, instances=["pairs<float>"], tier=tier)["pairs<float>"][1, 64](x)
    assert (x == 2 * np.arange(63, -1, -1) + 4).all()
