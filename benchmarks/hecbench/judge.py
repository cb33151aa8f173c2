"""Judge what a HeCBench program printed: by its own check, or against the output of its OpenMP twin."""

from __future__ import annotations

import re

FAIL = re.compile(
    r"\bFAIL(ED|URE|S)?\b|\b(test|check|verification|validation)\w*\s+(has\s+)?(failed|fails|error)|\bfailed\b|\bmismatch(ed|es)?\b(?!\w*\s*[:=]\s*0)|\bincorrect\b|\bnot\s+(correct|passed)|\berror at\b|\bwrong\b|results? (do|does)( not|n't) match"  # noqa: E501
    r"|\b(pass(ed|es)?|correct|ok|succe(ss|ssful|eded)|match(es)?|equal|verified|valid)\s*[:=]\s*(false|no)\b(?!\.)",
    re.I,
)
NO_FAIL = re.compile(r"\b(0|no)\s+(\w+\s+)?(fail|mismatch|error)|\(%\) of \w+ mismatched|\bincorrect\b[^\d:=]*[:=]\s*0\s*$", re.I)
PASS = re.compile(r"\bPASS(ED|ES)?\b|\bsucc?ess(ful|fully|ful!)?\b|\bcorrect\b|\bverified\b|\bresults? match|\bOK\b|matches the", re.I)
TIMING = re.compile(
    r"time|elapsed|\btook\b|\bsec|seconds?\b|\(?\b(ms|us|ns|s)\b\)?|/s\b|flop|bandwidth|throughput|speed|per iteration|rate|device|latency|duration|clock|perf",  # noqa: E501
    re.I,
)
NO_FILE = re.compile(
    r"no such file|(can ?not|unable to|could not|couldn't|error|fail\w*)\s+(to\s+|be\s+)?(open|read|load|import|find)(ed|ing)?\b|file not found"
    r"|invalid (in|input )file",
    re.I,
)
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])|\b[-+]?(?:nan|inf)\b", re.I)


def own_check(text: str) -> str:
    """Return `pass`, `fail` or an empty string: what the program says of itself."""
    if "assert failed as expected" in text:  # the test of assert itself
        text = "\n".join(line for line in text.splitlines() if "assert" not in line.lower() or "returned" in line)
    if any(FAIL.search(line) and not re.search(NO_FAIL, line) for line in text.splitlines()):
        return "fail"
    return "pass" if PASS.search(text) else ""


ERROR = re.compile(
    r"(?:\bincorrect\b[\w\s]*|\bmismatch(?:es)?\b|\b(?:max(?:imum)?|mean|avg|average|rms|relative|l2)\b[\w\s]*\b(?:error|diff(?:erence)?|norm)|\bdeviation\b)"
    r"[^:=\d]*(?:[:=]|\bis\b)\s*(\S+)",
    re.I,
)
"""An error against the host's answer, as a program prints it."""


def own_errors(text: str, tolerance: float = 1e-3) -> int:
    """Return how many errors the program prints, if all are numbers of at most `tolerance`; 0 if there is none or one is larger."""
    found = [number for line in text.splitlines() if not TIMING.search(line) for number in ERROR.findall(line)]
    numbers = [float(one[0]) for number in found if (one := re.match(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?(?![\w.])", number, re.I))]
    small = [number for number in numbers if abs(number) <= tolerance]
    return len(found) if len(small) == len(found) else 0


def values(text: str) -> list[float]:
    """Return the numbers of the lines that do not speak of time."""
    kept = [line for line in text.splitlines() if not TIMING.search(line)]
    return [float(number) for line in kept for number in NUMBER.findall(line)]


def tells(text: str, given: str) -> bool:
    """Say whether a program prints a result: a number with a fraction, or a whole one above 65536, that is not among the numbers `given` (its sources
    and arguments) nor a product of two of them. What it read (`read 512 points`), versions and `nan` are no results."""
    known = {float(one) for one in re.findall(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", given)}
    whole = {one for one in known if 1 < one < 1 << 31 and one == int(one)}
    for value in map(abs, values(text)):
        if not value < 1e300 or value in known or (value == int(value) and value <= 65536):
            continue
        if value != int(value) or not any(value % one == 0 and value / one in known for one in whole):
            return True
    return False


def labelled(text: str) -> dict[str, list[float]]:
    """Return the numbers of the lines that do not speak of time, by the words of their line."""
    found: dict[str, list[float]] = {}
    for line in text.splitlines():
        if not TIMING.search(line) and (numbers := NUMBER.findall(line)):
            found.setdefault(" ".join(re.findall(r"[A-Za-z_]+", NUMBER.sub(" ", line))), []).extend(map(float, numbers))
    return found


def beside(mine: str, twin: str, tolerance: float = 1e-3) -> tuple[str, str]:
    """Return (`same`, `differs` or `nothing`, reason): do the numbers that both print agree, relative to `tolerance`?

    `nothing`: no numbers but times. Of the two lists the longer may go on where the other ends only if neither is empty and the counts are equal."""
    a, b = values(mine), values(twin)
    if not a or not b:
        return "nothing", "prints no results"
    if len(a) != len(b):
        first, second = labelled(mine), labelled(twin)
        shared = [label for label in first if label in second and len(first[label]) == len(second[label])]
        if not any(x != int(x) for label in shared for x in first[label] if abs(x) < 1e300):  # whole numbers are sizes as a rule
            return "nothing", f"prints {len(a)} numbers, the twin {len(b)}"
        a, b = [x for label in shared for x in first[label]], [x for label in shared for x in second[label]]
    for at, (x, y) in enumerate(zip(a, b, strict=True)):
        if x != x and y != y:
            continue
        if not abs(x - y) <= tolerance * max(abs(x), abs(y)) + 1e-6:
            return "differs", f"number {at + 1} of {len(a)} is {x:g}, the twin's {y:g}"
    return "same", f"{len(a)} numbers"
