"""The runs and the text of one `merilo demo`, made once for all tests of a session and all its workers."""

import fcntl
import shutil
from dataclasses import dataclass
from pathlib import Path

from command_line import Here

DIRECTORY = "a place"
"""The directory that the demo wrote, with a blank in its name."""


@dataclass(frozen=True)
class Demo:
    """What `merilo demo --out "a place"` wrote and printed; tests change copies only."""

    path: Path

    @property
    def text(self) -> str:
        """What it printed."""
        return (self.path / "printed.txt").read_text(encoding="utf-8")

    @property
    def written(self) -> list[str]:
        """The names in the directory where it ran."""
        return (self.path / "written.txt").read_text(encoding="utf-8").splitlines()

    def copied(self, into: Path) -> None:
        """Its directory, where a test may change it."""
        shutil.copytree(self.path / DIRECTORY, into)


def shared_demo(base: Path) -> Demo:
    """Return the demo of this session, made by the first worker that asks."""
    with (base / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = base / "demo"
        if not (path / "printed.txt").is_file():
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
            done = Here(path).merilo("demo", "--out", DIRECTORY)
            assert done.returncode == 0, done.stderr
            (path / "written.txt").write_text("\n".join(each.name for each in path.iterdir()), encoding="utf-8")
            (path / "printed.txt").write_text(done.stdout, encoding="utf-8")
    return Demo(path)
