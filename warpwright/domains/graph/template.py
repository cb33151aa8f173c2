"""The fixed text of a generated file: guard, refresh of folded values, CUDA graph, self-test and self-benchmark."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from warpwright import timing
from warpwright.tasks.sources import syntax_tree

Place = Literal["only", "inner", "last"]
"""Of a program among those of one model: "last" is the one that the others pass a call on to."""

MARK = "# --- generated programs hold what follows\n"
RULER = "# --- rewritten " + "-" * 100 + "\n"

MODEL_DOC = "Model with a faster forward for the calls of VERIFIED; any other call takes the original's forward, with one warning."
OPTIMIZED_DOC = "What Model.forward computes for the verified shapes."
FULL_PRECISION = '''
def full_precision(function):
    """Run the function with TF32 off in cuDNN."""

    def run(*args):
        flags, name, off = torch.backends.cudnn, "allow_tf32", False
        try:
            allowed = flags.allow_tf32
        except RuntimeError:  # the program has set the newer flags
            flags, name, off = flags.conv, "fp32_precision", "ieee"
            allowed = flags.fp32_precision
        setattr(flags, name, off)
        try:
            return function(*args)
        finally:
            setattr(flags, name, allowed)

    return run

'''
FOLDED_DOC = "What depends on the state only; computed anew when the state changes."


def functional_alias(original: str) -> str:
    """Return the name for torch.nn.functional: F, unless the original means something else by it."""
    return "_F" if _binds_other(original, "F") else "F"


def _binds_other(text: str, name: str) -> bool:
    """Does the text bind `name` at module level to anything but torch.nn.functional?"""
    for node in syntax_tree(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                return True
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                module = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
                if (alias.asname or alias.name) == name and module != "torch.nn.functional":
                    return True
    return False


def _nest(item):  # type: ignore[no-untyped-def]
    """Return how a call's arguments are nested: classes, and keys in their order, which a forward may go by."""
    if isinstance(item, dict):
        return type(item).__name__, tuple((repr(key), _nest(child)) for key, child in item.items())
    return (type(item).__name__, tuple(map(_nest, item))) if type(item) in (tuple, list) or hasattr(item, "_fields") else None


def nest() -> str:
    """Return the text of `_nest`, which programs carry whose arguments are nested."""
    return inspect.getsource(_nest).replace("  # type: ignore[no-untyped-def]", "") + "\n"


def forward(count: int, taken: Any, call: str, place: Place = "only", name: str = "_watch") -> list[str]:
    """Return the method `forward`: `call` where it is the faster one's turn, with `leaves` and `watch` at hand.

    `taken`: the arguments where they are nested, else None. `place`: in the chain of a model's programs, whose last one says why none fits.
    `name`: under which the model holds its `watch`.
    """
    arranged = f"_arranged(Model.forward, args, kwargs, {count})"
    flat = [f"        leaves = args if len(args) == {count} and not kwargs else {arranged}"]
    if taken is not None:
        other = f"(given := {arranged}) is None or _nest(given) != {_nest(taken)!r}"
        flat = [f"        leaves = None if {other} else torch.utils._pytree.tree_leaves(given)"]
    return [
        "    @_functools.wraps(Model.forward)",
        "    def forward(self, *args, **kwargs):",
        "        if torch.compiler.is_compiling():",
        "            return super().forward(*args, **kwargs)",
        *flat,
        f'        watch = _Watch.usual(self, "{name}", leaves)',
        "        if watch is None:",
        *(_PASSING_ON if place == "inner" else ()),
        "            watch = _Watch.of(self, VERIFIED)",
        "            misfit = watch.misfit(leaves)",
        "            if misfit is not None:",
        *_TELLING[place],
        "                return super().forward(*args, **kwargs)",
        f"        return {call}",
        "",
    ]


_PASSING_ON = ("            if not _Watch.shaped(leaves, VERIFIED):", "                return super().forward(*args, **kwargs)")

_TELLING: Mapping[Place, tuple[str, ...]] = {
    "only": ("                watch.tell(*misfit)",),
    "inner": (),
    "last": (
        "                misfit = self._misfit(leaves)  # of the program whose shapes these are, if there is one",
        "                if misfit is not None:",
        "                    watch.tell(*misfit)",
    ),
}

