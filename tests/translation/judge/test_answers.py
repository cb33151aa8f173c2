"""The judge's comparison with answers that are copies, not finite, or constant: what wrong programs it tells, and which items it leaves unscored."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from warpwright.translation.items import Buffer, Item
from warpwright.translation.judge import runner
from warpwright.translation.judge.build import Translation, build
from warpwright.translation.judge.examples import Example, differs, example
from warpwright.translation.judge.judge import judge
from warpwright.translation.judge.prepare import Prepared, prepare
from warpwright.translation.judge.program import Program
from warpwright.translation.judge.soundness import undecided
from warpwright.workers import isolation

SIZE = 600


def item(body: str, out: str = "float") -> Item:
    """An item `out[i] = body(x[i], w[i])`."""
    c = f"void f({out}* out, float* x, float* w) {{\n  for (int32_t i = 0; i < {SIZE}; ++i) {{ out[i] = ({out})({body}); }}\n}}\n"
    buffers = [Buffer("out", {"float": "float32", "int8_t": "int8"}[out], SIZE, "output")]
    return Item("f", "test", "made", "", c, "f", (*buffers, Buffer("x", "float32", SIZE, "input"), Buffer("w", "float32", SIZE, "input")))


def statuses(prepared: Prepared, *wrong: str) -> list[str]:
    """What becomes of the item's own text with its right side exchanged."""
    right = prepared.item.c.partition("out[i] = ")[2].partition("; }")[0]
    texts = [prepared.item.c.replace(right, one) for one in wrong]
    return [judge(prepared, Translation("model", text), 0.0, Random(0)).status for text in (prepared.item.c, *texts)]


@pytest.mark.compiler
def test_a_copy_of_an_input_is_a_sound_test() -> None:
    prepared = prepare(item("x[i]"))
    assert not prepared.unscored and len(prepared.examples) == 6
    wrong = ["0.0f", "1.0f", "w[i]", "out[i]", "x[(i + 1) % 600]", "x[599 - i]", "x[i] > 0 ? x[i] : 0", "x[i] + 0.001f", "x[i] + (i == 77) * 0.01f"]
    assert statuses(prepared, *wrong) == ["ok", *["wrong"] * len(wrong)]


@pytest.mark.compiler
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("1.0f + 0.0f * x[i] * w[0]", ""),  # NaN for NaN
        ("1.0f", "constant"),
        ("sqrtf(-1.0f - fabsf(x[i]))", "not finite"),
        ("3.4e38f * (1.0f + 1e-9f * x[i])", "constant"),
        ("1e4f + 1e-4f * x[i]", "constant"),
        ("i + 1e-7f * x[i]", "the answer to other inputs"),
        ("x[i] < 0 || x[i] > 1 ? 0.0f * x[i] : x[i]", ""),
    ],
)
def test_items_that_no_check_could_tell_are_unscored(body: str, reason: str) -> None:
    said = prepare(item(body)).unscored
    assert reason in said and bool(said) == bool(reason), said


def test_a_copy_on_positive_values_only_tells_nothing_of_a_relu() -> None:
    def drawn(seed: int, low: float) -> Example:
        x = np.random.default_rng(seed).uniform(low, 2, SIZE).astype(np.float32)
        return example("made", seed, {"x": x}, {"out": x}, None)

    assert "copy of an input" in undecided([drawn(1, 0.0), drawn(2, 0.0)])
    assert not undecided([drawn(1, -2.0), drawn(2, -2.0)])


@pytest.mark.compiler
def test_one_number_of_all_inputs_is_told_by_other_inputs() -> None:
    made = item("x[i]")
    c = "void f(float* out, float* x, float* w) {\n  out[0] = 0.0f;\n  for (int32_t i = 0; i < 600; ++i) { out[0] += (x[i] * w[i]); }\n}\n"
    prepared = prepare(replace(made, c=c, buffers=(Buffer("out", "float32", 1, "output"), *made.buffers[1:])))
    assert not prepared.unscored
    wrong = [c.replace("i < 600", "i < 599"), c.replace("(x[i] * w[i])", "0.25f"), c.replace("w[i]", "x[i]")]
    assert [judge(prepared, Translation("model", text), 0.0, Random(0)).status for text in (c, *wrong)] == ["ok", *["wrong"] * 3]


@pytest.mark.compiler
def test_ranges_are_looked_for_where_the_usual_ones_give_no_number() -> None:
    prepared = prepare(item("acosf(sinf(x[i])) + logf(-x[i]) + sqrtf(0.95f + x[i])"))
    assert not prepared.unscored and {one.where for one in prepared.examples} == {"negative"} and all(one.good for one in prepared.examples)
    assert statuses(prepared, "0.5f", "acosf(sinf(x[i])) + logf(-x[i])") == ["ok", "wrong", "wrong"]


