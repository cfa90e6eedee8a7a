"""Who is let in, and to what."""

import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from sleuth.ui.board import open_board
from sleuth.ui.server import application
from tests.ui.conftest import SLOW

TOKEN = "the-right-token"


@pytest.fixture
def stranger(runs: Path) -> TestClient:
    return TestClient(application(open_board(runs), TOKEN), base_url="http://127.0.0.1:8877", follow_redirects=False)


@pytest.fixture
def guest(stranger: TestClient) -> TestClient:
    stranger.get("/", params={"token": TOKEN})
    return stranger


@pytest.mark.parametrize(
    "path", ["/", "/compare", f"/runs/{SLOW}", "/api/runs", f"/api/runs/{SLOW}", "/static/app.js", "/no-such"]
)
def test_nothing_is_shown_without_a_token(stranger: TestClient, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 403
    assert SLOW not in answer.text


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", "ü"])
def test_a_wrong_token_is_refused_and_earns_no_cookie(stranger: TestClient, token: str) -> None:
    assert stranger.get("/", params={"token": token}).status_code == 403
    assert not stranger.cookies


def test_a_wrong_token_is_refused_beside_a_right_cookie(guest: TestClient) -> None:
    assert guest.get("/api/runs?token=wrong").status_code == 403


def test_a_forged_cookie_is_refused(stranger: TestClient) -> None:
    stranger.cookies.set("sleuth-ui-8877", TOKEN)
    assert stranger.get("/api/runs").status_code == 403


def test_the_token_is_traded_for_a_cookie_and_leaves_the_address(stranger: TestClient) -> None:
    answer = stranger.get(f"/compare?run=a&token={TOKEN}&run=b")
    assert (answer.status_code, answer.headers["location"]) == (303, "/compare?run=a&run=b")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert TOKEN not in cookie
    assert stranger.get("/api/runs").status_code == 200


def test_the_way_back_never_leads_to_another_server(stranger: TestClient) -> None:
    answer = stranger.get(f"http://127.0.0.1:8877//evil.example/?token={TOKEN}")
    assert answer.headers["location"].startswith("/evil")


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8877", "", "10.0.0.1", "[::2]"]
)
def test_another_host_name_is_refused_even_with_the_cookie(guest: TestClient, host: str) -> None:
    assert guest.get("/api/runs", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1", "[::1]:8877"])
def test_names_of_this_machine_are_served(stranger: TestClient, host: str) -> None:
    answer = stranger.get(f"/?token={TOKEN}", headers={"host": host})
    assert answer.status_code == 303


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_only_reading_is_allowed(guest: TestClient, method: str) -> None:
    for path in ("/api/runs", f"/?token={TOKEN}"):
        assert guest.request(method, path).status_code == 405


@pytest.mark.parametrize("name", ["%2e%2e", "..%2f..%2fetc", "%2fetc%2fpasswd", "outside", "no-such"])
def test_paths_outside_the_folder_are_refused(guest: TestClient, runs: Path, name: str) -> None:
    target = runs.parent / "outside"
    if not target.exists():
        shutil.copytree(runs / SLOW, target)
        (runs / "outside").symlink_to(target)
    for path in (
        f"/api/runs/{name}",
        f"/api/runs/{name}/charts/curves",
        f"/api/compare?run={SLOW}&run={name}",
        f"/static/{name}",
    ):
        assert guest.get(path).status_code == 404, path
    for given in ("..", ".", "", "../outside", str(target), f"{SLOW}/../{SLOW}"):
        with pytest.raises(LookupError):
            open_board(runs).runs.file(given)


def test_a_file_that_is_linked_from_outside_makes_no_run(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rank0.sqlite").symlink_to(runs / SLOW / "rank0.sqlite")
    assert open_board(tmp_path).runs.names() == []


@pytest.mark.parametrize("path", ["/", "/api/runs", "/static/app.js", "/no-such"])
def test_every_answer_forbids_foreign_and_inline_scripts(guest: TestClient, path: str) -> None:
    headers = guest.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["script-src"] == "'self'"
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_the_page_holds_no_script_of_its_own(guest: TestClient) -> None:
    page = guest.get("/").text
    assert "<script>" not in page
    assert " onclick" not in page
    assert "http:" not in page.replace("http://www.w3.org", "")


def test_what_has_not_changed_is_not_sent_again(guest: TestClient) -> None:
    path = f"/api/runs/{SLOW}/charts/curves"
    tag = guest.get(path).headers["etag"]
    again = guest.get(path, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
