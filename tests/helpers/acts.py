"""What people do with a model that they were given: each act takes a model and an input, and returns what the user sees.

An act is right on a returned program when it gives what it gives on the original: the same values, or an error where the original raises one.
"""

from __future__ import annotations

import copy
import io
import pickle
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

MODEL = '''"""A model with folded state, a training flag that matters, and a softmax."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gemm = nn.Linear(width, 6)
        self.norm = nn.BatchNorm1d(6)
        self.scale = nn.Parameter(torch.rand(6) + 0.5)
        self.drop = nn.Dropout(0.5)
        self.gain = 2.0

    def forward(self, x):
        x = (self.gemm(x) * self.gain) / 4.0
        x = self.drop(self.norm(x))
        return torch.softmax(torch.tanh(x) * self.scale, dim=-1)


def get_inputs():
    return [torch.randn(5, 8)]


def get_init_inputs():
    return [8]
'''

Act = Callable[[nn.Module, torch.Tensor], Any]


def _change(model: nn.Module, factor: float = 1.5) -> None:
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.is_floating_point():
                tensor.mul_(factor).add_(0.125)


def plain(model: nn.Module, x: torch.Tensor) -> Any:
    return model(x), model(x + 1)


def keyword(model: nn.Module, x: torch.Tensor) -> Any:
    return model(x=x)


def deepcopy_before_calls(model: nn.Module, x: torch.Tensor) -> Any:
    other = copy.deepcopy(model)
    _change(other)
    return model(x), other(x)


def deepcopy_after_calls(model: nn.Module, x: torch.Tensor) -> Any:
    first = model(x)
    other = copy.deepcopy(model)
    _change(other)
    return first, other(x), model(x)


