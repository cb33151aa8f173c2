"""Jobs on a Ray cluster: the same ones, the same processes, started by Ray on whichever node has room.

A Ray task only starts the job's own process (`local.run_job`) and waits: what a job does to its process it does not do to Ray's. The
archive named in a payload has to lie on a file system that all nodes share.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwright.errors import MissingExtra, WorkerDied
from warpwright.jobs.local import Answer, Payload, run_job


def map_jobs(function: str, payloads: Sequence[Payload], count: int, timeout: float | None = None) -> Iterator[Answer]:
    """Yield (position, result) of each job as it ends, at most `count` at once, on the cluster of RAY_ADDRESS or one on this machine."""
    if importlib.util.find_spec("ray") is None:
        raise MissingExtra("ray", "ray", "running jobs on a Ray cluster")
    import ray

    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False)
    return _map(ray, function, payloads, count, timeout)


def _map(ray: Any, function: str, payloads: Sequence[Payload], count: int, timeout: float | None) -> Iterator[Answer]:
    remote = ray.remote(max_retries=0, **_resources(ray.cluster_resources(), count))(_run)
    waiting = iter(enumerate(payloads))
    running: dict[Any, int] = {}
    try:
        while True:
            while len(running) < count and (job := next(waiting, None)) is not None:
                running[remote.remote(function, dict(job[1]), timeout, _search_path())] = job[0]
            if not running:
                return
            [done], _ = ray.wait(list(running), num_returns=1)
            position = running.pop(done)
            try:
                yield position, ray.get(done)
            except ray.exceptions.RayError as error:
                yield position, WorkerDied(f"expected a result, saw Ray give up the job: {error}", "look at the node it ran on")
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def _resources(cluster: Mapping[str, float], count: int) -> dict[str, Any]:
    """Return what Ray reserves for a job: one core, and where there are GPUs a share of one that lets `count` jobs run at once."""
    gpus = cluster.get("GPU", 0.0)
    needs: dict[str, Any] = {"num_cpus": 1}
    if gpus:
        needs["num_gpus"] = 1 if count <= gpus else round(1 / -(-count // int(gpus)), 4)
    return {**needs, "runtime_env": {"env_vars": environment()}}


THREADS = "OMP_NUM_THREADS"


def environment() -> dict[str, str]:
    """Return the variables that Ray's processes get from this one: where the package lies, and how many threads programs have, if that is set."""
    return {"PYTHONPATH": os.pathsep.join(_search_path())} | {name: os.environ[name] for name in (THREADS,) if name in os.environ}


def free_threads() -> None:
    """In a process of Ray's: have programs run with the threads of their machine, or as many as `environment` says, as they do elsewhere.

    Ray writes that a process has one thread for the core that is reserved for it. Records of programs timed so would pass for records of the machine.
    """
    given = _given().get("env_vars", {})
    if THREADS not in given:
        os.environ.pop(THREADS, None)


def _given() -> Mapping[str, Any]:
    import ray

    return dict(ray.get_runtime_context().runtime_env)


def _search_path() -> list[str]:
    return [str(Path(__file__).parents[2]), *(entry for entry in sys.path if entry)]


def _run(function: str, payload: Payload, timeout: float | None, path: list[str]) -> Any:
    """Run on the node: Ray has set CUDA_VISIBLE_DEVICES there."""
    free_threads()
    return run_job(function, payload, {"PYTHONPATH": os.pathsep.join(path)}, timeout)
