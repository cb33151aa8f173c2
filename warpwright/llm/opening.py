"""The model that a command's option names."""

from __future__ import annotations

from pathlib import Path

from warpwright.errors import UsageError
from warpwright.llm.chat import Chat
from warpwright.llm.endpoint import OpenAI
from warpwright.llm.local import Local
from warpwright.llm.recorded import Recording, Replay


def open_chat(spec: str, record: str | None = None) -> Chat:
    """Return the model that `replay:FILE`, `play:FILE`, `hf:FOLDER` or `openai:URL,MODEL` names; with `record`, answers are kept in that file."""
    kind, _, rest = spec.partition(":")
    if kind == "replay" and rest:
        return Replay(Path(rest))
    if kind == "play" and rest:
        return Recording(Path(rest))
    live: Chat
    if kind == "hf" and rest:
        live = Local(rest)
    else:
        url, comma, model = rest.rpartition(",")
        if kind != "openai" or not comma or not model:
            known = "replay:FILE, play:FILE, hf:FOLDER or openai:URL,MODEL"
            raise UsageError(f"expected --model {known}, saw {spec!r}", "as in openai:http://localhost:8000/v1,my-model")
        live = OpenAI(url, model)
    return Replay(Path(record), live=live) if record else live
