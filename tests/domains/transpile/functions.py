"""Random kernels that call device functions with barriers: in loops, twice in a row, inside one another, with early returns, as templates.

The values are ints, and each tier has to agree to the bit. Everything that threads exchange goes through `exchange` lines: wait, write the own place,
wait, read any place. So no kernel has a race.
"""

from __future__ import annotations

import random

from domains.transpile.grammar import BLOCKS, RandomKernel

PARAMETERS = ("int a", "int b", "int u", "int* r", "int (&q)[4]", "int& w", "const int* p", "int* s")
"""Of which each function takes some: the thread's own, `u` alike for all threads, and `s` shared."""


class _Function:
    """A device function: its head, what it can be asked, and its text."""

    def __init__(self, maker: _Calls, name: str, inner: _Function | None) -> None:
        self.maker, self.rng, self.name, self.inner = maker, maker.rng, name, inner
        self.template = self.rng.random() < 0.3
        self.taken = [one for one in PARAMETERS if self.rng.random() < 0.6 or one.endswith(("a", "u"))]
        self.returns = self.rng.random() < 0.6
        self.shared = "s" if "int* s" in self.taken else "own"
        self.lines: list[str] = []
        self.ints = ["a", "x"] + [name for name, head in (("b", "int b"), ("w", "int& w")) if head in self.taken]
        self.places = [f"{name}[{self.rng.randrange(4)}]" for name, head in (("r", "int* r"), ("q", "int (&q)[4]")) if head in self.taken]
        self.uniforms = ["u", *(["N"] if self.template else []), str(self.rng.randrange(1, 5))]

    def value(self) -> str:
        sources = [*self.ints, *self.places, *self.uniforms, "tid", str(self.rng.randrange(-4, 9))]
        if "const int* p" in self.taken:
            sources.append(f"p[(unsigned)({self.rng.choice(self.ints)}) % 16u]")
        return f"({self.rng.choice(sources)} {self.rng.choice('+-^*')} {self.rng.choice(sources)})"

    def target(self) -> str:
        return self.rng.choice([*self.ints, *self.places])

    def exchange(self, indent: int) -> None:
        name = self.target()
        self.add(indent, "__syncthreads();")
        self.add(indent, f"{self.shared}[tid] = {self.value()};")
        if self.rng.random() < 0.3:
            self.add(indent, f"{self.target()} += {self.value()};")
        self.add(indent, "__syncthreads();")
        self.add(indent, f"{name} {self.rng.choice(['+=', '^=', '='])} {self.shared}[(unsigned)({self.value()}) % {self.maker.threads}u];")
        if self.rng.random() < 0.5:
            self.add(indent, f"for (int i = 0; i < 4; ++i) {self.target()} += i * {self.shared}[(tid + i) % {self.maker.threads}];")

    def statement(self, indent: int, depth: int = 0) -> None:
        choice = self.rng.randrange(9 if depth < 2 else 4)
        if choice < 2:
            self.exchange(indent)
        elif choice == 2:
            self.add(indent, f"{self.target()} {self.rng.choice(['=', '+=', '^='])} {self.value()};")
        elif choice == 3:
            self.add(indent, f"if ({self.value()} % 3 == 0) {self.target()} += {self.value()}; else {self.target()} ^= {self.value()};")
        elif choice == 4:
            name = self.maker.fresh("k")
            self.add(indent, f"for (int {name} = 0; {name} < ({self.rng.choice(self.uniforms)} & 3); ++{name}) {{")
            self.uniforms.append(name)
            for _ in range(self.rng.randrange(1, 3)):
                self.statement(indent + 1, depth + 1)
            self.uniforms.remove(name)
            self.add(indent, "}")
        elif choice == 5:
            self.add(indent, f"if ({self.rng.choice(self.uniforms)} % 2 == 0) {{")
            self.statement(indent + 1, depth + 1)
            self.add(indent, "}")
        elif choice == 6 and self.returns and not depth and self.rng.random() < 0.6:
            self.add(indent, f"if ({self.rng.choice(self.uniforms)} % 3 == 0) return {self.value()};")
        elif choice == 7 and self.inner is not None:
            self.add(indent, self.inner.call(self.rng.choice(self.ints), [*self.ints, "tid"], self.uniforms, "own_r", "own_r", "in_own", self.shared))
        elif depth == 0 and indent == 1:
            name = self.maker.fresh("v")
            self.add(indent, f"int {name} = {self.value()};")
            self.ints.append(name)
        else:
            self.exchange(indent)

    def add(self, indent: int, line: str) -> None:
        self.lines.append("  " * indent + line)

    def text(self) -> str:
        rng, threads = self.rng, self.maker.threads
        if self.shared == "own":
            self.add(1, f"__shared__ int own[{threads}];")
        self.add(1, "int tid = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;")
        self.add(1, f"int x = {rng.choice(['a', 'u', 'tid', '7'])}, own_r[4] = {{{rng.choice(['0', 'a, 1, u'])}}};")
        self.add(1, "const int* in_own = " + ("p;" if "const int* p" in self.taken else "some;"))
        self.places.append(f"own_r[{rng.randrange(4)}]")
        for _ in range(rng.randrange(2, 5)):
            self.statement(1)
        self.exchange(1)
        if self.returns:
            self.add(1, f"return {self.value()};")
        head = f"{'template <int N> ' if self.template else ''}__device__ {'int' if self.returns else 'void'} {self.name}"
        return f"{head}({', '.join(self.taken)}) {{\n" + "\n".join(self.lines) + "\n}\n"

    def call(self, to: str, ints: list[str], uniforms: list[str], array: str, other: str, read: str, shared: str) -> str:
        """Return a statement that calls the function; `to` takes what it returns."""
        rng, given = self.rng, []
        for head in self.taken:
            name = head[-1]
            if head.startswith("int (&q)"):
                given.append(other)
            elif name == "r":
                given.append(array)
            elif name == "w":
                given.append(rng.choice([rng.choice([i for i in ints if i != "tid"]), f"{other}[{rng.randrange(4)}]", f"{other}[{array}[1] & 3]"]))
            elif name == "p":
                given.append(rng.choice([read, f"{read} + ({rng.choice(uniforms)} & 7)"]) if read.startswith("in") and read != "in_own" else read)
            elif name == "s":
                given.append(shared)
            elif name == "u":
                given.append(rng.choice([rng.choice(uniforms), f"{rng.choice(uniforms)} + {rng.choice(uniforms)}"]))
            else:
                given.append(rng.choice([rng.choice(ints), f"{rng.choice(ints)} - {rng.choice(uniforms)}", f"{other}[{rng.randrange(4)}]"]))
        called = f"{self.name}{f'<{rng.randrange(1, 5)}>' if self.template else ''}({', '.join(given)})"
        return f"{rng.choice([f'{to} =', f'{to} +=', f'{to} ^= 1 +', ''])} {called};".strip() if self.returns else f"{called};"


