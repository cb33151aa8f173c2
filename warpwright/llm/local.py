"""A language model in a folder, run in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warpwright.errors import ChatError, MissingExtra, UsageError
from warpwright.llm.chat import Message, Usage


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
