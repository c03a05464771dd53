"""`judge.lock`: the revision, licence and digests of a fetched model, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from merilo.data.config_files import MAX_BYTES
from merilo.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

LOCK_NAME: Final = "judge.lock"
_Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Lock(BaseModel):
    """What was fetched, and when."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    """ORG/NAME on the hub."""
    revision: str = Field(pattern="^[0-9a-f]{40}$")
    licence: str
    date: str
    """The day of the download, as YYYY-MM-DD."""
    files: dict[str, _Digest]
    """The SHA-256 of each file by its name in the repository, with `/` between folders."""

    def write(self, folder: Path) -> None:
        """Write the lock into the folder of the fetched model."""
        (folder / LOCK_NAME).write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")


def read_lock(folder: Path) -> Lock | None:
    """Return the lock in a folder; None if there is none. Raises UsageError for an invalid one."""
    path = folder / LOCK_NAME
    try:
        if not path.is_file():
            return None
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} must be at most {MAX_BYTES:,} bytes long. Fetch the model again.")
        return Lock.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"Cannot read {path} ({error.strerror}).") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = " ".join(".".join(map(str, first["loc"])).split()) or "the file"  # a key may contain line breaks
        raise UsageError(f"{path} is invalid ({place}: {first['msg']}). Fetch the model again.") from None