_FITS: Mapping[Place, str] = {
    "only": '''
    def fits(self, leaves):
        """Is this a call, in a mode, that optimized() was verified for?"""
        return _Watch.of(self, VERIFIED).misfit(leaves) is None
''',
    "last": '''
    def fits(self, leaves):
        """Is this a call, in a mode, that one of the programs was verified for?"""
        return self._misfit(leaves) is None

    def _misfit(self, leaves):
        return _Watch.of(self, VERIFIED).misfit(leaves)
''',
    "inner": '''
    def _misfit(self, leaves):
        """Return why no program was verified for this call; None where one was."""
        own = _Watch.of(self, VERIFIED).misfit(leaves)
        other = own and super()._misfit(leaves)
        return own if other and _Watch.shaped(leaves, VERIFIED) else other
''',
}

REFRESH = '''
    def refresh(self):
        """Have the folded values computed anew, by the next calls: call it after writes through .data."""
        _Watch.refresh(self)
'''


def class_tail(folds: bool, place: Place = "only") -> list[str]:
    """Return the other methods of ModelNew."""
    text = _FITS[place]
    text += '''
    def _apply(self, *args, **kwargs):
        self.__dict__.pop(VERIFIED.get("watch", "_watch"), None)  # which would keep the memory of tensors that move away
        return super()._apply(*args, **kwargs)
'''
    if folds:
        text += '''
    def folded(self):
        """Return folded(state), computed anew when the state has changed; for a CUDA graph of yours that holds a call, call it after a change."""
        return _Watch.of(self, VERIFIED).folded(folded)
''' + REFRESH
    return [*text.strip("\n").split("\n"), "", ""]


def watch() -> str:
    """Return the text of `_Watch`, which every returned program carries."""
    return _carried(Path(__file__).with_name("watch.py"))


def recording() -> str:
    """Return the text of `_recording`, which every program that is a CUDA graph carries."""
    return _carried(Path(timing.__file__).with_name("capturing.py"))  # which is not imported: it imports torch


def recorded() -> str:
    """Return the text of `_Recorded`, which keeps a function as a CUDA graph."""
    from warpwright.native import copied_graph  # imports torch, which the command line does without

    return RECORDED.replace("@recording", recording()).replace("@copied", copied_graph.text())


def _carried(file: Path) -> str:
    return file.read_text().partition(MARK)[2].strip("\n") + "\n"


LITERAL = (
    "def _literal(name, device, held={}):",
    '    """Return a tensor of the program\'s text on a device. It is made once: no call waits for a copy to a GPU."""',
    "    if (name, device) not in held:",
    "        with torch.inference_mode(False):",
    "            held[name, device] = _LITERALS[name]().to(device)",
    "    return held[name, device]",
    "", "",
)  # fmt: skip

UNPACKED = (
    "import base64",
    "import zlib",
    "", "",
    "def _unpacked(text, dtype, shape):",
    '    """Return a tensor from its packed bytes."""',
    "    return torch.frombuffer(bytearray(zlib.decompress(base64.b85decode(text))), dtype=dtype).reshape(shape)",
    "", "",
)  # fmt: skip