@pytest.mark.compiler
def test_answers_that_are_not_finite_are_compared_by_kind() -> None:
    """log of both signs in one output: no range gives numbers everywhere."""
    prepared = prepare(item("logf(i % 2 ? x[i] : -x[i]) + 1.0f / (float)(i % 5)"))
    assert not prepared.unscored and not any(one.good for one in prepared.examples)
    log = "logf(i % 2 ? x[i] : -x[i])"
    wrong = [
        "0.0f", "0.0f / 0.0f", "1.0f / 0.0f",  # one number, or one kind, everywhere
        f"{log} + 1.0f / (float)(i % 5 ? i % 5 : 1)",  # finite where it should be infinite
        f"{log} - 1.0f / (float)(i % 5)",  # another sign of infinity
        "logf(fabsf(x[i])) + 1.0f / (float)(i % 5)",  # finite where it should be NaN
        f"({log} + 1.0f / (float)(i % 5)) + (i % 7 ? 0.0f : 0.01f)",  # right kinds, wrong numbers
        "logf(i % 2 ? x[i] : -x[i]) + 1.0f / (float)((i + 1) % 5)",  # kinds moved by one
    ]  # fmt: skip
    assert statuses(prepared, *wrong) == ["ok", *["wrong"] * len(wrong)]


@pytest.mark.compiler
def test_what_only_nan_can_tell_is_told_by_nan() -> None:
    isnan = prepare(item("x[i] != x[i]", "int8_t"))
    assert not isnan.unscored and isnan.examples[-1].where == "with_nan"
    assert statuses(isnan, "0", "1", "x[i] == x[i]", "w[i] != w[i]") == ["ok", *["wrong"] * 4]
    one = prepare(item("expf(x[i] - x[i]) / expf(x[i] - x[i])"))
    assert not one.unscored
    assert statuses(one, "1.0f", "w[i] / w[i]", "0.0f / 0.0f") == ["ok", *["wrong"] * 3]


@pytest.mark.compiler
def test_every_output_needs_a_case_that_tells() -> None:
    """ceil is constant on [0, 1); a range around zero is added, on which it is not."""
    made = item("logf(1.0f - x[i]) + 0.1f * w[i]")
    c = made.c.replace("float* x", "float* up, float* x").replace("; }", "; up[i] = ceilf(x[i]) * 1.0f; }")
    two = replace(made, c=c, buffers=(made.buffers[0], Buffer("up", "float32", SIZE, "output"), *made.buffers[1:]))
    prepared = prepare(two)
    assert not prepared.unscored
    wrong = [c.replace("ceilf(x[i])", other) for other in ("1.0f", "ceilf(w[i])", "floorf(x[i] + 1.05f)")]
    assert [judge(prepared, Translation("model", text), 0.0, Random(0)).status for text in (c, *wrong)] == ["ok", *["wrong"] * 3]


def test_an_element_on_the_border_of_a_domain_is_left_out_and_only_that() -> None:
    own = np.linspace(1, 2, 400, dtype=np.float32)
    best = own.astype(np.float64)
    best[7] = np.nan
    best[9] += 1  # a ceil that rounds the other way
    made = example("unit", 1, {}, {"out": own}, {"out": best})
    assert made.border["out"].sum() == 2 and made.good and not made.coarse
    assert not differs(made, "out", own) and not differs(made, "out", best.astype(np.float32))
    assert "nan" in differs(made, "out", np.where(np.arange(400) == 8, np.nan, own).astype(np.float32))
    assert differs(made, "out", np.where(np.arange(400) == 8, own + 0.01, own).astype(np.float32))
    best[:8] = np.nan  # 2 %: too many to be left out
    other = example("unit", 1, {}, {"out": own}, {"out": best})
    assert other.coarse and not other.border
    assert not differs(other, "out", own) and differs(other, "out", best.astype(np.float32))


@pytest.mark.compiler
def test_a_range_on_which_float32_is_mostly_rounding_gives_way_to_others() -> None:
    """sin(1e6 x) beyond [0, 1) is rounding for the most part, and so is half of it for [-2, 2]."""
    chaotic = "x[i] < 0 || x[i] > 1 ? sinf(1e8f * (x[i] + 1e-3f)) : x[i] + w[i]"
    prepared = prepare(item(chaotic))
    assert prepared.oracle == "float64" and not any(one.coarse for one in prepared.examples)
    assert {"signed", "above_one"}.isdisjoint(one.where for one in prepared.examples) and len({one.where for one in prepared.examples}) == 3
    assert statuses(prepared, "x[i] < 0 || x[i] > 1 ? 0 : x[i] - w[i]") == ["ok", "wrong"]
    everywhere = prepare(item("sinf(1e8f * (x[i] + 1.0f))"))
    assert everywhere.oracle == "reference" and not everywhere.unscored
    assert statuses(everywhere, "sinf(1e8f * x[i])", "0.0f") == ["ok", "wrong", "wrong"]


