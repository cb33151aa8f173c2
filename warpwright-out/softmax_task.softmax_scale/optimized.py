# warpwright 0.1.0: softmax_task.softmax_scale, 2026-11-29T07:38:17+00:00
# device: AMD EPYC, 2 cores, avx512_bf16; torch 2.14.1, Python 3.11.7
# nothing was proven faster than eager, which this file runs
# verified: on hidden inputs of the example's shapes and types, error at most twice the original's against float64
# calls: in the training mode and for the shapes of VERIFIED, without gradients; any other takes the original's forward
# recipe: none
# record: 50801737f9656f6a (warpwright reproduce 50801737f9656f6a)
# licence: the model's own; what warpwright adds to it may be used without any condition

"""Task: softmax over rows with a temperature, then a gain per column. One read and one write of the matrix would do."""

import torch



ROWS, COLUMNS = 512, 4096


def make_inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(ROWS, COLUMNS), torch.rand(COLUMNS) + 0.5



def softmax_scale(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x / 1.7, dim=-1) * gain


class Model(torch.nn.Module):
    def forward(self, x, gain):
        return softmax_scale(x, gain)


def get_inputs():
    inputs = make_inputs
    return list(inputs() if callable(inputs) else inputs)


def get_init_inputs():
    return []


class ModelNew(Model):
    """The original, as it is."""


def _leaves(item):
    """Return the tensors and plain values of a result."""
    if hasattr(item, "__dataclass_fields__") and not isinstance(item, dict):
        item = {name: getattr(item, name) for name in item.__dataclass_fields__}
    if isinstance(item, (dict, list, tuple)):
        return [leaf for child in (item.values() if isinstance(item, dict) else item) for leaf in _leaves(child)]
    return [item]


def self_test(device="cpu", seeds=3):
    """Compare ModelNew with Model on fresh inputs: its error against float64 may be twice the original's."""
    leaves = _leaves
    convert = torch.utils._pytree.tree_map
    for seed in range(seeds):
        torch.manual_seed(seed)
        model = Model(*get_init_inputs()).to(device)
        new = ModelNew(*get_init_inputs()).to(device).train(model.training)
        new.load_state_dict(model.state_dict())
        inputs = convert(lambda t: t.to(device) if isinstance(t, torch.Tensor) else t, list(get_inputs()))
        wide = convert(lambda t: t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t, inputs)
        with torch.no_grad():
            held = [t for part in model.modules() for t in vars(part).values() if isinstance(t, torch.Tensor) and not t.is_leaf]
            wide_model = _copy.deepcopy(model, {id(t): t.detach() for t in held}).double()
            original, seen = leaves(model(*inputs)), leaves(new(*inputs))
            try:
                exact, ulps = leaves(wide_model(*wide)), 8
            except RuntimeError:  # the original insists on float32 somewhere: it is compared with itself, and less tightly
                exact, ulps = [t.double() if isinstance(t, torch.Tensor) else t for t in original], 256
        assert len(seen) == len(original), f"expected {len(original)} results, saw {len(seen)}"
        for want, old, got in zip(exact, original, seen):
            if not isinstance(want, torch.Tensor):
                assert got == old, f"expected {old}, saw {got}"
                continue
            assert got.shape == old.shape and got.dtype == old.dtype and got.stride() == old.stride()
            allowed = 2 * (old.double() - want).abs().max() + ulps * torch.finfo(torch.float32).eps * want.double().abs().max()
            error = (got.double() - want).abs().max()
            assert error <= allowed, f"seed {seed}: expected an error of at most {allowed:.3g}, saw {error:.3g}"
            print(f"seed {seed}: error {error:.3g}, allowed {allowed:.3g}")


def self_benchmark(device="cpu", rounds=20):
    """Time the original and ModelNew in turn on the same inputs, and print the medians."""
    model, new = Model(*get_init_inputs()).to(device), ModelNew(*get_init_inputs()).to(device)
    inputs = torch.utils._pytree.tree_map(lambda t: t.to(device) if isinstance(t, torch.Tensor) else t, list(get_inputs()))
    times = {"original": [], "ModelNew": []}
    with torch.no_grad():
        for number in range(rounds + 3):
            for name, program in (("original", model), ("ModelNew", new)):
                started = _time.perf_counter()
                program(*inputs)
                if device == "cuda":
                    torch.cuda.synchronize()
                if number >= 3:
                    times[name].append(_time.perf_counter() - started)
    for name, seen in times.items():
        print(f"{name}: {1e3 * sorted(seen)[len(seen) // 2]:.3f} ms")


if __name__ == "__main__":
    import copy as _copy
    import time as _time

    self_test()
    self_benchmark()
