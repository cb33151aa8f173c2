"""The secrets of this process's environment: they go into no log, and to no worker."""

from __future__ import annotations

import os
import re

_SECRET = re.compile(
    r"(^|_)(\w*KEYS?|\w*TOKENS?|\w*SECRETS?|\w*PASSWORDS?|\w*PASSWD|\w*PASSPHRASE|PASS|PAT|DSN|COOKIES?|CREDENTIALS?|AUTH|BEARER)(_|$)", re.I
)
_KEY_LIKE = re.compile(
    r"(?<![\w/.-])(sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|hf_\w{20,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.)|-----BEGIN [A-Z ]*PRIVATE KEY-----|\w://[^/\s:@]*:[^/\s@]+@"
)
"""Values that are keys by their form, whatever they are called: of model services, of code hosts, JSON web tokens, addresses with a password."""


def secrets() -> dict[str, str]:
    """Return the environment's variables that are secrets by their names or by their values' form: they go into no log, and to no worker."""
    return {name: value for name, value in os.environ.items() if value and (_SECRET.search(name) or _KEY_LIKE.search(value))}


SHORTEST_SECRET = 8
"""Letters: a shorter value would be found in words that are none."""


def scrubbed(text: str) -> str:
    """Return a text with the values of secrets in the environment replaced by their names."""
    for name, value in secrets().items():
        text = text.replace(value, f"<{name}>") if len(value) >= SHORTEST_SECRET else text
    return text
