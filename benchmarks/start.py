"""The user's waiting time at start: the import, and the command line."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from figures import cpu_s, python, report


def main() -> None:
    """Print the CPU of `import merilo` compared with pydantic's, and the response time of the command line."""
    pydantic = cpu_s(python("from pydantic import BaseModel"))
    report("import merilo, CPU s", cpu_s(python("import merilo")), at_most=2 * pydantic)
    report("from pydantic import BaseModel, CPU s", pydantic)
    command = str(Path(sys.executable).with_name("merilo"))
    for arguments in (["--version"], ["--help"], ["metrics"]):
        times = []
        for _ in range(6):
            began = time.perf_counter()
            cpu_s([command, *arguments], runs=0)
            times.append(time.perf_counter() - began)
        report(f"merilo {arguments[0]}, wall s", sorted(times)[3], at_most=1.0)


if __name__ == "__main__":
    main()
