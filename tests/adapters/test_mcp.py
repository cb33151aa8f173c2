"""The MCP server: a client of the official SDK drives whole optimizations, by both transports; without the SDK, the tools themselves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from warpwright.adapters import mcp_server
from warpwright.adapters.mcp_server import SKILL, TOOLS, Agents, Budget
from warpwright.errors import UsageError, WarpwrightError

REPOSITORY = Path(__file__).resolve().parents[2]
LIMIT = 120.0


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))}


def command(bench: Any, out: Path, *options: str) -> list[str]:
    where = bench.where
    how = ["--server", where.server, "--seconds", "0.2", "--baselines", "eager", "--out", str(out)]
    return [sys.executable, "-m", "warpwright.cli", "mcp", where.task, *how, *options]


def optimized(call: Callable[..., dict[str, Any]], bench: Any) -> dict[str, Any]:
    """Drive a whole optimization with a function that calls tools."""
    described = call("describe")
    run = described["run"]
    assert "torch.relu(x)" in described["task"] and described["rewrites"] and described["tried"] == []
    wrong = call("evaluate", run=run, program=bench.wrong)
    assert wrong["status"] == "wrong" and "Case: " in wrong["feedback"]
    right = call("evaluate", run=run, program=bench.right)
    assert right["status"] == "ok" and right["evaluations_left"] == wrong["evaluations_left"] - 1
    assert call("evaluate", run=run, program=bench.right)["evaluations_left"] == right["evaluations_left"], "what is known costs nothing"
    assert "Time of a call" in call("profile", run=run, record=right["record"])["profile"]
    assert call("best", run=run)["program"] == bench.right
    submitted = call("submit", run=run)
    assert submitted["status"] == "ok" and Path(submitted["artifact"]).read_text().startswith("# warpwright")
    return {**described, "record": right["record"]}


def direct(agents: Agents) -> Callable[..., dict[str, Any]]:
    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = getattr(agents, tool)(**arguments)
        return json.loads(json.dumps(answer))

    return call


def fresh(bench: Any) -> Any:
    """Where a client begins a session of its own."""
    return replace(bench.where, session="")


def test_the_tools_drive_an_optimization_and_keep_runs_apart(bench: Any, tmp_path: Path) -> None:
    agents = Agents(fresh(bench), tmp_path)
    call = direct(agents)
    first = optimized(call, bench)
    second = call("describe")
    assert second["run"] != first["run"] and second["tried"] == [] and call("best", run=second["run"])["best"] is None
    with pytest.raises(WarpwrightError, match="record of this session"):
        call("profile", run=second["run"], record=first["record"])
    with pytest.raises(WarpwrightError, match="expected the key of a session"):
        call("best", run="guessed")
    again = direct(Agents(fresh(bench), tmp_path))("describe", run=first["run"])
    assert [one["status"] for one in again["tried"]] == ["wrong", "ok"], "another process goes on with the run"


def test_rewrites_are_carried_out_compared_and_explained(bench: Any, tmp_path: Path) -> None:
    call = direct(Agents(fresh(bench), tmp_path))
    described = call("describe")
    run = described["run"]
    rewrite = next(text for text in described["rewrites"] if "cpp" not in text and "compile" not in text)
    made = call("evaluate", run=run, rewrites=[rewrite])
    assert made["rewrites"] == [rewrite]
    right = call("evaluate", run=run, program=bench.right)
    if made["status"] == "ok":
        assert call("compare", run=run, first=made["record"], second=right["record"])["first_over_second"]["verdict"]
        assert rewrite in call("explain", run=run, record=made["record"])["steps"][0]
    assert call("explain", run=run, record=right["record"])["steps"] == ["it was written whole: there is no step to take out"]


def test_the_budget_is_kept(bench: Any, tmp_path: Path) -> None:
    agents = Agents(fresh(bench), tmp_path, Budget(evaluations=1))
    run = agents.describe()["run"]
    assert agents.evaluate(run, bench.wrong)["evaluations_left"] == 0
    with pytest.raises(UsageError, match="budget of 1 evaluations"):
        agents.evaluate(run, bench.right)
    for given in ({}, {"program": "x", "rewrites": ["y()"]}):
        with pytest.raises(UsageError, match="either a program or rewrites"):
            agents.evaluate(run, **given)


def test_what_is_no_program_costs_nothing_and_the_run_goes_on(bench: Any, tmp_path: Path) -> None:
    agents = Agents(fresh(bench), tmp_path)
    run = agents.describe()["run"]
    for odd in ("x = '\ud800'", "x = 1\n" * 1_000_000):
        with pytest.raises(UsageError, match="expected "):
            agents.evaluate(run, odd)
    for odd in ("../../etc/passwd", "' or 1=1 --", "\ud800", "a" * 100_000):
        for ask in (agents.profile, agents.explain, agents.submit):
            with pytest.raises(WarpwrightError, match="expected "):
                ask(run, odd)
        with pytest.raises(WarpwrightError, match="expected "):
            agents.best(odd)
    assert agents.evaluate(run, bench.right)["evaluations_left"] == agents.budget.evaluations - 1


def test_the_skill_is_one() -> None:
    head = SKILL.read_text().split("---")[1]
    assert [line.partition(":")[0] for line in head.strip().splitlines()] == ["name", "description"]
    assert all(f"`{tool}`" in SKILL.read_text() for tool in TOOLS)


def test_the_token_is_its_owners(tmp_path: Path) -> None:
    token, path = mcp_server.token_of(str(tmp_path / "server"))
    assert len(token) == 64 and path.stat().st_mode & 0o077 == 0 and mcp_server.token_of(str(tmp_path / "server"))[0] == token


# --- with the official SDK ----------------------------------------------------------------------------------------------------------------


def said(result: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(result.content[0].text)
    return answer


def through(client: Any, loop: asyncio.AbstractEventLoop) -> Callable[..., dict[str, Any]]:
    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        return said(asyncio.run_coroutine_threadsafe(client.call_tool(tool, arguments), loop).result(LIMIT))

    return call


def test_a_client_on_standard_input_drives_an_optimization_and_its_run_outlives_it(bench: Any, tmp_path: Path) -> None:
    mcp = pytest.importorskip("mcp")
    words = command(bench, tmp_path / "out")
    parameters = mcp.StdioServerParameters(command=words[0], args=words[1:], env=environment())

    async def first() -> str:
        async with mcp.Client(parameters) as client:
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in listed] == list(TOOLS)
            evaluate = next(tool for tool in listed if tool.name == "evaluate").input_schema
            assert evaluate["required"] == ["run"] and set(evaluate["properties"]) == {"run", "program", "rewrites"}
            loop = asyncio.get_running_loop()
            described = await asyncio.to_thread(optimized, through(client, loop), bench)
            refused = said(await client.call_tool("evaluate", {"run": described["run"]}))
            assert "either a program or rewrites" in refused["error"]
            return str(described["run"])

    async def second(run: str) -> None:
        async with mcp.Client(parameters) as client:
            described = said(await client.call_tool("describe", {"run": run}))
            assert [one["status"] for one in described["tried"]] == ["wrong", "ok"]
            assert said(await client.call_tool("best", {"run": run}))["program"] == bench.right

    run = asyncio.run(asyncio.wait_for(first(), LIMIT))
    asyncio.run(asyncio.wait_for(second(run), LIMIT))


class Listening:
    """The MCP server over HTTP, in a process of its own."""

    def __init__(self, bench: Any, out: Path) -> None:
        words = command(bench, out, "--port", "0", "--json")
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment())
        assert self.process.stdout is not None
        self.address = json.loads(self.process.stdout.readline())["address"]
        self.token = (Path(bench.where.server) / mcp_server.TOKEN).read_text().strip()

    def __enter__(self) -> Listening:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGTERM)

    def end(self, number: int) -> None:
        self.process.send_signal(number)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        assert self.process.stdout is not None
        self.process.stdout.close()

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[Any]:
        import httpx2
        import mcp
        from mcp.client.streamable_http import streamable_http_client

        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {self.token}"}, timeout=LIMIT)
        async with http, mcp.Client(streamable_http_client(self.address, http_client=http)) as one:
            yield one


def test_http_wants_the_token_and_two_clients_do_not_see_each_other(bench: Any, tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    import httpx2

    with Listening(bench, tmp_path / "out") as server:
        assert server.address.startswith("http://127.0.0.1:")
        for headers in ({}, {"Authorization": "Bearer guessed"}):
            assert httpx2.post(server.address, json={}, headers=headers, timeout=30).status_code == 401

        async def client(program: str) -> tuple[str, list[str]]:
            async with server.client() as one:
                run = said(await one.call_tool("describe", {}))["run"]
                await one.call_tool("evaluate", {"run": run, "program": program})
                tried = said(await one.call_tool("describe", {"run": run}))["tried"]
                return run, [entry["status"] for entry in tried]

        async def both() -> list[tuple[str, list[str]]]:
            return list(await asyncio.gather(client(bench.right), client(bench.wrong)))

        (run, right), (other, wrong) = asyncio.run(asyncio.wait_for(both(), LIMIT))
        assert (right, wrong) == (["ok"], ["wrong"]) and run != other


def test_a_run_goes_on_after_its_client_and_the_server_were_killed(bench: Any, tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    told = tmp_path / "run"
    server = Listening(bench, tmp_path / "out")
    text = f"""
