"""Install Chromium for the tests of pages if there is none: `python tools/chromium.py`.

It is installed only on Debian, by root or with a `sudo` that asks for no password. Otherwise, or if that fails, a line
says so, and the tests that need a browser are skipped. The exit code is 1 if there is no Chromium.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from browser import chromium  # a module of the tests

STEPS = (
    (120, ("update",)),
    (300, ("install", "--yes", "--no-install-recommends", "--download-only", "chromium")),
    (300, ("install", "--yes", "--no-install-recommends", "chromium")),  # from what was downloaded
)
"""Seconds that each may take, and arguments of apt-get."""


def main() -> int:
    """Install what is missing."""
    if chromium():
        return 0
    reason = "it is installed only on Debian, by root or with a sudo that asks for no password"
    if may_install():
        print("installing Chromium for the tests of pages", file=sys.stderr)
        reason = install()
        if chromium():
            return 0
    print(
        f"tests of pages are skipped: no Chromium ({reason}). Install one, or name its program in MERILO_CHROMIUM.",
        file=sys.stderr,
    )
    return 1


def may_install() -> bool:
    """Return True on Debian if apt-get asks for no password."""
    try:
        if platform.freedesktop_os_release().get("ID") != "debian":
            return False
        return os.getuid() == 0 or run(10, ("sudo", "-n", "true")) == ""
    except OSError:
        return False


def install() -> str:
    """Install Chromium, and return why there is still none if so."""
    for seconds, arguments in STEPS:
        words = ("env", "DEBIAN_FRONTEND=noninteractive", "timeout", str(seconds), "apt-get", "-qq", *arguments)
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