RECORDED = '''@recording

@copied
def _span(tensor):
    """Return the memory from a tensor's first element to its last, as a row; what lies in gaps goes with it."""
    return tensor.as_strided((1 + sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride())),), (1,))


def _has_gaps(tensor):
    """Has a clone of this tensor other strides: does it leave memory out, or is it an expanded one?"""
    return torch.empty_like(tensor, device="meta").stride() != tensor.stride()


def _laid_alike(tensor):
    """Return a copy with the tensor's strides, which kernels are written for."""
    return _span(tensor).clone().as_strided(tensor.size(), tensor.stride()) if _has_gaps(tensor) else tensor.clone()


def _cloned(results):
    return torch.utils._pytree.tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, results)


def _copied(results):
    """Return copies of results; those that share memory share that of one copy."""
    held = {}

    def copied(result):
        if not isinstance(result, torch.Tensor):
            return result
        memory = result.untyped_storage()
        own = held.get(memory.data_ptr())
        if own is None:
            own = held[memory.data_ptr()] = torch.empty(0, dtype=torch.uint8, device=result.device).set_(memory).clone().untyped_storage()
        return torch.empty(0, dtype=result.dtype, device=result.device).set_(own, result.storage_offset(), result.shape, result.stride())

    return torch.utils._pytree.tree_map(copied, results)


def _is_flat(results, leaves):
    """Is this a tuple of tensors and no more?"""
    return type(results) is tuple and len(results) == len(leaves) and all(one is leaf for one, leaf in zip(results, leaves))


_PLAIN = (torch.Tensor, bool, int, float, complex, str, type(None), torch.dtype, torch.device)


class _Recorded:
    """A function as a CUDA graph: inputs are copied in, the graph is replayed, results are copied out; where the driver can, by one launch.

    Recorded anew when a tensor of the state moves; values written in place are seen by the replay. Calls from several threads or streams
    take turns. `written`: places in the state of what the function changes.
    """

    def __init__(self):
        self.stamp, self.lock, self.done, self.at_once = None, _threading.Lock(), torch.cuda.Event(), None

    def __call__(self, function, inputs, state, written):
        if _elsewhere((*inputs, *state[:1])) or torch.cuda.is_current_stream_capturing():  # into a graph of the caller's
            return function(*inputs, *state)
        with self.lock:
            stamp = [(t.data_ptr(), t.nbytes) for t in state] or [torch.cuda.current_device()]  # without a state nothing else says which GPU
            if stamp != self.stamp:
                if any(t.is_inference() for t in state) or _elsewhere(state):  # what was made in inference mode is not put back outside of it
                    return function(*inputs, *state)
                if self.at_once is not None:  # which leaves no event, and has the old recording's memory
                    torch.cuda.synchronize()
                torch.cuda.current_stream().wait_event(self.done)
                self.stamp = None  # where recording fails, the inputs are new ones and the graph is an old one, or none
                self.record(function, inputs, state, written)
                self.stamp = stamp
            if self.copies is None:
                return function(*inputs, *state)
            if self.at_once is not None:
                results = self.at_once([t for t in inputs if isinstance(t, torch.Tensor)])
                if results is not None:
                    return self.nested(results)
                self.at_once = None
                torch.cuda.synchronize()
            return self.replay(inputs)

    def replay(self, inputs):
        torch.cuda.current_stream().wait_event(self.done)
        for own, row, given in zip(self.inputs, self.rows, inputs):
            if row is not None:
                row.copy_(_span(given))
            elif isinstance(own, torch.Tensor):
                own.copy_(given)
        self.graph.replay()
        results = self.copies(self.results)
        self.done.record()
        return results

    @torch.inference_mode(False)  # what is kept is written in calls of any mode
    def record(self, function, inputs, state, written):
        self.inputs = [_laid_alike(t) if isinstance(t, torch.Tensor) else t for t in inputs]
        self.rows = [_span(t) if isinstance(t, torch.Tensor) and _has_gaps(t) else None for t in self.inputs]
        self.pins = [t.detach() for t in state]  # a pinned address is not given to another tensor
        changed = [state[i] for i in written]
        saved = [t.clone() for t in changed]
        try:
            self.run(function, state)
        finally:  # also where recording fails, and the caller catches that
            for tensor, value in zip(changed, saved):
                tensor.copy_(value)

    def run(self, function, state):
        """Run the function, so that it is warm, and record it."""
        drawn, side = torch.cuda.get_rng_state(), torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(side):
            for _ in range(3):
                function(*self.inputs, *state)
        torch.cuda.current_stream().wait_stream(side)
        random = not torch.equal(drawn, torch.cuda.get_rng_state())
        self.graph, self.done = _kept_graph(), torch.cuda.Event()  # an event is of one device, and the state may have moved
        with torch.no_grad(), _recording(self.graph):
            self.results = function(*self.inputs, *state)
        leaves, form = torch.utils._pytree.tree_flatten(self.results)
        memory = [t.untyped_storage().data_ptr() for t in leaves if isinstance(t, torch.Tensor)]
        self.copies = _cloned if len(set(memory)) == len(memory) else _copied
        if not all(isinstance(leaf, _PLAIN) for leaf in leaves):  # of an object that pytree does not know the next call would change the tensors
            self.copies = None
        flat = _is_flat(self.results, leaves)
        self.nested = tuple if flat else lambda results: torch.utils._pytree.tree_unflatten(results, form)
        given = [t for t in self.inputs if isinstance(t, torch.Tensor)]
        # what torch adds at a replay, the state of its random numbers, the driver knows nothing of
        plain = not random and bool(memory) and self.copies is _cloned and all(map(_as_bytes, (*given, *leaves)))
        driver = _graph_driver() if plain and hasattr(self.graph, "raw_cuda_graph") else None
        self.at_once = _CopiedGraph(driver, self.graph, given, leaves) if driver is not None else None


'''

