# scales: the original program, then ModelNew, which computes the same. Needs only torch.
# Run this file to compare the two and to time them.
# recipe:
#     unused_indices()
#     identity()
#     size_one_reduction()
#     needless_clamp()
#     literal(min_1)
#     merge_clamps(relu)
#     scalar_into_linear(div)
#     bias_into_linear(add)
#     identity()
#     input_scale_into_linear(linear)
#     combine_scalars(mul_3)
#     fold_parameters()
# takes for granted:
#     parameters are not written behind torch's version counter (through .data); refresh() recomputes what was folded

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A linear map with a bias parameter, numbers, an unused index, and a size-1 axis."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.gemm = nn.Linear(inputs, outputs)
        self.shift = nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        x = self.gemm(x * 2.0) / 4.0
        x = x + self.shift
        x = torch.max(x, dim=1, keepdim=True)[0]
        x = torch.logsumexp(x, dim=1, keepdim=True)
        return F.leaky_relu(F.relu(torch.min(x * 1.0, torch.tensor(5.0))))


def get_inputs():
    return [torch.randn(6, 8)]


def get_init_inputs():
    return [8, 5]


# --- rewritten ----------------------------------------------------------------------------------------------------

import torch
import torch.nn.functional as F


def folded(shift, gemm_weight, gemm_bias):
    """What depends on the state only; computed anew when the state changes."""
    mul_2 = gemm_bias * 0.25  # f32[5]
    mul_2 = mul_2 + shift  # f32[5]
    mul = gemm_weight * 0.5  # f32[5, 8]
    return (mul_2, mul)


def optimized(x, mul_2, mul):
    """What Model.forward computes for the verified shapes."""
    linear_1 = F.linear(x, mul, mul_2)  # f32[6, 5]
    linear_1 = torch.amax(linear_1, dim=[1], keepdim=True)  # f32[6, 1]
    linear_1 = torch.clamp(linear_1, min=0.0, max=5.0)  # f32[6, 1]
    return linear_1


class ModelNew(Model):
    """Model with a faster forward for the calls it was verified for (see fits); any other call takes the original's forward."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.built_as_verified = not kwargs and args == (8, 5)

    def forward(self, *args, **kwargs):
        leaves = args
        if kwargs or not self.fits(leaves):
            return super().forward(*args, **kwargs)
        return optimized(*leaves, *self.folded())

    def folded(self):
        """Return folded(state), computed anew when a tensor of the state is another one, has moved or was written.

        Writes through .data or from another process leave no trace: call refresh() after them.
        """
        state = (self.shift, self.gemm.weight, self.gemm.bias)
        stamp = None
        if not any(t.is_inference() for t in state):
            stamp = [(id(t), t.data_ptr(), t._version) for t in state]
        kept = self.__dict__.get("_kept")
        if kept is None or stamp is None or kept[0] != stamp:
            with torch.no_grad():
                kept = (stamp, state, folded(*state))
            self.__dict__["_kept"] = kept
        return kept[2]

    def refresh(self):
        """Forget the folded values."""
        self.__dict__.pop("_kept", None)

    def fits(self, leaves):
        """Is this a call, in a mode, that optimized() was verified for?"""
        return bool(
            self.built_as_verified
            and len(leaves) == 1
            and isinstance(leaves[0], torch.Tensor) and leaves[0].shape == (6, 8) and leaves[0].dtype == torch.float32
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
