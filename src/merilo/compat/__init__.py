"""Names of other packages, so that their scripts run after their import lines are changed.

Its modules are those of the plug-in `compat`, under the names here. The stubs in this folder are for type checkers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, cast

from merilo.plugins import PUBLISHED, Group, plugin

if TYPE_CHECKING:
    from types import ModuleType

_part = cast("ModuleType | None", plugin(Group.PARTS, "compat"))
if _part is None:
    raise ImportError(f"The names of other packages are in {PUBLISHED}.")
__path__ = [*_part.__path__]
import_module(f"{__name__}.missing").cover(__name__)
