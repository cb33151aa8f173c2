"""One recipe of one task through the verifier, many times: how often is it refused, and whose answer was a refused one?

    python -m benchmarks.verifier.recipe --task FILE.py --recipe "int8_slices(); fuse_cuda(calls=1, block=256, vector=4, unroll=1); cuda_graph()" \
        --device cuda:0 --times 5 [--jobs 5] [--seconds 60] [--scale 1.0] --out OUT

A row a verification in OUT/rows.jsonl, each by a judge with another secret. Of values that are refused the row tells, for each case and state that
were asked before in that verification, and for the states with one another's inputs, how far the answer is from what is right there: near nothing
where the program has answered by an earlier state or by earlier inputs. `--jobs`: so many verifications beside one another.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import random
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LAST_ASKED = 10
"""Calls before a refused one whose answers it is compared with."""


def main() -> None:
    """Write rows.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", required=True, type=Path)
    parser.add_argument("--recipe", required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120.0, help="no verification is begun after that many")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.time() + options.seconds
    secrets = random.Random(options.seed).sample(range(2**31), options.times)
    shares = [secrets[job :: options.jobs] for job in range(options.jobs)]
    if options.jobs == 1:
        work(options, shares[0], end)
        return
    processes = [mp.get_context("spawn").Process(target=work, args=(options, share, end)) for share in shares if share]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


def work(options: argparse.Namespace, secrets: list[int], end: float) -> None:
    """Write a row for each verification."""
    for row in rows(options, secrets, end):
        row |= {"jobs": options.jobs}
        with (options.out / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print({key: value for key, value in row.items() if key != "reason"}, str(row.get("reason", ""))[:400], flush=True)


def rows(options: argparse.Namespace, secrets: list[int], end: float) -> Iterator[dict[str, Any]]:
    """Yield a row for each verification."""
    from warpwright.base import Action
    from warpwright.run import Settings, open_space

    target = options.device.partition(":")[0]
    task = Settings(device=target, scale=options.scale).describe(options.task)
    space = open_space(task, target)
    recipe = tuple(Action.parse(text.strip()) for text in options.recipe.split(";"))
    source = space.lower(space.replay(recipe), recipe).source
    for secret in secrets:
        if time.time() < end:
            about = {"task": task.name, "recipe": options.recipe, "secret": secret, "device": options.device}
            yield about | verified(task, source, options.device, secret)


def verified(task: Any, source: Any, device: str, secret: int) -> dict[str, Any]:
    """Return what came of one verification."""
    from benchmarks.verifier.repeated import limits_on
    from warpwright.verifier import verify
    from warpwright.workers.sandbox import Worker, up

    began = time.monotonic()
    found: list[dict[str, Any]] = []
    row: dict[str, Any] = {}
    try:
        judge: Any = verify.steady(lambda: Telling(task, device, secret, found))
        try:
            with up(lambda: Worker("candidate", device, limits_on(device))) as worker:
                _, rejected = verify.build(judge, worker, "candidate", source)
                verdict = rejected or verify.verify(judge, worker, "candidate", task)
                row = {"status": verdict.status, "check": verdict.check, "case": verdict.case, "reason": verdict.reason[:1500]}
        finally:
            judge.close()
    except Exception:  # a row says so
        row |= {"status": "error", "reason": traceback.format_exc()[-800:]}
    return row | {"calls": judge.asked if row.get("status") != "error" else None, "refused": found, "seconds": round(time.monotonic() - began, 2)}


def Telling(task: Any, device: str, secret: int, found: list[dict[str, Any]]) -> Any:
    """Return a judge that writes down of each refused answer what else it is near to."""
    from warpwright.verifier import verify

    class Judge(verify.Judge):
        asked = 0
        before: list[Any]

        def compare(self, export: Any, case: Any, which: int, *args: Any, **kwargs: Any) -> Any:
            comparison = super().compare(export, case, which, *args, **kwargs)
            self.asked += 1
            if comparison.check and len(found) < 4:
                states = list(dict.fromkeys(state for _, state in self.before))
                others = [*self.before[-LAST_ASKED:], *((case, state) for state in states)]
                near = [self.distance(export, *one) for one in dict.fromkeys((c, s) for c, s in others)]
                near.sort(key=lambda one: one["rms"] if one["rms"] is not None else 1e30)
                about = {"call": self.asked, "case": case.name, "state": which, "check": comparison.check}
                found.append(about | {"reason": comparison.reason[:600], "near": near})
            self.before.append((case, which))
            return comparison

        def distance(self, export: Any, case: Any, which: int) -> dict[str, Any]:
            try:
                other = super().compare(export, case, which)
            except Exception as error:  # a case whose answer cannot be asked for again
                return {"case": case.name, "state": which, "rms": None, "why": str(error)[:100]}
            return {"case": case.name, "state": which, "check": other.check, "rms": other.errors.rms if other.errors else None}

    judge = Judge(task, device, secret=secret)
    judge.before = []
    return judge


if __name__ == "__main__":
    main()
