"""What was drawn by seeds, and the rules that make models of it at the size they are used at."""

import itertools
from collections import Counter

import pytest
import torch

from benchmarks import drawn_models
from benchmarks.models import draw, geometric, gpu_rows, real_draws, real_sizes
from benchmarks.models.small_configs import NotMade


def test_half_of_each_kind_is_put_aside():
    halves = Counter(drawn_models.drawn(12).values())
    kinds = {"transformers": 6, "timm": 3, "torchvision": 1, "torch_geometric": 2}
    assert halves == {(half, kind): count for kind, count in kinds.items() for half in ("opened", "aside")}


def test_no_model_is_drawn_twice():
    for one, other in itertools.combinations(drawn_models.SEEDS, 2):
        assert not set(drawn_models.drawn(one)) & set(drawn_models.drawn(other))


def test_a_run_that_ends_early_has_both_halves_of_each_kind():
    drawn = drawn_models.drawn(12)
    first = [name.removesuffix("_bf16") for name in list(real_draws.DRAWS[12])[:24]]
    assert sorted(first) == sorted(drawn)
    assert {drawn[name] for name in first[:8]} == set(drawn.values())


def test_every_model_is_in_float32_and_half_of_them_in_bfloat16_first():
    drawn, names = drawn_models.drawn(12), list(real_draws.DRAWS[12])
    narrow = [name.removesuffix("_bf16") for name in names if name.endswith("_bf16")]
    assert names[24:] == narrow
    assert Counter(drawn[name][0] for name in narrow) == {"opened": 5, "aside": 7}
    assert set(drawn) <= set(names)


def test_layers_are_left_out_and_widths_stay():
    transformers = pytest.importorskip("transformers")
    config = transformers.Qwen2Config(num_hidden_layers=28)
    made = transformers.Qwen2Config(**real_sizes.shortened(config, 6))
    assert (made.num_hidden_layers, len(made.layer_types)) == (6, 6)
    assert (made.hidden_size, made.intermediate_size, made.vocab_size) == (config.hidden_size, config.intermediate_size, config.vocab_size)
    assert real_sizes.shortened(config, 2)["vocab_size"] == 32_000


def test_a_graph_layer_is_given_what_it_needs():
    pytest.importorskip("torch_geometric")
    layer, choices = geometric.make("SAGEConv", geometric.SMALL)
    assert [set(inputs) for inputs in choices] == [{"x", "edge_index"}]
    assert layer(**choices[0]).shape == torch.Size([64, 32])


def test_a_graph_layer_that_needs_something_unknown_says_what():
    pytest.importorskip("torch_geometric")
    with pytest.raises(NotMade, match="HeteroConv needs convs"):
        geometric.make("HeteroConv", geometric.SMALL)


def test_a_row_of_the_page_says_precision_times_and_why_a_program_failed():
    times = {"baselines_ms": {"eager": 5.12345, "compile": 2.0}, "ours_ms": 1.0}
    row = {"table": "third_party", "model": "SwiftFormerForImageClassification_bf16", "verdict": "FASTER", "speedup": "2.00", "reason": "", **times}
    programs = [{"table": "programs", "model": row["model"], "status": status, "detail": status} for status in ("wrong", "ok")]
    (found,) = gpu_rows.page_rows([row, *programs], "gpu")
    expected = {"model": "SwiftFormerForImageClassification", "half": "opened", "precision": "bfloat16", "eager ms": 5.123, "cuda graph ms": ""}
    assert {key: found[key] for key in expected} == expected
    assert (found["programs"], found["why"]) == ("1 ok, 1 wrong", "wrong")


def test_a_model_that_was_not_begun_is_a_row_too():
    row = {"table": "third_party", "model": "DiaModel", "verdict": "", "reason": "not begun: no time was left"}
    (found,) = gpu_rows.page_rows([row], "gpu")
    assert (found["verdict"], found["why"]) == ("not begun", row["reason"])


@pytest.mark.parametrize("seed", real_draws.DRAWS)
def test_each_model_of_a_draw_comes_once_before_any_comes_again(seed):
    names = sorted(drawn_models.drawn(seed))
    first = [name.removesuffix("_bf16") for name in list(real_draws.DRAWS[seed])[: len(names)]]
    assert sorted(first) == names


@pytest.mark.parametrize("seed", [15, 14])
def test_a_model_that_has_no_real_size_is_small_where_a_draw_did_not_ask_for_one(monkeypatch, seed):
    def make(kind, name, real=False):
        if real:
            raise NotMade("over 300000000 parameters")
        return torch.nn.Linear(4, 4), {"0": torch.randn(2, 4)}

    monkeypatch.setattr(draw, "make", make)
    name = next(name for name in real_draws.DRAWS[seed] if name.endswith("_bf16"))
    if seed == 15:
        with pytest.raises(NotMade, match="over 300000000"):
            real_draws.DRAWS[seed][name]()
        return
    model, (x,) = real_draws.DRAWS[seed][name]()
    assert model.weight.dtype == x.dtype == torch.bfloat16
