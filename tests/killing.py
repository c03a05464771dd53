"""Kills a command before each of its writes in turn: every step at which its files on disk change."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_DRIVER = """
import json, os, shutil, signal, sys
from merilo.cli import outcome
words, template, folder = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]

def dies(call, left):
    def before(*values, **named):
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return call(*values, **named)
    return before

quiet = os.open(os.devnull, os.O_WRONLY)
output = os.dup(1)
os.dup2(quiet, 1)
warm = os.path.join(folder, "warm")
shutil.copytree(template, warm)
os.chdir(warm)
outcome(words)  # what is imported here need not be imported in each child
sys.stdout.flush()
os.dup2(output, 1)
step = 0
while True:
    place = os.path.join(folder, str(step))
    shutil.copytree(template, place)
    child = os.fork()
    if not child:
        os.chdir(place)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        left = [step]
        for name in ("fsync", "replace", "rename", "unlink", "mkdir", "rmdir", "open", "chmod"):
            setattr(os, name, dies(getattr(os, name), left))
        os._exit(outcome(words))
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        print(step, os.WEXITSTATUS(status))
        break
    step += 1
"""


def killed_at_each_step(words: Sequence[object], template: Path, folder: Path) -> list[Path]:
    """Run a command in copies of a directory, killed before its first write, its second, and so on.

    The last of the returned directories is that of the command that was not killed; it exits with 0.
    """
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", _DRIVER, json.dumps([*map(str, words)]), str(template), str(folder)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "MERILO_CACHE": str(folder / "cache.sqlite")},
    )
    steps, code = map(int, done.stdout.split())
    assert code == 0, done.stderr
    return [folder / str(step) for step in range(steps + 1)]
