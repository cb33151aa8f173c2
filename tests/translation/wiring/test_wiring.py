"""Which buffer is which, and how many blocks: read off the reference, searched where it does not say, believed only when the answers are right."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from warpwright.translation.items import Buffer, Item
from warpwright.translation.judge.prepare import prepare
from warpwright.translation.wiring import footprint, grids, loop_nests
from warpwright.translation.wiring.dataflow import Search
from warpwright.translation.wiring.footprint import Footprints
from warpwright.translation.wiring.kernels import kernels_of
from warpwright.translation.wiring.trial import Trial
from warpwright.translation.wiring.wire import wire

AT = "((((int)blockIdx.x) * 32) + ((int)threadIdx.x))"
ROWS, COLUMNS = 24, 40
SIZE = ROWS * COLUMNS


def kernel(number: int, parameters: str, body: str, block: int = 32) -> str:
    """One kernel in TVM's style; `@` stands for the global index."""
    listed = ", ".join(f"float* __restrict__ {name}" for name in parameters.split())
    name = f"default_function_kernel{f'_{number}' if number else ''}"
    return f'extern "C" __global__ void __launch_bounds__({block}) {name}({listed}) {{\n  {body.replace("@", AT)}\n}}\n'


SOFTMAX = (
    kernel(0, "T_exp ph", f"if (@ < {SIZE}) {{ T_exp[@] = (ph[@] * ph[@]); }}")
    + kernel(1, "T_exp T_exp_1", f"if (@ < {ROWS}) {{ T_exp[@] = -3.0e+38f; }} for (int k = 0; k < {COLUMNS}; ++k) {{"
             f" if (@ < {ROWS}) {{ T_exp[@] = max(T_exp[@], T_exp_1[((@ * {COLUMNS}) + k)]); }} }}")
    + kernel(2, "T_exp T_exp_1", f"if (@ < {SIZE}) {{ T_exp[@] = (T_exp[@] - T_exp_1[(@ / {COLUMNS})]); }}")
    + kernel(3, "T_exp T_out", f"if (@ < {SIZE}) {{ T_out[@] = __expf(T_exp[@]); }}")
)  # fmt: skip
"""Every temporary goes by the name of the first: sizes tell the row's largest value from the values."""

INLINED = f"""void default_function_kernel(float* T_out, float* ph) {{
  for (int32_t i = 0; i < {ROWS}; ++i) {{
    float most = -3.0e+38f;
    for (int32_t k = 0; k < {COLUMNS}; ++k) {{ most = max(most, (ph[((i * {COLUMNS}) + k)] * ph[((i * {COLUMNS}) + k)])); }}
    for (int32_t k = 0; k < {COLUMNS}; ++k) {{ T_out[((i * {COLUMNS}) + k)] = expf((ph[((i * {COLUMNS}) + k)] * ph[((i * {COLUMNS}) + k)]) - most); }}
  }}
}}
"""


def item_of(cuda: str, c: str, **sizes: int) -> Item:
    buffers = [Buffer(name, "float32", size, "output" if name.startswith("T_") else "input") for name, size in sizes.items()]
    return Item("made", "test", "made", cuda, c, "default_function_kernel", tuple(buffers), extents=sizes)


@pytest.mark.compiler
def test_temporaries_of_one_name_are_told_by_their_sizes() -> None:
    item = item_of(SOFTMAX, INLINED, T_out=SIZE, ph=SIZE)
    wired = wire(prepare(item))
    assert not wired.unwired
    assert [launch.grid[0] for launch in wired.launches] == [30, 1, 30, 30]
    values, most = wired.launches[2].args
    assert wired.launches[1].args == (most, values) and wired.launches[3].args == (values, "T_out")
    assert sorted(size for _, size in wired.temporaries.values()) == [ROWS, SIZE]


GATES = (
    kernel(0, "T_mul ph", "T_mul[@] = (ph[@] * 2.0f);")
    + kernel(1, "T_mul ph", "T_mul[@] = (ph[@] * 3.0f);")
    + kernel(2, "T_mul T_mul_1", "T_mul[@] = (T_mul[@] - T_mul_1[@]);")
    + kernel(3, "T_out T_mul T_mul_1", "T_out[@] = (T_mul[@] / (T_mul_1[@] + 9.0f));")
)  # fmt: skip
"""Which of two temporaries of one size is which, and which input of two, only the reference can say."""

NESTS = """void default_function_kernel(float* T_out, float* ph, float* ph_1) {
  float T_mul[960];
  float T_mul_1[960];
  for (int32_t i = 0; i < 960; ++i) {
    T_mul[i] = (ph_1[i] * 2.0f);
  }
  for (int32_t i = 0; i < 960; ++i) {
    T_mul_1[i] = (ph[i] * 3.0f);
  }
  for (int32_t i = 0; i < 960; ++i) {
    T_mul_1[i] = (T_mul_1[i] - T_mul[i]);
  }
  for (int32_t i = 0; i < 960; ++i) {
    T_out[i] = (T_mul_1[i] / (T_mul[i] + 9.0f));
  }
}
"""