class _Calls:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"calls {seed}")
        self.block = self.rng.choice(BLOCKS)
        self.threads = self.block[0] * self.block[1] * self.block[2]
        self.counter = 0
        self.name = f"c{seed}"

    def fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def make(self) -> RandomKernel:
        rng, texts = self.rng, []
        functions: list[_Function] = []
        for at in range(rng.randrange(1, 4)):
            functions.append(_Function(self, f"{self.name}_f{at}", functions[-1] if functions and rng.random() < 0.7 else None))
            texts.append(functions[-1].text())
        grid = rng.randrange(1, 4)
        lines = [
            f"__shared__ int shared[{self.threads}];",
            "int tid = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;",
            f"int x = in[tid % 64], k1 = tid * {rng.randrange(1, 7)} - 3, held[4] = {{tid, x}}, more[4] = {{1, 2, 3}};",
        ]
        ints, uniforms = ["x", "k1"], ["n", "(int)blockIdx.x"]

        def one() -> str:
            arrays = rng.choice([("held", "more"), ("more", "held"), ("held", "held")])
            return rng.choice(functions).call(rng.choice(ints), [*ints, "tid"], uniforms, *arrays, "in", "shared")

        for _ in range(rng.randrange(1, 4)):
            form = rng.randrange(5)
            if form < 3:
                name = rng.choice(["i", "step", "part", self.fresh("k")])
                lines.append(f"for (int {name} = 0; {name} < {rng.choice(['n % 4', '3', '2 + (int)blockIdx.x'])}; ++{name}) {{")
                uniforms.append(name)
                lines += [one() for _ in range(rng.randrange(1, 3))]
                if rng.random() < 0.3:
                    lines.append(f"{rng.choice(ints)} += {rng.choice(ints)} ^ {name};")
                uniforms.remove(name)
                lines.append("}")
            elif form == 3:
                lines += [one(), one()]
            else:
                lines += [f"if (n % {rng.randrange(2, 4)} == 1) {{", one(), "}"]
        lines.append(f"out[blockIdx.x * {self.threads} + tid] = x + 3 * k1 + held[0] + 5 * held[1] + 7 * held[2] - held[3] + more[0] - 9 * more[3];")
        body = "\n".join(f"  {line}" for line in lines)
        texts.append(f"__global__ void {self.name}(const int* in, int* out, int n) {{\n{body}\n}}\n")
        return RandomKernel(self.name, "\n".join(texts), self.block, grid)


def program(seeds: range) -> tuple[str, list[RandomKernel]]:
    """Return one source with the kernels of all seeds, and the kernels."""
    kernels = [_Calls(seed).make() for seed in seeds]
    return "__device__ const int some[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};\n" + "\n".join(k.text for k in kernels), kernels
