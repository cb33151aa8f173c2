"""Harbor's own trial of an exported task, without Docker: run by an interpreter that has the package `harbor`, as root.

    python harbor_trial.py FOLDER_OF_THE_TASK FOLDER_FOR_TRIALS AGENT

An environment is a mount namespace over this machine's files, where /app, /logs, /tests and /solution are folders of its own. What an image would
copy is copied as its Dockerfile's COPY lines say; its RUN lines are not run, as this machine has what they install.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

OWN = ("app", "logs", "tests", "solution")
"""Folders at the root that each environment has to itself."""


class Namespace(BaseEnvironment):
    """One environment, in a folder."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.root = Path(tempfile.mkdtemp(prefix="harbor-environment-"))

    @staticmethod
    def type() -> str:
        """Return a name of our own."""
        return "namespace"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """Nothing but files and commands."""
        return EnvironmentCapabilities()

    def _validate_definition(self) -> None:
        assert (self.environment_dir / "Dockerfile").is_file(), f"no Dockerfile in {self.environment_dir}"

    def at(self, path: Any) -> Path:
        """Return where a path of the environment lies on this machine."""
        parts = Path(str(path)).parts[1:]
        assert parts and parts[0] in OWN, f"{path} is no place of the environment's own"
        return self.root.joinpath(*parts)

    async def start(self, force_build: bool) -> None:
        """Copy what the image would."""
        for name in OWN:
            (self.root / name).mkdir(mode=0o777, exist_ok=True)
        self.root.chmod(0o755)
        for source, target in re.findall(r"^COPY (\S+) (\S+)$", (self.environment_dir / "Dockerfile").read_text(), re.M):
            await (self.upload_dir if source == "." else self.upload_file)(self.environment_dir / source, target)
        for folder in ("/logs/agent", "/logs/verifier", "/logs/artifacts"):
            self.at(folder).mkdir(parents=True, exist_ok=True)

    async def stop(self, delete: bool) -> None:
        """Remove the folder."""
        shutil.rmtree(self.root, ignore_errors=True)

    async def upload_file(self, source_path: Any, target_path: str) -> None:
        """Copy a file in."""
        self.at(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, self.at(target_path))

    async def upload_dir(self, source_dir: Any, target_dir: str) -> None:
        """Copy a folder in."""
        shutil.copytree(source_dir, self.at(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path: Any) -> None:
        """Copy a file out."""
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.at(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir: Any) -> None:
        """Copy a folder out."""
        shutil.copytree(self.at(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(self, command: str, cwd: Any = None, env: Any = None, timeout_sec: Any = None, user: Any = None) -> ExecResult:
        """Run a command where the environment's folders lie at the root."""
        places = Path(tempfile.mkdtemp(prefix="harbor-root-"))
        upper, work, root = (places / name for name in ("upper", "work", "root"))
        for folder in (upper, work, root):
            folder.mkdir()
        mounts = [f"mount -t overlay overlay -o lowerdir=/,upperdir={upper},workdir={work} {root}"]
        mounts += [f"mount --rbind /{name} {root}/{name}" for name in ("proc", "dev", "sys", "tmp", "work", "dev/shm") if Path("/", name).exists()]
        mounts += [f"mkdir -p {root}/{name} && mount --bind {self.root / name} {root}/{name}" for name in OWN]
        inside = f"cd {cwd or '/app'} && {command}"
        script = "set -e\n" + "\n".join(["mount -t tmpfs tmpfs " + str(places), f"mkdir {upper} {work} {root}", *mounts])
        script += f"\nexec chroot {root} /bin/bash -c \"$INSIDE\""
        whole = {**os.environ, **{str(key): str(value) for key, value in (env or {}).items()}, "INSIDE": inside}
        started = await asyncio.create_subprocess_exec(
            "unshare", "-m", "--propagation", "private", "/bin/bash", "-c", script, env=whole,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, error = await asyncio.wait_for(started.communicate(), timeout_sec)
        shutil.rmtree(places, ignore_errors=True)
        return ExecResult(stdout=out.decode(), stderr=error.decode(), return_code=started.returncode or 0)


class Writer(BaseAgent):
    """An agent that hands in one file, whose text the environment variable PROGRAM_FILE names."""

    @staticmethod
    def name() -> str:
        """Return a name of our own."""
        return "writer"

    def version(self) -> str:
        """Return a version."""
        return "1"

    async def setup(self, environment: BaseEnvironment) -> None:
        """Do nothing."""

    async def run(self, instruction: str, environment: BaseEnvironment, context: Any) -> None:
        """Write the program where the instruction says."""
        match = re.search(r"Write the whole program to `([^`]+)`", instruction)
        assert match is not None, instruction
        await environment.upload_file(os.environ["PROGRAM_FILE"], match[1])


async def tried(task: Path, trials: Path, agent: str) -> dict[str, Any]:
    """Run one trial; return its rewards, and what failed."""
    module = Path(__file__).stem
    own = AgentConfig(name="oracle") if agent == "oracle" else AgentConfig(import_path=f"{module}:Writer")
    config = TrialConfig(
        task=TaskConfig(path=task), trials_dir=trials, agent=own, environment=EnvironmentConfig(import_path=f"{module}:Namespace", delete=True)
    )
    result = await (await Trial.create(config)).run()
    failed = result.exception_info
    rewards = result.verifier_result.rewards if result.verifier_result is not None else None
    return {"rewards": rewards, "failure": f"{failed.exception_type}: {failed.exception_message}" if failed is not None else ""}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    print(json.dumps(asyncio.run(tried(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))))
