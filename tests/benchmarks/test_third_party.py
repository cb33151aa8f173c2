"""Third-party models are captured and right, and what cannot be captured says why."""

from __future__ import annotations

import pytest

from benchmarks import third_party
from warpwright.verifier.judge.readable import expect_readable


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "vit_transformers"])
def test_a_transformers_model_is_captured_and_right(name, tmp_path):
    pytest.importorskip("transformers", reason="needs the package transformers")
    row = third_party.attempt(name, tmp_path)
    assert row["captured"] and row["verified"] == "right", row["reason"]


def test_a_cache_as_an_input_is_not_captured_and_says_so(tmp_path):
    pytest.importorskip("transformers", reason="needs the package transformers")
    assert "DynamicCache" in third_party.attempt("gpt2_given_a_cache", tmp_path)["reason"]


@pytest.mark.parametrize("name", ["convnext_timm", "resnet_timm"])
def test_a_timm_model_is_captured_and_right(name, tmp_path):
    pytest.importorskip("torchvision", reason="needs the package torchvision, which timm imports")
    pytest.importorskip("timm", reason="needs the package timm")
    row = third_party.attempt(name, tmp_path)
    assert row["captured"] and row["verified"] == "right", row["reason"]


def test_a_block_of_torchs_own_parts_is_captured_and_right(tmp_path):
    row = third_party.attempt("unet_block", tmp_path)
    assert row["captured"] and row["verified"] == "right", row["reason"]


def test_keywords_take_their_places():
    bert = type("Bert", (), {"forward": lambda self, ids, mask=None, scale=2.0, *, mode="a", **more: None})()
    assert third_party.in_order(bert, {"ids": 1, "scale": 3.0}) == [1, None, 3.0]


def test_rows_of_what_is_nested_stand_apart() -> None:
    row = {"table": "third_party", "model": "a", "verdict": "SAME"}
    nested = {"tried": [{"recipe": "x"}], "rejected": [], "regimes": {"single": {"ours_ms": 1.0}}}
    assert third_party.apart([row | nested, {"table": "third_party", "model": "b"}]) == [
        {"table": "third_party", "model": "a", "verdict": "SAME"}, {"table": "third_party", "model": "b"},
        {"table": "programs", "model": "a", "recipe": "x"}, {"table": "regimes", "model": "a", "regime": "single", "ours_ms": 1.0},
    ]  # fmt: skip


def test_what_a_causal_model_returns_by_itself_can_be_judged():
    """Its ModelOutput and the cache in it: a metaclass of transformers 5.24 had every one of its models refused."""
    torch = pytest.importorskip("torch")
    modeling = pytest.importorskip("transformers.modeling_outputs", reason="needs the package transformers")
    caches = pytest.importorskip("transformers.cache_utils")
    cache = caches.DynamicCache()
    cache.update(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4), 0)
    expect_readable([torch.ones(2)], (modeling.BaseModelOutput(last_hidden_state=torch.ones(2)), cache))
