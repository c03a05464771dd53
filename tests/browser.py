"""A headless Chromium, driven through a pipe: nothing listens on a port."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def chromium() -> str | None:
    """The path of a Chromium: MERILO_CHROMIUM, or a program on PATH; None if there is none."""
    named = os.environ.get("MERILO_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of a browser; a context manager that ends the process."""

    def __init__(self, program: str, *, seconds: float = 60) -> None:
        self._seconds = seconds
        self._folder = tempfile.TemporaryDirectory()
        reads, self._out = os.pipe()
        self._in, writes = os.pipe()
        high = [fcntl.fcntl(each, fcntl.F_DUPFD, 20) for each in (reads, writes)]

        def place() -> None:
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen(
            [program, *ARGUMENTS, f"--user-data-dir={self._folder.name}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=place,  # noqa: PLW1509  the browser reads fd 3 and writes fd 4
        )
        for each in (reads, writes, *high):
            os.close(each)
        self._rest, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        targets = self._ask("Target.getTargets")["targetInfos"]
        page = next(each for each in targets if each["type"] == "page")
        self._session = self._ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for name in ("Page", "Runtime", "Network", "Log"):
            self._ask(f"{name}.enable")
        self._ask("Page.setLifecycleEventsEnabled", enabled=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)
        shutil.rmtree(self._folder.name, ignore_errors=True)
        self._folder.cleanup()

    def size(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Set the window and the colour scheme."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])

    def scripts(self, *, enabled: bool) -> None:
        """Let pages run scripts or not."""
        self._ask("Emulation.setScriptExecutionDisabled", value=not enabled)

    def print_pdf(self) -> bytes:
        """The page as printed on A4."""
        found = self._ask("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)
        return base64.b64decode(found["data"])

    def policy(self, *, enabled: bool) -> None:
        """Obey the content security policy of pages opened later, or not, so that a checker can be injected."""
        self._ask("Page.setBypassCSP", enabled=not enabled)

    def open(self, path: Path, anchor: str = "") -> None:
        """Open a file, and wait until it is loaded and drawn."""
        self.visit(f"{path.resolve().as_uri()}{anchor}")

    def visit(self, address: str) -> None:
        """Open an address, and wait until it is loaded and drawn."""
        for each in ("about:blank", address):  # a change of the anchor alone loads nothing
            self.events.clear()
            loader = self._ask("Page.navigate", url=each).get("loaderId")
            self._until(lambda event, loader=loader: _is_loaded(event, loader))

    def run(self, script: str) -> Any:  # Any: JSON
        """The value of an expression on the page; a promise is awaited."""
        found = self._ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"])
        return found["result"].get("value")

    def wait(self, script: str) -> None:
        """Wait until an expression on the page is true."""
        end = time.monotonic() + self._seconds
        while not self._is_true(script):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.02)

    def _is_true(self, script: str) -> bool:
        """Return False also if the page is left while the script runs."""
        try:
            return bool(self.run(f"Boolean({script})"))
        except AssertionError as error:
            if "navigated or closed" in str(error):
                return False
            raise

    def key(self, key: str) -> None:
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13, "Escape": 27}.get(key, 0)
        self._ask("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self._ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def shot(self, path: Path) -> None:
        """Save what is in sight as PNG."""
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"]))

    def downloads(self, folder: Path) -> None:
        """Save the files that pages offer in a folder, without asking."""
        self._ask("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def requests(self) -> list[str]:
        """The addresses requested since the page was opened."""
        return [
            each["params"]["request"]["url"] for each in self.events if each["method"] == "Network.requestWillBeSent"
        ]

    def errors(self) -> list[dict[str, Any]]:
        """Console messages and exceptions since the page was opened."""
        names = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}
        return [each for each in self.events if each["method"] in names]

    def _until(self, awaited: Callable[[dict[str, Any]], bool]) -> None:
        """Read until such an event arrives."""
        end = time.monotonic() + self._seconds
        while not any(map(awaited, self.events)):
            self._read(end)

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = self._send(method, params)
        end = time.monotonic() + self._seconds
        while True:
            found = self._read(end)
            if found.get("id") == number:
                if "error" in found:
                    raise AssertionError(found["error"])
                result: dict[str, Any] = found["result"]
                return result

    def _send(self, method: str, params: dict[str, Any]) -> int:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        return self._number

    def _read(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self._in, 1 << 20)
            assert part, "the browser ended"
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        if "method" in found:
            self.events.append(found)
            if found["method"] == "Page.javascriptDialogOpening":  # a page that asks whether to leave it
                self._send("Page.handleJavaScriptDialog", {"accept": True})
        return found


def _is_loaded(event: dict[str, Any], loader: str | None) -> bool:
    """Return True for the event that this document is loaded; that of the one before may arrive late."""
    of = event["params"]
    return event["method"] == "Page.lifecycleEvent" and (of["loaderId"], of["name"]) == (loader, "load")
