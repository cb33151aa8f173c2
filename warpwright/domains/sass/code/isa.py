"""What the model knows of opcodes: which order they keep, which unit they wait in, what memory they touch, and their class of latency.

Written from public descriptions and from compilers' output; no table of NVIDIA's tools is copied. Opcodes by their first part: LDG for LDG.E.128.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

GMMA = frozenset(["HGMMA", "QGMMA", "IGMMA", "BGMMA"])
"""Matrix products of a warp group (sm_90): they run on after the instruction, until a WARPGROUP.DEPBAR."""

ENDS = frozenset(["BRA", "BRX", "JMP", "JMX", "BRXU", "JMXU", "CALL", "RET", "EXIT", "BREAK", "BSYNC", "KILL", "BPT", "RTT", "WARPSYNC", "NANOSLEEP"])
"""They end a basic block."""

FENCES = (
    ENDS
    | GMMA
    | frozenset("BAR MEMBAR FENCE ERRBAR CCTL CCTLL CCTLT DEPBAR LDGDEPBAR ARRIVES SYNCS WARPGROUP WARPGROUPSET ACQBULK PREEXIT".split())  # noqa: SIM905
    | frozenset("ENDCOLLECTIVE ELECT YIELD BSSY BMOV CGAERRBAR USETMAXREG UCGABAR_ARV UCGABAR_WAIT UCGABAR_SET UCGABAR_GET".split())  # noqa: SIM905
    | frozenset("UTMALDG UTMASTG UTMAREDG UTMACMDFLUSH UTMACCTL UTMAPF UBLKCP UBLKRED UBLKPF".split())  # noqa: SIM905
    | frozenset("SETMAXREG PMTRIG LEPC NOP RPCMOV SETCTAID R2B B2R".split())  # noqa: SIM905
)
"""Nothing that touches memory passes them, and they pass one another never."""

_QUEUES = {
    "lsu": "LDG STG LDS STS LDSM STSM LDL STL LD ST ATOM ATOMG ATOMS RED REDG LDGSTS LDGDEPBAR STAS REDAS CCTL MEMBAR ARRIVES SHFL S2R BAR MATCH QSPC"
    " B2R R2B SYNCS FENCE ERRBAR LDGMC",
    "ldc": "LDC",
    "ldcu": "LDCU",
    "xu": "MUFU POPC FLO BREV F2F F2I I2F FRND FCHK I2I F2F64 I2F64 F2I64 FRND64",
    "u2": "S2UR REDUX",
    "cbu": "BMOV",
    "tma": "UTMALDG UTMASTG UTMAREDG UBLKCP UBLKRED UTMAPF UBLKPF UTMACCTL UTMACMDFLUSH UCGABAR_GET",
    "movm": "MOVM",
    "tex": "TEX TLD TLD4 TXQ SULD SUST SUATOM SURED",
}

QUEUE: Mapping[str, str] = {opcode: queue for queue, opcodes in _QUEUES.items() for opcode in opcodes.split()}
"""The queue that an instruction of variable latency waits in."""

_RETURNS = {"shared": "LDS LDSM SHFL", "xu": _QUEUES["xu"], "movm": "MOVM", "s2ur": "S2UR"}

RETURNS: Mapping[str, str] = {opcode: group for group, opcodes in _RETURNS.items() for opcode in opcodes.split()}
"""Results of one group come back in order, which compilers rely on (sixty cubins: of shared memory and shuffles, of special functions; later ones: of
transpositions by MOVM, of S2UR); those of two groups do not, though they may wait in one queue (LDS overtakes LDG). That loads from global memory do
is nowhere relied on, so it is not assumed."""

_READ_BEFORE = {
    "LDG": "LDG",
    "LDGSTS": "LDGSTS",
    "LDL": "LDL LDG LDS",
    "LDS": "LDS STS STG STL",
    "LDSM": "LDSM STL STS",
    "SHFL": "SHFL STG",
    "STG": "STG STL",
    "STS": "STS STL",
    "STL": "STL STG",
    "MUFU": "MUFU",
    "F2I": "F2I",
    "I2F": "I2F",
    "MOVM": "MOVM",
    "MEMBAR": "LDG LDGSTS LDL LDS LDSM STG STL STS",
}

READ_BEFORE: Mapping[str, frozenset[str]] = {later: frozenset(earlier.split()) for later, earlier in _READ_BEFORE.items()}
"""Operation -> the earlier ones that have read their sources when it has: the pairs that compilers rely on, in sixty-four cubins, LDGSTS, MOVM, STS
before LDSM and STG before SHFL in later ones, STL before STS, conversions by one opcode and what a MEMBAR waits for in others still. That two wait in
one queue says nothing more: with one wait of an S2R dropped, which overwrote the address of an LDGSTS before it, an H200 went astray; and with the
address of an LDG overwritten as soon as a later LDS was done, which no compiler does. A barrier says nothing either: behind a BAR ptxas waits for the
board of an STS before it overwrites what that stored."""

SPACING: Mapping[str, int] = {"lsu": 4, "MUFU": 8, "LDC": 8, "S2UR": 8}
"""Cycles between two operations that a pipe takes. In sixty-four cubins no two of memory come closer than 4 (2,800 pairs), 256 of 262 MUFU 8. The
hardware accepts closer ones (thirteen that were planted all kept the bits), but they wait: the later one sets its scoreboard when the pipe takes it,
and a wait two cycles after its issue comes too early."""


def spacing(arch: int) -> Mapping[str, int]:
    """Return the spacing on an architecture: MUFU come 3 cycles apart in compilers' code for sm_120."""
    return {**SPACING, "MUFU": 3} if arch >= 120 else SPACING


