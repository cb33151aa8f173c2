"""Programs that try to bring the verifier down with them. Every one is held back here too: it ends or stays small by itself.

Text, not files, because some are two lines: `PROGRAMS[name]` is what stands in a file, `MARK` is replaced by a name that the program
gives to its processes, so that whatever is left behind can be found.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD = '''"""{doc}"""
import ctypes, os, resource, signal, socket, struct, sys, threading, time

import torch
from torch import nn

with open("/proc/self/comm", "w") as file:
    file.write("{mark}")
END = time.monotonic() + 300

'''

MODEL = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.number = 0
{constructor}

    def forward(self, x):
        self.number += 1
        if self.number > 4:
{forward}
        return torch.relu(x)
"""


@dataclass(frozen=True)
class Survivor:
    """A hostile program: what it does at import, in the constructor and in each call after the warm-up, and which statuses are right for it."""

    doc: str
    status: tuple[str, ...]
    top: str = ""
    constructor: str = ""
    forward: str = ""
    words: tuple[str, ...] = ()
    """One of these stands in the reason."""

    def text(self, mark: str) -> str:
        """Return the program's text; its processes call themselves `mark`."""
        body = MODEL.format(constructor=_indented(self.constructor or "pass", 8), forward=_indented(self.forward or "pass", 12))
        return HEAD.format(doc=self.doc, mark=mark) + self.top + "\n" + body


def _indented(text: str, columns: int) -> str:
    return "\n".join(" " * columns + line for line in text.strip("\n").split("\n"))


DEEP = r"""
start = os.getcwd()
os.mkfifo("build.log")
open(b"name\xff\n\x1b[2J", "w").close()
for _ in range(3000):
    os.mkdir("a" * 100)
    os.chdir("a" * 100)
os.chdir(start)
os.chmod("a" * 100, 0)
"""

SLEEP = "while time.monotonic() < END:\n    time.sleep(0.05)"

BOMB = """
def bomb(depth):
    while depth and time.monotonic() < END:
        try:
            if os.fork() == 0:
                depth -= 1
        except OSError:
            break
    time.sleep(max(0.0, END - time.monotonic()))
    os._exit(0)
"""

PLACES = """
import glob, shutil

def places():
    return [f"{base}/{os.path.basename(os.getcwd())}" for base in glob.glob("/dev/shm/warpwright-*") + glob.glob("/tmp/warpwright-*")]
"""

DAEMON = """
def daemon():
    if os.fork() == 0:
        os.setsid()
        for number in (1, 2, 3, 13, 15):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            time.sleep(40)
        os._exit(0)
    os.wait()
"""

MAPPING = "mmap.mmap(-1, 1 << 26)"

SEGMENTS = """
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p

def segment(size):
    at = libc.shmat(libc.shmget(0, size, 0o1600), None, 0)
    ctypes.memset(at, 1, size)
    libc.shmdt(ctypes.c_void_p(at))
"""

KERNEL = """
kernel = ctypes.CDLL(None).syscall
"""

NOISE = """
for number in range(3, 256):
    try:
        os.set_blocking(number, False)
        os.write(number, os.urandom(4096))
    except OSError:
        continue
"""

ENDLESS = """
is_pipe = lambda number: os.path.exists(f'/proc/self/fd/{number}') and 'pipe' in os.readlink(f'/proc/self/fd/{number}')
pipes = [int(name) for name in os.listdir('/proc/self/fd') if int(name) > 2 and is_pipe(int(name))]
while pipes and time.monotonic() < END:
    try:
        os.write(pipes[-1], b'{' * 65536)
    except OSError:
        pipes.pop()
"""

