"""What a Python program calls: `optimize` a module or a function, `accelerate` one where it stands, and `backend` for torch.compile."""

from warpwright.front.accelerate import accelerate
from warpwright.front.dynamo import backend
from warpwright.front.module import optimize
from warpwright.front.result import Result

__all__ = ["Result", "accelerate", "backend", "optimize"]
