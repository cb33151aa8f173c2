"""The chat client against a local server, and replaying."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from warpwright.errors import ChatError, UsageError
from warpwright.llm import posts
from warpwright.llm.chat import Usage
from warpwright.llm.endpoint import OpenAI
from warpwright.llm.local import Local
from warpwright.llm.metered import Limits, Metered
from warpwright.llm.opening import open_chat
from warpwright.llm.recorded import Replay

ASKED = [{"role": "user", "content": "two and two?"}]


class Server(HTTPServer):
    replies: list[tuple[int, str, dict[str, str]]]
    seen: list[tuple[str, str | None, Any]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, self.headers.get("Authorization"), body))
        code, text, headers = self.server.replies.pop(0)
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(params=["sdk", "library"])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server, asked by either way of posting."""
    if request.param == "sdk":
        pytest.importorskip("openai")
    monkeypatch.setattr(posts, "usual_post", lambda: {"sdk": posts.by_sdk, "library": posts.by_library}[request.param])
    made = Server(("127.0.0.1", 0), Handler)
    made.replies, made.seen = [], []
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def answered(text: str) -> tuple[int, str, dict[str, str]]:
    return 200, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}), {}


def client(server: Server, **more: Any) -> OpenAI:
    return OpenAI(f"http://127.0.0.1:{server.server_port}/v1", "small", sleep=lambda _: None, **more)


def test_an_answer(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_API_KEY", "secret-key")
    server.replies = [answered("four")]
    assert client(server).ask(ASKED) == "four"
    path, authorization, body = server.seen[0]
    assert path == "/v1/chat/completions" and authorization == "Bearer secret-key"
    assert body["model"] == "small" and body["messages"] == ASKED


def test_no_key_no_header(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARPWRIGHT_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server.replies = [answered("four")]
    client(server).ask(ASKED)
    assert server.seen[0][1] is None


def test_what_may_pass_is_tried_again(server: Server) -> None:
    waited: list[float] = []
    server.replies = [(503, "busy", {}), (429, "slow down", {"Retry-After": "7"}), answered("four")]
    chat = client(server)
    chat.sleep = waited.append
    assert chat.ask(ASKED) == "four"
    assert waited == [1.0, 7.0]


def test_attempts_end(server: Server) -> None:
    server.replies = [(500, "broken", {})] * 2
    with pytest.raises(ChatError, match=r"2 attempts.*500: broken"):
        client(server, attempts=2).ask(ASKED)


@pytest.mark.parametrize(("code", "advice"), [(401, "WARPWRIGHT_API_KEY"), (404, "chat/completions"), (400, "refused")])
def test_what_cannot_pass_is_told_at_once_and_without_the_key(server: Server, monkeypatch: pytest.MonkeyPatch, code: int, advice: str) -> None:
    monkeypatch.setenv("WARPWRIGHT_API_KEY", "secret-key")
    server.replies = [(code, "bad key secret-key", {})]
    with pytest.raises(ChatError, match=advice) as caught:
        client(server).ask(ASKED)
    assert "secret-key" not in str(caught.value) and len(server.seen) == 1


def test_nonsense_is_an_error(server: Server) -> None:
    server.replies = [(200, '{"choices": []}', {})]
    with pytest.raises(ChatError, match="choices"):
        client(server).ask(ASKED)


def test_an_answer_in_parts_is_one_text(server: Server) -> None:
    parts = [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "fo"}, {"type": "text", "text": "ur"}]
    server.replies = [(200, json.dumps({"choices": [{"message": {"content": parts}}]}), {})]
    assert client(server).ask(ASKED) == "four"


@pytest.mark.parametrize(
    "content", [None, 4, [], {}, [{}], [4], [{"type": "text", "text": None}], [{"type": "image"}]], ids=lambda content: json.dumps(content)
)
def test_content_that_is_no_text_is_an_error(content: Any, server: Server) -> None:
    server.replies = [(200, json.dumps({"choices": [{"message": {"content": content}}]}), {})]
    with pytest.raises(ChatError, match="content"):
        client(server).ask(ASKED)


def test_nesting_without_end_is_an_error(server: Server) -> None:
    server.replies = [(200, "[" * 200_000, {})]
    with pytest.raises(ChatError, match="content"):
        client(server).ask(ASKED)


def test_half_of_a_surrogate_pair_does_not_come_in(server: Server) -> None:
    server.replies = [(200, '{"choices": [{"message": {"content": "fo\\ud800ur \\ud83d\\ude00"}}]}', {})]
    assert client(server).ask(ASKED) == "fo?ur \U0001f600"


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -5, "completion_tokens": 1}, {"prompt_tokens": True, "completion_tokens": 1}, {"prompt_tokens": 1}, [], "5", None,
        {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": 10**30, "completion_tokens": 1},
    ],
)  # fmt: skip
def test_a_count_that_cannot_be_is_estimated_instead(usage: Any, server: Server) -> None:
    server.replies = [(200, json.dumps({"choices": [{"message": {"content": "four"}}], "usage": usage}), {})]
    metered = Metered(client(server), Limits(tokens=100_000))
    metered.ask(ASKED)
    estimate = Usage.estimated(ASKED, "four")
    assert metered.tokens == estimate.asked + estimate.answered


