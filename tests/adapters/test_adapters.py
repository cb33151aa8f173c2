"""Each adapter driven once from end to end, by the other side's own client where it is installed; one server judges for all of them."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import scripted_endpoint

from warpwright import cli
from warpwright.adapters import autoresearch, export, gepa, openevolve, shinka, trl
from warpwright.adapters.judge import Judge, Where, instruction
from warpwright.errors import UsageError
from warpwright.server import ServerError

REPOSITORY = Path(__file__).resolve().parents[2]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))}


def test_a_score_is_a_speedup_and_only_of_what_passed(bench: Any) -> None:
    judge = Judge(bench.where)
    right, wrong, none = judge.score(bench.right), judge.score(bench.wrong), judge.score("  ")
    assert right.correct and right.score == right.answer["speedup"]["best"] > 0 and "times" in right.feedback
    assert not wrong.correct and wrong.score == 0 and wrong.verdict == "wrong" and "Case: " in wrong.feedback
    assert (none.correct, none.score) == (False, 0.0)
    text = instruction(judge.describe())
    assert "torch.relu(x)" in text and "class ModelNew(Model)" in text


ODD = {
    "half of a surrogate pair": "x = '\ud800'", "too much": "x = 1\n" * 1_000_000, "no text": 3, "nothing": None, "bytes": b"x", "blank": " \n",
}  # fmt: skip


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_program_scores_nothing_and_stops_nobody(kind: str, bench: Any, tmp_path: Path) -> None:
    judge = Judge(bench.where)
    judged = judge.score(ODD[kind])
    assert (judged.score, judged.verdict) == (0.0, "not_built") and judged.feedback.startswith("expected ")
    assert gepa.evaluator(bench.where)(ODD[kind])[0] == 0.0
    made = trl.environment(bench.where)()
    made.reset()
    assert "expected " in made.evaluate(ODD[kind]) and made.get_reward() == 0.0
    assert judge.score(bench.right).correct, "the next one is judged as ever"


@pytest.mark.parametrize("said", [[], None, 3, [{"role": "assistant", "content": None, "tool_calls": [{}]}], [{"role": "user", "content": "x"}]])
def test_an_answer_without_words_has_no_reward(said: Any, bench: Any) -> None:
    assert trl.CompletionReward(bench.where)(completions=[said]) == [0.0]


def test_the_last_words_of_an_answer_count_in_parts_too(bench: Any) -> None:
    parts = [{"type": "text", "text": "```python\n"}, {"type": "text", "text": f"{bench.right}```"}]
    told = [{"role": "assistant", "content": parts}, {"role": "tool", "content": "passed"}, {"role": "assistant", "content": None}]
    assert trl.CompletionReward(bench.where)(completions=[told])[0] > 0


def test_a_file_of_other_bytes_is_a_program_like_any_other(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_bytes(b"\xff\xfe\x00")
    shinka.main(bench.where, ["--program_path", str(tmp_path / "odd.py"), "--results_dir", str(tmp_path / "results")])
    assert json.loads((tmp_path / "results" / "metrics.json").read_text())["extra_data"]["answer"]["status"]


def test_a_server_that_is_gone_is_no_programs_fault(bench: Any) -> None:
    with pytest.raises(ServerError):
        Judge(Where(bench.where.task, "127.0.0.1:9")).score(bench.right)


def test_nothing_is_written_over(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(UsageError, match="empty folder"):
        export.write("gepa", bench.where, tmp_path)


def test_openevolve(bench: Any, tmp_path: Path) -> None:
    pytest.importorskip("openevolve")
    from openevolve.config import load_config
    from openevolve.evaluator import Evaluator

    export.write("openevolve", bench.where, tmp_path)
    config = load_config(tmp_path / "config.yaml")
    assert config.file_suffix == ".py" and "torch.relu(x)" in str(config.prompt.system_message)
    evaluator = Evaluator(config.evaluator, str(tmp_path / "evaluator.py"))
    first = asyncio.run(evaluator.evaluate_program((tmp_path / "initial_program.py").read_text(), "first"))
    second = asyncio.run(evaluator.evaluate_program(bench.wrong, "second"))
    assert first["correct"] == 1.0 and first["combined_score"] > 0 and second == {"combined_score": 0.0, "correct": 0.0, "faster": 0.0}
    assert "Case: " in evaluator.get_pending_artifacts("second")["feedback"]


def test_openevolve_evolves_with_a_model(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole of OpenEvolve, its own processes and prompts: the model writes a wrong program, no program, and two right ones."""
    pytest.importorskip("openevolve")
    from openevolve import OpenEvolve
    from openevolve.config import load_config

    export.write("openevolve", bench.where, tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-a-test-alone")
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    with scripted_endpoint.opened() as endpoint:
        endpoint.script = [f"```python\n{text}```" if text else "I cannot." for text in (bench.wrong, "", bench.right, f"{bench.right}# again\n")]
        settings = (tmp_path / "config.yaml").read_text()
        assert settings.count(openevolve.API_BASE) == settings.count(f'"{openevolve.MODEL}"') == 1, "what its owner is told to fill in"
        (tmp_path / "config.yaml").write_text(settings.replace(openevolve.API_BASE, f"http://127.0.0.1:{endpoint.server_port}/v1"))
        config = load_config(tmp_path / "config.yaml")
        controller = OpenEvolve(str(tmp_path / "initial_program.py"), str(tmp_path / "evaluator.py"), config=config, output_dir=str(tmp_path / "out"))
        best = asyncio.run(controller.run(iterations=4))
        assert endpoint.seen >= 4, "it asked the model"
    evolved = [one.code.strip() for one in controller.database.programs.values()]
    assert bench.right.strip() in evolved and best.metrics["combined_score"] > 0 and best.metrics["correct"] == 1.0
    scores = {one.code.strip(): one.metrics["combined_score"] for one in controller.database.programs.values()}
    assert scores[bench.right.strip()] > 0 and scores.get(bench.wrong.strip(), 0.0) == 0.0


def test_what_is_evolved_is_all_of_it(bench: Any) -> None:
    assert openevolve.marked({"language": "cuda", "source": "x\n"}) == "// EVOLVE-BLOCK-START\nx\n// EVOLVE-BLOCK-END\n"


def test_shinkas_evaluation(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export.write("shinka", bench.where, tmp_path)
    (tmp_path / "second.py").write_text(bench.wrong)
    shinka.main(bench.where, ["--program_path", str(tmp_path / "second.py"), "--results_dir", str(tmp_path / "two")])
    correct, metrics = (json.loads((tmp_path / "two" / name).read_text()) for name in ("correct.json", "metrics.json"))
    assert correct["correct"] is False and "Case: " in correct["error"] and metrics["combined_score"] == 0 and metrics["text_feedback"]


def test_shinka(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("shinka")
    from shinka.launch import JobScheduler, LocalJobConfig

    export.write("shinka", bench.where, tmp_path)
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    scheduler = JobScheduler("local", LocalJobConfig(eval_program_path=str(tmp_path / "evaluate.py"), time="00:02:00"))
    results, _ = scheduler.run(str(tmp_path / "initial.py"), str(tmp_path / "one"))
    assert results["correct"]["correct"] is True and results["metrics"]["combined_score"] > 0


def test_shinka_evolves_with_a_model(bench: Any, tmp_path: Path) -> None:
    """The whole engine by the script that is exported: a wrong program, and a right one twice."""
    pytest.importorskip("shinka")
    export.write("shinka", bench.where, tmp_path)
    script = tmp_path / "run_evo.py"
    with scripted_endpoint.opened() as endpoint:
        marked = "<NAME>\nn\n</NAME>\n<DESCRIPTION>\nd\n</DESCRIPTION>\n<CODE>\n```python\n{}```\n</CODE>"
        programs = [openevolve.marked({"language": "python", "source": text}) for text in (bench.wrong, bench.right, f"{bench.right}# again\n")]
        endpoint.script = [marked.format(text) for text in [*programs, *programs[1:] * 5]]
        model = f"local/scripted@http://127.0.0.1:{endpoint.server_port}/v1"
        own = f"num_generations=4, llm_models=[{model!r}], embedding_model=None, patch_types=['full'], patch_type_probs=[1.0]"
        assert script.read_text().count("num_generations=20") == 1
        script.write_text(script.read_text().replace("num_generations=20", f"{own}, meta_rec_interval=None, results_dir='results'"))
        keys = {"LOCAL_OPENAI_API_KEY": "none", "OPENAI_API_KEY": "none"}
        done = subprocess.run(
            [sys.executable, str(script)], cwd=tmp_path, env={**environment(), **keys}, capture_output=True, text=True, timeout=400
        )
    assert done.returncode == 0, done.stderr[-3000:]
    judged = [json.loads((tmp_path / f"results/gen_{number}/results/correct.json").read_text()) for number in range(4)]
    assert [one["correct"] for one in judged] == [True, False, True, True] and "Case: " in judged[1]["error"]


def test_gepas_evaluator(bench: Any) -> None:
    evaluate = gepa.evaluator(bench.where)
    score, told = evaluate({"program": bench.right}, {"task": bench.where.task})
    assert score > 0 and told["scores"] == {"correct": 1.0}
    assert evaluate(bench.wrong)[0] == 0.0
    with pytest.raises(UsageError, match="one text"):
        evaluate({"a": "", "b": ""})


def test_gepa(bench: Any) -> None:
    pytest.importorskip("gepa")
    from gepa.optimize_anything import EngineConfig, GEPAConfig, ReflectionConfig, optimize_anything

    asked: list[Any] = []

    def model(prompt: Any) -> str:
        asked.append(prompt)
        return f"```python\n{bench.right}```"

    config = GEPAConfig(
        engine=EngineConfig(max_metric_calls=4, parallel=False), reflection=ReflectionConfig(reflection_lm=model, reflection_minibatch_size=1)
    )
    found = optimize_anything(seed_candidate=bench.wrong, evaluator=gepa.evaluator(bench.where), objective="faster", config=config)
    assert found.best_candidate.strip() == bench.right.strip() and found.val_aggregate_scores[found.best_idx] > 0
    assert "Case: " in str(asked[0]), "the model is told why the first one failed"


def test_trls_environment(bench: Any) -> None:
    made = trl.environment(bench.where)()
    tools = [name for name, _ in inspect.getmembers(type(made), inspect.isfunction) if not name.startswith("_")]
    assert tools == ["evaluate", "get_reward", "reset"], "every other public method would be a tool"
    assert "torch.relu(x)" in made.reset(prompt="ignored", task=bench.where.task)
    assert "Case: " in made.evaluate(bench.wrong) and made.get_reward() == 0.0
    assert "times" in made.evaluate(bench.right)
    assert trl.reward_func([made], prompts=[]) == [made.get_reward()] and made.get_reward() > 0
    made.reset()
    assert made.get_reward() == 0.0
    answers = [f"Here:\n```python\n{bench.right}```", [{"role": "assistant", "content": f"```\n{bench.wrong}```"}], "I cannot."]
    scores = trl.CompletionReward(bench.where)(completions=answers)
    assert scores[0] > 0 and scores[1:] == [0.0, 0.0]


def test_trls_tools_have_a_schema(bench: Any) -> None:
    schema = pytest.importorskip("transformers.utils").get_json_schema
    function = schema(trl.environment(bench.where)().evaluate)["function"]
    assert function["parameters"]["required"] == ["program"]


def test_openenv(bench: Any) -> None:
    pytest.importorskip("openenv")
    uvicorn = pytest.importorskip("uvicorn")
    import socket

    from openenv.core import GenericEnvClient

    from warpwright.adapters import openenv

    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(openenv.app(bench.where, steps=2), log_level="error"))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        with GenericEnvClient(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}").sync() as client:
            assert "torch.relu(x)" in client.reset().observation["text"]
            wrong = client.step({"program": bench.wrong})
            right = client.step({"program": bench.right})
            assert (wrong.reward, wrong.done) == (0.0, False) and right.reward > 0 and right.done
            state = client.state()
            assert state["step_count"] == 2 and state["best"] == right.reward and state["program"] == bench.right
    finally:
        server.should_exit = True
        thread.join(20)


def test_verifiers(bench: Any) -> None:
    vf = pytest.importorskip("verifiers.v1")
    from types import SimpleNamespace

    from warpwright.adapters.verifiers import KernelConfig, KernelTaskset

    [task] = KernelTaskset(KernelConfig(tasks=(bench.where,)))
    assert task.data.name == "positive_sums" and "torch.relu(x)" in task.data.prompt_text and isinstance(task, vf.Task)
    for text, low, high in ((f"```python\n{bench.right}```", 1e-9, 1e9), (f"```python\n{bench.wrong}```", 0.0, 0.0), ("no", 0.0, 0.0)):
        trace = SimpleNamespace(last_reply=text, info={})
        assert low <= asyncio.run(task.speedup(trace)) <= high


@pytest.mark.slow
def test_verifiers_own_evaluation(bench: Any, tmp_path: Path) -> None:
    """Its command, over the package that is exported, asks a model three times: its client and its harness, which uv starts, are its own."""
    pytest.importorskip("verifiers.v1")
    command = Path(sys.executable).with_name("vf-eval")
    if not command.exists() or shutil.which("uv", path=str(command.parent)) is None:
        pytest.skip("vf-eval or uv is missing")
    export.write("verifiers", bench.where, tmp_path / "package")
    path = os.pathsep.join([str(tmp_path / "package"), environment()["PYTHONPATH"]])
    own = {**environment(), "PYTHONPATH": path, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "OWN_KEY": "none"}
    with scripted_endpoint.opened() as endpoint:
        endpoint.script = [f"```python\n{bench.right}```", f"```python\n{bench.wrong}```", "I cannot."]
        client = ["--client.base-url", f"http://127.0.0.1:{endpoint.server_port}/v1", "--client.api-key-var", "OWN_KEY"]
        how = ["--env.agent.runtime.type", "subprocess", "--env.agent.harness.id", "null", "--no-push", "--no-rich", "-r", "3", "-c", "1"]
        words = [str(command), "kernel_positive_sums", "-m", "scripted", *client, *how, "--output-dir", str(tmp_path / "out")]
        done = subprocess.run(words, env=own, cwd=tmp_path, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    rewards = [float(one) for one in re.findall(r"rollout done: .* reward=([\d.]+)", done.stdout + done.stderr)]
    assert len(rewards) == 3 and rewards[0] > 0 and rewards[1:] == [0.0, 0.0], rewards


def test_the_autoresearch_pack_keeps_what_is_better_and_restores_the_rest(bench: Any, tmp_path: Path) -> None:
    export.write("autoresearch", bench.where, tmp_path)
    assert "torch.relu(x)" in (tmp_path / "program.md").read_text()
    autoresearch.begin(tmp_path)
    command = [sys.executable, "bench.py", "baseline"]
    first = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120)
    assert first.returncode == 0 and "\ndecision: keep" in first.stdout and "\nstatus: ok" in first.stdout, first.stderr
    given = (tmp_path / "candidate.py").read_text()
    (tmp_path / "candidate.py").write_text(bench.wrong)
    assert autoresearch.bench(bench.where, tmp_path, "candidate.py", "absolute\tvalues").correct is False
    assert (tmp_path / "candidate.py").read_text() == given
    rows = [line.split("\t") for line in (tmp_path / "results.tsv").read_text().splitlines()]
    assert [row[2] for row in rows] == ["decision", "keep", "revert"] and rows[2][6] == "absolute values"
    with pytest.raises(UsageError, match="expected a change"):
        autoresearch.bench(bench.where, tmp_path, "candidate.py", "nothing")


def test_every_kind_is_written_and_every_script_is_python(bench: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    common = [bench.where.task, "--server", bench.where.server, "--seconds", "0.2", "--baselines", "eager", "--json"]
    for kind in export.KINDS:
        package = {"openenv": "openenv", "verifiers": "verifiers.v1"}.get(kind)
        if package is not None:
            try:
                __import__(package)
            except ImportError:
                assert cli.main(["export", kind, *common, "--out", str(tmp_path / kind)]) == cli.WRONG_USE
                assert f"[{kind}]" in capfd.readouterr().out, "it says which extra is missing"
                continue
        assert cli.main(["export", kind, *common, "--out", str(tmp_path / kind)]) == cli.DONE, kind
        said = json.loads(capfd.readouterr().out)
        assert said["files"] and all((tmp_path / kind / name).exists() for name in said["files"])
        for path in (tmp_path / kind).rglob("*.py"):
            compile(path.read_text(), str(path), "exec")


def test_time_is_not_lost(bench: Any) -> None:
    """What a session knows is answered at once: an evolution that proposes the same text again pays nothing."""
    judge = Judge(bench.where)
    judge.score(bench.right)
    began = time.monotonic()
    assert judge.score(bench.right).answer["cached"] is True and time.monotonic() - began < 20
