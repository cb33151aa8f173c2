"""One chat client for any OpenAI-compatible endpoint, and `Replay`, its stand-in, which records and plays answers by the prompt's hash.

chat = OpenAI("https://host/v1", "model-name")           # key from WARPWRIGHT_API_KEY, else OPENAI_API_KEY; never logged
text = chat.ask([{"role": "user", "content": "..."}])
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from warpwright.base import digest
from warpwright.errors import UsageError, WarpwrightError

Message = Mapping[str, str]
"""`role` (system, user, assistant) and `content`."""

KEY_VARIABLES = ("WARPWRIGHT_API_KEY", "OPENAI_API_KEY")
RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504})
ANSWER_BYTES = 16 << 20


class ChatError(WarpwrightError):
    """A model gave no answer."""


class Chat(Protocol):
    """Text in, text out."""

    name: str

    def ask(self, messages: Sequence[Message]) -> str:
        """Return the model's answer. Raises ChatError."""
        ...


def _key() -> str:
    return next((os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)), "")


def prompt_digest(model: str, messages: Sequence[Message]) -> str:
    """Return the key of a question to a model."""
    return digest(model, json.dumps([dict(message) for message in messages], sort_keys=True, ensure_ascii=False))


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

    def ask(self, messages: Sequence[Message]) -> str:
        """Return the model's answer. Raises ChatError."""
        body = json.dumps(
            {"model": self.name, "messages": [dict(m) for m in messages], "temperature": self.temperature, "max_tokens": self.most_tokens}
        ).encode()
        said = ""
        for attempt in range(self.attempts):
            pause = self.wait * 2**attempt
            try:
                return self._content(self._post(body))
            except urllib.error.HTTPError as error:
                said = f"HTTP status {error.code}: {self._clean(error.read(2000).decode(errors='replace'))}"
                if error.code not in RETRIED:
                    raise ChatError(f"expected an answer from {self.url}, saw {said}", _advice(error.code)) from None
                pause = _retry_after(error.headers.get("Retry-After"), pause)
            except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
                said = self._clean(str(getattr(error, "reason", error)) or type(error).__name__)
            if attempt + 1 < self.attempts:
                self.sleep(pause)
        raise ChatError(
            f"expected an answer from {self.url} in {self.attempts} attempts, saw at last: {said}", "is the address right and the server up?"
        )

    def _post(self, body: bytes) -> bytes:
        if not self.url.startswith(("http://", "https://")):
            raise UsageError(f"expected an address that begins with http:// or https://, saw {self.url!r}", "as in https://host/v1")
        headers = {"Content-Type": "application/json"}
        if _key():
            headers["Authorization"] = f"Bearer {_key()}"
        request = urllib.request.Request(f"{self.url.rstrip('/')}/chat/completions", body, headers, method="POST")
        with urllib.request.urlopen(request, timeout=self.timeout) as answer:
            return bytes(answer.read(ANSWER_BYTES))

    def _content(self, data: bytes) -> str:
        try:
            content = json.loads(data)["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError):
            content = None
        if not isinstance(content, str):
            raise ChatError(
                f"expected choices[0].message.content in the answer of {self.url}, saw {self._clean(data[:200].decode(errors='replace'))!r}"
            )
        return content

    def _clean(self, text: str) -> str:
        """Return a server's words without the key, which some servers repeat."""
        text = " ".join(text.split())[:500]
        return text.replace(_key(), "<key>") if _key() else text


def _retry_after(header: str | None, otherwise: float) -> float:
    return min(60.0, float(header)) if header and header.replace(".", "", 1).isdigit() else otherwise


def _advice(code: int) -> str:
    if code in (401, 403):
        return f"set {KEY_VARIABLES[0]} to a key of this endpoint"
    return "is the address right? it is the part before /chat/completions" if code == 404 else "the server refused the request as it is"


@dataclass
class Replay:
    """Answers from a JSONL file, by the hash of model and messages; with `live`, what is missing is asked and recorded."""

    path: Path
    name: str = "replay"
    live: Chat | None = None
    known: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.live is not None:
            self.name = self.live.name
        if not self.path.exists():
            if self.live is None:
                raise UsageError(f"expected a file of recorded answers, saw no {self.path}", "record one with --model openai:URL,MODEL --record FILE")
            return
        for number, line in enumerate(self.path.read_text().splitlines(), 1):
            try:
                row: Any = json.loads(line)
                self.known[row["prompt"]] = row["answer"]
                if self.live is None and row.get("model"):
                    self.name = str(row["model"])
            except (ValueError, KeyError, TypeError) as error:
                raise UsageError(
                    f"expected prompt and answer in line {number} of {self.path}, saw {line[:80]!r}", "was it recorded by warpwright?"
                ) from error

    def ask(self, messages: Sequence[Message]) -> str:
        """Return the recorded answer. Raises ChatError where there is none."""
        key = prompt_digest(self.name, messages)
        if key in self.known:
            return self.known[key]
        if self.live is None:
            raise ChatError(f"expected a recorded answer to the prompt {key} of {self.name} in {self.path}, saw none", "record it with --record")
        answer = self.live.ask(messages)
        self.known[key] = answer
        with self.path.open("a") as file:
            file.write(json.dumps({"prompt": key, "model": self.name, "answer": answer}) + "\n")
        return answer


def open_chat(spec: str, record: str | None = None) -> Chat:
    """Return the model that `replay:FILE` or `openai:URL,MODEL` names; with `record`, answers are kept in that file."""
    kind, _, rest = spec.partition(":")
    if kind == "replay" and rest:
        return Replay(Path(rest))
    url, comma, model = rest.rpartition(",")
    if kind != "openai" or not comma or not model:
        raise UsageError(f"expected --model replay:FILE or openai:URL,MODEL, saw {spec!r}", "as in openai:http://localhost:8000/v1,my-model")
    chat = OpenAI(url, model)
    return Replay(Path(record), live=chat) if record else chat
