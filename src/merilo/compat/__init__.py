"""Names of other packages, so that their scripts run after their import lines are changed.

Its modules are those of the plug-in `compat`, under the names here. The stubs in this folder are for type checkers.
"""

from importlib import import_module
from types import ModuleType

from merilo.plugins import Group, plugin

_part = plugin(Group.PARTS, "compat")
if not isinstance(_part, ModuleType):
    raise ImportError("The names of other packages are in the package merilo_published, which is not installed.")
__path__ = [*_part.__path__]
import_module(f"{__name__}.missing").cover(__name__)
