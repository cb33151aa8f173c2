"""The command line: one verb, one function. docs/cli.md is its contract.

    common -> programs, records ..., and domains/ for the verbs of one domain -> command
"""

from warpwright.cli.command import main, parser
from warpwright.cli.common import DONE, INTERRUPTED, NOT_PASSED, WRONG_USE

__all__ = ["DONE", "INTERRUPTED", "NOT_PASSED", "WRONG_USE", "main", "parser"]
