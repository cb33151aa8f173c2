"""A training step as a program: the results of a module's forward, and the gradients of its inputs and parameters.

`--backward` makes a task of the step. Its inputs are the module's own and the gradients that come back to its results (`tangents`), so that
everything that holds for a program holds for a step: it runs in float64, is drawn hidden inputs, and has baselines.
"""

from __future__ import annotations

STEP = "Step"
"""The class of the step in a task's text."""

STEP_NEW = "StepNew"
"""The class of the step in a candidate's text. What people use is `ModelNew` there, which it is a step of."""

SHIPPED = "ModelNew"

TEXT = '''

# --- one training step: what Model returns, and the gradients of what requires them ---------------------------------------------------


def _flat_results(item):
    """Return the tensors and plain values of a result; of a plain object (a cache) those of its attributes."""
    import dataclasses
    import torch

    if dataclasses.is_dataclass(item) and not isinstance(item, dict):
        item = {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
    if isinstance(item, (dict, list, tuple)):
        return [leaf for child in (item.values() if isinstance(item, dict) else item) for leaf in _flat_results(child)]
    if hasattr(item, "__dict__") and not isinstance(item, (torch.Tensor, type)):
        return [leaf for leaf in _flat_results(vars(item)) if leaf is None or isinstance(leaf, (torch.Tensor, int, float))]
    return [item]


def _step(model, forward, inputs, tangents):
    """Return the results of `forward(*inputs)`, and the gradients of the real inputs and of the trained parameters under `tangents`."""
    import torch

    named = dict(model.named_parameters())
    trained = [named[name] for name in model._trained]
    frozen = [tensor for tensor in trained if not tensor.requires_grad]
    leaves, form = torch.utils._pytree.tree_flatten(list(inputs))
    leaves = [leaf.detach().requires_grad_() if wanted else leaf for leaf, wanted in zip(leaves, _forms()[0])]
    sources = [leaf for leaf in leaves if _wants(leaf)]
    with torch.enable_grad():
        for tensor in frozen:
            tensor.requires_grad_(True)
        try:
            results = _flat_results(forward(*torch.utils._pytree.tree_unflatten(leaves, form)))
            ends = [leaf for leaf in results if _wants(leaf)]
            if len(ends) != len(tangents):
                raise RuntimeError(f"expected {len(tangents)} results that gradients flow from, saw {len(ends)}")
            gradients = torch.autograd.grad(ends, [*sources, *trained], tangents, allow_unused=True)
        finally:
            for tensor in frozen:
                tensor.requires_grad_(False)
    results = [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in results]
    return results, list(gradients)


def _wants(leaf):
    import torch

    return isinstance(leaf, torch.Tensor) and leaf.requires_grad


class _Step:
    """A module as its training step. Which parameters are trained is what the constructor says; one that is tied has several paths."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._trained = [name for name, tensor in self.named_parameters() if tensor.requires_grad]
        self._trained_paths = [path for path, tensor in self.named_parameters(remove_duplicate=False) if tensor.requires_grad]

    def forward(self, *given):
        return _step(self, super().forward, given[:-1], given[-1])


class Step(_Step, Model):
    """One step of the original."""


_FORMS = []


def _forms():
    """Return which inputs have gradients, and the shapes and types of the results that these flow from; found out once.

    Gradients are asked of the inputs that get_inputs() marks with requires_grad; where it marks none, of all real ones.
    """
    import torch

    def run(where):
        with torch.random.fork_rng(devices=[]), torch.enable_grad(), torch.device(where):
            leaves, form = torch.utils._pytree.tree_flatten(list(get_inputs()))
            real = [isinstance(leaf, torch.Tensor) and leaf.is_floating_point() for leaf in leaves]
            wanted = [_wants(leaf) for leaf in leaves] if any(map(_wants, leaves)) else real
            leaves = [leaf.detach().to(where) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            leaves = [leaf.requires_grad_() if mark else leaf for leaf, mark in zip(leaves, wanted)]
            results = _flat_results(Model(*get_init_inputs()).to(where)(*torch.utils._pytree.tree_unflatten(leaves, form)))
            return wanted, [(leaf.shape, leaf.dtype) for leaf in results if _wants(leaf)]

    if not _FORMS:
        try:
            _FORMS.append(run("meta"))
        except (RuntimeError, TypeError, ValueError, NotImplementedError):  # it reads values
            _FORMS.append(run("cpu"))
    return _FORMS[0]


def get_step_inputs():
    import torch

    inputs = torch.utils._pytree.tree_map(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, list(get_inputs()))
    return [*inputs, [torch.randn(shape, dtype=dtype) for shape, dtype in _forms()[1]]]
'''
"""What a task's text is followed by. `Model`, `get_inputs` and `get_init_inputs` stand above it."""

NEW_TEXT = '''

class StepNew(_Step, ModelNew):
    """One step of ModelNew, as it was verified."""
'''
"""What a candidate's text is followed by."""


def shipped(entry: str) -> str:
    """Return the class that people use of a program whose class `entry` was verified."""
    return SHIPPED if entry == STEP_NEW else entry
