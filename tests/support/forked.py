"""Runs of ``cuda-tma`` commands in forks of one process that has imported the package, because the import is slow."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

__all__ = ["run_forked"]

ROOT = Path(__file__).parents[2]


def run_forked(
    *arguments: object,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    limits: Mapping[int, int] | None = None,
    seconds: int = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a command with limits of the module ``resource``, and end the command by SIGALRM after its time limit."""
    asked = {
        "arguments": [str(each) for each in arguments],
        "folder": str(folder or Path.cwd()),
        "environment": dict(os.environ if environment is None else environment),
        "limits": list((limits or {}).items()),
        "seconds": seconds,
    }
    with tempfile.TemporaryDirectory() as place:
        outputs = [os.path.join(place, name) for name in ("out", "err")]
        server = _server()
        assert server.stdin and server.stdout
        server.stdin.write(json.dumps({**asked, "outputs": outputs}) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        return subprocess.CompletedProcess(asked["arguments"], status, *(Path(path).read_text() for path in outputs))


@cache
def _server() -> subprocess.Popen[str]:
    """Start the process that forks, which ends when its standard input is closed."""
    command = [sys.executable, "-m", "tests.support.forked"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, **pipes)


def _run_in_fork(asked: Mapping[str, object]) -> int:
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status: object = 1
    try:
        for stream, path in zip((0, 1, 2), (os.devnull, *asked["outputs"]), strict=True):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), stream)
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        signal.alarm(asked["seconds"])
        for number, most in asked["limits"]:
            resource.setrlimit(number, (most, most))
        status = cli.main(asked["arguments"])
    except SystemExit as ended:
        status = ended.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    from cuda_tma import simulate
    from cuda_tma._command import cli

    # A forked process with a limit on file sizes would leave an incomplete file.
    sys.dont_write_bytecode = True
    simulate.Device()
    for line in sys.stdin:
        print(_run_in_fork(json.loads(line)), flush=True)
