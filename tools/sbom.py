"""Writes the software bill of materials: the pinned dependencies and their licences, as CycloneDX JSON.

Usage: `sbom.py FILE`, in an environment with the packages of requirements/runtime.txt.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "requirements" / "runtime.txt"
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?:\s*;\s*(?P<marker>[^\\]+?))?\s*\\?$")
_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""Classifiers that name one licence, with its SPDX id; "BSD License" is not one of them."""
_TEXTS = {"MIT": "MIT", "Apache 2.0": "Apache-2.0", "Apache License 2.0": "Apache-2.0", "Apache-2.0": "Apache-2.0"}


@dataclass(frozen=True)
class Pin:
    """A pinned package."""

    name: str
    version: str
    marker: str = ""
    """The platforms that need it; empty for all."""


def pins(text: str) -> list[Pin]:
    """Return the pins of a requirements file."""
    matches = filter(None, map(_PIN.match, text.splitlines()))
    return [Pin(match["name"], match["version"], (match["marker"] or "").strip()) for match in matches]


def licences(name: str) -> list[dict[str, Any]]:
    """Return the licences that an installed package states, as CycloneDX has them; empty if there are none."""
    try:
        found = metadata(name)
    except PackageNotFoundError:
        return []
    if stated := found.get("License-Expression"):
        return [{"expression": stated}]
    classifiers = [each.rpartition(" :: ")[2] for each in found.get_all("Classifier") or [] if "License ::" in each]
    if classifiers:  # they do not say whether all of them hold or any
        return [{"license": _named(each, _CLASSIFIERS)} for each in classifiers]
    first = (found.get("License") or "").strip().partition("\n")[0]
    return [{"license": _named(first, _TEXTS)}] if first else []


def _named(text: str, known: dict[str, str]) -> dict[str, str]:
    return {"id": known[text]} if text in known else {"name": text[:100]}


def component(pin: Pin) -> dict[str, Any]:
    """Return a package as a component of CycloneDX. A licence that is not known is left out."""
    purl = f"pkg:pypi/{pin.name.lower().replace('_', '-')}@{pin.version}"
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": pin.name,
        "version": pin.version,
        "purl": purl,
        "scope": "required",
    }
    if known := licences(pin.name):
        found["licenses"] = known
    if pin.marker:
        found["properties"] = [{"name": "merilo:marker", "value": pin.marker}]
    return found


def bill(root: Path = ROOT) -> dict[str, Any]:
    """Return the bill of materials of merilo with its pinned dependencies; equal input gives equal output."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = pins((root / "requirements" / "runtime.txt").read_text(encoding="utf-8"))
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    components = [component(pin) for pin in found]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "purl": own,
                "licenses": [{"expression": project["license"]}],
            }
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": sorted(each["bom-ref"] for each in components)}],
    }


def without_licence(found: dict[str, Any]) -> list[str]:
    """Return the components whose licence is not known."""
    return [each["name"] for each in found["components"] if "licenses" not in each]


def main(arguments: list[str]) -> int:
    """Return the exit status: 0 for success, 1 if a licence is not known, 2 for wrong arguments."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    found = bill()
    Path(arguments[0]).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    unknown = [name for name in without_licence(found) if not _elsewhere(found, name)]
    print(f"{arguments[0]}: {len(found['components'])} packages.")
    if unknown:
        print(f"No licence known for {', '.join(unknown)}. Install requirements/runtime.txt first.")
    return 1 if unknown else 0


def _elsewhere(found: dict[str, Any], name: str) -> bool:
    """Return True for a package of another platform, which is not installed here."""
    own = next(each for each in found["components"] if each["name"] == name)
    return any(each["name"] == "merilo:marker" for each in own.get("properties", ()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
