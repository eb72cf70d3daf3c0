"""Check each page of the built site in headless Chromium.

The check shows each page in a wide window with light colors, and in a window of a phone's width with dark colors. A
page must not write an error to the console, request another host, be wider than its window, or have a broken link
within the site. The search of the site must find numbers. The environment variable ``SITE`` replaces the folder
``build/site``.

Examples
--------
    pip install pytest-playwright        # and a Chromium: apt-get install chromium
    pytest evaluation/check_site.py      # --screenshot on --output FOLDER keeps pictures
"""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from playwright.sync_api import Page, expect

SITE = Path(os.environ.get("SITE", Path(__file__).parent.parent / "build" / "site"))
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
SEARCHES = {  # SEARCHES maps a query to the page that must be among the first three results.
    "715": "errors/715.html",
    "CUDA error 719": "errors/719.html",
    "700 illegal memory access": "errors/700.html",
    "fence_proxy_async": "headers/fence.html",
}
WIDE_ELEMENTS = """() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const wide = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > width + 1);
    return ['the page', ...wide.slice(0, 3).map(e => e.tagName + '.' + e.className)];
}"""


class Server(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        """Print no log line for a request."""


@pytest.fixture(scope="session")
def base_url() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, object]:
    return {"executable_path": shutil.which("chromium") or shutil.which("google-chrome"), "args": ["--no-sandbox"]}


@functools.cache
def anchors_of(page: str) -> set[str]:
    return {*re.findall(r'\bid="([^"]+)"', (SITE / page).read_text())}


def dead_links(page: Page, base_url: str) -> Iterator[str]:
    for url in page.eval_on_selector_all("a[href]", "all => all.map(e => e.href)"):
        target, anchor = urldefrag(url.removeprefix(f"{base_url}/"))
        is_page = url.startswith(base_url) and target.endswith(".html")
        if is_page and (target not in PAGES or (anchor and unquote(anchor) not in anchors_of(target))):
            yield f"a dead link: {url}"


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_a_page(page: Page, base_url: str, name: str, width: int, theme: str) -> None:
    wrong: list[str] = []
    page.set_viewport_size({"width": width, "height": 900})
    page.add_init_script(f"localStorage.setItem('mode', '{theme}'); localStorage.setItem('theme', '{theme}')")
    page.route("**/favicon.ico", lambda route: route.fulfill(status=204))  # The check ignores the request for an icon.
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request", lambda asked: None if asked.url.startswith((base_url, "data:", "blob:")) else wrong.append(asked.url)
    )
    page.goto(f"/{name}")
    assert [*wrong, *page.evaluate(WIDE_ELEMENTS), *dead_links(page, base_url)] == []


@pytest.mark.parametrize(("query", "wanted"), SEARCHES.items())
def test_the_search(page: Page, query: str, wanted: str) -> None:
    page.goto(f"/search.html?q={query.replace(' ', '+')}")
    expect(page.locator("#search-results .search-summary")).not_to_be_empty()
    page.wait_for_function("() => !document.querySelector('#search-progress')?.textContent.endsWith('.')")
    found = page.eval_on_selector_all("#search-results li a", "all => all.map(e => e.href)")
    assert any(urldefrag(url)[0].split("?")[0].endswith(wanted) for url in found[:3]), found[:3]