_PIPED = "LDG STG LDS STS LDSM STSM LDL STL LD ST LDGSTS SHFL ATOM ATOMG ATOMS RED REDG"

PIPE: Mapping[str, str] = {**dict.fromkeys(_PIPED.split(), "lsu"), "MUFU": "MUFU", "LDC": "LDC", "S2UR": "S2UR"}
"""The pipe that an operation is issued to, where the spacing is known."""

Access = Literal["r", "w"]

MEMORY: Mapping[str, tuple[str, Access]] = {
    **dict.fromkeys(("LDG", "LDGMC"), ("g", "r")),
    **dict.fromkeys(("STG", "RED", "REDG", "ATOMG"), ("g", "w")),
    **dict.fromkeys(("LDS", "LDSM"), ("s", "r")),
    **dict.fromkeys(("STS", "STSM", "ATOMS", "STAS", "REDAS"), ("s", "w")),
    "LDL": ("l", "r"),
    "STL": ("l", "w"),
    "LD": ("gsl", "r"),
    **dict.fromkeys(("ST", "ATOM"), ("gsl", "w")),
    "LDGSTS": ("gs", "w"),
}
"""Spaces (g global, s shared, l local) and whether they are written."""

PRIVATE = frozenset([*_QUEUES["xu"].split(), "LDC", "LDCU"])
"""They read registers and constants and write registers: no other thread sees whether they are still in flight."""

COLLECTIVES = frozenset(["SHFL", "VOTE", "VOTEU", "MATCH", "REDUX", "REDUXU"])
"""Operations of the whole warp: they keep their order among themselves."""

SHUFFLES = COLLECTIVES & frozenset(QUEUE)
"""Those of variable latency. They may move: the cubin's lists of them follow. A VOTEU stays: few distances of uniform predicates are known."""

WRITES_PREDICATES = frozenset(["R2P", "R2UP", "UR2UP"])
"""They set the predicates of a mask, all at once; whatever else names them so (P2R) reads them."""

WIDTHS = ((".128", 16), (".64", 8), (".U16", 2), (".S16", 2), (".U8", 1), (".S8", 1))
"""Bytes a thread of a memory access, by what its opcode contains; 4 otherwise."""

_FLOAT = frozenset(["FFMA", "FADD", "FMUL", "FSWZADD", "FFMA32I", "FADD32I", "FMUL32I", "FFMA2", "FADD2", "FMUL2"])
_INTEGER = frozenset(["VIADD", "IDP", "IDP4A"])
_HALF = frozenset(["HADD2", "HMUL2", "HFMA2", "HSET2", "HSETP2", "HMNMX2", "VHMNMX"])
_DOUBLE = frozenset(["DADD", "DMUL", "DFMA", "DSETP", "DMNMX"])
_MATRIX = frozenset(["HMMA", "IMMA", "DMMA", "BMMA"]) | GMMA
LATE_READERS = _MATRIX | {"IMADW", "FP64"}
"""Classes of latency that read registers some cycles after issue: compilers overwrite the sources of an HMMA seven cycles later at the earliest.
Uniform arithmetic reads uniform registers late too: a ULDC or UMOV overwrites them three cycles later (103 places); after one cycle an H200
reported an illegal instruction."""

_OWN_CLASS = frozenset(["R2UR", "LDGSTS", "BRA", "EXIT", "WARPGROUP", "ELECT", "VOTEU"])


def latency_class(base: str, opcode: str) -> str:
    """Return the class under which distances are learnt: instructions of one class run in one pipe."""
    if base in _OWN_CLASS or base in _MATRIX or base in _INTEGER:
        return base
    if base in ("IMAD", "IMUL"):
        return "IMADW" if ".WIDE" in opcode or ".HI" in opcode else "IMAD"
    if opcode.startswith("HFMA2.MMA"):
        return "HFMA2MMA"
    for group, name in ((_FLOAT, "FMA"), (_HALF, "FP16"), (_DOUBLE, "FP64")):
        if base in group:
            return name
    if base in QUEUE:
        return QUEUE[base]
    if base in FENCES or base.startswith("UTMA"):
        return "CTL"
    if base.startswith("U"):
        return base if base in ("ULDC", "UMOV") else "UALU"
    return "ALU"


def is_fence(base: str, text: str) -> bool:
    """Does nothing that touches memory pass this instruction? Also clocks, and what never executes: work-arounds for hardware faults."""
    return base in FENCES or text.startswith("@!PT") or "CLOCK" in text or "SR_GLOBALTIMER" in text


def width(opcode: str) -> int:
    """Return the bytes that a thread's access moves."""
    return next((size for suffix, size in WIDTHS if suffix in opcode), 4)
