"""One chat client for any OpenAI-compatible endpoint, and `Replay`, its stand-in, which records and plays answers by the prompt's hash.

chat = OpenAI("https://host/v1", "model-name")           # key from WARPWRIGHT_API_KEY, else OPENAI_API_KEY; never logged
text = chat.ask([{"role": "user", "content": "..."}])
chat = Local("models/small")                             # a model of transformers' in a folder, without an endpoint
chat = Metered(chat, Limits(tokens=200_000))             # counts tokens and dollars, stops before a limit is passed, logs every question
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from warpwright.base import digest, now
from warpwright.errors import ChatError, LimitReached, MissingExtra, UsageError

Message = Mapping[str, str]
"""`role` (system, user, assistant) and `content`."""

KEY_VARIABLES = ("WARPWRIGHT_API_KEY", "OPENAI_API_KEY")
RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504})
ANSWER_BYTES = 16 << 20


@dataclass(frozen=True)
class Usage:
    """Tokens of one question and its answer."""

    asked: int
    answered: int

    @classmethod
    def estimated(cls, messages: Sequence[Message], answer: str) -> Usage:
        """Return what a question took where the endpoint does not say: a token has about four letters of English, and three of code."""
        return cls(sum(len(message["content"]) for message in messages) // LETTERS + 1, len(answer) // LETTERS + 1)


    @classmethod
    def told(cls, usage: Any) -> Usage | None:
        """Return what an endpoint says of it; None where that cannot be, as it is counted against a limit."""
        told = usage if isinstance(usage, dict) else {}
        asked, answered = told.get("prompt_tokens"), told.get("completion_tokens")
        if not isinstance(asked, int) or not isinstance(answered, int) or isinstance(asked, bool) or isinstance(answered, bool):
            return None
        return cls(asked, answered) if 0 < asked <= MOST_TOLD and 0 <= answered <= MOST_TOLD else None


LETTERS = 3
MOST_TOLD = 100_000_000
"""Tokens of one question that an endpoint may speak of."""


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


class Refused(Exception):
    """An endpoint answered with an HTTP status that is no success."""

    def __init__(self, code: int, words: str, retry_after: str | None) -> None:
        super().__init__(code)
        self.code, self.words, self.retry_after = code, words, retry_after


class Broken(Exception):
    """A connection could not be made, or ended in the middle."""


Post = Callable[[str, str, Mapping[str, Any], float], bytes]
"""post(url, key, body, timeout) -> the answer's bytes; raises Refused or Broken. Nothing is tried twice."""


def by_sdk(url: str, key: str, body: Mapping[str, Any], timeout: float) -> bytes:
    """Post by the openai SDK."""
    import openai

    with openai.OpenAI(base_url=url, api_key=key or "none", timeout=timeout, max_retries=0) as client:
        headers = {} if key else {"Authorization": openai.Omit()}
        try:
            return client.chat.completions.with_raw_response.create(**body, extra_headers=headers).http_response.content
        except openai.APIStatusError as error:
            raise Refused(error.status_code, error.response.text[:2000], error.response.headers.get("Retry-After")) from error
        except openai.APIConnectionError as error:  # timeouts are some
            raise Broken(str(error.__cause__ or error) or type(error).__name__) from error


