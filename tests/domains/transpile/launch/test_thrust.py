"""Thrust's ranges over iterators that stand for others: zipped, counted, transformed, permuted; begin and end are made apart, as in programs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from warpwright.domains import transpile

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

PROGRAM = r"""
#include <thrust/device_vector.h>
#include <thrust/copy.h>
#include <thrust/generate.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>
#include <cstdio>
struct Square { int operator()(int v) { return v * v; } };  // not const, as Thrust takes it
struct Pair {
  __device__ thrust::tuple<int, int> operator()() { int i = blockIdx.x * blockDim.x + threadIdx.x; return thrust::make_tuple(i, -i); }
};
struct Odd { __device__ bool operator()(thrust::tuple<int, int> t) const { return thrust::get<0>(t) % 2; } };
struct Put { __device__ void operator()(thrust::tuple<int&, int> t) const { thrust::get<0>(t) += 100 * thrust::get<1>(t); } };
__global__ void unguarded(float* y) { y[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
template <class V> void show(const char* name, const V& v) { printf("%s", name); for (int x : v) printf(" %d", x); printf("\n"); }
int main() {
  thrust::device_vector<int> a(6), b(6), c(6);
  thrust::generate(thrust::make_zip_iterator(thrust::make_tuple(a.begin(), b.begin())),
                   thrust::make_zip_iterator(thrust::make_tuple(a.end(), b.end())), Pair());
  show("generated", b);
  thrust::copy(thrust::make_counting_iterator(3), thrust::make_counting_iterator(9), c.begin());
  show("counted", c);
  int squares = thrust::reduce(thrust::make_transform_iterator(c.begin(), Square()), thrust::make_transform_iterator(c.end(), Square()));
  thrust::device_vector<int> order(3); order[0] = 5; order[1] = 0; order[2] = 2;
  int picked = thrust::reduce(thrust::make_permutation_iterator(c.begin(), order.begin()), thrust::make_permutation_iterator(c.begin(), order.end()));
  printf("sums %d %d\n", squares, picked);
  auto all = thrust::make_zip_iterator(a.begin(), c.begin());
  auto last = thrust::make_zip_iterator(a.end(), c.end());
  printf("counts %d %d %d\n", (int)(last - all), (int)thrust::count_if(all, last, Odd()), all < last && last >= all && 2 + all > all);
  thrust::for_each(thrust::make_zip_iterator(thrust::make_tuple(a.begin(), thrust::make_counting_iterator(0))),
                   thrust::make_zip_iterator(thrust::make_tuple(a.end(), thrust::make_counting_iterator(6))), Put());
  show("each", a);
  thrust::sort(thrust::make_zip_iterator(thrust::make_tuple(b.begin(), c.begin())), thrust::make_zip_iterator(thrust::make_tuple(b.end(), c.end())));
  show("sorted", c);
  thrust::device_vector<int> keys(6), heads(3);
  for (int i = 0; i < 6; ++i) keys[i] = i / 2;
  auto ends = thrust::unique_by_key_copy(keys.begin(), keys.end(), thrust::make_counting_iterator(0), thrust::make_discard_iterator(), heads.begin());
  show("heads", heads);
  thrust::device_vector<int> kept(6);
  auto end = thrust::copy_if(thrust::make_counting_iterator(0u), thrust::make_counting_iterator(6u), keys.begin(), kept.begin(), Square());
  printf("kept %d %d %d\n", (int)(end - kept.begin()), (int)kept[0], (int)(ends.second - heads.begin()));
  thrust::device_vector<float> steps(1001);
  thrust::sequence(steps.begin(), steps.end(), 0.5f, 0.1f);
  printf("last %g\n", (float)steps[1000] - (0.5f + 0.1f * 1000));
  thrust::constant_iterator<int> seven(7);
  printf("sevens %d\n", thrust::reduce(seven, seven + 4));
  std::vector<float> plain(61, 0.5f);
  thrust::device_vector<float> room = plain;  // as much is there as cudaMalloc gives, whose pieces are of 256 bytes
  room = plain;
  unguarded<<<2, 32>>>(thrust::raw_pointer_cast(room.data()));
  printf("room %g %d\n", (float)room[60], (int)((size_t)thrust::raw_pointer_cast(room.data()) % 256));
}
"""
SAID = """generated 0 -1 -2 -3 -4 -5
counted 3 4 5 6 7 8
sums 199 16
counts 6 3 1
each 0 101 202 303 404 505
sorted 8 7 6 5 4 3
heads 0 2 4
kept 4 2 3
last 0
sevens 28
room 1.5 0
"""


def test_ranges_whose_begin_and_end_are_made_apart(tmp_path: Path) -> None:
    source = tmp_path / "thrust.cpp"
    source.write_text(transpile.compile_text(PROGRAM, "thrust.cu", host=True).source)
    subprocess.run(["c++", "-O0", "-w", "-std=c++17", "-fopenmp", str(source), "-o", str(tmp_path / "thrust")], check=True, timeout=120)
    done = subprocess.run([str(tmp_path / "thrust")], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == SAID
