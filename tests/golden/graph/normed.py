# normed: the original program, then ModelNew, which computes the same. Needs only torch.
# Run this file to compare the two and to time them.
# recipe:
#     unused_indices()
#     merge_clamps(clamp)
#     scalar_into_linear(mul)
#     bias_into_linear(add)
#     fold_parameters()
# takes for granted:
#     parameters are not written behind torch's version counter (through .data); refresh() recomputes what was folded

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Convolution, batch norm in training mode, a scaled clamp, and two results."""

    def __init__(self, inputs, outputs, factor):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs))
        self.bias = nn.Parameter(0.1 * torch.randn(outputs, 1, 1))
        self.factor = factor

    def forward(self, x):
        x = self.layers[0](x) * self.factor + self.bias
        x = self.layers[1](x)
        x = torch.clamp(torch.relu(x), max=2.0)
        return x, torch.max(x, dim=1)[0]


def get_inputs():
    return [torch.rand(2, 3, 8, 8)]


def get_init_inputs():
    return [3, 4, 0.5]


# --- rewritten ----------------------------------------------------------------------------------------------------

import torch
import torch.nn.functional as F


def folded(bias, layers_0_weight, layers_0_bias):
    """What depends on the state only; computed anew when the state changes."""
    mul_1 = layers_0_weight * 0.5  # f32[4, 3, 3, 3]
    mul_2 = layers_0_bias * 0.5  # f32[4]
    reshape = bias.reshape([-1])  # f32[4]
    mul_2 = mul_2 + reshape  # f32[4]
    del reshape
    return (mul_1, mul_2)


def optimized(x, layers_1_weight, layers_1_bias, layers_1_running_mean, layers_1_running_var, layers_1_num_batches_tracked, mul_1, mul_2):
    """What Model.forward computes for the verified shapes."""
    conv2d = F.conv2d(x, mul_1, mul_2, padding=1)  # f32[2, 4, 8, 8]
    layers_1_num_batches_tracked.add_(1)
    conv2d = F.batch_norm(conv2d, weight=layers_1_weight, bias=layers_1_bias, running_mean=layers_1_running_mean, running_var=layers_1_running_var, training=True, momentum=0.1, eps=1e-05)  # f32[2, 4, 8, 8]
    conv2d = torch.clamp(conv2d, min=0.0, max=2.0)  # f32[2, 4, 8, 8]
    amax = torch.amax(conv2d, dim=[1])  # f32[2, 8, 8]
    return (conv2d, amax)


class ModelNew(Model):
    """Model with a faster forward for the calls it was verified for (see fits); any other call takes the original's forward."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.built_as_verified = not kwargs and args == (3, 4, 0.5)

    def forward(self, *args, **kwargs):
        leaves = args
        if kwargs or not self.fits(leaves):
            return super().forward(*args, **kwargs)
        return optimized(*leaves, self.layers[1].weight, self.layers[1].bias, self.layers[1].running_mean, self.layers[1].running_var, self.layers[1].num_batches_tracked, *self.folded())

    def folded(self):
        """Return folded(state), computed anew when a tensor of the state is another one, has moved or was written.

        Writes through .data or from another process leave no trace: call refresh() after them.
        """
        state = (self.bias, self.layers[0].weight, self.layers[0].bias)
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
            and isinstance(leaves[0], torch.Tensor) and leaves[0].shape == (2, 3, 8, 8) and leaves[0].dtype == torch.float32
            and leaves[0].is_contiguous() and leaves[0].device.type == "cpu"
            and self.training
            and self.layers[1].training
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