def deepcopy_then_change_the_first(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    other = copy.deepcopy(model)
    _change(model)
    return other(x), model(x)


def copy_after_calls(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    other = copy.copy(model)
    other.scale = nn.Parameter(other.scale.detach() * 3)
    _change(other)
    return other(x), model(x)


def averaged_model(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    averaged = torch.optim.swa_utils.AveragedModel(model, use_buffers=True)
    for factor in (2.0, 0.5):
        _change(model, factor)
        averaged.update_parameters(model)
        averaged(x)
    return averaged(x), model(x)


def to_double(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    return model.double()(x.double())


def double_with_float_input(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    return model.double()(x)


def to_bfloat16(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    return model.to(torch.bfloat16)(x.to(torch.bfloat16))


def half_and_back(model: nn.Module, x: torch.Tensor) -> Any:
    first = model(x)
    with torch.no_grad():
        model.gemm.weight.mul_(1.2345)
    return first, model.to(torch.float16).float()(x), model(x)


def part_to_double(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    model.norm.double()
    return model(x)


def to_meta(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    return model.to("meta")(x.to("meta")).shape


def load_state_dict(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    state = {name: tensor * 2 if tensor.is_floating_point() else tensor for name, tensor in model.state_dict().items()}
    model.load_state_dict(state)
    return model(x)


def load_state_dict_by_assignment(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    state = {name: tensor.clone() * 2 if tensor.is_floating_point() else tensor for name, tensor in model.state_dict().items()}
    model.load_state_dict(state, assign=True)
    return model(x)


def change_in_place(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    _change(model)
    return model(x)


def write_through_data(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    for parameter in model.parameters():
        parameter.data.mul_(1.5)
    return model(x)


def assign_data(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    for parameter in model.parameters():
        parameter.data = parameter.data * 1.5
    for parameter in model.parameters():
        parameter.data = parameter.data * 1.5
    return model(x)


def replace_parameter(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    model.gemm.weight = nn.Parameter(model.gemm.weight.detach() * 2)
    return model(x)


def optimizer_steps(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(2):
        with torch.enable_grad():
            model(x)[:, 0].sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model(x)


def fused_optimizer_step(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, fused=True)
    with torch.enable_grad():
        model(x)[:, 0].sum().backward()
    optimizer.step()
    return model(x)


class Doubled(nn.Module):
    """A parametrisation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x


def parametrize(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    nn.utils.parametrize.register_parametrization(model.gemm, "weight", Doubled())
    first = model(x)
    with torch.no_grad():
        model.gemm.parametrizations.weight.original.mul_(2.0)
    return first, model(x)


def parametrize_and_remove(model: nn.Module, x: torch.Tensor) -> Any:
    nn.utils.parametrize.register_parametrization(model.gemm, "weight", Doubled())
    first = model(x)
    nn.utils.parametrize.remove_parametrizations(model.gemm, "weight")
    return first, model(x)


def weight_norm(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    nn.utils.parametrizations.weight_norm(model.gemm)
    _change(model)
    return model(x)


def prune(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    nn.utils.prune.l1_unstructured(model.gemm, "weight", 0.5)
    return model(x)


def hook_on_a_part(model: nn.Module, x: torch.Tensor) -> Any:
    first = model(x)
    handle = model.norm.register_forward_hook(lambda module, args, output: output + 1)
    hooked = model(x)
    handle.remove()
    return first, hooked, model(x)


def hook_before_a_part(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    model.gemm.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    return model(x)


def hook_on_the_whole(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    model.register_forward_hook(lambda module, args, output: output * 2)
    model.register_forward_pre_hook(lambda module, args: (args[0] - 1,))
    return model(x)


def hook_that_collects(model: nn.Module, x: torch.Tensor) -> Any:
    seen: list[torch.Tensor] = []
    model.norm.register_forward_hook(lambda module, args, output: seen.append(output))
    return model(x), seen


def pickle_before_calls(model: nn.Module, x: torch.Tensor) -> Any:
    return pickle.loads(pickle.dumps(model))(x)


def pickle_after_calls(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    other = pickle.loads(pickle.dumps(model))
    _change(other)
    return other(x), model(x)


def save_and_load(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    file = io.BytesIO()
    torch.save(model, file)
    _change(model)
    file.seek(0)
    return torch.load(file, weights_only=False)(x), model(x)


def names_and_state(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    return list(model.state_dict()), [name for name, _ in model.named_parameters()], [name for name, _ in model.named_modules()]


def export(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    module = torch.export.export(model, (x,)).module()
    _change(model)
    return module(x), model(x)


def compile_again(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    first = compiled(x)
    _change(model)
    return first, compiled(x)


def jit_trace(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    traced = torch.jit.trace(model, (x,))
    _change(model)
    return traced(x)


def symbolic_trace(model: nn.Module, x: torch.Tensor) -> Any:
    return torch.fx.symbolic_trace(model)(x)


def functional_call(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    other = {name: parameter * 2 for name, parameter in model.named_parameters()}
    return torch.func.functional_call(model, other, (x,)), model(x)


def vmap(model: nn.Module, x: torch.Tensor) -> Any:
    return torch.vmap(model)(torch.stack([x, 2 * x]))


def per_sample_models(model: nn.Module, x: torch.Tensor) -> Any:
    stacked, buffers = torch.func.stack_module_state([model, copy.deepcopy(model)])  # type: ignore[list-item]
    return torch.vmap(lambda p, b: torch.func.functional_call(model, (p, b), (x,)))(stacked, buffers)


def jvp(model: nn.Module, x: torch.Tensor) -> Any:
    return torch.func.jvp(model, (x,), (torch.ones_like(x),))


def dual_numbers(model: nn.Module, x: torch.Tensor) -> Any:
    from torch.autograd import forward_ad

    for parameter in model.parameters():
        parameter.requires_grad_(False)
    with forward_ad.dual_level(), torch.enable_grad():
        return tuple(forward_ad.unpack_dual(model(forward_ad.make_dual(x, torch.ones_like(x)))))


def replicate(model: nn.Module, x: torch.Tensor) -> Any:
    """What nn.DataParallel does to each module of a model, on the CPU."""
    model(x)
    replicas = {part: part._replicate_for_data_parallel() for part in model.modules()}
    for part, replica in replicas.items():
        for name, child in part._modules.items():
            setattr(replica, name, replicas[child])  # type: ignore[index]
        for name, parameter in part._parameters.items():
            setattr(replica, name, parameter.detach() * 2)  # type: ignore[union-attr]
        for name, buffer in part._buffers.items():
            replica._buffers[name] = buffer
    return replicas[model](x), model(x)


def threads(model: nn.Module, x: torch.Tensor) -> Any:
    results: list[Any] = [None] * 4

    def work(number: int) -> None:
        with torch.no_grad():
            results[number] = [model(x + number) for _ in range(5)][-1]

    started = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return results


class Answers(Dataset):
    """A data set whose items are a model's answers."""

    def __init__(self, model: nn.Module, x: torch.Tensor) -> None:
        self.model, self.x = model, x

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        with torch.no_grad():
            return self.model(self.x + index)


def data_loader_workers(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    return list(DataLoader(Answers(model, x), batch_size=2, num_workers=1, multiprocessing_context="fork", timeout=60))


def other_batch_sizes(model: nn.Module, x: torch.Tensor) -> Any:
    return model(x[:2]), model(x), model(torch.cat([x, x]))


def one_dimension_more(model: nn.Module, x: torch.Tensor) -> Any:
    return model(x.reshape(1, *x.shape))


def other_dtype(model: nn.Module, x: torch.Tensor) -> Any:
    return model(x.double())


def non_contiguous_input(model: nn.Module, x: torch.Tensor) -> Any:
    wide = torch.cat([x, x], dim=1)
    return model(x.t().contiguous().t()), model(wide[:, ::2])


def expanded_input(model: nn.Module, x: torch.Tensor) -> Any:
    return model(x[:1].expand_as(x))


def input_at_an_odd_address(model: nn.Module, x: torch.Tensor) -> Any:
    return model(torch.cat([x.new_zeros(1), x.flatten()])[1:].view_as(x))


def imaginary_part_of_a_conjugate(model: nn.Module, x: torch.Tensor) -> Any:
    """A tensor that looks dense, but whose memory holds its negative."""
    turned = torch.complex(x.clone(), x).conj().imag
    assert turned.is_neg()
    return model(turned), model(torch._neg_view(x))


def parameter_as_input(model: nn.Module, x: torch.Tensor) -> Any:
    return model(nn.Parameter(x))


class Tagged(torch.Tensor):
    """A tensor of a class of one's own."""


def tensor_subclass(model: nn.Module, x: torch.Tensor) -> Any:
    result = model(x.as_subclass(Tagged))
    return type(result).__name__, result.as_subclass(torch.Tensor)


def autocast(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        return model(x)


def autocast_twice(model: nn.Module, x: torch.Tensor) -> Any:
    """Between the calls the weights change, and memory that was freed is taken by others."""
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        first = model(x)
    _change(model)
    others = [torch.full_like(parameter, 7.0, dtype=torch.bfloat16) for parameter in model.parameters() for _ in range(4)]
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        return first, model(x), len(others)


def inference_mode(model: nn.Module, x: torch.Tensor) -> Any:
    with torch.inference_mode():
        first = model(x)
    return first.clone(), model(x)


def inference_copy(model: nn.Module, x: torch.Tensor) -> Any:
    with torch.inference_mode():
        other = copy.deepcopy(model)
        first = other(x).clone()
        other.gemm.weight.mul_(2.0)
        return first, other(x).clone()


def gradients(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    given = x.clone().requires_grad_()
    with torch.enable_grad():
        model(given)[:, 0].sum().backward()
    return given.grad, [parameter.grad for parameter in model.parameters()]


def gradient_of_a_frozen_model(model: nn.Module, x: torch.Tensor) -> Any:
    model.requires_grad_(False)
    given = x.clone().requires_grad_()
    with torch.enable_grad():
        free = model(x)
        model(given)[:, 0].sum().backward()
    return free.requires_grad, free, given.grad


def unfreeze_one_parameter(model: nn.Module, x: torch.Tensor) -> Any:
    model.requires_grad_(False)
    model(x)
    model.norm.bias.requires_grad_()
    with torch.enable_grad():
        model(x)[:, 0].sum().backward()
    return model.norm.bias.grad


def train_and_eval(model: nn.Module, x: torch.Tensor) -> Any:
    first = model(x)
    torch.manual_seed(5)
    trained = model.train()(x)
    return first, trained, model.eval()(x), dict(model.named_buffers())


def train_one_part(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    model.norm.train()
    return model(x), model(x), dict(model.named_buffers())


def replace_a_part(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    model.norm = nn.LayerNorm(6)
    first = model(x)
    model.norm = nn.Identity()
    return first, model(x)


def replace_forward_of_a_part(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    model.norm.forward = torch.relu
    return model(x)


def change_a_number(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    model.gain = 3.0
    first = model(x)
    model.norm.eps = 0.5
    return first, model(x)


def change_a_number_before_calls(model: nn.Module, x: torch.Tensor) -> Any:
    model.gain = 3.0
    return model(x)


def tie_parameters(model: nn.Module, x: torch.Tensor) -> Any:
    model(x)
    model.scale = model.norm.weight
    _change(model)
    return model(x)


ACTS: Sequence[Act] = (
    plain, keyword, deepcopy_before_calls, deepcopy_after_calls, deepcopy_then_change_the_first, copy_after_calls, averaged_model, to_double,
    double_with_float_input, to_bfloat16, half_and_back, part_to_double, to_meta, load_state_dict, load_state_dict_by_assignment, change_in_place,
    write_through_data, assign_data, replace_parameter, optimizer_steps, fused_optimizer_step, parametrize, parametrize_and_remove, weight_norm,
    prune, hook_on_a_part, hook_before_a_part, hook_on_the_whole, hook_that_collects, pickle_before_calls, pickle_after_calls, save_and_load,
    names_and_state, export, compile_again, jit_trace, symbolic_trace, functional_call, vmap, per_sample_models, jvp, dual_numbers, replicate,
    threads, data_loader_workers, other_batch_sizes, one_dimension_more, other_dtype, non_contiguous_input, expanded_input,
    imaginary_part_of_a_conjugate, input_at_an_odd_address, parameter_as_input, tensor_subclass, autocast, autocast_twice, inference_mode,
    inference_copy, gradients, gradient_of_a_frozen_model, unfreeze_one_parameter, train_and_eval, train_one_part, replace_a_part,
    replace_forward_of_a_part, change_a_number, change_a_number_before_calls, tie_parameters,
)  # fmt: skip


def seen(act: Act, model: nn.Module, x: torch.Tensor) -> Any:
    """Return what the act gives on the model, or the exception that it raises."""
    torch.manual_seed(3)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return act(model, x.clone())
        except Exception as error:  # the original's own error is an answer too
            return error


def difference(expected: Any, found: Any, tolerance: float = 1e-4) -> str:
    """Return how two answers differ, or ""."""
    if isinstance(expected, Exception):
        return "" if isinstance(found, Exception) else f"expected {type(expected).__name__}: {str(expected)[:200]}, saw a result"
    if isinstance(found, Exception):
        return f"raised {type(found).__name__}: {str(found)[:300]}"
    wanted, got = torch.utils._pytree.tree_leaves(expected), torch.utils._pytree.tree_leaves(found)
    tensors = [[t for t in leaves if isinstance(t, torch.Tensor)] for leaves in (wanted, got)]
    others = [[t for t in leaves if not isinstance(t, torch.Tensor)] for leaves in (wanted, got)]
    if others[0] != others[1]:
        return f"expected {others[0]}, saw {others[1]}"
    loose = any(t.dtype in (torch.bfloat16, torch.float16) for t in tensors[0])
    try:
        torch.testing.assert_close(tensors[1], tensors[0], rtol=0.05 if loose else tolerance, atol=0.05 if loose else tolerance, equal_nan=True)
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return ""
