"""Install Chromium, and promtool for the metrics of `watch`, if they are missing: `python tools/chromium.py`.

They are installed only on Debian, by root or with a `sudo` that asks for no password. Otherwise, or if that fails, a
line says so, and the tests that need them are skipped. The exit code is 1 if one is missing.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from browser import chromium  # a module of the tests

PROGRAMS = {"chromium": chromium, "prometheus": lambda: shutil.which("promtool")}
"""Package of Debian → the path of its program, if there is one."""
STEPS = ((120, ("update",)), (300, ("--download-only", "install")), (300, ("install",)))  # from what was downloaded
"""Seconds that each may take, and arguments of apt-get."""


def main() -> int:
    """Install what is missing."""
    missing = [name for name, program in PROGRAMS.items() if not program()]
    for name in missing:
        reason = "it is installed only on Debian, by root or with a sudo that asks for no password"
        if may_install():
            print(f"installing {name} for the tests", file=sys.stderr)
            reason = install(name)
        if not PROGRAMS[name]():
            print(f"some tests are skipped: no {name} ({reason}). Install it, or set MERILO_CHROMIUM.", file=sys.stderr)
    return int(not all(PROGRAMS[name]() for name in missing))


def may_install() -> bool:
    """Return True on Debian if apt-get asks for no password."""
    try:
        if platform.freedesktop_os_release().get("ID") != "debian":
            return False
        return os.getuid() == 0 or run(10, ("sudo", "-n", "true")) == ""
    except OSError:
        return False


def install(package: str) -> str:
    """Install a package, and return why its program is still missing if so."""
    for seconds, arguments in STEPS:
        words = ("env", "DEBIAN_FRONTEND=noninteractive", "timeout", str(seconds), "apt-get", "-qq", "--yes")
        words += ("--no-install-recommends", *arguments, *([package] if "install" in arguments else []))
        if reason := run(seconds + 30, words if os.getuid() == 0 else ("sudo", "-n", *words)):
            return reason
    return "it is not on PATH"


def run(seconds: int, words: tuple[str, ...]) -> str:
    """Return why a command failed; an empty text if it did not."""
    if shutil.which(words[0]) is None:
        return f"{words[0]} is not installed"
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{words[0]} does not end"
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"apt-get ended with {done.returncode}, which is 124 at its time limit"


if __name__ == "__main__":
    sys.exit(main())
