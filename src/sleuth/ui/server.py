"""Pages, files and data over HTTP: everything is read, nothing is written, nobody else is asked."""

import importlib.util
import secrets
import socket
from importlib.metadata import version
from importlib.resources import files
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sleuth.core.errors import UnusableInput
from sleuth.ui.answer import Answer, answer_of
from sleuth.ui.board import Board, open_board
from sleuth.ui.guard import Guard

STATIC = Path(str(files("sleuth.ui") / "static"))
VIEWS = Path(str(files("sleuth.views")))
# Its address holds the version: a browser keeps it for good.
PLOTLY = f"plotly-{version('plotly')}.min.js"
HOST = "127.0.0.1"
# Where others may be asked for instead if somebody has the first.
PORT = 8877
PORTS_TRIED = 50


def application(board: Board, token: str) -> ASGIApp:
    html = (STATIC / "index.html").read_text(encoding="utf-8").replace("PLOTLY", PLOTLY)

    def page(request: Request) -> Response:
        return HTMLResponse(html)

    def runs(request: Request) -> Response:
        return _reply(request, board.listing())

    def run(request: Request) -> Response:
        return _reply(request, board.run(_known(board, request.path_params["name"])))

    def charts(request: Request) -> Response:
        return _reply(request, board.charts(_known(board, request.path_params["name"]), request.path_params["group"]))

    def comparison(request: Request) -> Response:
        names = [_known(board, name) for name in request.query_params.getlist("run")]
        return _reply(request, board.compare(names))

    routes = [
        Route("/", page),
        Route("/runs/{name}", page),
        Route("/compare", page),
        Route("/api/runs", runs),
        Route("/api/runs/{name}", run),
        Route("/api/runs/{name}/charts/{group}", charts),
        Route("/api/compare", comparison),
        *(Route(f"/static/{name}", _file(path)) for name, path in _files().items()),
    ]
    handlers: Any = {LookupError: _absent, UnusableInput: _unusable}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), token)


def serve(folder: Path, port: int | None) -> None:
    """Until Ctrl-C. Prints the address with its token to standard output."""
    import uvicorn

    board, token = open_board(folder), secrets.token_urlsafe(24)
    listening = _listen(port)
    print(f"sleuth ui · {board.runs.folder}\nhttp://{HOST}:{listening.getsockname()[1]}/?token={token}", flush=True)
    print("Ctrl-C ends it. The address is good for whoever has it: it shows your runs and changes nothing.", flush=True)
    settings = uvicorn.Config(
        application(board, token), log_level="warning", access_log=False, server_header=False, ws="none", lifespan="off",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    try:
        uvicorn.Server(settings).run(sockets=[listening])
    finally:
        listening.close()


def _listen(port: int | None) -> socket.socket:
    """On this machine alone. A port that was asked for is taken or refused; else the next free one is found."""
    wanted = [port] if port is not None else [*range(PORT, PORT + PORTS_TRIED), 0]
    for candidate in wanted:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, candidate))
        except OSError:
            listening.close()
        else:
            listening.listen(128)
            return listening
    raise UnusableInput(f"port {port} is taken; leave --port out and a free one is found.")


def _files() -> dict[str, Path]:
    """By the name in their address: these, and no other file of the disk."""
    plotly = importlib.util.find_spec("plotly")
    if plotly is None or plotly.origin is None:
        raise UnusableInput("the dashboard needs plotly: pip install 'sleuth[ui]'.")
    own = {name: STATIC / name for name in ("style.css", "app.js", "icon.svg")}
    shared = {"page.css": VIEWS / "webpage" / "page.css", "charts.js": VIEWS / "charts" / "charts.js"}
    return {**own, **shared, PLOTLY: Path(plotly.origin).parent / "package_data" / "plotly.min.js"}


def _file(path: Path) -> Any:
    """In memory: the largest is asked for by every first visit, and comes at once."""
    kept = {"Cache-Control": "private, max-age=31536000, immutable"} if path.name == "plotly.min.js" else None
    kind, body = guess_type(path.name)[0], path.read_bytes()
    answer = answer_of(body)

    async def send(request: Request) -> Response:
        return _reply(request, answer, kind or "text/plain", kept)

    return send


def _known(board: Board, name: str) -> str:
    if not board.runs.has(name):
        raise LookupError(name)
    return name


def _reply(request: Request, answer: Answer, kind: str = "application/json", more: dict[str, str] | None = None) -> Response:
    """A browser that has it already is told so, in no bytes."""
    tag = f'"{answer.tag}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache", **(more or {})}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(answer.body, media_type=kind, headers=headers)


def _absent(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "There is no such run here."}, 404)


def _unusable(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 422)