SURVIVORS: dict[str, Survivor] = {
    "hang_import": Survivor("Never finishes its import.", ("not_built", "timeout"), top=SLEEP, words=("s", "time")),
    "hang_constructor": Survivor("Never finishes its constructor.", ("not_built", "timeout"), constructor=SLEEP),
    "hang_call": Survivor("Never returns from a call.", ("timeout",), forward=SLEEP),
    "hang_warm_up": Survivor("Never returns from its first call.", ("timeout", "not_built"), constructor="self.number = 4", forward=SLEEP),
    "hang_holding_interpreter": Survivor(
        "Hangs in native code with the interpreter's lock held: no Python signal handler can run.",
        ("timeout",),
        forward="ctypes.PyDLL(None).sleep(30)",
    ),
    "ignore_sigterm": Survivor(
        "Ignores every signal that can be ignored, and hangs.",
        ("timeout", "wrong"),
        top="for number in range(1, 32):\n    try:\n        signal.signal(number, signal.SIG_IGN)\n    except OSError:\n        continue",
        forward=SLEEP,
    ),
    "segfault": Survivor("Reads address zero.", ("crashed",), forward="ctypes.string_at(0)", words=("SIGSEGV",)),
    "segfault_import": Survivor("Reads address zero at import.", ("crashed", "not_built"), top="ctypes.string_at(0)", words=("SIGSEGV",)),
    "abort": Survivor("Calls abort().", ("crashed",), forward="os.abort()", words=("SIGABRT",)),
    "kill_itself": Survivor("Sends itself SIGKILL.", ("crashed",), forward="os.kill(os.getpid(), signal.SIGKILL)", words=("SIGKILL",)),
    "stop_itself": Survivor("Sends itself SIGSTOP and never answers.", ("timeout",), forward="os.kill(os.getpid(), signal.SIGSTOP)"),
    "exit_zero": Survivor("os._exit(0) in a call.", ("crashed",), forward="os._exit(0)", words=("exit code 0",)),
    "exit_zero_import": Survivor("os._exit(0) at import.", ("crashed", "not_built"), top="os._exit(0)", words=("exit code 0",)),
    "system_exit_import": Survivor("SystemExit(0) at import.", ("not_built", "crashed"), top="raise SystemExit(0)", words=("SystemExit",)),
    "system_exit_call": Survivor("SystemExit(0) in a call.", ("crashed",), forward="raise SystemExit(0)", words=("SystemExit",)),
    "keyboard_interrupt": Survivor("Raises KeyboardInterrupt, which nobody has typed.", ("crashed",), forward="raise KeyboardInterrupt"),
    "recursion": Survivor(
        "Overflows the C stack.",
        ("crashed",),
        forward="sys.setrecursionlimit(10**9)\nnest = []\nfor _ in range(2 * 10**5):\n    nest = [nest]\nrepr(nest)",
        words=("SIGSEGV",),
    ),
    "fork_bomb": Survivor("Doubles itself up to 512 times in a call.", ("crashed", "cheated", "timeout", "not_built"), top=BOMB, forward="bomb(9)"),
    "fork_bomb_import": Survivor(
        "Doubles itself up to 512 times at import, before anything is locked.", ("crashed", "not_built", "timeout"), top=BOMB + "\nbomb(9)"
    ),
    "thread_bomb": Survivor(
        "Starts up to 2000 threads that sleep.",
        ("crashed", "cheated"),
        forward="for _ in range(2000):\n    threading.Thread(target=lambda: time.sleep(max(0.0, END - time.monotonic())), daemon=True).start()",
    ),
    "memory_hog": Survivor(
        "Takes memory until it is refused, or time is up.",
        ("crashed", "timeout"),
        forward="self.hoard = []\nwhile time.monotonic() < END:\n    self.hoard.append(torch.ones(1 << 24))",
    ),
    "loud": Survivor(
        "Prints 64 megabytes as fast as it can, then works on.",
        ("ok",),
        top="block = b'x' * (1 << 20)\nfor _ in range(64):\n    os.write(1, block)\n    os.write(2, block[:1024])",
    ),
    "full_disk": Survivor(
        "Fills its work folder until it is refused, and does not catch the error.",
        ("crashed",),
        forward="with open('fill', 'wb', buffering=0) as file:\n    for _ in range(4096):\n        assert file.write(bytes(1 << 20)) == 1 << 20",
        words=("space", "large", "File", "assert"),
    ),
    "remove_folders": Survivor(
        "Deletes its work folder and the folder of its outputs.",
        ("crashed", "cheated", "wrong"),
        top=PLACES,
        forward="for place in (os.getcwd(), *places()):\n    shutil.rmtree(place, ignore_errors=True)",
    ),
    "junk_in_folders": Survivor(
        "Puts folders with the names of files to come where its outputs go.",
        ("crashed", "cheated", "ok"),  # in bubblewrap it sees no other server's folders, and its own hold nothing that is read
        top=PLACES,
        forward="for place in places():\n    for n in range(400):\n        os.makedirs(f'{place}/outputs-{n % 40}-{n}', exist_ok=True)",
    ),
    "folders_without_end": Survivor(
        "Leaves 3,000 folders one in another, deeper than a path can name, and a pipe and odd names beside them; no folder may be read.",
        ("crashed", "ok"), top=DEEP,
    ),
    "error_of_megabytes": Survivor(
        "Raises 100 MB that clear the screen and say that all is well.", ("crashed",),
        forward=r'raise RuntimeError("\x1b[2J\x1b[32mstatus: ok\n" * 5_000_000)', words=(r"\x1b[2J",),
    ),
    "close_everything": Survivor("Closes all of its file descriptors.", ("crashed", "cheated", "timeout"), forward="os.closerange(0, 4096)"),
    "garbage_in_pipes": Survivor("Writes noise into every descriptor it has.", ("cheated",), forward=NOISE),
    "endless_reply": Survivor("Writes into the reply pipe without end and without a line break.", ("cheated", "timeout"), forward=ENDLESS),
    "daemon": Survivor("Leaves a daemon behind: double fork, new session, signals ignored.", ("cheated",), top=DAEMON + "\ndaemon()"),
    "daemon_in_call": Survivor("Tries the same within a call.", ("cheated", "crashed"), top=DAEMON, forward="daemon()"),
    "kill_guard": Survivor(
        "Kills its parent process, which is the one that looks after it, and hangs.",
        ("timeout", "crashed", "cheated"),
        forward="os.kill(os.getppid(), signal.SIGKILL)\n" + SLEEP,
    ),
    "group_of_its_own": Survivor(
        "Leaves a child in a process group of its own, which stops itself.",
        ("cheated",),
        top="if os.fork() == 0:\n    os.setpgid(0, 0)\n    os.kill(os.getpid(), signal.SIGSTOP)\n    time.sleep(40)\n    os._exit(0)",
    ),
    "hundred_gigabytes": Survivor("Asks for 100 GB at once.", ("crashed",), forward="torch.zeros(25 << 30)", words=("memory", "alloc")),
    "shared_mapping": Survivor(
        "Fills memory that is shared with nobody: no limit of its own data counts it.",
        ("crashed", "timeout"),
        top="import mmap",
        forward=f"self.hoard = []\nwhile time.monotonic() < END:\n    self.hoard.append({MAPPING})\n    self.hoard[-1].write(bytes(1 << 26))",
        words=("memory", "time"),
    ),
    "many_files": Survivor(
        "Fills its work folder with files, each of them small enough.",
        ("crashed",),
        forward="for number in range(2000):\n    with open(f'fill-{number}', 'wb') as file:\n        file.write(bytes(1 << 20))\n" + SLEEP,
        words=("files",),
    ),
    "shared_memory_files": Survivor(
        "Fills /dev/shm.",
        ("crashed", "cheated"),
        forward="for n in range(1000):\n    with open(f'/dev/shm/{os.getpid()}-{n}', 'wb') as file:\n        file.write(bytes(1 << 20))\n" + SLEEP,
        words=("files", "file"),
    ),
    "nameless_files": Survivor(
        "Fills files that have no name.",
        ("crashed",),
        forward="self.hoard = [os.memfd_create(str(n)) for n in range(16)]\nfor one in self.hoard:\n    os.write(one, bytes(1 << 26))\n" + SLEEP,
        words=("files",),
    ),
    "system_v": Survivor(
        "Fills System V segments and lets go of them.",
        ("crashed",),
        top=SEGMENTS,
        forward="for _ in range(16):\n    segment(1 << 26)\n" + SLEEP,
        words=("files",),
    ),
    "three_thousand_threads": Survivor(
        "Starts 3,000 threads in native code's smallest stacks.",
        ("crashed", "cheated"),
        top="threading.stack_size(1 << 16)",
        forward="for _ in range(3000):\n    threading.Thread(target=lambda: time.sleep(max(0.0, END - time.monotonic())), daemon=True).start()",
    ),
    "left_in_open_folders": Survivor(
        "Leaves files and folders where everybody may write.",
        ("ok", "cheated"),
        top="for base in ('/tmp', '/var/tmp', '/dev/shm'):\n    os.makedirs(f'{base}/{os.getpid()}-left/inner')\n"
        "    open(f'{base}/{os.getpid()}-left/inner/file', 'w').close()",
    ),
    "sleeping_destructor": Survivor(
        "Sleeps when it is thrown away, and when its process ends.",
        ("ok",),
        top="import atexit\natexit.register(time.sleep, 30)\n\nclass Sleeper:\n    def __del__(self):\n        time.sleep(30)\n\nkept = Sleeper()",
    ),
    "io_uring": Survivor(
        "Makes a ring whose requests no filter would see, at import and in a call.",
        ("ok",),
        top=KERNEL + "\nassert kernel(425, 8, ctypes.create_string_buffer(120)) == -1",
        forward="assert kernel(425, 8, ctypes.create_string_buffer(120)) == -1",
    ),
    "tracing": Survivor(
        "Traces its parent and reads its memory, at import and in a call.",
        ("ok",),
        top=KERNEL + "\ndef attempts():\n    assert kernel(101, 16, os.getppid(), 0, 0) == -1\n"
        "    assert kernel(310, os.getppid(), 0, 0, 0, 0, 0) == -1\nattempts()",
        forward="attempts()",
    ),
    "pidfd": Survivor(
        "Takes a descriptor out of its parent, and signals it through a descriptor.",
        ("ok",),
        top=KERNEL + "\nparent = os.pidfd_open(os.getppid())\nassert kernel(438, parent, 3, 0) == -1",
        forward="assert kernel(438, parent, 3, 0) == -1\nassert kernel(424, parent, 9, 0, 0) == -1",
    ),
    "huge_output": Survivor(
        "Returns 64 times as much as the original.", ("wrong", "crashed"), forward="return torch.zeros(x.shape[0] * 64, x.shape[1])"
    ),
    "endless_structure": Survivor(
        "Returns a list that contains itself.", ("wrong", "cheated", "crashed"), forward="loop = []\nloop.append(loop)\nreturn loop"
    ),
    "endless_text": Survivor(
        "Raises an error whose message is 100 MB long.", ("crashed",), forward="raise ValueError('long ' * 20_000_000)", words=("ValueError",)
    ),
    "unprintable_error": Survivor(
        "Raises an error that cannot be printed.",
        ("crashed",),
        top="class Mute(Exception):\n    def __str__(self):\n        raise SystemExit(0)\n    __repr__ = __str__",
        forward="raise Mute()",
    ),
    "syntax_error": Survivor("Is no Python.", ("not_built",), top="this is no python", words=("SyntaxError", "syntax")),
    "null_bytes": Survivor("Holds a null byte.", ("not_built",), top="x = 1 \0", words=("null", "Error")),
    "no_entry": Survivor("Removes its own entry.", ("not_built",), top="import atexit\nraise ImportError('no')", words=("no",)),
}
"""By name. The END of the head, 300 seconds, is longer than every limit that the tests set, also where a limit stands still while neighbours time."""