import asyncio, sys
sys.path[:0] = {[str(Path(__file__).parent)]!r}
from test_mcp import Listening, said

async def client():
    server = object.__new__(Listening)
    server.address, server.token = {server.address!r}, {server.token!r}
    async with server.client() as one:
        run = said(await one.call_tool("describe", {{}}))["run"]
        await one.call_tool("evaluate", {{"run": run, "program": {bench.wrong!r}}})
        open({str(told)!r}, "w").write(run)
        await one.call_tool("evaluate", {{"run": run, "program": {bench.right!r} + "# another\\n"}})
        await asyncio.sleep({LIMIT})

asyncio.run(client())
"""
    victim = subprocess.Popen([sys.executable, "-c", text], env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + LIMIT
        while not told.exists() and time.monotonic() < deadline:
            assert victim.poll() is None, victim.communicate(timeout=10)
            time.sleep(0.05)
    finally:
        victim.kill()
        victim.communicate(timeout=30)
        server.end(signal.SIGKILL)
    run = told.read_text()

    async def other(again: Listening) -> None:
        async with again.client() as client:
            tried = [one["status"] for one in said(await client.call_tool("describe", {"run": run}))["tried"]]
            assert tried[0] == "wrong" and len(tried) <= 2
            assert said(await client.call_tool("evaluate", {"run": run, "program": bench.right}))["status"] == "ok"
            assert said(await client.call_tool("best", {"run": run}))["best"]

    with Listening(bench, tmp_path / "out") as again:
        asyncio.run(asyncio.wait_for(other(again), LIMIT))
