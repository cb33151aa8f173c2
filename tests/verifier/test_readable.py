"""What a task may take and return, said in words where it may not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from warpwright.errors import TaskError  # noqa: E402
from warpwright.verifier.judge.readable import expect_readable, lazy_outputs  # noqa: E402
from warpwright.workers.tensors.answer import describer, read, worked_out  # noqa: E402

X = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (X.to_sparse, "sparse_coo"),
        (lambda: torch.nested.nested_tensor([X[0], X[1, :2]]), "nested"),
        (lambda: torch.quantize_per_tensor(X, 0.1, 0, torch.qint8), "quantised"),
        (lambda: {1: X}, "key of type int"),
        (lambda: (X, "done"), "a str"),
    ],
)
def test_outputs_that_nothing_can_be_compared_with_are_the_tasks_fault(make: Callable[[], object], word: str) -> None:
    with pytest.raises(TaskError, match=word):
        expect_readable([X], make())


def test_sparse_inputs_are_named() -> None:
    with pytest.raises(TaskError, match="sparse_csr"):
        expect_readable([X, X.to_sparse_csr()], X)


def test_marks_gradients_and_classes_of_an_original_are_not_held_against_it() -> None:
    expect_readable([X], {"a": torch.nn.Parameter(X), "b": [X.to(torch.complex64).conj(), None, 3, True]})


def test_a_conjugation_is_worked_out_where_the_originals_output_has_the_mark() -> None:
    z = torch.randn(3, dtype=torch.complex64)
    output = {"a": z, "b": (z.conj(), 2.0, z.conj().imag)}
    assert lazy_outputs(output) == [1, 3]
    done = worked_out(output, {1, 3})
    assert not done["b"][0].is_conj() and not done["b"][2].is_neg() and torch.equal(done["b"][0], z.conj()) and done["b"][1] == 2.0
    assert worked_out(output, {3})["b"][0].is_conj(), "of others the mark stays, which is refused"


def test_a_list_that_holds_itself_is_no_answer() -> None:
    endless: list[object] = [X]
    endless.append(endless)
    assert "without end" in read(describer()(endless))["not_plain"]
