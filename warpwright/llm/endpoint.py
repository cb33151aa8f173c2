"""A client of any OpenAI-compatible endpoint."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpwright.errors import ChatError, UsageError
from warpwright.llm import posts
from warpwright.llm.chat import Message, Usage
from warpwright.llm.posts import Broken, Post, Refused

KEY_VARIABLES = ("WARPWRIGHT_API_KEY", "OPENAI_API_KEY")
RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504})


def _key() -> str:
    return next((os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)), "")


@dataclass
class OpenAI:
    """A client of POST {url}/chat/completions. It retries what may pass (429, 5xx, broken connections), waiting longer each time."""

    url: str
    name: str
    temperature: float = 0.0
    most_tokens: int = 8192
    timeout: float = 300.0
    """Seconds for one attempt."""
    attempts: int = 4
    wait: float = 1.0
    """Seconds before the second attempt; doubled for each one after, unless the server says how long."""
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    post: Post = field(default_factory=lambda: posts.usual_post(), repr=False)  # by its name, so that tests may exchange it
    usage: Usage | None = None
    """Of the last answer, where the endpoint tells."""

    def __post_init__(self) -> None:
        if "@" in self.url.partition("://")[2].partition("/")[0]:  # it would stand in messages and reports
            raise UsageError("expected an address without a name and a password", f"keys are taken from {KEY_VARIABLES[0]} alone")
        if not self.url.startswith(("http://", "https://")):
            raise UsageError(f"expected an address that begins with http:// or https://, saw {self.url!r}", "as in https://host/v1")

    def ask(self, messages: Sequence[Message]) -> str:
        """Return the model's answer. Raises ChatError."""
        body = {"model": self.name, "messages": [dict(m) for m in messages], "temperature": self.temperature, "max_tokens": self.most_tokens}
        complaint = ""
        for attempt in range(self.attempts):
            pause = self.wait * 2**attempt
            try:
                return self._content(self.post(self.url, _key(), body, self.timeout))
            except Refused as error:
                complaint = f"HTTP status {error.code}: {self._clean(error.words)}"
                if error.code not in RETRIED:
                    raise ChatError(f"expected an answer from {self.url}, saw {complaint}", _advice(error.code)) from None
                pause = _retry_after(error.retry_after, pause)
            except Broken as error:
                complaint = self._clean(str(error))
            if attempt + 1 < self.attempts:
                self.sleep(pause)
        raise ChatError(
            f"expected an answer from {self.url} in {self.attempts} attempts, saw at last: {complaint}", "is the address right and the server up?"
        )

    def _content(self, data: bytes) -> str:
        self.usage = None
        try:
            body = json.loads(data)
            content = _joined(body["choices"][0]["message"]["content"])
        except (ValueError, KeyError, IndexError, TypeError, RecursionError):
            content = None
        else:
            self.usage = Usage.told(body.get("usage"))
        if content is None:
            raise ChatError(
                f"expected choices[0].message.content in the answer of {self.url}, saw {self._clean(data[:200].decode(errors='replace'))!r}"
            )
        return content.encode(errors="replace").decode()  # half of a surrogate pair, which JSON can hold, can be in no file

    def _clean(self, text: str) -> str:
        """Return a server's words without the key, which some servers repeat."""
        text = " ".join(text.split())[:500]
        return text.replace(_key(), "<key>") if _key() else text


def _joined(content: Any) -> str | None:
    """Return an answer's text, which some endpoints give in parts; None for what is none."""
    if isinstance(content, str):
        return content
    parts = [part["text"] for part in content if part["type"] in ("text", "output_text")] if isinstance(content, list) else []
    return "".join(parts) if parts and all(isinstance(part, str) for part in parts) else None


def _retry_after(header: str | None, otherwise: float) -> float:
    return min(60.0, float(header)) if header and header.replace(".", "", 1).isdigit() else otherwise


def _advice(code: int) -> str:
    if code in (401, 403):
        return f"set {KEY_VARIABLES[0]} to a key of this endpoint"
    return "is the address right? it is the part before /chat/completions" if code == 404 else "the server refused the request as it is"
