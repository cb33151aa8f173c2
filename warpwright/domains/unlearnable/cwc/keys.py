"""Key files: 256 random bits, readable by their owner alone. A key is never printed, logged or put on a command line."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from warpwright.domains.unlearnable.cwc.bank import fingerprint
from warpwright.errors import UsageError

_HEADER = "warpwright-key-1 "
BYTES = 32


def new_key(path: Path) -> str:
    """Write a fresh key to a new file with mode 0600 and return its fingerprint."""
    key = secrets.token_bytes(BYTES)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise UsageError(f"expected a new file for the key, saw that {path} exists", "a key cannot be created again: choose another name") from error
    except OSError as error:
        raise UsageError(f"cannot create the key file {path}: {error.strerror}", "choose a folder that exists and is writable") from error
    with os.fdopen(handle, "w") as file:
        file.write(f"{_HEADER}{key.hex()}\n")
        file.flush()
        os.fsync(file.fileno())
    return fingerprint(key)


def read_key(path: Path) -> bytes:
    """Return the key in a file that `new_key` wrote."""
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the key file {path}: {error}", "make one with `warpwright key new --out FILE`") from error
    try:
        key = bytes.fromhex(text.removeprefix(_HEADER).strip()) if text.startswith(_HEADER) else b""
    except ValueError:
        key = b""
    if len(key) != BYTES:
        form = f"one line `{_HEADER.strip()} <64 hexadecimal digits>`"
        raise UsageError(f"expected a key file of {form}, saw something else in {path}", "check the file")
    return key
