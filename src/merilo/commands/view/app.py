"""The pages of `merilo view` as an ASGI application, and the runs below its directory.

A run is addressed by an id, which is looked up among the runs that were found. So no address can name another path.

A page is one entry of `PAGES`. Its function runs in a thread, and its errors become a page that says what is wrong.
"""

from __future__ import annotations

import hmac
import logging
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from html import unescape
from threading import Lock
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from merilo.bounded_cache import BoundedCache
from merilo.commands.calibrate.correction import corrected_of
from merilo.commands.report.run_page import report_text
from merilo.commands.runs.run import ListedRun, State, listed_run, run_directories
from merilo.errors import MeriloError, UsageError
from merilo.metrics.registry import asks_judge
from merilo.numbers import count, money
from merilo.rendering.markup import drawn, page
from merilo.results.estimate import BY_JUDGE
from merilo.results.means import WeakMarks, corrected_aggregates, weak_legend
from merilo.runs.files import LABELS, MANIFEST, OUTCOMES, SEAL, STORE, SUMMARY, USAGE, is_locked
from merilo.runs.run import Run
from merilo.runs.seal import stamp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_MAX_COMPARED: Final = 10
_MAX_BYTES: Final = 64 * 2**20
"""Size of all pages that are held: a report on 10,000 samples may have 20 MB."""
_BODY: Final = "<body>"
_log = logging.getLogger("merilo")
Stamps = tuple[tuple[int, ...], ...]
_Key = tuple[tuple["Path", ...], tuple[Stamps, ...]]


def _report(key: _Key) -> bytes:
    paths, _ = key
    before, body, after = report_text(paths).partition(_BODY)
    return f"{before}{body}\n{drawn('back.html').rstrip()}{after}".encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Site:
    """The runs, and the pages made of them: the most recently used ones are held."""

    catalog: Catalog
    pages: BoundedCache[_Key, bytes] = field(
        default_factory=lambda: BoundedCache(_report, size=lambda _, page: len(page), max_size=_MAX_BYTES)
    )

    def report(self, *runs: ViewedRun) -> Response:
        """Return the report on a run, or the comparison of each other run with the first, with a link to the list.

        It is made again if a file of a run changed. Raises the errors of `report_text`.
        """
        paths = tuple(run.listed.path for run in runs)
        return html(self.pages[paths, tuple(map(stamps_of, paths))])


class UnknownPage(Exception):
    """There is no such page."""


def run_list(site: Site, request: Request) -> Response:
    """Return the list of runs."""
    del request
    return html(list_page(site.catalog.directory, site.catalog.runs()))


def run_report(site: Site, request: Request) -> Response:
    """Return the report on a run."""
    run = _named(site.catalog.runs(), request.path_params["run"])
    if run.listed.state is State.RUNNING:
        raise UsageError("The run is still being written. Reload this page when it is finished.")
    return site.report(run)


def comparison(site: Site, request: Request) -> Response:
    """Return the comparison of the newest of the named runs with the others."""
    runs = site.catalog.runs()
    wanted = {_named(runs, value).id for value in request.query_params.getlist("run")}
    if not 2 <= len(wanted) <= _MAX_COMPARED:
        raise UsageError(f"Choose 2 to {_MAX_COMPARED} runs to compare; {len(wanted)} are chosen.")
    return site.report(*(run for run in runs if run.id in wanted))


PAGES: Final = {"/": run_list, "/runs/{run}": run_report, "/compare/": comparison}
"""Path → the function that answers. Links are relative: they lack the secret."""


def create_app(directory: Path, secret: str, port: int) -> ASGIApp:
    """Return the application for the runs below a directory, served on this port of 127.0.0.1.

    `secret`: the first part of every path.
    """
    site = Site(Catalog(directory))
    routes = [Route(path, _endpoint(answer, site), methods=["GET"]) for path, answer in PAGES.items()]
    pages = Starlette(routes=routes, exception_handlers={HTTPException: _http_error})
    return Guard(pages, own_hosts(port), secret)


def html(page: str | bytes, status: int = 200) -> Response:
    """Return a page with the content security policy of its head as a header, which also forbids frames."""
    content = page if isinstance(page, bytes) else page.encode("utf-8", "replace")
    return Response(content, status, policy_headers(content), "text/html")


def _endpoint(answer: Callable[[Site, Request], Response], site: Site) -> Callable[[Request], Awaitable[Response]]:
    async def answered(request: Request) -> Response:
        return await run_in_threadpool(_answered, answer, site, request)

    return answered


def _answered(answer: Callable[[Site, Request], Response], site: Site, request: Request) -> Response:
    try:
        return answer(site, request)
    except UnknownPage as error:
        return html(error_page("Not found", str(error)), 404)
    except MeriloError as error:
        return html(error_page("This cannot be shown", str(error)), 422)
    except Exception as error:  # noqa: BLE001  damaged files may raise anything; the other pages still work
        _log.exception("A page could not be made.")
        problem = f"{type(error).__name__}: {error}"
        return html(
            error_page("This cannot be shown", f"It may be damaged ({problem}). Check it: merilo runs verify."), 422
        )


