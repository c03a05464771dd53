"""Flat options of an evaluation, such as `cache=False`, as the keywords that `evaluate` takes."""

from typing import Any

from merilo.commands.evaluate.options import Calls, Limits, Model, Reading, Storage
from merilo.commands.option import docs_of

_PARTS = {"limits": Limits, "storage": Storage, "reading": Reading, "calls": Calls, "judge": Model}
_PART = {name: part for part, make in reversed(_PARTS.items()) for name in docs_of(make)}
_RENAMED = {
    "pipeline_version": ("calls", "version"),
    "pipeline_concurrency": ("calls", "concurrency"),
}


def grouped(**flat: Any) -> dict[str, Any]:
    """Return the keywords: `storage=Storage(cache=False)`, `judge=Model(..., base_url=...)`."""
    found: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    instruments = {"embeddings": flat.pop("embedder", None), "similarities": flat.pop("cross_encoder", None)}
    for name, value in flat.items():
        part, own = _RENAMED.get(name) or (_PART.get(name), name)
        if part is None or name in _PARTS:
            found[name] = value
        elif value is not None:
            parts.setdefault(part, {})[own] = value
    server = parts.pop("judge", {})
    kinds = {kind: spec for kind, spec in instruments.items() if spec is not None}
    if server or kinds:
        found["judge"] = Model([found.get("judge", "embedded"), *([kinds] if kinds else [])], **server)
    return found | {part: _PARTS[part](**own) for part, own in parts.items()}
