"""An endpoint in OpenAI's form that answers as a script says, and fails in each way that endpoints do: for tests of searches that ask a model."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Endpoint(ThreadingHTTPServer):
    """Answers as a script says: an answer, or a way to fail."""

    script: list[str]
    seen: int


def _hangs(handler: BaseHTTPRequestHandler, words: str) -> None:
    time.sleep(4.0)


def _drops(handler: BaseHTTPRequestHandler, words: str) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"message": {"content": "half of')
    handler.wfile.flush()
    handler.connection.close()


def _says(handler: BaseHTTPRequestHandler, words: str, code: int = 200) -> None:
    body = words.encode()
    handler.send_response(code)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _streams(handler: BaseHTTPRequestHandler, told: dict[str, Any], words: str) -> None:
    """Answer in events: two halves of the words, then the end."""
    half = len(words) // 2
    parts = [({"role": "assistant", "content": words[:half]}, None), ({"content": words[half:]}, None), ({}, "stop")]
    events = [{**told, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": one, "finish_reason": end}]} for one, end in parts]
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.end_headers()
    handler.wfile.write("".join(f"data: {json.dumps(event)}\n\n" for event in events).encode() + b"data: [DONE]\n\n")


FAILS: dict[str, Callable[[BaseHTTPRequestHandler, str], None]] = {
    "hangs": _hangs,
    "drops": _drops,
    "garbage": lambda handler, words: _says(handler, "<html>bad gateway</html>"),
    "refuses": lambda handler, words: _says(handler, "no", 403),
    "busy": lambda handler, words: _says(handler, "busy", 503),
}


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen += 1
        said = self.server.script.pop(0) if self.server.script else "busy"
        usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
        told = {"id": f"answer-{self.server.seen}", "created": 0, "model": asked.get("model", ""), "usage": usage}
        with contextlib.suppress(OSError):  # the client has gone
            if asked.get("stream") and said not in FAILS:
                _streams(self, told, said)
            else:
                choices = [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}]
                FAILS.get(said, _says)(self, json.dumps({**told, "object": "chat.completion", "choices": choices}))

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def opened() -> Iterator[Endpoint]:
    """Give an endpoint on this machine that has no script yet."""
    made = Endpoint(("127.0.0.1", 0), Handler)
    made.script, made.seen = [], 0
    threading.Thread(target=made.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        made.shutdown()
        made.server_close()