@pytest.mark.compiler
def test_a_wiring_is_read_off_a_reference_with_one_nest_for_each_kernel() -> None:
    item = item_of(GATES, NESTS, T_out=960, ph=960, ph_1=960)
    kernels = kernels_of(item.cuda)
    with Footprints(kernels, 10_000) as footprints:
        wired = loop_nests.wiring(item, kernels, footprints)
    assert not isinstance(wired, str)
    assert [launch.args for launch in wired.launches] == [
        ("own_T_mul", "ph_1"), ("own_T_mul_1", "ph"), ("own_T_mul_1", "own_T_mul"), ("T_out", "own_T_mul_1", "own_T_mul"),
    ]  # fmt: skip
    with Footprints(kernels, 10_000) as footprints:
        assert "one loop nest" in str(loop_nests.wiring(replace(item, c=INLINED), kernels, footprints))


@pytest.mark.compiler
def test_a_search_finds_what_the_reference_says_among_others_that_fit() -> None:
    item = item_of(GATES, NESTS, T_out=960, ph=960, ph_1=960)
    prepared, kernels = prepare(item), kernels_of(item.cuda)
    trial = Trial(prepared)
    with Footprints(kernels, 10_000) as footprints:
        found = list(islice(Search(item, kernels, footprints.launches).wirings(), 50))
    faults = [trial.fault(wired) for wired in found]
    trial.close()
    assert len(found) > 2 and "" in faults and any(faults)


@pytest.mark.compiler
def test_where_no_wiring_is_right_the_likeliest_is_spoken_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others that fit mistake one array for another; the likeliest is off by a tenth."""
    monkeypatch.setattr("warpwright.translation.wiring.wire.MOST_TRIED", 2)
    item = wire(prepare(item_of(GATES, NESTS.replace("+ 9.0f))", "+ 9.0f)) + 0.1f"), T_out=960, ph=960, ph_1=960)))
    assert "none of 3 inferred wirings gives the reference's answers; of the likeliest" in item.unwired
    assert "output T_out is off by 0.1 (" in item.unwired


@pytest.mark.compiler
def test_what_no_kernel_writes_shows_in_a_trial() -> None:
    item = item_of(SOFTMAX, INLINED, T_out=SIZE, ph=SIZE)
    prepared = prepare(item)
    wired = wire(prepared)
    short = replace(wired, launches=tuple(replace(one, grid=(29, 1, 1)) if one.kernel.endswith("_2") else one for one in wired.launches))
    gone = replace(wired, launches=wired.launches[1:])
    trial = Trial(prepared)
    faults = [trial.fault(one) for one in (wired, short, gone)]
    trial.close()
    assert not faults[0] and "off by" in faults[1] and "nan" in faults[2]


TILES = kernel(0, "T_out ph", "for (int o = 0; o < 3; ++o) { if (((o * 8) + ((int)blockIdx.x)) < 19) {"
               " T_out[((((o * 8) + ((int)blockIdx.x)) * 32) + ((int)threadIdx.x))] = ph[(((o * 8) + ((int)blockIdx.x)) + 5)]; } }")  # fmt: skip
"""8 blocks: the first 3 store to 96 elements, the others to 64."""


@pytest.mark.compiler
@pytest.mark.parametrize(("text", "size", "blocks"), [(TILES, 19 * 32, 8), (SOFTMAX.split("extern")[1], SIZE, 30)])
def test_a_sampled_kernel_has_the_grid_that_a_whole_run_finds(text: str, size: int, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = kernels_of(text if text.startswith("extern") else f"extern{text}")
    target = kernels[0].parameters[0][0]
    with Footprints(kernels, 4000) as footprints:
        whole = footprints.launches(0, target, size)
    monkeypatch.setattr(footprint, "WHOLE_SECONDS", 0.0)
    with Footprints(kernels, 4000) as footprints:
        sampled = footprints.launches(0, target, size)
        short = footprints.launches(0, target, size + 1)
    assert whole == sampled and not isinstance(whole, str) and whole[0][0] == (blocks, 1, 1)
    assert isinstance(short, str) and "no grid covers" in short and footprints.covers[0, target] <= size


SCATTER = """void __launch_bounds__(64) kernel(float* add, float* out, float* data) {
  if (((((int)blockIdx.y) * 8) + (((int)threadIdx.x) >> 3)) < 12) {
    add[0] = atomicAdd((&(out[((((int)blockIdx.y) * 64) + ((int)threadIdx.x))])), data[((((int)blockIdx.x) * 96) + (((int)blockIdx.y) * 64)) + ((int)threadIdx.x)]);
  }
}
"""  # noqa: E501


@pytest.mark.compiler
def test_a_guard_along_one_axis_ends_it() -> None:
    """Two blocks along y, the second half under the guard; along x as many as the input has rows."""
    parameters = (("add", "float32"), ("out", "float32"), ("data", "float32"))
    found = grids.launches_along_axes(SCATTER, "kernel", parameters, 64, "data", 5 * 96, 4000)
    assert isinstance(found, list) and [launch[:2] for launch in found] == [((5, 2, 1), (64, 1, 1))]