async def _http_error(request: Request, error: Exception) -> Response:
    back = "../" * (request.scope["path"].count("/") - 1) or "./"
    status, detail = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "")
    if status == 404:
        detail = "There is no such page."
    return html(error_page("Not found" if status == 404 else "This cannot be shown", detail, back), status)


def _named(runs: Sequence[ViewedRun], run_id: str) -> ViewedRun:
    found = next((run for run in runs if run.id == run_id), None)
    if found is None:
        raise UnknownPage("There is no such run. It may have been moved or deleted since the list was made.")
    return found


_SAFE: Final = frozenset({"GET", "HEAD"})
_OWN_SITE: Final = frozenset({"", "none", "same-origin"})
"""Values of `Sec-Fetch-Site` for our pages, a typed address, and clients that do not send it."""
_POLICY: Final = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_REFUSAL: Final = (
    "Open the whole address that merilo view printed when it started. It is new whenever the server starts."
)
NO_CONTENT: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The policy of a response that does not set one."""
_ADDED: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def policy_headers(page: bytes) -> dict[str, str]:
    """Return the content security policy in the head of a page of ours as a header, which also forbids frames."""
    found = _POLICY.search(page[:2_000].decode("utf-8", "replace"))
    policy = NO_CONTENT if found is None else f"{unescape(found[1])}; frame-ancestors 'none'"
    return {"Content-Security-Policy": policy}


def own_hosts(port: int) -> frozenset[str]:
    """Return the values of `Host` that name a server on this port of this machine."""
    names = ("127.0.0.1", "localhost")
    return frozenset([*(f"{name}:{port}" for name in names), *(names if port == 80 else ())])


def refusal(method: str, headers: Headers, hosts: frozenset[str]) -> str | None:
    """Return the reason why a request is refused; None if it is allowed."""
    named = [each.lower() for each in headers.getlist("host")]
    if len(named) != 1 or named[0] not in hosts:
        return "This server answers to 127.0.0.1 and localhost on its own port only."
    if any(each.lower() not in {f"http://{host}" for host in hosts} for each in headers.getlist("origin")):
        return "The request comes from another site."
    # A link opens its page as a whole, not inside another one.
    whole = headers.get("sec-fetch-dest", "document") == "document"
    link = method in _SAFE and headers.get("sec-fetch-mode") == "navigate" and whole
    if headers.get("sec-fetch-site", "") not in _OWN_SITE and not link:
        return "The request comes from another site."
    return None


@dataclass(frozen=True, slots=True)
class Guard:
    """An ASGI application that passes allowed requests on to another one, and adds security headers to each response.

    Each request needs our `Host`, so no other name can be made to lead here, and our `Origin` if it has one. Requests
    that another site makes a browser send are refused, except a plain link to a page. Every path begins with the secret
    of the server, which only the address that `merilo view` prints has. A cookie would be sent to the servers on other
    ports, too. So other users of the machine see nothing, and no page can forget the check.
    """

    app: ASGIApp
    hosts: frozenset[str]
    secret: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":  # the server is started without lifespan and web sockets
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", NO_CONTENT)
                for name, value in _ADDED.items():
                    headers[name] = value
            await send(message)

        await self._chosen(scope)(scope, receive, guarded)

    def _chosen(self, scope: Scope) -> ASGIApp:
        """Return what answers a request: the application, which gets the path without the secret, or a refusal."""
        if reason := refusal(scope["method"], Headers(scope=scope), self.hosts):
            return PlainTextResponse(reason + "\n", status_code=403)
        first, slash, rest = scope["path"].removeprefix("/").partition("/")
        scope["path"] = f"/{rest}"  # in place: --debug logs it
        if slash and self._is_secret(first):
            return self.app
        return html(error_page("Not let in", _REFUSAL), 403)

    def _is_secret(self, text: str) -> bool:
        """Return True for the secret. The comparison takes the same time for every other text of its length."""
        return hmac.compare_digest(text.encode("utf-8", "surrogatepass"), self.secret.encode())


_FILES: Final = (SEAL, MANIFEST, SUMMARY, USAGE, LABELS, OUTCOMES, STORE)
_ID_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class ViewedRun:
    """A run in the list."""

    id: str
    """Names the run in addresses; a digest of its place in the directory."""
    name: str
    listed: ListedRun


def stamps_of(path: Path) -> Stamps:
    """Return times and sizes of a run's files, which change if a page about the run may change."""
    return tuple(stamp(path / name) for name in _FILES)


