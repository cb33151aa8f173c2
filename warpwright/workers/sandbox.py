"""Worker processes with limits: started, asked, timed, and killed with all their descendants. The parent's side.

The protocol is one JSON line each way over a private pair of pipes. Each request carries a nonce that its reply must echo; anything
else in the reply pipe, at any time, is a forgery. A timed call is nine bytes in and a few more out, and is timed by the parent's clock.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeVar, cast

from warpwright.errors import CallRaised, WorkerDied, WorkerProtocol, WorkerTimeout
from warpwright.workers import bubblewrap, caches, device_yield, environment, leftovers, placement
from warpwright.workers.fork_server import ForkServer, the_fork_server
from warpwright.workers.freezer import Freezer
from warpwright.workers.guard import Guard
from warpwright.workers.limits import Limits
from warpwright.workers.process import Process
from warpwright.workers.procfs import parent_of, state_of
from warpwright.workers.tensors import exchange
from warpwright.workers.tensors.turns import Turn
from warpwright.workers.tensors.worker_memory import WorkerMemory

Role = Literal["judge", "candidate", "baseline"]
REPLY_BYTES = 64 << 20
LENGTH = struct.Struct("=I")
WAITED = struct.Struct("=d")
OWN_FAILURE = 70
"""Exit code of a worker whose own main raised (`zygote._worker`): its log says what."""
OWED_SECONDS = 1e-3  # the same, whether a worker that was stopped from outside has stopped itself once more
START_SECONDS = 30.0  # for a process to be forked, and bubblewrap with it: 0.1 s, seconds on a machine with five times as much to do as it can
WORKING_FAULTS = 20.0  # page faults a second; a compiler takes hundreds to thousands, whoever waits, spins or launches kernels takes none
TRIES, TRY_SECONDS = 3, 0.5  # to start a worker, and the pause before it is tried again, which grows
GLANCE_SECONDS = 0.02  # how often a waiting parent looks whether somebody wants to time
FIRST_USER, USERS = 700_000_000, 1_000_000_000


Asked = TypeVar("Asked", bound=Callable[..., Any])


def _held(function: Asked) -> Asked:
    """Have a worker asked by one thread at a time."""

    @functools.wraps(function)
    def alone(worker: Worker, *args: Any, **kwargs: Any) -> Any:
        with worker.asking:
            return function(worker, *args, **kwargs)

    return cast(Asked, alone)


class Worker(Process):
    """One worker process. `folder` is its work folder, `exchange` the folder that its tensors go through."""

    def __init__(self, role: Role, device: str = "cpu", limits: Limits | None = None) -> None:
        limits = (limits or Limits()).filled()
        self.role, self.device, self.limits = role, device, limits
        self._closed = False
        self.away = 0.0
        """Seconds for which this process was stopped, while its answer was awaited, for somebody else's timing."""
        self.until = math.inf
        """No answer is awaited after this (`time.monotonic()`), however long the process was stopped."""
        server = the_fork_server()
        number = next(server.numbers)
        self.asking = threading.RLock()
        """Held by the thread whose answer is awaited."""
        self.thread = threading.get_ident()
        """Of who made it."""
        self.folder, self.exchange = (os.path.join(base, f"{role}-{number}") for base in (server.folder, server.exchange))
        untrusted = role == "candidate"
        limited = untrusted and limits.isolation != "none"
        user = FIRST_USER + int.from_bytes(os.urandom(8)) % USERS if limited and limits.isolation == "auto" and server.can_change_user else None
        self.scratch = os.path.join(server.exchange, f"read-{number}")
        """Where the parent puts what it read out of the worker's memory."""
        for folder, mode in ((self.folder, 0o755), (self.exchange, 0o700 if role == "judge" and device == "cpu" else 0o755), (self.scratch, 0o700)):
            os.mkdir(folder, mode)
            if user is not None and folder != self.scratch:
                os.chown(folder, user, user)
        wrapped = limited and limits.isolation == "auto"
        self._unwrapped = bubblewrap.missing(device) if wrapped else f"the isolation asked for is {limits.isolation!r}"
        self._start(server, user, limited)
        self.isolation: tuple[str, ...] = ()
        self.slowest_warm_up = 0.0
        """Seconds."""
        self.loaded: dict[str, tuple[Any, Any]] = {}
        """By entry: whose state was loaded last, and which; none after any other writing of a state."""
        self.filtered = limited and limits.isolation == "auto"
        """Whether the system call filter is to be set at `lock`."""
        self.pid = int(self.guard.message(max(limits.call_seconds, START_SECONDS))["pid"])
        self._guard_pid = parent_of(self.pid)
        self.call_seconds = 0.0
        self.calm_seconds = 0.0
        self.at_rest = 0.0
        """CPU seconds of a process that is not stopped between its turns: when it last answered, or was looked at (`worked`)."""
        self._greeting: dict[str, Any] | None = None
        self.waits: list[float] = []
        """Of calls that were held: seconds of the longest wait for the device after the first one, -1 if it was not told (`inside.runner`)."""
        self.freezer = Freezer(self.pid)
        self.memory = WorkerMemory(self.pid, self.scratch, self._died)
        device_yield.living.add(self)

    def _start(self, server: ForkServer, user: int | None, limited: bool) -> None:
        own_end, guards_end = socket.socketpair()
        request_read, self._request = os.pipe()
        self._reply, reply_write = os.pipe()
        apart = self.limits.isolation == "auto" and server.can_change_user  # else a candidate could write into what trusted workers share
        order = {
            "role": self.role, "device": self.device, "folder": self.folder, "exchange": self.exchange, "user": user, "limit": limited,
            "memory": self.limits.memory_bytes, "processes": self.limits.processes, "file_bytes": self.limits.file_bytes,
            "disk": self.limits.disk_bytes, "filter": limited and self.limits.isolation == "auto",
            "log_bytes": self.limits.log_bytes, "stops": self.freezes, "bubblewrap": self.role == "candidate" and not self._unwrapped,
            "reads": list(self.limits.reads), "cores": placement.others() if self.device != "cpu" and placement.kept_free() else [],
            "environment": environment.of_worker(self.folder, self.role != "candidate", apart),
        }  # fmt: skip
        try:
            socket.send_fds(server.socket, [json.dumps(order).encode()], [guards_end.fileno(), request_read, reply_write])
        finally:
            guards_end.close()
            os.close(request_read)
            os.close(reply_write)
        self.guard = Guard(own_end)
        os.set_blocking(self._reply, False)

    @property
    def fence(self) -> str:
        """How the process is fenced in, in words, as far as it has told."""
        return bubblewrap.words(self.isolation, self._unwrapped or f"it is a {self.role}'s process, and no candidate's")

    @property
    def reads(self) -> bool:
        """Whether what a call left is read out of the stopped process."""
        return self.freezes and self.memory.reachable

    # -- requests

    def greet(self) -> dict[str, Any]:
        """Return what the process says of itself when it has come up. Raises WorkerDied if it has not: no line of a program has run until then."""
        if self._greeting is None:
            self._greeting = self.request("hello")
            self.contexts_before = self.contexts() if self.device != "cpu" else None
        return self._greeting

    @_held
    def request(self, op: str, timeout: float | None = None, **fields: Any) -> dict[str, Any]:
        """Send one request and return its reply. A reply with an "error" is returned, not raised."""
        if self.role == "judge":
            device_yield.give_way()  # before it sends kernels, which run on when it is stopped
        nonce = os.urandom(8).hex()
        self._expect_silence()
        self.thaw()
        self._send(json.dumps({"op": op, "nonce": nonce, **fields}).encode() + b"\n")
        line = self._read_line(time.monotonic() + (timeout or self.limits.call_seconds), op)
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self._forged(f"expected a JSON line in answer to {op!r}, saw {line[:100]!r}") from error
        if not isinstance(reply, dict) or reply.pop("nonce", None) != nonce:
            raise self._forged(f"the answer to {op!r} does not carry the request's nonce")
        self._end_turn()
        return reply

    @_held
    def go(self, timeout: float | None = None, spin: float = 0.0, idle: float = math.inf, hold: bool = False) -> float:
        """Make the turn that was prepared; return its seconds by this process's clock. Raises CallRaised if a call did.

        The clock runs from before the process is let go until it has answered and stopped itself, or been made to: what it answered is read
        out of the stopped process. `spin`: seconds for which to wait busily for the answer: asleep, this process would be woken 20 to 100 us
        after it on a virtual machine. `idle`: seconds without a sign of a compiler at work (`work_done`) after which nothing more is awaited.
        `hold`: on a GPU, where nothing is read out of a stopped process, it copies what came out before it answers, and hands that over; the
        copy is in the seconds.
        """
        nonce = os.urandom(8)
        token, wanted = (b"h" if hold and self.device != "cpu" else b"g") + nonce, b"d" + nonce
        self._expect_silence()
        limit = min(timeout or self.limits.call_seconds, max(self.until - time.monotonic(), OWED_SECONDS))
        poll = select.poll()
        poll.register(self._reply, select.POLLIN)
        self.freezer.look()
        start, away = time.perf_counter_ns(), self.away
        self._send(token)
        self.thaw()
        slow = device_yield.held() or self.freezer.owes
        while spin and not slow and not poll.poll(0) and time.perf_counter_ns() - start < spin * 1e9:
            pass
        if idle < limit:
            ready = self._wait_while_it_works(poll, time.monotonic() + limit, idle)
        else:
            ready = self._wait(poll, time.monotonic() + limit) if slow else bool(poll.poll(limit * 1000))
        if not ready:
            raise self._timed_out("a call", min(limit, idle))
        answer = self._read_some()
        end = time.perf_counter_ns()
        if answer == b"e" + nonce:
            self._end_turn()
            raise CallRaised(str(self.request("error").get("error", "")))
        deadline = time.monotonic() + limit
        while answer[: len(wanted)] == wanted and not self._is_whole(answer):  # a description that is longer than a pipe
            if len(answer) > REPLY_BYTES or not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise self._forged("the answer to a call is longer than it may be, or does not end")
            answer += self._read_some()
            end = time.perf_counter_ns()
        if answer[: len(wanted)] != wanted or len(answer) != 9 + LENGTH.size + LENGTH.unpack_from(answer, 9)[0]:
            raise self._forged("the answer to a call does not have the nonce and the form that it should")
        if self._end_turn():
            end = time.perf_counter_ns()
        places = answer[9 + LENGTH.size :]
        if hold and self.device != "cpu" and len(places) == WAITED.size:
            self.waits.append(WAITED.unpack(places)[0])
            places = b""
        self.memory.take_answer(places)
        self.call_seconds = (end - start) * 1e-9 - (self.away - away)
        return self.call_seconds

    def _is_whole(self, answer: bytes) -> bool:
        return answer[:1] != b"d" or (len(answer) >= 9 + LENGTH.size and len(answer) >= 9 + LENGTH.size + LENGTH.unpack_from(answer, 9)[0])

    def _end_turn(self) -> bool:
        """The process has answered: see that it stops. Whether that took so long that it counts as time of the call."""
        if not self.freezes:
            self.at_rest = self.cpu_clock()
            return False
        if not self.freezer.end_turn():
            self._end_unstopped()
        return self.freezer.late

    def lay_out(
        self, entry: str | None, inputs: Any, slot: str = "new", poison: int = 0, flush: bool = False, spin: float = 0.0, wait: float = 0.0,
        draws: int | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Make the next call's inputs ready; return the worker's reply. `inputs`: as the judge shipped them; None: a call of nothing, in which a GPU
        is at work for `wait` seconds. `draws`: where torch's generators begin.

        Where the parent may write to the worker's memory, the worker is told the form alone. The values come while it is stopped, and the clock
        runs before it is let go. Then the caches are flushed, by the parent, too.
        """
        common = {"entry": entry, "slot": slot, "poison": poison, "spin": spin, **({"wait": wait} if wait else {})}
        common |= {"draws": draws} if draws is not None else {}
        if inputs is None or not self.reads:
            relayed, copies = self._relayed(inputs)
            reply = self.request("prepare", self.limits.build_seconds, inputs=relayed, flush=flush, **common)
            for path in copies:
                os.unlink(path)
            return reply
        reply = self.request("prepare", self.limits.build_seconds, inputs=exchange.forms_of(inputs), flush=False, **common)
        if "error" not in reply:
            if flush:
                self.calm()
            self.memory.fill(inputs, reply.get("places"))
            if flush:
                caches.flush()
        return reply

    def line_up(self, entry: str, inputs: Any, seeds: Sequence[int], turn: Turn | None, spin: float = 0.0) -> dict[str, Any]:
        """Make a turn of one call for each of `seeds` ready, each on a variant of the inputs; return the worker's reply.

        As in `lay_out` the worker is told the form alone where its memory can be written to: `turn` has the values. None: it makes them itself.
        """
        common = {"entry": entry, "seeds": list(seeds), "spin": spin}
        if turn is None or not self.reads:
            return self.with_tensors("line_up", self.limits.build_seconds, inputs=inputs, **common)
        reply = self.request("line_up", self.limits.build_seconds, inputs=exchange.forms_of(inputs), **common)
        if "error" not in reply:
            self.calm()
            self.memory.fill_turn(turn, reply.get("places"))
        return reply

    def _relayed(self, tree: Any) -> tuple[Any, list[str]]:
        """Return a shipped value with its files copied to where this worker may read them, and the copies. On CUDA nothing is."""
        return exchange.relay(tree, self.exchange) if self.device == "cpu" else (tree, [])

    def with_tensors(self, op: str, timeout: float | None = None, **fields: Any) -> dict[str, Any]:
        """Send a request that holds tensors that the judge has shipped; the copies of its files are gone when it has been answered."""
        relayed, copies = self._relayed(fields)
        try:
            return self.request(op, timeout, **relayed)
        finally:
            for path in copies:
                with contextlib.suppress(OSError):
                    os.unlink(path)

    def _send(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._request, data) :]
        except BrokenPipeError:
            raise self._died() from None

    def _expect_silence(self) -> None:
        if self._closed:
            raise WorkerDied("this worker was closed")
        try:
            early = os.read(self._reply, 64)
        except BlockingIOError:
            return
        raise self._forged(f"the reply pipe held {early!r} before anything was asked") if early else self._died()

    def _wait(self, poll: select.poll, deadline: float) -> bool:
        """Wait until the worker has written something, or the time is up; whoever wants to time goes first."""
        while True:
            away = device_yield.give_way()
            self.away += away
            deadline += away
            left = max(0.0, min(deadline, self.until) - time.monotonic())
            glance = OWED_SECONDS if self.freezer.owes else GLANCE_SECONDS if device_yield.held() else left
            if poll.poll(min(left, glance) * 1000):
                return True
            self.freezer.pay()
            if time.monotonic() >= min(deadline, self.until):
                return False

    def _wait_while_it_works(self, poll: select.poll, deadline: float, idle: float) -> bool:
        """Wait as `_wait` does, in stretches of `idle` seconds; the first without a sign of work is the last."""
        while True:
            away, before = self.away, self.work_done()
            if self._wait(poll, min(deadline, time.monotonic() + idle)):
                return True
            deadline += self.away - away
            if time.monotonic() >= deadline or 0 <= self.work_done() - before < WORKING_FAULTS * idle:  # less than 0: a child of its has ended
                return False

    def _read_some(self) -> bytes:
        try:
            data = os.read(self._reply, 1 << 20)
        except BlockingIOError:
            return b""
        if not data:
            raise self._died()
        return data

    def _read_line(self, deadline: float, op: str) -> bytes:
        poll = select.poll()
        poll.register(self._reply, select.POLLIN)
        pieces: list[bytes] = []
        size = 0
        while True:
            if not self._wait(poll, deadline):
                raise self._timed_out(f"{op!r}", 0)
            data = self._read_some()
            pieces.append(data)
            size += len(data)
            if data.endswith(b"\n"):
                return b"".join(pieces)
            if size > REPLY_BYTES or b"\n" in data:
                raise self._forged(f"the answer to {op!r} is longer than one line of {REPLY_BYTES} bytes")

    def release_memory(self) -> None:
        """Have a runner on a GPU let go of inputs, outputs and cached memory."""
        if self.device != "cpu" and self.alive:
            self.request("release_memory")

    def trim(self) -> None:
        """Have a worker on a GPU give back memory that it only caches, unless it stands still or another thread awaits its answer.

        Raises WorkerError, as any request does.
        """
        if self.device == "cpu" or not self.alive or self.still or not self.asking.acquire(blocking=False):
            return
        try:
            self.request("trim")
        finally:
            self.asking.release()

    # -- ends

    def _forged(self, what: str) -> WorkerProtocol:
        self.close()
        return WorkerProtocol(what, "only the runner may write to the reply pipe")

    def _timed_out(self, what: str, seconds: float) -> WorkerTimeout:
        self.close()
        took = f" within {seconds:g} s" if seconds else " in time"
        return WorkerTimeout(f"expected an answer to {what}{took}, saw none; the process was killed", "raise the time limit if it is honestly slow")

    def _died(self) -> WorkerDied:
        self.guard.wait_for_the_end()
        self.close()
        return WorkerDied(f"the worker process ended: {self._ending()}", self.guard.reason)

    def _ending(self) -> str:
        code = self.guard.exit_code
        if code is None:
            return "exit code unknown"
        if code == OWN_FAILURE:
            return f"exit code {code}; the end of its log: {self.log().strip()[-600:]}"
        if code >= 0:
            return f"exit code {code}"
        return f"signal {next((known.name for known in signal.Signals if known == -code), -code)}"

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        if self._closed or self.guard.exit_code is not None:
            return False
        return state_of(f"/proc/{self.pid}") not in ("", "Z", "X")

    def log(self) -> str:
        """Return what the worker printed so far, its middle left out beyond the limit."""
        return self.guard.log(ended=self._closed)

    def close(self) -> None:
        """Kill the worker with all its descendants and remove its folders. May be called again."""
        if self._closed:
            return
        self._closed = True
        self.guard.kill()
        os.close(self._request)
        os.close(self._reply)
        for folder in (self.folder, self.exchange, self.scratch):
            leftovers.remove_tree(folder)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def up(start: Callable[[], Worker]) -> Worker:
    """Return a worker that has come up, or the last of TRIES that have not.

    On an H200 five of some 300 ended before that, for want of memory of the GPU, which other processes held.
    """
    for number in range(1, TRIES):
        worker = start()
        try:
            worker.greet()
            return worker
        except WorkerDied:
            worker.close()
            time.sleep(number * TRY_SECONDS)
    return start()


@contextlib.contextmanager
def worker(role: Role, device: str = "cpu", limits: Limits | None = None) -> Iterator[Worker]:
    """Start a worker for the length of a `with` block."""
    started = Worker(role, device, limits)
    try:
        yield started
    finally:
        started.close()
