"""Who may ask, and what the answers forbid the browser to do."""

import hmac
import secrets
from urllib.parse import urlencode

from starlette.datastructures import URL, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# A page of a stranger may let its own name point to this machine; then the browser sends that name (DNS rebinding).
OUR_NAMES = ("127.0.0.1", "localhost", "::1")
READING = ("GET", "HEAD")
COOKIE = "sleuth-ui"
HEADERS = {
    # Plotly sets styles on the elements that it draws; scripts come from our own files alone.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
NO_TOKEN = "This address needs its token. Open the whole address that `sleuth ui` printed: it ends in ?token=…\n"


class Guard:
    """In front of everything. The token of the printed address is traded for a cookie at the first visit."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, token
        self._pass = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in {**HEADERS, "Cache-Control": "no-store"}.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._refusal(Request(scope)) or self.app
        await answer(scope, receive, send_guarded)

    def _refusal(self, request: Request) -> Response | None:
        """What is answered instead of a page; None: the page."""
        if _name_of(request.headers.get("host", "")) not in OUR_NAMES:
            return PlainTextResponse("This server answers to 127.0.0.1 and localhost only.\n", 403)
        if request.method not in READING:
            return PlainTextResponse("This server only shows; it changes nothing.\n", 405, {"Allow": ", ".join(READING)})
        given = request.query_params.get("token")
        if given is not None:
            return self._admission(request) if _same(given, self.token) else PlainTextResponse(NO_TOKEN, 403)
        if not _same(request.cookies.get(self._cookie(request), ""), self._pass):
            return PlainTextResponse(NO_TOKEN, 403)
        return None

    def _admission(self, request: Request) -> Response:
        """Back to the same page without the token, which then stands in no history and in no bookmark."""
        rest = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != "token"])
        # Of the address only the path is taken: `//elsewhere` would lead away.
        path = "/" + request.url.path.lstrip("/\\")
        answer = RedirectResponse(str(URL(path).replace(query=rest)), 303)
        answer.set_cookie(self._cookie(request), self._pass, httponly=True, samesite="lax")
        return answer

    def _cookie(self, request: Request) -> str:
        """A browser keeps the cookies of all ports together: two dashboards must not throw out each other's."""
        server = request.scope.get("server")
        return f"{COOKIE}-{server[1] if server else 0}"


def _same(given: str, wanted: str) -> bool:
    """Takes as long for a guess that is nearly right as for any other."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


def _name_of(host: str) -> str:
    """Without the port, which differs where the server is reached through a tunnel."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host
