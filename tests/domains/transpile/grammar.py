"""Random kernels: barriers, shuffles, votes, divergent guards, loops, shared memory and atomics, all free of races by construction.

Every kernel is `void k(const int* in, int* out, int n)`. Its values are ints, so that each tier has to agree to the bit. Between two barriers
a thread writes shared memory only at its own place, and reads elsewhere only what was written before the last barrier.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

BLOCKS = ((32, 1, 1), (64, 1, 1), (48, 1, 1), (96, 1, 1), (16, 4, 1), (8, 8, 1), (33, 1, 1), (128, 1, 1), (4, 4, 4))
"""Block shapes; some are no multiple of a warp."""


@dataclass(frozen=True)
class RandomKernel:
    """A kernel's text, and how it is launched."""

    name: str
    text: str
    block: tuple[int, int, int]
    grid: int

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]


class _Maker:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.block = self.rng.choice(BLOCKS)
        self.threads = self.block[0] * self.block[1] * self.block[2]
        self.whole_warps = self.threads % 32 == 0
        self.variables = ["v0", "v1"]
        self.uniforms = ["n", "blockIdx.x"]
        self.counter = 2
        self.lines: list[str] = []
        self.readable = False
        """Whether all of shared memory was written before the last barrier."""

    def fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def uniform(self, depth: int = 0) -> str:
        choice = self.rng.randrange(4 if depth < 2 else 2)
        if choice == 0:
            return str(self.rng.randrange(1, 9))
        if choice == 1:
            return f"(int){self.rng.choice(self.uniforms)}"
        operator = self.rng.choice("+*-")
        return f"({self.uniform(depth + 1)} {operator} {self.uniform(depth + 1)})"

    def value(self, depth: int = 0) -> str:
        choice = self.rng.randrange(10 if depth < 2 else 3)
        if choice == 0:
            return str(self.rng.randrange(-5, 10))
        if choice in (1, 2):
            return self.rng.choice([*self.variables, "tid", "(int)threadIdx.x"])
        if choice == 3:
            return self.uniform(depth)
        if choice == 4:
            return f"({self.value(depth + 1)} {self.rng.choice('<>')} {self.value(depth + 1)} ? {self.value(depth + 1)} : {self.value(depth + 1)})"
        if choice == 5 and self.readable:
            return f"s[(unsigned)({self.value(depth + 1)}) % {self.threads}u]"
        if choice == 6:
            return f"in[(unsigned)({self.value(depth + 1)}) % 64u]"
        if choice == 7:
            return f"{self.rng.choice(['min', 'max', 'mix'])}({self.value(depth + 1)}, {self.value(depth + 1)})"
        if choice == 8:  # also by more than the width of an int
            amount = self.rng.choice([f"(unsigned)({self.value(depth + 1)}) % 41", str(self.rng.randrange(41)), f"({self.value(depth + 1)} & 31)"])
            return f"(({self.value(depth + 1)} {self.rng.choice(['<<', '>>'])} {amount}) % 1000)"
        return f"({self.value(depth + 1)} {self.rng.choice(['+', '-', '&', '^', '|'])} {self.value(depth + 1)})"

    def condition(self) -> str:
        return self.rng.choice([f"{self.value(1)} % 3 == 0", f"tid < {self.rng.randrange(self.threads)}", f"{self.value(1)} > {self.value(1)}"])

    def add(self, indent: int, line: str) -> None:
        self.lines.append("  " * indent + line)

    def private(self, indent: int) -> None:
        """A statement that touches the thread's own values only."""
        choice = self.rng.randrange(6)
        target = self.rng.choice(self.variables)
        if choice == 0:
            self.add(indent, f"{target} {self.rng.choice(['=', '+=', '^=', '-='])} {self.value()};")
        elif choice == 1:
            self.add(indent, f"if ({self.condition()}) {{ {target} += {self.value()}; }} else {target} ^= {self.value()};")
        elif choice == 2:
            counter = self.fresh("i")
            bound = self.rng.choice([self.uniform(2) + " % 5", f"{self.value(2)} & 3"])
            self.add(indent, f"for (int {counter} = 0; {counter} < ({bound}); ++{counter}) {target} += {self.value(1)} + {counter};")
        elif choice == 3:
            name = self.fresh("v")
            self.add(indent, f"int {name} = {self.value()};")
            if indent == 1:
                self.variables.append(name)
            else:
                self.add(indent, f"{target} += {name};")
        elif choice == 4:
            self.strided(indent, target)
        else:
            self.add(indent, f"s[tid] = {self.value() if not self.readable else self.own_value()};")
            self.readable = False

    def strided(self, indent: int, target: str) -> None:
        """A loop whose steps jump over the other threads of the block, or of the grid."""
        counter = self.fresh("g")
        start, step = self.rng.choice([
            ("threadIdx.x", "blockDim.x"), ("tid", str(self.threads)), ("blockIdx.x * blockDim.x + threadIdx.x", "gridDim.x * blockDim.x"),
            (f"blockIdx.x * {self.threads} + tid", f"(int)gridDim.x * {self.threads}"), ("blockIdx.x * 3 + threadIdx.x", "17"),
        ])  # fmt: skip
        end = self.rng.choice([f"n * {self.rng.randrange(1, 90)}", str(self.rng.randrange(900))])
        value = self.rng.choice([f"{target} {self.rng.choice('+^')}= {self.value(1)} + {counter}", f"{target} = {target} * 3 + in[{counter} % 64]"])
        cond = f"{counter} {self.rng.choice(['<', '<='])} {end}"
        if self.rng.random() < 0.7:
            self.add(indent, f"for (int {counter} = {start}; {cond}; {counter} += {step}) {value};")
            return
        self.add(indent, f"int {counter} = {start};")
        if self.rng.random() < 0.5:
            self.add(indent, f"{target} ^= {counter};")
        self.add(indent, f"while ({cond}) {{ {value}; {counter} {self.rng.choice([f'+= {step}', f'= {counter} + {step}'])}; }}")

    def own_value(self) -> str:
        """A value that reads no other thread's shared memory: it may be changing in this phase."""
        was, self.readable = self.readable, False
        text = self.value()
        self.readable = was
        return text

    def barrier(self, indent: int) -> None:
        self.readable = False
        self.add(indent, "__syncthreads();")
        if self.rng.random() < 0.8:
            self.add(indent, f"s[tid] = {self.own_value()};")
            self.add(indent, "__syncthreads();")
            name = self.rng.choice(self.variables)
            self.readable = True
            self.add(indent, f"{name} ^= s[(unsigned)({self.value(1)}) % {self.threads}u];")
            if self.rng.random() < 0.5:
                uniform = self.fresh("u")
                self.add(indent, f"int {uniform} = s[{self.rng.randrange(self.threads)}] & 15;")
                if indent == 1:
                    self.uniforms.append(uniform)
            self.add(indent, "__syncthreads();")
            self.readable = False

    def warp(self, indent: int) -> None:
        name = self.rng.choice(self.variables)
        if not self.whole_warps:
            self.add(indent, f"{name} += __syncthreads_count({self.condition()});")
            return
        kind = self.rng.randrange(6)
        if kind == 0:
            way, argument = self.rng.choice([("down", "16"), ("up", "1"), ("xor", "5"), ("xor", "16"), ("down", "3")])
            self.add(indent, f"{name} += __shfl_{way}_sync(0xffffffffu, {self.value(1)}, {argument});")
        elif kind == 1:
            self.add(indent, f"{name} ^= __shfl_sync(0xffffffffu, {self.value(1)}, ({self.value(1)}) & 31, {self.rng.choice([32, 16, 8])});")
        elif kind == 2:
            self.add(indent, f"{name} += __popc(__ballot_sync(0xffffffffu, {self.condition()}));")
        elif kind == 3:
            self.add(indent, f"if (__any_sync(0xffffffffu, {self.condition()})) {name} += 3; else {name} -= 1;")
        elif kind == 4:
            self.add(indent, f"for (int o = 16; o > 0; o >>= 1) {name} += __shfl_down_sync(0xffffffffu, {name}, o);")
        else:
            self.add(indent, f"{name} = warp_total({name});")

    def structured(self, indent: int) -> None:
        """Barriers and warp operations inside control."""
        choice = self.rng.randrange(4)
        if choice == 0:
            counter = self.fresh("k")
            self.add(indent, f"for (int {counter} = 0; {counter} < ({self.uniform(1)} & 3); ++{counter}) {{")
            self.uniforms.append(counter)
            self.phase(indent + 1)
            self.uniforms.remove(counter)
            self.add(indent, "}")
        elif choice == 1:
            self.add(indent, f"if ({self.uniform()} % 2 == 0) {{")
            self.phase(indent + 1)
            self.add(indent, "}")
        elif choice == 2 and self.whole_warps:
            self.add(indent, f"if (tid / 32 == {self.rng.randrange(self.threads // 32)}) {{")
            self.warp(indent + 1)
            self.private(indent + 1)
            self.add(indent, "}")
        else:
            counter = self.fresh("w")
            self.add(indent, f"int {counter} = ({self.uniform(1)}) & 7;")
            self.add(indent, f"while ({counter} > 0) {{")
            self.phase(indent + 1)
            self.add(indent, f"{counter} >>= 1;")
            if self.rng.random() < 0.3:
                self.add(indent, f"if ({self.uniform(1)} % 3 == 0) break;")
            self.add(indent, "}")

    def phase(self, indent: int) -> None:
        for _ in range(self.rng.randrange(1, 3)):
            self.private(indent)
        if self.rng.random() < 0.6:
            self.barrier(indent)
        if self.rng.random() < 0.5:
            self.warp(indent)
        self.private(indent)
        self.add(indent, "__syncthreads();")

    def leave(self, indent: int) -> None:
        """The thread's answer, and its end."""
        if self.rng.random() < 0.7:
            self.add(indent, f"out[blockIdx.x * {self.threads} + tid] = {self.own_value()};")
        self.add(indent, "return;")

    def some_leave(self, indent: int) -> None:
        """A return that only some threads take; the others' warps have gaps from then on."""
        form = self.rng.randrange(4)
        if form == 0:
            self.add(indent, f"if ({self.condition()}) {{")
            self.leave(indent + 1)
            self.add(indent, "}")
        elif form == 1:
            self.add(indent, f"for (int d = 0; d < 3; ++d) if (({self.value(1)} & 31) == d) {{")
            self.leave(indent + 1)
            self.add(indent, "}")
        elif form == 2:
            self.add(indent, f"switch (tid & 7) {{ case 1: v1 += {self.value(1)}; break; case 2: case 5:")
            self.leave(indent + 1)
            self.add(indent + 1, f"default: v0 ^= {self.value(1)}; }}")
        else:
            self.add(indent, f"if ({self.condition()}) {{ v1 += 5; if ({self.condition()}) {{")
            self.leave(indent + 1)
            self.add(indent, "} v0 -= 3; } else v1 -= 1;")
        self.whole_warps = False

    def departure(self) -> None:
        """Returns behind barriers: in branches, loops, switches and device functions."""
        form = self.rng.randrange(7)
        self.readable = False
        if form == 0:
            self.add(1, f"if ({self.uniform()} % 2 == 0) {{")
            self.phase(2)
            self.add(2, f"if ({self.uniform()} % 3 == 0) {{")
            self.phase(3)
            self.leave(3)
            self.add(2, "}")
            self.phase(2)
            self.add(1, "}")
        elif form == 1:
            self.add(1, f"for (int w = 0; w < ({self.uniform(1)} & 3); ++w) {{")
            self.phase(2)
            self.add(2, f"if ({self.uniform()} % 3 == w) {{")
            self.leave(3)
            self.add(2, "}")
            self.phase(2)
            self.add(1, "}")
        elif form == 2:
            self.add(1, f"const int chosen = {self.uniform()} & 3;")
            self.add(1, "switch (chosen) { case 0: {")
            self.phase(2)
            self.leave(2)
            self.add(1, "} case 2: case 3: {")
            self.phase(2)
            self.add(2, "break; }")
            self.add(1, "default: {")
            self.private(2)
            self.add(1, "} }")
        elif form == 3:
            self.add(1, f"if ({self.uniform()} % 2 == 0) {{")
            self.phase(2)
            self.leave(2)
            self.add(1, f"}} else if ({self.uniform()} % 2 == 0) {{")
            self.phase(2)
            self.leave(2)
            self.add(1, "} else {")
            self.phase(2)
            self.add(1, "}")
        elif form == 4:
            self.add(1, f"v0 += early(s, tid, {self.value(1)}, {self.uniform()}, {self.threads});")
        elif form == 5:
            self.some_leave(1)
        else:
            self.add(1, f"if ({self.uniform()} % 2 == 0) {{")
            self.phase(2)
            self.some_leave(2)
            self.phase(2)
            self.add(1, "}")
        self.readable = False
        self.add(1, "__syncthreads();")
        if self.rng.random() < 0.6:
            self.structured(1)
            self.add(1, "__syncthreads();")

    def make(self, name: str, leaving: bool) -> RandomKernel:
        linear = "(threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x"
        grid = self.rng.randrange(1, 4)
        self.add(1, f"__shared__ int s[{self.threads}];")
        self.add(1, f"int tid = {linear};")
        self.add(1, f"int v0 = in[tid % 64], v1 = tid * {self.rng.randrange(1, 7)} - 3;")
        self.add(1, "s[tid] = tid;")
        self.add(1, "__syncthreads();")
        if self.rng.random() < 0.5:
            self.strided(1, "v1")
        for _ in range(self.rng.randrange(2, 5)):
            self.rng.choice([self.private, self.barrier, self.warp, self.structured, self.structured])(1)
            self.add(1, "__syncthreads();")
        if leaving:
            self.departure()
        leaves = self.rng.random() < 0.3
        if leaves and self.rng.random() < 0.5:
            self.add(1, f"if (tid > {self.threads - self.rng.randrange(1, 5)}) {{ out[blockIdx.x * {self.threads} + tid] = 7; return; }}")
        elif leaves:
            self.add(1, f"if (tid >= {self.threads - self.rng.randrange(1, 5)}) return;")
        if leaves:
            self.add(1, "s[tid] = v0;")
            self.add(1, "__syncthreads();")
            self.add(1, "v1 += s[tid / 2];")
        if self.rng.random() < 0.3:
            self.add(1, f"atomicAdd(&out[{3 * self.threads} + (unsigned)v1 % 8u], 1);")
        self.add(1, f"out[blockIdx.x * {self.threads} + tid] = {' + '.join(self.variables)};")
        body = "\n".join(self.lines)
        return RandomKernel(name, f"__global__ void {name}(const int* in, int* out, int n) {{\n{body}\n}}\n", self.block, grid)


PRELUDE = """__device__ int mix(int a, int b) { return (a * 3 + b) ^ (b >> 1); }
__device__ int warp_total(int v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}
__device__ int early(int* s, int tid, int v, int u, int threads) {
  if (u % 3 == 0) return v;
  s[tid] = v;
  __syncthreads();
  if (u % 3 == 1) { v += s[(tid + 1) % threads]; __syncthreads(); return v; }
  v ^= s[tid / 2];
  __syncthreads();
  return v - 1;
}
"""


def random_kernel(seed: int) -> RandomKernel:
    """Return the kernel of a seed; threads of those of odd seeds may return behind a barrier."""
    return _Maker(seed).make(f"k{seed}", seed % 2 == 1)


def program(seeds: range) -> tuple[str, list[RandomKernel]]:
    """Return one source with the kernels of all seeds, and the kernels."""
    kernels = [random_kernel(seed) for seed in seeds]
    return PRELUDE + "\n".join(k.text for k in kernels), kernels