@pytest.mark.compiler
def test_the_reference_s_error_is_that_of_its_worst_rounding() -> None:
    """Of two equal products nothing is left where both are rounded, and a rounding where one is not: neither way of the two is wrong."""
    parts = ["x[i] * w[i]", "(x[i] * 0.5f) * (w[i] * 2.0f)"]
    prepared = prepare(item(f"x[i] + 1e3f * ({parts[0]} - {parts[1]})"))
    assert not prepared.unscored and prepared.oracle == "float64"
    ways = [f"x[i] + 1e3f * fmaf(x[i], w[i], -({parts[1]}))", "x[i]"]
    wrong = ["x[i] + 1e4f * fmaf(x[i], w[i], -((x[i] * 0.5f) * (w[i] * 2.0f)))", "x[i] + 0.002f"]
    assert statuses(prepared, *ways, *wrong) == ["ok", "ok", "ok", "wrong", "wrong"]


def test_elements_that_any_run_has_far_off_are_left_out_and_few_only() -> None:
    best = np.linspace(1, 2, 400)
    runs = [best.astype(np.float32) for _ in range(3)]
    runs[1][7] += 0.5
    runs[2][9] += 1e-3  # an error, not far off
    made = example("unit", 1, {}, {"out": runs[0]}, {"out": best}, others=[{"out": run} for run in runs[1:]])
    assert list(np.flatnonzero(made.border["out"])) == [7] and made.good
    assert not any(differs(made, "out", run) for run in runs)
    assert differs(made, "out", (runs[0] + np.float32(0.006)).astype(np.float32))
    runs[2][20:24] += 0.5  # five in all: more than 1 %
    coarse = example("unit", 1, {}, {"out": runs[0]}, {"out": best}, others=[{"out": run} for run in runs[1:]])
    assert coarse.coarse and not coarse.border and differs(coarse, "out", runs[2])


def test_a_finite_number_is_not_within_the_tolerance_of_infinity() -> None:
    seen = np.array([1, np.inf, 2, -np.inf], np.float32)
    made = example("unit", 1, {}, {"out": seen}, None)
    assert not differs(made, "out", seen)
    for wrong in (-seen, np.nan_to_num(seen), np.abs(seen), seen * 1.1):
        assert differs(made, "out", wrong.astype(np.float32))


THREADS = """
#include <pthread.h>
#include <unistd.h>
static void* waits(void* x) { sleep(20); return x; }
void f(float* out, float* x, float* w) {
  pthread_attr_t small; pthread_attr_init(&small); pthread_attr_setstacksize(&small, 65536);
  int begun = 0;
  for (pthread_t one; begun < MOST && !pthread_create(&one, &small, waits, 0); ) ++begun;
  out[0] = begun;
}
"""


@pytest.mark.compiler
@pytest.mark.skipif(not isolation.can_change_user(), reason="needs the right to run programs as another user")
def test_a_program_gets_no_more_threads_than_its_user_may_have() -> None:
    made = item("x[i]")
    library = build(Translation("x", THREADS.replace("MOST", str(runner.THREADS + 50))))
    assert not isinstance(library, str), library
    with Program(library, "f", made.buffers) as program:
        program.call()
        assert 0 < program.outputs()["out"][0] < runner.THREADS


@pytest.mark.compiler
def test_nan_among_the_inputs_is_not_taken_for_a_change() -> None:
    made = item("x[i] + w[i]")
    library = build(Translation("x", made.c))
    assert not isinstance(library, str)
    with Program(library, "f", made.buffers) as program:
        inputs = {"x": np.full(SIZE, np.nan, np.float32), "w": np.ones(SIZE, np.float32)}
        program.fill(inputs)
        program.call()
        assert program.damage(inputs) == ""
        assert program.damage(inputs | {"w": np.full(SIZE, np.nan, np.float32)}) == "changed its input w"


@pytest.mark.compiler
def test_answers_from_memory_that_the_reference_never_wrote_are_left_out() -> None:
    """The last three elements come from beyond its own array of 597."""
    c = (
        "void f(float* out, float* x, float* w) {\n  float own[597];\n  for (int32_t i = 0; i < 597; ++i) { own[i] = (x[i] * w[i]); }\n"
        "  for (int32_t i = 0; i < 600; ++i) { out[i] = (own[i] > 0 ? own[i] : 0) + w[i]; }\n}\n"
    )
    prepared = prepare(replace(item("x[i]"), c=c))
    assert not prepared.unscored and all(np.flatnonzero(one.border["out"]).tolist() == [597, 598, 599] for one in prepared.examples)
    right = c.replace("own[597];", "own[600] = {0};")
    assert judge(prepared, Translation("model", right), 0.0, Random(0)).status == "ok"
    assert judge(prepared, Translation("model", right.replace("i < 597", "i < 596")), 0.0, Random(0)).status == "wrong"
