"""Look at the built site in headless Chromium: every page, wide and light, and dark and as narrow as a phone.

No page may write an error to the console, ask another host for anything, be wider than its window, or have a link
within the site that leads nowhere; and the search has to find numbers. Needs ``pip install playwright`` and a Chromium
(``apt-get install chromium``, or ``--chromium``); ``--screenshots FOLDER`` keeps pictures of some
pages, in both themes at both widths.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urldefrag

from playwright.sync_api import Browser, Page, Request, sync_playwright

__all__ = ["main"]

Theme = Literal["light", "dark"]
SITE = Path(__file__).parent.parent / "build" / "site"
VIEWS = ((1280, "light"), (390, "dark"))
SHOWN_VIEWS = (*VIEWS, (1280, "dark"), (390, "light"))
SHOWN = ["index", "tutorial/01-first-load", "reference/maps", "errors/715", "headers/barrier", "sanitizer"]
SEARCHES = {  # what people look for, and the page that must be among the first three
    "715": "errors/715.html",
    "CUDA error 719": "errors/719.html",
    "700 illegal memory access": "errors/700.html",
    "fence_proxy_async": "headers/fence.html",
}
FIND_OVERFLOW = """() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return null;
    const wide = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > width + 1);
    return wide.slice(0, 3).map(e => e.tagName + '.' + e.className).join(', ') || 'the page';
}"""


def main() -> int:
    """Returns the exit status: 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, default=SITE)
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--screenshots", type=Path)
    parser.add_argument("--pages", nargs="*", help="these alone, such as errors/715")
    given = parser.parse_args()
    paths = (path.relative_to(given.site).as_posix() for path in given.site.rglob("*.html"))
    pages = sorted(path for path in paths if not path.startswith("_static/"))
    chosen = [page for page in pages if not given.pages or page.removesuffix(".html") in given.pages]
    with _served(given.site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=given.chromium, args=["--no-sandbox"])
        wrong = list(_looked_through(browser, address, chosen, pages))
        wrong += _searched(browser, address)
        if given.screenshots:
            _take_pictures(browser, address, given.pages or SHOWN, given.screenshots)
        browser.close()
    print("\n".join(wrong) if wrong else f"{len(chosen)} pages, {len(SEARCHES)} searches: nothing wrong")
    return 1 if wrong else 0


@contextmanager
def _served(site: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        """As always, but that a page without an icon (browsers ask for one) has none."""
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *words: object) -> None:
        """Nothing."""


def _looked_through(browser: Browser, address: str, pages: list[str], there: list[str]) -> Iterator[str]:
    anchors: dict[str, set[str]] = {}
    links: set[tuple[str, str]] = set()
    for width, theme in VIEWS:
        page = _window(browser, width, theme)
        heard = _listen(page, address)
        for name in pages:
            page.goto(f"{address}/{name}")
            yield from (f"{name}, {width} pixels, {theme}: {words}" for words in heard)
            heard.clear()
            if wide := page.evaluate(FIND_OVERFLOW):
                yield f"{name}: wider than {width} pixels: {wide}"
            if (width, theme) == VIEWS[0]:
                anchors[name] = set(page.eval_on_selector_all("[id]", "all => all.map(e => e.id)"))
                links |= {(name, to) for to in page.eval_on_selector_all("a[href]", "all => all.map(e => e.href)")}
        page.close()
    yield from _dead(links, anchors, address, there)


def _window(browser: Browser, width: int, theme: Theme) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    page.add_init_script(f"localStorage.setItem('mode', '{theme}'); localStorage.setItem('theme', '{theme}')")
    return page


def _take_pictures(browser: Browser, address: str, pages: list[str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for width, theme in SHOWN_VIEWS:
        page = _window(browser, width, theme)
        for name in pages:
            page.goto(f"{address}/{name}.html")
            page.screenshot(path=str(folder / f"{name.replace('/', '-')}-{width}-{theme}.png"))
        page.close()


def _listen(page: Page, address: str) -> list[str]:
    """What a page says is wrong, as it comes."""
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("requestfailed", lambda request: None if _is_given_up(request) else heard.append(f"no {request.url}"))
    page.on("request", lambda asked: None if _is_local(asked.url, address) else heard.append(f"asks for {asked.url}"))
    return heard


def _is_given_up(request: Request) -> bool:
    """Whether the browser itself stopped it, as it went to the next page."""
    return request.failure == "net::ERR_ABORTED"


def _is_local(url: str, address: str) -> bool:
    return url.startswith((address, "data:", "blob:"))


def _dead(links: set[tuple[str, str]], anchors: dict[str, set[str]], address: str, pages: list[str]) -> Iterator[str]:
    """Links of the site to a page or a place in it that is not there."""
    for name, url in sorted(links):
        if url.startswith(address):
            target, anchor = urldefrag(url.removeprefix(f"{address}/"))
            if target.endswith(".html") and target not in pages:
                yield f"{name}: a dead link, {target}"
            elif anchor and target in anchors and unquote(anchor) not in anchors[target]:
                yield f"{name}: a link to a place that is not there, {target}#{anchor}"


def _searched(browser: Browser, address: str) -> Iterator[str]:
    page = browser.new_page()
    for query, wanted in SEARCHES.items():
        page.goto(f"{address}/search.html?q={query.replace(' ', '+')}")
        page.wait_for_selector("#search-results .search-summary:not(:empty)")
        page.wait_for_function("() => !document.querySelector('#search-progress')?.textContent.endsWith('.')")
        found = page.eval_on_selector_all("#search-results li a", "all => all.map(e => e.href)")
        if not any(urldefrag(url)[0].split("?")[0].endswith(wanted) for url in found[:3]):
            yield f"search for {query!r}: {wanted} is not among the first three: {found[:3]}"


if __name__ == "__main__":
    sys.exit(main())
