# in_place: the original program, then ModelNew, which computes the same. Needs only torch.
# Run this file to compare the two and to time them.
# recipe:
#     identity()

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Writes intermediate results in place, one of them through a slice."""

    def forward(self, x):
        y = x + 1.0
        y[:, 0] = 0.0
        y[1].mul_(3.0)
        z = torch.nn.functional.relu(y - 2.0, inplace=True)
        z += y
        return z


def get_inputs():
    return [torch.randn(4, 6)]


def get_init_inputs():
    return []


# --- rewritten ----------------------------------------------------------------------------------------------------

import torch
import torch.nn.functional as F


def optimized(x):
    """What Model.forward computes for the verified shapes."""
    add = x + 1.0  # f32[4, 6]
    scalar_tensor = torch.ops.aten.scalar_tensor.default(0.0, dtype=torch.float32, layout=torch.strided, device=x.device)  # f32[]
    select = add[:, 0]  # f32[4]
    scalar_tensor = scalar_tensor.expand([4])  # f32[4]
    select = torch.ops.aten.copy.default(select, scalar_tensor)  # f32[4]
    del scalar_tensor
    add = torch.ops.aten.select_scatter.default(add, select, 1, 0)  # f32[4, 6]
    del select
    select_1 = add[1]  # f32[6]
    select_1 = select_1 * 3.0  # f32[6]
    add = torch.ops.aten.select_scatter.default(add, select_1, 0, 1)  # f32[4, 6]
    del select_1
    sub = add - 2.0  # f32[4, 6]
    sub = torch.relu(sub)  # f32[4, 6]
    sub = sub + add  # f32[4, 6]
    del add
    return sub


class ModelNew(Model):
    """Model with a faster forward for the calls it was verified for (see fits); any other call takes the original's forward."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.built_as_verified = not kwargs and args == ()

    def forward(self, *args, **kwargs):
        leaves = args
        if kwargs or not self.fits(leaves):
            return super().forward(*args, **kwargs)
        return optimized(*leaves)

    def fits(self, leaves):
        """Is this a call, in a mode, that optimized() was verified for?"""
        return bool(
            self.built_as_verified
            and len(leaves) == 1
            and isinstance(leaves[0], torch.Tensor) and leaves[0].shape == (4, 6) and leaves[0].dtype == torch.float32
            and leaves[0].is_contiguous() and leaves[0].device.type == "cpu"
            and self.training
            and not torch.is_autocast_enabled("cpu")
            and not (torch.is_grad_enabled() and any(getattr(t, 'requires_grad', False) for t in (*leaves, *self.parameters())))
        )



def self_test(device="cpu", seeds=3):
    """Compare ModelNew with Model on fresh inputs: its error against float64 may be twice the original's."""
    leaves = torch.utils._pytree.tree_leaves
    convert = torch.utils._pytree.tree_map
    for seed in range(seeds):
        torch.manual_seed(seed)
        model = Model(*get_init_inputs()).to(device)
        new = ModelNew(*get_init_inputs()).to(device).train(model.training)
        new.load_state_dict(model.state_dict())
        inputs = convert(lambda t: t.to(device) if isinstance(t, torch.Tensor) else t, list(get_inputs()))
        wide = convert(lambda t: t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t, inputs)
        with torch.no_grad():
            assert new.fits(leaves(inputs)), "the nominal inputs do not fit the guard"
            wide_model = _copy.deepcopy(model).double()
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
