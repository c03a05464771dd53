"""Texts that would run a script in a page that did not escape them."""

_PARTS = (
    "<script>{0}</script>",
    "<img src=x onerror={0}>",
    "<svg onload={0}>",
    "<iframe srcdoc='<script>parent.{0}</script>'></iframe>",
    "<a href='javascript:{0}'>x</a>",
    "</script><script>{0}</script>",
    "</textarea><body onload={0}>",
    "\\u003cscript\\u003e{0}\\u003c/script\\u003e",
    "' onfocus='{0}' autofocus='",
    '" onmouseover="{0}" style="width:9999px',
)
_FRAMES = (
    "{0}",
    "-->{0}<!--",
    "]]>{0}",
    "</style>{0}",
    "</title>{0}",
    "&lt;{0}&#x3e;",
    "\u202e{0}\u2066",
    "\x1b[31m{0}\x01\x07",
    "{{{{7*7}}}}${{{0}}}",
    "javascript:/*{0}*/",
)
_CANARIES = ("canary()", "window.canary()")
HOSTILE = [frame.format(part.format(call)) for frame in _FRAMES for part in _PARTS for call in _CANARIES]
"""200 texts; each calls `canary` if it runs."""