def test_nobody_there() -> None:
    with pytest.raises(ChatError, match="2 attempts"):
        OpenAI("http://127.0.0.1:9", "small", attempts=2, sleep=lambda _: None).ask(ASKED)
    with pytest.raises(UsageError, match="http"):
        OpenAI("ftp://host", "small").ask(ASKED)


def test_recorded_answers_play_again(server: Server, tmp_path: Path) -> None:
    server.replies = [answered("four")]
    file = tmp_path / "answers.jsonl"
    live = open_chat(f"openai:http://127.0.0.1:{server.server_port}/v1,small", str(file))
    assert live.ask(ASKED) == live.ask(ASKED) == "four"
    assert len(server.seen) == 1
    again = open_chat(f"replay:{file}")
    assert again.name == "small" and again.ask(ASKED) == "four"
    with pytest.raises(ChatError, match="recorded"):
        again.ask([{"role": "user", "content": "else?"}])


@pytest.mark.parametrize("spec", ["replay:", "openai:http://host/v1", "else", "openai:,"])
def test_wrong_names_of_models(spec: str) -> None:
    with pytest.raises(UsageError, match="replay:FILE"):
        open_chat(spec)


def test_wrong_replay_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="saw no"):
        Replay(tmp_path / "none")
    (tmp_path / "bad").write_text("{}\n")
    with pytest.raises(UsageError, match="line 1"):
        Replay(tmp_path / "bad")


# --- a model in a folder --------------------------------------------------------------------------------------------------------------------


def saved_model(folder: Path, context: int = 256) -> str:
    """Write a tiny model of random weights that knows bytes; return its folder."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    import torch

    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    plain = tokenizers.Tokenizer(tokenizers.models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    plain.pre_tokenizer, plain.decoder = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False), tokenizers.decoders.ByteLevel()
    plain.add_special_tokens(["<end>"])
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}
    config = transformers.LlamaConfig(vocab_size=257, max_position_embeddings=context, eos_token_id=256, bos_token_id=None, **sizes)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="<end>").save_pretrained(folder)
    return str(folder)


def test_a_model_in_a_folder_answers_and_counts_its_tokens(tmp_path: Path) -> None:
    chat = open_chat(f"hf:{saved_model(tmp_path / 'small')}")
    assert isinstance(chat, Local) and chat.name == "small"
    answer = chat.ask(ASKED)
    assert isinstance(answer, str) and chat.ask(ASKED) == answer, "the likeliest answer is always the same"
    assert chat.usage is not None and chat.usage.asked == len("two and two?\n\n") and 0 < chat.usage.answered <= 256 - chat.usage.asked
    metered = Metered(chat, Limits(tokens=20_000), tmp_path / "log.jsonl")
    metered.ask(ASKED)
    assert metered.tokens == chat.usage.asked + chat.usage.answered, "its own count, not an estimate"
    recorded = open_chat(f"hf:{tmp_path / 'small'}", str(tmp_path / "answers.jsonl"))
    assert recorded.ask(ASKED) == open_chat(f"replay:{tmp_path / 'answers.jsonl'}").ask(ASKED) == answer


def test_a_question_that_is_too_long_for_a_model_in_a_folder_has_no_answer(tmp_path: Path) -> None:
    chat = Local(saved_model(tmp_path / "small", context=32))
    with pytest.raises(ChatError, match="fewer than 32 tokens"):
        chat.ask([{"role": "user", "content": "x" * 40}])
    assert chat.ask([{"role": "user", "content": "x"}]) is not None


def test_a_model_in_a_folder_gives_way_before_each_token(tmp_path: Path) -> None:
    chat = Local(saved_model(tmp_path / "small", context=32))
    plain = chat.ask(ASKED)
    calls: list[str] = []

    @contextmanager
    def turns() -> Iterator[Callable[[], None]]:
        calls.append("held")
        yield lambda: calls.append("token")
        calls.append("let go")

    chat.turns = turns
    assert chat.ask(ASKED) == plain and chat.usage is not None
    assert calls == ["held", *["token"] * chat.usage.answered, "let go"]


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    for folder, seen in ((tmp_path / "none", "no such folder"), (tmp_path, r"no config\.json")):
        with pytest.raises(UsageError, match=seen):
            open_chat(f"hf:{folder}")