class Catalog:
    """The runs below a directory, for several threads."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = Lock()
        self._listed: dict[Path, tuple[Stamps, ListedRun]] = {}

    def runs(self) -> tuple[ViewedRun, ...]:
        """Return all runs, the newest first."""
        with self._lock:
            found = [self._viewed(path) for path in run_directories(self.directory)]
        return tuple(sorted(found, key=lambda run: (-run.listed.changed.timestamp(), run.name)))

    def _viewed(self, path: Path) -> ViewedRun:
        inside = path.relative_to(self.directory).as_posix()
        name = path.resolve().name if inside == "." else inside
        run_id = blake2b(inside.encode("utf-8", "surrogatepass"), digest_size=_ID_BYTES).hexdigest()
        now = stamps_of(path)
        if path not in self._listed or self._listed[path][0] != now or is_locked(path):
            self._listed[path] = now, _listed(path)
        return ViewedRun(run_id, name, self._listed[path][1])


def _listed(path: Path) -> ListedRun:
    try:
        found = listed_run(path)
    except Exception as error:  # noqa: BLE001  whatever is wrong with one run must not hide the others
        reason = f"{path} cannot be read ({type(error).__name__}: {error})."
        return ListedRun(path, State.UNREADABLE, datetime.fromtimestamp(0, UTC), reason)
    return _corrected(found) if found.state is State.FINISHED and (path / LABELS).exists() else found


def _corrected(found: ListedRun) -> ListedRun:
    """Return the run with the means that the human labels stored with it correct; unchanged if they cannot be read."""
    try:
        run = Run.open(found.path)
        corrections = corrected_of(run)
        rows = corrected_aggregates(tuple(run.metrics.values()), corrections)
    except Exception:  # noqa: BLE001  the page of the run says what is wrong
        return found
    return replace(
        found,
        means={row.metric: row.mean for row in rows},
        intervals={row.metric: row.interval for row in rows if row.interval},
        corrected=frozenset(metric for metric, each in corrections.items() if each.estimate is not None),
    )


SHOWN: Final = 500
"""Number of runs in the list, the newest ones."""
_COLUMNS: Final = 6
_CHIPS: Final = {
    State.RUNNING: ("good", "\u25b6", "running"),
    State.INTERRUPTED: ("warn", "!", "interrupted"),
    State.UNREADABLE: ("bad", "\u2717", "unreadable"),
}


def list_page(directory: Path, runs: Sequence[ViewedRun]) -> str:
    """Return the list of runs, the newest first."""
    shown = runs[:SHOWN]
    metrics, marks = _columns(shown), WeakMarks(frozenset[str]().union(*(run.listed.weak for run in shown)))
    judged = f"Means of judged metrics are {BY_JUDGE}, except those marked as corrected by human labels."
    notes = [
        judged if any(map(asks_judge, metrics)) else "",
        weak_legend(metric for metric in metrics if metric in marks.weak),
    ]
    return page(
        "list.html",
        scripts=("view.js",),
        sheet="view.css",
        served=True,
        directory=str(directory),
        total=len(runs),
        rows=[_row(run, metrics) for run in shown],
        heads=[*map(marks.name, metrics)],
        notes=" ".join(filter(None, notes)),
    )


def error_page(title: str, message: str, back: str = "../") -> str:
    """Return a page that says what is wrong, with a link to the list."""
    return page("error.html", sheet="view.css", served=True, title=title, message=message, back=back)


def _columns(runs: Sequence[ViewedRun]) -> list[str]:
    """Return the metrics that most runs have: corrected ones first, weak ones last, half of them without a judge."""
    corrected = frozenset[str]().union(*(run.listed.corrected for run in runs))
    having = Counter(metric for run in runs for metric in run.listed.means)
    weak = Counter(metric for run in runs for metric in run.listed.means if metric in run.listed.weak)
    places = {metric: at for run in reversed(runs) for at, metric in enumerate(run.listed.means)}
    order = sorted(having, key=lambda each: (2 * weak[each] > having[each], each not in corrected, -having[each]))
    by_rule = [each for each in order if not asks_judge(each)][: _COLUMNS // 2]
    return sorted([*by_rule, *(each for each in order if each not in by_rule)][:_COLUMNS], key=places.__getitem__)


def _row(run: ViewedRun, metrics: Sequence[str]) -> tuple[object, ...]:
    """Return the run, if it can be compared, its state, what it is about, and its means, corrected or not."""
    own = run.listed
    comparable = own.done is not None and own.state in {State.FINISHED, State.INTERRUPTED}
    means = [(metric, own.means.get(metric), "corrected" * (metric in own.corrected)) for metric in metrics]
    return run, comparable, _CHIPS.get(own.state), _about(run), means


def _about(run: ViewedRun) -> str:
    """Return samples, judge, failures and cost in a line."""
    listed = run.listed
    parts = [listed.data or ""]
    if listed.samples is not None:
        part = "" if listed.done in {None, listed.samples} else f"{listed.done:,} of "
        parts.append(f"{part}{count(listed.samples, 'sample')}")
    parts += [listed.by, f"{listed.failed:,} failed" if listed.failed else ""]
    if listed.cost_usd:
        parts.append(f"${money(listed.cost_usd)}")
    return " \u00b7 ".join(filter(None, parts))
