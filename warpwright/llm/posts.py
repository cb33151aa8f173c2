"""One post to an endpoint: by the openai SDK where it is installed, else by Python's own library. Nothing is tried twice here."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from typing import Any

ANSWER_BYTES = 16 << 20


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