def by_library(url: str, key: str, body: Mapping[str, Any], timeout: float) -> bytes:
    """Post by Python's own library, where the SDK is not installed."""
    import http.client  # here: with ssl they take a tenth of a second, and most who read this module ask no model
    import urllib.error
    import urllib.request

    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    request = urllib.request.Request(f"{url.rstrip('/')}/chat/completions", json.dumps(body).encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            data = bytes(answer.read(ANSWER_BYTES))
            if answer.length and len(data) < ANSWER_BYTES:  # a read of so many bytes at most does not tell that the rest never came
                raise http.client.IncompleteRead(data, answer.length)
            return data
    except urllib.error.HTTPError as error:
        raise Refused(error.code, error.read(2000).decode(errors="replace"), error.headers.get("Retry-After")) from error
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:  # the last: it hung up in the middle
        raise Broken(str(getattr(error, "reason", error)) or type(error).__name__) from error


def usual_post() -> Post:
    """Return the SDK's way of posting where it is installed (the extra `llm`), else the library's."""
    return by_sdk if importlib.util.find_spec("openai") is not None else by_library


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
    post: Post = field(default_factory=lambda: usual_post(), repr=False)  # by its name, so that tests may exchange it
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


@dataclass
class Local:
    """A causal language model in a folder, as transformers keeps one, run in this process; nothing is downloaded."""

    folder: str
    temperature: float = 0.0
    most_tokens: int = 8192
    timeout: float = 300.0
    """Seconds after which an answer ends where it stands."""
    usage: Usage | None = None
    """Of the last answer."""
    loaded: tuple[Any, Any] | None = field(default=None, repr=False)
    """The model and its tokenizer, from the first question on."""
    turns: Callable[[], AbstractContextManager[Callable[[], None]]] = field(default=lambda: nullcontext(lambda: None), repr=False)
    """Entered for an answer. What it gives is called before each token: it may let somebody else have the device for a while."""
    name: str = field(default="", init=False)
    """The folder's own: where it lies makes no other model of it."""

    def __post_init__(self) -> None:
        self.name = Path(self.folder).resolve().name
        if not Path(self.folder, "config.json").is_file():
            seen = "saw no config.json there" if Path(self.folder).is_dir() else "saw no such folder"
            raise UsageError(f"expected a model of transformers' in {self.folder}, {seen}", "download one first; none is fetched from here")

    def ask(self, messages: Sequence[Message]) -> str:
        """Return the model's answer. Raises ChatError where the question leaves no room for one."""
        import torch

        try:
            model, tokenizer = self.loaded = self.loaded or self._load()
            ids = tokenizer(self._text(tokenizer, messages), return_tensors="pt", add_special_tokens=not tokenizer.chat_template).input_ids
        except MissingExtra:
            raise
        except Exception as error:  # no weights, no memory, a template that knows no role "system"
            raise ChatError(f"expected a model in {self.name} that takes the question, saw {str(error).strip()[:300]}") from error
        asked = ids.shape[1]
        room = getattr(model.config, "max_position_embeddings", None)
        most = self.most_tokens if room is None else min(self.most_tokens, room - asked)
        if most <= 0:
            wanted = f"expected a question of fewer than {room} tokens, the context of {self.name}"
            raise ChatError(f"{wanted}, saw {asked}", "take a model with a longer one")
        drawn = {"do_sample": True, "temperature": self.temperature} if self.temperature else {"do_sample": False}
        ids = ids.to(model.device)
        settings = {"max_new_tokens": most, "max_time": self.timeout, "pad_token_id": _pad_of(tokenizer), **drawn}
        try:
            with torch.inference_mode(), self.turns() as give_way:
                made = model.generate(ids, attention_mask=torch.ones_like(ids), logits_processor=[_before_each_token(give_way)], **settings)
        except RuntimeError as error:  # such as memory that does not suffice for a long question
            raise ChatError(f"expected an answer of {self.name}, saw {str(error).strip()[:300]}", "a shorter question may fit") from error
        answer = made[0, asked:]
        self.usage = Usage(asked, len(answer))
        return str(tokenizer.decode(answer, skip_special_tokens=True))

    def _load(self) -> tuple[Any, Any]:
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            raise MissingExtra(error.name or "transformers", "learn", "a model in a folder") from error
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model: Any = AutoModelForCausalLM.from_pretrained(self.folder, dtype="auto", local_files_only=True)
        return model.to(device).eval(), AutoTokenizer.from_pretrained(self.folder, local_files_only=True)

    def _text(self, tokenizer: Any, messages: Sequence[Message]) -> str:
        if tokenizer.chat_template:
            return str(tokenizer.apply_chat_template([dict(message) for message in messages], tokenize=False, add_generation_prompt=True))
        return "\n\n".join(message["content"] for message in messages) + "\n\n"


def _before_each_token(call: Callable[[], None]) -> Any:
    """Return what transformers asks for each token's scores, and leaves them as they are: when the device is idle it makes a call."""
    import torch
    from transformers import LogitsProcessor

    class BeforeEachToken(LogitsProcessor):  # type: ignore[misc]  # transformers is not installed where types are checked
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            if scores.device.type == "cuda":
                torch.cuda.synchronize(scores.device)
            call()
            return scores

    return BeforeEachToken()


def _pad_of(tokenizer: Any) -> int | None:
    return tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id


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
        if self.live is not None:
            without_torn_line(self.path)
        for number, line in enumerate(self.path.read_text().splitlines(), 1):
            try:
                row: Any = json.loads(line)
                if "failure" in row and "prompt" in row:
                    continue
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


@dataclass(frozen=True)
class Limits:
    """What a run may spend on a model; None: no limit of that kind. Prices are dollars for a million tokens."""

    tokens: int | None = None
    dollars: float | None = None
    questions: int | None = None
    price_asked: float = 0.0
    price_answered: float = 0.0
    failures: int = 3
    """So many questions in a row without an answer, and the endpoint is taken to be dead."""


@dataclass
class Metered:
    """A chat under limits, which writes each question, its answer and what it cost to a file that `Replay` can play."""

    chat: Chat
    limits: Limits = Limits()
    log: Path | None = None
    most_tokens: int = 8192
    """An answer has at most so many."""
    tokens: int = 0
    dollars: float = 0.0
    questions: int = 0
    failed: int = 0
    """Questions in a row that had no answer."""
    unanswered: int = 0
    """All that had none."""
    answered: dict[str, list[_Answered]] = field(default_factory=dict, repr=False)
    """What the log has, by question: a run that was cut short goes on where it stood, and pays for no answer again. What these took counts once more
    in the run that uses them, so that a run in pieces keeps its limits, too."""

    def __post_init__(self) -> None:
        if self.log is not None and self.log.exists():
            without_torn_line(self.log)
            self.answered = _answers_of(self.log)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.chat.name

    def ask(self, messages: Sequence[Message]) -> str:
        """Return the model's answer. Raises ChatError; LimitReached where the answer could pass a limit."""
        key = prompt_digest(self.name, messages)
        if self.answered.get(key):
            before = self.answered[key].pop(0)
            self.tokens, self.dollars = self.tokens + before.tokens, self.dollars + before.dollars
            if isinstance(self.chat, Recording):
                self.chat.played += 1  # it was asked this before the run was cut short
            return before.answer
        self._expect_room(messages)
        began = time.monotonic()
        self.questions += 1
        try:
            answer = self.chat.ask(messages)
        except ChatError as error:
            self.failed += 1
            self.unanswered += 1
            self._write(messages, {"failure": scrubbed(str(error)), "seconds": round(time.monotonic() - began, 3)})
            raise
        self.failed = 0
        usage = getattr(self.chat, "usage", None) or Usage.estimated(messages, answer)
        cost = self._cost(usage)
        self.tokens, self.dollars = self.tokens + usage.asked + usage.answered, self.dollars + cost
        spent = {"asked_tokens": usage.asked, "answered_tokens": usage.answered, "dollars": cost, "seconds": round(time.monotonic() - began, 3)}
        self._write(messages, {"answer": answer, **spent})
        return answer

    def _cost(self, usage: Usage) -> float:
        return (usage.asked * self.limits.price_asked + usage.answered * self.limits.price_answered) / 1e6

    def _expect_room(self, messages: Sequence[Message]) -> None:
        """The dearest answer has to fit: a limit is never passed, not even by the last question."""
        most = Usage(Usage.estimated(messages, "").asked, self.most_tokens)
        limits = self.limits
        if self.failed >= limits.failures:
            raise LimitReached(f"expected {self.name} to answer, saw {self.failed} questions in a row without an answer", "is it up?")
        for what, spent, more, most_allowed in (
            ("questions", self.questions, 1, limits.questions), ("tokens", self.tokens, most.asked + most.answered, limits.tokens),
            ("dollars", self.dollars, self._cost(most), limits.dollars),
        ):  # fmt: skip
            if most_allowed is not None and spent + more > most_allowed:
                spending = f"{spent:g} of {most_allowed:g} {what} are spent, and the next question may take {more:g}"
                raise LimitReached(f"the model's limit is reached: {spending}", "raise the limit to go on; what was answered is kept")

    def _write(self, messages: Sequence[Message], row: Mapping[str, Any]) -> None:
        if self.log is None:
            return
        key = prompt_digest(self.name, messages)
        whole = {"prompt": key, "model": self.name, "messages": [dict(m) for m in messages], **row, "when": now()}
        with self.log.open("a") as file:
            file.write(scrubbed(json.dumps(whole)) + "\n")


def without_torn_line(log: Path) -> None:
    """Take the last line off a log where a process that was killed had not ended it: its question is asked again."""
    data = log.read_bytes()
    if data and not data.endswith(b"\n"):
        with log.open("r+b") as file:
            file.truncate(data.rfind(b"\n") + 1)


@dataclass(frozen=True)
class _Answered:
    """An answer of a log, and what it took."""

    answer: str
    tokens: int
    dollars: float


def _answers_of(log: Path) -> dict[str, list[_Answered]]:
    """Return the answers of a log by question, in their order; raise UsageError for a file that is none."""
    answers: dict[str, list[_Answered]] = {}
    for number, line in enumerate(log.read_text().splitlines(), 1):
        try:
            row = json.loads(line)
            if "failure" not in row:
                tokens = row.get("asked_tokens", 0) + row.get("answered_tokens", 0)
                answers.setdefault(row["prompt"], []).append(_Answered(row["answer"], tokens, row.get("dollars", 0.0)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"expected prompt and answer in line {number} of {log}, saw {line[:80]!r}", "move it away to begin anew") from error
    return answers


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


@dataclass
class Recording:
    """A recorded conversation, played in its order whatever is asked: what is asked depends on times that no two runs share."""

    path: Path
    name: str = "recording"
    played: int = 0
    answers: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            rows = [json.loads(line) for line in self.path.read_text().splitlines()]
            self.answers = [row["answer"] for row in rows if "failure" not in row]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"expected a recorded conversation in {self.path}, saw {error!r}", "a line each, with its answer") from error

    def ask(self, messages: Sequence[Message]) -> str:
        """Return the next answer. Raises ChatError after the last one."""
        if self.played >= len(self.answers):
            raise ChatError(f"expected at most {len(self.answers)} questions, as {self.path} has answers, saw one more", "record a longer one")
        self.played += 1
        return self.answers[self.played - 1]


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
