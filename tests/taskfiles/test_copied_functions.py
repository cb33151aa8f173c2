"""A copy of a module calls its own parts, also where a function that it keeps holds them."""

from __future__ import annotations

import functools

import torch

from warpwright.tasks.modules.copying import copied


class Block(torch.nn.Module):
    """As minGPT's block, and other ways in which functions come by parts."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        m = torch.nn.ModuleDict({"fc": torch.nn.Linear(4, 4)})
        self.mlp = m
        self.closure = lambda x: m.fc(x)
        self.default = lambda x, layer=self.first: layer(x)
        self.named = [lambda x, *, weight=self.first.weight: x @ weight]
        self.partial = functools.partial(torch.nn.functional.linear, weight=self.first.weight)

        def chained(x: torch.Tensor, depth: int = 1) -> torch.Tensor:
            return chained(self.closure(x), depth - 1) if depth else self.first(x)

        self.chained = chained
        self.forward_of = self.first.forward
        self.activation = torch.nn.functional.gelu
        self.plain = lambda x: x + 1
        self.first.register_forward_hook(lambda layer, args, result: result + m.fc.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.default(self.closure(x)) + self.named[0](x) + self.partial(x) + self.chained(x)
        return self.activation(self.plain(x)) + self.forward_of(x)


def test_functions_of_a_copy_hold_its_parts() -> None:
    torch.manual_seed(0)
    model, x = Block(), torch.randn(3, 4)
    want = model(x)
    twin = copied(model)
    torch.testing.assert_close(twin(x), want, rtol=0, atol=0)
    assert twin.plain is model.plain and twin.activation is model.activation
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float("nan"))  # nothing of the copy's reads the original
    torch.testing.assert_close(twin(x), want, rtol=0, atol=0)
    assert twin.double()(x.double()).dtype == torch.float64


def test_functions_that_share_a_variable_still_do() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer, scale = torch.nn.Linear(2, 2), 1.0

            def grow() -> torch.nn.Module:
                nonlocal scale
                scale *= 2
                return layer

            self.layer, self.grow, self.call = layer, grow, lambda x: layer(x) * scale

    model = Counting()
    twin, x = copied(model), torch.ones(1, 2)
    assert twin.grow() is twin.layer
    torch.testing.assert_close(twin.call(x), 2 * model.call(x))
