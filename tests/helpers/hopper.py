"""What generated functions would launch on a Hopper GPU, compiled to machine code without one: their tensors have no values."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

TYPES = {
    torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32", torch.uint8: "u8", torch.bool: "u1",
}  # fmt: skip


def ptxas() -> str:
    """Return the path of Triton's ptxas; without one the test is skipped."""
    triton = pytest.importorskip("triton")
    path = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    if not path.exists() or shutil.which(str(path)) is None:
        pytest.skip("needs the ptxas that Triton brings")
    return str(path)


def assembled(text: str, folder: Path) -> bytes:
    """Return the cubin for sm_90a that ptxas makes of a PTX text."""
    source, made = folder / "kernel.ptx", folder / "kernel.cubin"
    source.write_text(text)
    subprocess.run([ptxas(), "-arch=sm_90a", "-o", str(made), str(source)], check=True, timeout=60)
    return made.read_bytes()


def compiling(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """From here on a launch of a Triton kernel compiles it for sm_90a and is noted in the list that is returned; nothing runs."""
    ptxas()
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler import compile as compiled
    from triton.runtime.jit import JITFunction

    made: list[Any] = []

    def launched(self: Any, *arguments: Any, grid: Any, warmup: bool = False, **options: Any) -> Any:
        signature, constants, attributes = {}, {}, {}
        for place, (parameter, value) in enumerate(zip(self.params, arguments, strict=True)):
            if parameter.is_constexpr or value is None or (isinstance(value, int) and value == 1):
                signature[parameter.name], constants[place,] = "constexpr", value
                continue
            number = {int: "i32", float: "fp32", bool: "u1"}.get(type(value))
            signature[parameter.name] = number or f"*{TYPES[value.dtype]}"
            if number is None or (number == "i32" and value % 16 == 0):  # tensors that begin at multiples of 16 bytes
                attributes[place,] = [["tt.divisibility", 16]]
        source = ASTSource(self, signature, constants, attributes)
        made.append(compiled(source, target=GPUTarget("cuda", 90, 32), options=options))
        return made[-1]

    monkeypatch.setattr(JITFunction, "run", launched)
    return made


def names_of(text: str, folder: Path) -> dict[str, Any]:
    """Return what a generated program's text defines; Triton reads its kernels from the file."""
    path = folder / "generated.py"
    path.write_text(text)
    names: dict[str, Any] = {"__name__": "generated", "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names
