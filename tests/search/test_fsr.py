"""FSR against a scripted model and an evaluator that measures nothing: gates, repair, reinforcement, limits, and endpoints that fail."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import scripted_endpoint
from scripted_endpoint import Endpoint
from toy_space import TASK, Toy, measured

from warpwright.archive import Archive
from warpwright.base import Action, Budget, Candidate, Record, Source, Verdict
from warpwright.errors import ChatError, NotApplicable, UsageError
from warpwright.llm.chat import Message
from warpwright.llm.endpoint import OpenAI
from warpwright.llm.recorded import Recording
from warpwright.loop import Outcome, optimize
from warpwright.search.llm.fsr import Fsr, Options
from warpwright.secrets import secrets
from warpwright.space import Space, Traits, Writing

MARKS = ("__global__", "run")


def text(body: str) -> str:
    return f"__global__ void k() {{}}\nvoid run() {{ /* {body} */ }}\n"


def fenced(body: str) -> str:
    return f"Here is it.\n```cuda\n{text(body)}```\nIt is faster."


class Write:
    name = "write"
    traits = Traits("S")

    def sites(self, ir: str) -> Iterator[Action]:
        return iter(())

    def apply(self, ir: str, action: Action) -> str:
        if ir != "given":
            raise NotApplicable("expected the given text")
        return str(dict(action.params)["text"])


def space() -> Space[str]:
    def lower(ir: str, actions: tuple[Action, ...]) -> Candidate:
        return Candidate(Source("python", (("optimized.py", ir),)), "cpu", actions)

    writing = Writing("Add.", "def reference(): ...", "given", MARKS, lambda code: Action("write", "", (("text", code),)))
    return Space("given", (Write(),), lower, writing=writing)


class Gates(Toy):
    """Programs say themselves what becomes of them: `broken`, `wrong`, or their speed-up."""

    def record(self, candidate: Candidate) -> Record:
        code = candidate.source.text
        self.seen.append(code)
        if "broken" in code:
            verdict = Verdict(False, "not_built", "nvcc refused k.cu:\nk.cu(3): warning: unused\nk.cu(7): error: expected a semicolon")
            return Record(TASK, candidate, self.device, "not_built", verdict, detail=verdict.reason, versions=self.versions)
        if "wrong" in code:
            verdict = Verdict(False, "wrong", "out: error max 3.0 at element 17, allowed 1e-6", case="huge")
            return Record(TASK, candidate, self.device, "wrong", verdict, detail=verdict.reason, versions=self.versions)
        speedup = float(code.partition("speed=")[2].partition(" ")[0] or 1)
        return Record(TASK, candidate, self.device, "ok", Verdict(True, "ok"), measured(speedup), versions=self.versions)


@dataclass
class Script:
    """A model that says what it is told to, and remembers what it was asked."""

    answers: list[str | Exception]
    name: str = "script"
    asked: list[str] = field(default_factory=list)

    def ask(self, messages: Sequence[Message]) -> str:
        self.asked.append(messages[-1]["content"])
        answer = self.answers.pop(0) if self.answers else ChatError("nothing more to say")
        if isinstance(answer, Exception):
            raise answer
        return answer


def run(chat: Any, options: str, log: Path | None = None, archive: Archive | None = None) -> tuple[Outcome, Fsr]:
    search = Fsr(chat, Options.parse(options), log)
    return optimize(TASK, space(), Gates(), search, Budget(None), archive), search


def test_gates_repair_reinforcement_and_the_best_ever() -> None:
    chat = Script([
        fenced("broken 1"), fenced("wrong 2"),  # level 1: none passes
        fenced("speed=1.5 a"), "I cannot help with that.",  # its repair round
        fenced("speed=4.0 b"), fenced("speed=2.0 c"),  # level 2
        fenced("speed=3.0 d"), fenced("wrong e"),  # level 3 is worse than level 2
    ])  # fmt: skip
    outcome, _ = run(chat, "candidates=2,depth=3,max_repair=2")
    assert outcome.best is not None and outcome.best.speedup == 4.0 and "speed=4.0" in outcome.best.candidate.source.text
    assert len(chat.asked) == 8 and outcome.proposals == 7
    first, repair, faster, last = chat.asked[0], chat.asked[2], chat.asked[4], chat.asked[6]
    assert "candidate 1 of 2" in first and "given" in first and "def reference" in first
    assert 'gate "functional validation"' in repair and "element 17" in repair and "Case: huge" in repair, "the one that came furthest is repaired"
    assert "failed at compilation" in repair, "the other one stands in the history"
    assert "speed=1.5 a" in faster and "1.50 times" in faster and "Time of a call" in faster
    assert "speed=4.0 b" in last and "speed=3.0" not in last, "the next level begins with the best of all"


def test_contrast_shows_two_programs_of_different_speed() -> None:
    answers = [fenced(f"speed={text}") for text in ("1.5 a", "1.55 b", "3.0 c", "3.1 d", "3.2 e", "3.3 f")]
    chat = Script(list(answers))
    run(chat, "candidates=2,depth=3,contrast=1")
    assert "This candidate is correct" in chat.asked[2], "1.5 and 1.55 are of one bucket"
    last = chat.asked[4]
    assert "speed=3.1 d" in last and "speed=1.55 b" in last and "3.10 times" in last and "1.55 times" in last and "differences" in last
    plain = Script(list(answers))
    run(plain, "candidates=2,depth=3")
    assert not any("The slower one" in question for question in plain.asked)


def test_a_compilers_words_are_cut_to_the_first_errors() -> None:
    chat = Script([fenced("broken"), fenced("speed=2 x")])
    run(chat, "candidates=1,depth=1,max_repair=1")
    assert "error: expected a semicolon" in chat.asked[1]


def test_repair_rounds_are_bounded() -> None:
    chat = Script([fenced(f"broken {n}") for n in range(50)])
    outcome, _ = run(chat, "candidates=2,depth=3,max_repair=2")
    assert len(chat.asked) == 6 and outcome.best is not None and outcome.best.candidate.proposer == "baseline:eager"


def test_the_history_does_not_grow_with_the_run() -> None:
    chat = Script([fenced(f"speed={1 + n} x{n} {'y' * 400}") for n in range(60)])
    run(chat, "candidates=3,depth=12")
    assert max(map(len, chat.asked)) < 2 * len(chat.asked[3])


@pytest.mark.parametrize(("limit", "said"), [("questions=3", "questions"), ("tokens=20000", "tokens"), ("dollars=0.1,price_answered=5", "dollars")])
def test_limits_are_never_passed(limit: str, said: str) -> None:
    chat = Script([fenced(f"speed={n} x" + "z" * 3000) for n in range(1, 60)])
    outcome, search = run(chat, f"candidates=4,depth=9,{limit}")
    assert said in search.stopped and outcome.best is not None
    assert search.meter is not None and 1 <= len(chat.asked) < 20
    assert search.meter.questions <= 3 or said != "questions"
    assert search.meter.tokens <= 20000 or said != "tokens"
    assert search.meter.dollars <= 0.1


def test_the_log_is_played_again_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    answers = [fenced("speed=1.5 a"), fenced("wrong b"), fenced("speed=4.0 c"), fenced("speed=2.0 d")]
    log = tmp_path / "run.chat.jsonl"
    with Archive(tmp_path) as archive:
        broken = Script([*answers[:3], *[ChatError("gone")] * 9])
        first, search = run(broken, "candidates=2,depth=3", log, archive)
        assert "gone" in search.stopped or "in a row" in search.stopped
        assert first.best is not None and first.best.speedup == 4.0, "what was answered before is proposed all the same"
        again = Script([answers[3], fenced("wrong e"), fenced("speed=5.0 f")])
        second, search = run(again, "candidates=2,depth=3", log, archive)
    assert len(again.asked) == 3 and search.meter is not None and search.meter.questions == 3 and not search.stopped
    assert second.best is not None and second.best.speedup == 5.0 and second.proposals == 6
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [row["answer"] for row in rows if "answer" in row][:4] == answers and any("failure" in row for row in rows)


def test_a_line_that_a_killed_process_did_not_end_is_asked_again(tmp_path: Path) -> None:
    log = tmp_path / "run.chat.jsonl"
    answers = [fenced("speed=1.5 a"), fenced("speed=4.0 b")]
    run(Script(list(answers)), "candidates=2,depth=1", log)
    whole = log.read_bytes()
    log.write_bytes(whole[:-40])
    again = Script([answers[1]])
    outcome, search = run(again, "candidates=2,depth=1", log)
    assert len(again.asked) == 1 and outcome.best is not None and outcome.best.speedup == 4.0 and not search.stopped
    assert [json.loads(line)["answer"] for line in log.read_text().splitlines()] == answers
    log.write_bytes(whole + b"no line of ours\n")
    with pytest.raises(UsageError, match="line 3"):
        run(Script([]), "candidates=2,depth=1", log)


def test_a_question_that_was_asked_twice_is_answered_twice_and_paid_twice(tmp_path: Path) -> None:
    log = tmp_path / "run.chat.jsonl"
    talk = ["I cannot.", "Neither now.", fenced("speed=2.0 a")]  # without a program the repair round asks the first question again
    _, first = run(Script(list(talk)), "candidates=1,depth=1,max_repair=2", log)
    again = Script([])
    outcome, second = run(again, "candidates=1,depth=1,max_repair=2", log)
    assert not again.asked and outcome.best is not None and outcome.best.speedup == 2.0
    assert first.meter is not None and second.meter is not None and second.meter.tokens == first.meter.tokens


def test_a_recorded_conversation_goes_on_where_it_stood(tmp_path: Path) -> None:
    answers = [fenced("speed=1.5 a"), fenced("wrong b"), fenced("speed=4.0 c"), fenced("speed=2.0 d")]
    played = tmp_path / "played.jsonl"
    played.write_text("".join(json.dumps({"answer": answer}) + "\n" for answer in answers))
    log = tmp_path / "run.chat.jsonl"
    with Archive(tmp_path) as archive:
        run(Recording(played), "candidates=2,depth=1", log, archive)
        outcome, search = run(Recording(played), "candidates=2,depth=2", log, archive)
    assert outcome.best is not None and outcome.best.speedup == 4.0 and not search.stopped
    assert [json.loads(line)["answer"] for line in log.read_text().splitlines()] == answers


def test_secrets_do_not_reach_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_API_KEY", "sk-very-secret-1234")
    log = tmp_path / "log.jsonl"
    run(Script([fenced("speed=2 sk-very-secret-1234"), ChatError("refused sk-very-secret-1234")]), "candidates=2,depth=1", log)
    assert "sk-very-secret-1234" not in log.read_text() and "<WARPWRIGHT_API_KEY>" in log.read_text()


def test_options_are_told_what_is_known() -> None:
    assert Options.parse("") == Options() and Options.parse("candidates=7, dollars=0.5") == Options(candidates=7, dollars=0.5)
    for wrong in ("candidate=3", "depth=x", "depth=-1", "depth"):
        with pytest.raises(UsageError, match="candidates=4"):
            Options.parse(wrong)


def test_a_space_of_rewrites_alone_is_refused() -> None:
    bare = Space("given", (Write(),), space().lower)
    with pytest.raises(UsageError, match=r"\.cu"):
        optimize(TASK, bare, Gates(), Fsr(Script([])), Budget(None))


# --- endpoints that fail --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with scripted_endpoint.opened() as made:
        yield made


def test_an_endpoint_that_fails_in_every_way_is_survived(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.script = [
        "hangs", fenced("speed=1.5 a"), "drops", fenced("wrong b"), "garbage", "busy", fenced("speed=3.0 c"), "refuses", fenced("speed=2.0 d"),
    ]  # fmt: skip
    chat = OpenAI(f"http://127.0.0.1:{endpoint.server_port}/v1", "small", timeout=2.0, attempts=3, wait=0.01)
    outcome, search = run(chat, "candidates=3,depth=2,max_repair=0", tmp_path / "log.jsonl")
    assert outcome.best is not None and outcome.best.speedup == 3.0 and search.meter is not None
    assert search.meter.tokens == 150 * 4, "the endpoint's own count"
    failures = [row["failure"] for line in (tmp_path / "log.jsonl").read_text().splitlines() if "failure" in (row := json.loads(line))]
    assert len(failures) == 2 and "choices" in failures[0] and "403" in failures[1]


def test_a_run_that_an_endpoint_broke_off_goes_on_and_loses_nothing(endpoint: Endpoint, tmp_path: Path) -> None:
    answers = [fenced(f"speed={1.0 + n} x") for n in range(6)]
    log, options = tmp_path / "log.jsonl", "candidates=2,depth=3"
    chat = OpenAI(f"http://127.0.0.1:{endpoint.server_port}/v1", "small", timeout=2.0, attempts=1, wait=0.01)
    with Archive(tmp_path) as archive:
        endpoint.script = [*answers[:3], "drops", "hangs", "garbage", "refuses"]
        first, search = run(chat, options, log, archive)
        assert "gateway" in search.stopped and first.best is not None and first.best.speedup == 3.0
        kept = {record.key for record in archive.records()}
        endpoint.script, endpoint.seen = answers[3:], 0
        second, search = run(chat, options, log, archive)
        assert endpoint.seen == 3 and not search.stopped, "what was answered is not asked again"
        assert second.best is not None and second.best.speedup == 6.0
        assert kept < {record.key for record in archive.records()}, "nothing that was recorded is lost"
        assert len(archive.records()) == len({record.key for record in archive.records()}), "and nothing is measured again"
    assert search.meter is not None and search.meter.tokens == 150 * 6


def test_a_dead_endpoint_ends_the_run_soon_and_the_result_stays(endpoint: Endpoint) -> None:
    endpoint.script = [fenced("speed=2.0 a"), *["busy"] * 100]
    chat = OpenAI(f"http://127.0.0.1:{endpoint.server_port}/v1", "small", timeout=5.0, attempts=2, wait=0.01)
    outcome, search = run(chat, "candidates=4,depth=50")
    assert endpoint.seen <= 1 + 2 * 3 and outcome.best is not None and outcome.best.speedup == 2.0 and "503" in search.stopped


def test_what_is_a_secret_is_said_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("WARPWRIGHT_API_KEY", "OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "MYAPIKEY", "PGPASSWORD", "GITHUB_PAT",
             "MYTOKEN", "sentry_dsn", "openai_api_key", "SSH_PASSPHRASE")  # fmt: skip
    for name in names:
        monkeypatch.setenv(name, "x" * 12)
        assert name in secrets()
    for name in ("TOKENIZERS_PARALLELISM", "KEYBOARD", "COMPASS", "AUTHOR", "PATTERN"):
        monkeypatch.setenv(name, "x" * 12)
        assert name not in secrets()
    assert not {"PATH", "HOME", "PYTHONPATH"} & secrets().keys()


@pytest.mark.parametrize(
    "value",
    [
        "sk-proj-abcdefghijklmnop", "Bearer sk-ant-0123456789abcdef", "ghp_0123456789abcdefghij", "hf_abcdefghijklmnopqrst", "AKIAIOSFODNN7EXAMPLE",
        "https://user:word@host/v1", "postgres://me:pw@db:5432/x", "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.sig", "-----BEGIN OPENSSH PRIVATE KEY-----\nx",
    ],
)  # fmt: skip
def test_what_is_a_secret_is_said_by_its_form_too(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTES", value)
    assert "NOTES" in secrets()


@pytest.mark.parametrize(
    "value",
    [
        "/usr/bin:/bin", "https://host/v1", "http://host:8000/a@b", "1", "task-force-abcdefghijklmnopqrst", "C.UTF-8",
        "/opt/sk-conda-environment-12/lib", "/home/u/hf_transformers_benchmarks/.venv/bin:/usr/bin",
    ],
)  # fmt: skip
def test_what_is_none_stays(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTES", value)
    assert "NOTES" not in secrets()


def test_an_address_holds_no_password() -> None:
    with pytest.raises(UsageError, match="without a name and a password") as caught:
        OpenAI("https://me:hidden-word@host/v1", "small")
    assert "hidden-word" not in str(caught.value)
