"""The reader's own questions to libclang have the answers of clang.cindex."""

from __future__ import annotations

import pytest

from warpwright.domains.transpile.frontend import units
from warpwright.domains.transpile.frontend.cursors import LEAVES, Cursors, kind

cindex = pytest.importorskip("clang.cindex")

TEXT = """#define TWICE(a) ((a) + (a))
namespace n { struct P { float x; __device__ float operator[](int i) const { return x * i; } }; }
template <typename T> __device__ T sum(const T* p, int k) { T s = 0; for (int i = 0; i < k; i++) s += p[i]; return s; }
__global__ void k(float* y, const n::P* p, int m) {
  __shared__ float s[32];
  const int t = threadIdx.x, u = TWICE(t);
  s[t & 31] = p[u][3] + sum<float>(y, 2) + (m > 3 ? 1.0f : fmaxf(0.5f, (float)u));
  __syncthreads();
  auto f = [=](int a) { return a + m; };
  if (t < m) { y[t] = s[t] * f('a') + (true ? -s[0] : 0.0f); }
}
"""


@pytest.fixture(scope="module", params=["parsed here", "kept"])
def unit(request):  # type: ignore[no-untyped-def]
    if request.param == "kept":
        return units.unit_of(TEXT, "input.cu")
    arguments = [*units.ARGUMENTS, "-include", str(units.STUB)]
    return cindex.Index.create().parse("input.cu", args=arguments, unsaved_files=[("input.cu", TEXT)])


def test_answers_are_those_of_the_package(unit) -> None:  # type: ignore[no-untyped-def]
    cursors = Cursors(unit, "input.cu", TEXT)
    own = [c for c in unit.cursor.walk_preorder() if c.location.file is not None and c.location.file.name == "input.cu"]
    assert len(own) > 150
    for cursor in own:
        assert kind(cursor) == cursor.kind.name
        assert cursors.children(cursor) == list(cursor.get_children())
        assert kind(cursor) not in LEAVES or not cursors.children(cursor)
        assert cursors.extent(cursor) == (cursor.extent.start.offset, cursor.extent.end.offset)
        assert cursors.type(cursor) == cursor.type.spelling
        assert cursors.own_offset(cursor) == cursor.location.offset


def test_names_are_told_from_those_of_the_stub(unit) -> None:  # type: ignore[no-untyped-def]
    cursors = Cursors(unit, "input.cu", TEXT)
    names = [c for c in unit.cursor.walk_preorder() if c.kind.name == "DECL_REF_EXPR" and c.location.file and c.location.file.name == "input.cu"]
    seen = set()
    for cursor in names:
        meant = cursor.referenced
        here = meant is not None and meant.location.file is not None and meant.location.file.name == "input.cu"
        assert cursors.declaration(cursor) == (cursor.spelling, meant.kind.name, meant.location.offset if here else None)
        seen.add((cursor.spelling, here))
    assert {("t", True), ("s", True), ("threadIdx", False), ("fmaxf", False)} <= seen


def test_locations_that_are_not_consecutive_are_asked_for(unit) -> None:  # type: ignore[no-untyped-def]
    cursors = Cursors(unit, "input.cu", TEXT)
    cursors.start, cursors.end = 1, 0
    for cursor in unit.cursor.walk_preorder():
        if cursor.location.file is not None and cursor.location.file.name == "input.cu":
            assert cursors.extent(cursor) == (cursor.extent.start.offset, cursor.extent.end.offset)
            assert cursors.own_offset(cursor) == cursor.location.offset