KERNEL_TEXT = """
source = 'extern "C" __global__ void bad(long* where) { %s }'

def launch(body, pointer):
    kernel = torch.cuda._compile_kernel(source % body, "bad")
    kernel((1, 1, 1), (1, 1, 1), (pointer,))
"""

GPU_SURVIVORS: dict[str, Survivor] = {
    "gpu_memory": Survivor(
        "Takes the GPU's memory until it is refused.",
        ("crashed",),
        forward="self.hoard = []\nwhile time.monotonic() < END:\n    self.hoard.append(torch.ones(1 << 29, device=x.device))",
        words=("memory",),
    ),
    "gpu_memory_held": Survivor(
        "Takes most of the GPU's memory, holds it and answers.",
        ("ok",),
        constructor="self.hoard = [torch.ones(1 << 28, device='cuda') for _ in range(80)]",
    ),
    "gpu_endless": Survivor(
        "Launches a kernel that never ends.",
        ("timeout",),
        top=KERNEL_TEXT,
        forward="launch('volatile long* p = where; while (*p >= 0) {}', torch.zeros(1, dtype=torch.int64, device=x.device))",
    ),
    "gpu_endless_sleep": Survivor("Has the GPU wait for a day.", ("timeout",), forward="torch.cuda._sleep(1 << 47)"),
    "gpu_illegal_address": Survivor(
        "Writes to an address that is nobody's.",
        ("crashed",),
        top=KERNEL_TEXT,
        forward="launch('where[1L << 50] = 1;', torch.zeros(1, dtype=torch.int64, device=x.device))\ntorch.cuda.synchronize()",
    ),
    "gpu_assertion": Survivor(
        "Reads beyond a tensor's end by an index.",
        ("crashed",),
        forward="x[torch.full((1,), 1 << 30, device=x.device)].sum().item()",
    ),
    "gpu_forked": Survivor(
        "Forks at import and uses the GPU in the child as well.",
        ("cheated", "crashed", "not_built"),
        top="if os.fork() == 0:\n    torch.ones(8, device='cuda').sum().item()\n    time.sleep(40)\n    os._exit(0)",
    ),
}
"""The same on a GPU."""

SLOW_SURVIVORS: dict[str, Survivor] = {
    "loud_ten": Survivor(
        "Prints ten gigabytes as fast as it can, then works on.",
        ("ok",),
        top="block = b'x' * (1 << 20)\nfor _ in range(10 << 10):\n    os.write(1, block)",
    ),
    "sleeping_threads_in_groups": Survivor(
        "Leaves eight daemons in groups of their own, which start one another anew.",
        ("cheated",),
        top=DAEMON + "\nfor _ in range(8):\n    daemon()",
    ),
}
"""Those that take long."""