AHEAD = '''import os as _os
import pathlib as _pathlib
import threading as _threading


class _AheadOfTime:
    """A function of tensors as machine code of AOTInductor: compiled at its first call, and kept in torch's cache folder."""

    def __init__(self, function, name):
        self.function, self.name, self.machine_code, self.lock = function, name, None, _threading.Lock()

    def __call__(self, *args):
        if self.machine_code is None:
            with self.lock, torch.inference_mode(False), torch.no_grad():
                self.machine_code = self.machine_code or self.load(args)
        return self.machine_code(list(args))

    def load(self, args):
        from torch._inductor.runtime.cache_dir_utils import cache_dir

        kind = f"{torch.__version__}-{torch.backends.cpu.get_cpu_capability()}-{torch.get_num_threads()}".replace(" ", "-")
        path = _pathlib.Path(cache_dir(), "warpwright", f"{self.name}-{kind}.pt2")
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            given = tuple(arg.detach() for arg in args)
            program = torch.export.export(_Function(self.function), given)
            own = path.with_name(f"{_os.getpid()}-{path.name}")
            torch._inductor.aoti_compile_and_package(program, package_path=str(own))
            own.replace(path)
        return torch._inductor.aoti_load_package(str(path)).loader.boxed_run


class _Function(torch.nn.Module):
    """A function as a module, which is what torch.export takes."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def _ahead_of_time(name):
    """Compile the function ahead of time; `name` stands for its text and the forms of its arguments."""
    return lambda function: _AheadOfTime(function, name)


'''

GUARDED = '            assert new.fits(leaves(inputs)), "the nominal inputs do not fit the guard"\n'
"""In the self-test of a program that has a guard for the whole call."""

PLAN = '''SYMBOLS = (
@SYMBOLS)


def bound_plan():
    """Return the function that runs the plan, with torch's functions at hand; without a compiler or one of the functions: None."""
    import ctypes
    import pathlib
    import warnings

    if KERNELS is None:
        return None
    folder = pathlib.Path(torch.__file__).with_name("lib")
    try:
        library = ctypes.CDLL(str(next(folder.glob("libtorch_cpu.*"))))
        table = [ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value for symbol in SYMBOLS]
    except (StopIteration, OSError, AttributeError) as error:
        warnings.warn(f"torch {torch.__version__} has no function that the native plan calls, which runs as plain torch calls: {error}")
        return None
    KERNELS.plan_bind((ctypes.c_void_p * len(table))(*table), 0)
    KERNELS.plan_run.restype = ctypes.c_int
    return KERNELS.plan_run


class _Plan:
    """A function of tensors as one native call: loops, and calls of torch's library between; where that fails, the function itself."""

    def __init__(self, function):
        self.function, self.run, self.pointers = function, bound_plan(), _ctypes.c_void_p * @COUNT

    def __call__(self, *tensors):
        if self.run is None:
            return self.function(*tensors)
        results = @RESULTS
        pointers = self.pointers(*[t.data_ptr() for t in @TENSORS], *[t.data_ptr() for t in results])
        if self.run(pointers, 2 * torch.get_num_threads() + torch.is_inference_mode_enabled()):
            return self.function(*tensors)  # which raises what is wrong with the values
        return results


_planned = _Plan


'''

TAIL = '''
def _leaves(item):
    """Return the tensors and plain values of a result."""
    if hasattr(item, "__dataclass_fields__") and not isinstance(item, dict):
        item = {name: getattr(item, name) for name in item.__dataclass_fields__}
    if isinstance(item, (dict, list, tuple)):
        return [leaf for child in (item.values() if isinstance(item, dict) else item) for leaf in _leaves(child)]
    return [item]


def self_test(device="@DEVICE", seeds=3):
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
            assert new.fits(leaves(inputs)), "the nominal inputs do not fit the guard"
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


def self_benchmark(device="@DEVICE", rounds=20):
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
'''


def step_tail() -> str:
    """Return TAIL for a training step: the gradients are compared as the results are."""
    text = TAIL.replace("list(get_inputs())", "list(get_step_inputs())")
    for name, step in (("ModelNew", "StepNew"), ("Model", "Step")):
        text = text.replace(f"{name}(*get_init_inputs())", f"{step}(*get_init_inputs())")
    return text.replace(GUARDED, "")
