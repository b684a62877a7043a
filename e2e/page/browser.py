"""The live page in a real browser: what a person would try, with the real program behind it.

    browser.py TULPAR [--shots DIR] [--large]

Needs Debian's chromium and Python's playwright. Everything is made in a temporary folder. Figures are printed, not judged.
"""

import argparse
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from playwright.sync_api import sync_playwright

TOKEN = "page-test"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}

WORKFLOW = """
workflow: galaxy
tasks:
  split:
    out: {parts: parts.txt}
    run: seq 1 10 > {parts}
  clean:
    for: {part: 1..4}
    in: [split.parts]
    out: {clean: "clean-{part}.txt"}
    run: "cat {parts} > {clean}"
  train:
    for: {lr: [0.1, 0.01]}
    in: [clean.clean]
    out: {model: "model-{lr}.bin"}
    run: |
      echo "epoch 1"
      if [ {lr} = 0.1 ]; then echo "ValueError: <script>alert(1)</script> loss is nan" >&2; exit 3; fi
      cat {clean} > {model}
  evaluate:
    in: [train.model]
    out: {score: score.txt}
    run: cat {model} > {score}
"""

# Each task goes on when the test says so.
GATED = """
workflow: gated
tasks:
  wait:
    for: {n: 1..3}
    cpus: 0.1
    out: {o: "out-{n}"}
    run: "echo waiting for {n}; while [ ! -e ROOT/gate-{n} ]; do sleep 0.05; done; echo through; touch {o}"
"""

TUNING = """
workflow: tuning
tasks:
  search:
    search: {trials: 24, parallel: 2, minimize: loss, seed: 2, space: {lr: "log(1e-5, 1e-1)", layers: "int(1, 8)", optimizer: [adam, sgd]}}
    run: |
      [ {trial} != 5 ] || exit 3
      awk -v lr={lr} -v l={layers} 'BEGIN { b = (log(lr) / log(10) + 3) ^ 2 / 5 + (l - 5) ^ 2 / 30; \\
        for (s = 1; s <= 9; s++) printf "{\\"step\\": %d, \\"loss\\": %.4f}\\n", s, b + 1 / s; printf "{\\"loss\\": %.4f}\\n", b }'
"""

MANY = """
workflow: many
params: {n: 5000}
tasks:
  make:
    for: {i: 1..n}
    out: {a: "a-{i}"}
    run: touch {a}
  use:
    for: {i: 1..n}
    in: [make.a]
    out: {b: "b-{i}"}
    run: touch {b}
"""


class Trial:
    def __init__(self, tulpar, shots):
        self.tulpar = tulpar
        self.shots = shots
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tulpar-page-"))
        self.home = self.folder / "home"
        self.home.mkdir()
        self.project = self.folder / "project"
        self.project.mkdir()
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home), "LANG": "C.UTF-8"}
        self.server = None
        self.errors = []
        self.expected = None
        self.processes = []

    def run(self, *words):
        return subprocess.run([self.tulpar, *words], cwd=self.project, env=self.environment, capture_output=True, text=True)

    def start(self, *words):
        process = subprocess.Popen([self.tulpar, *words], cwd=self.project, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.processes.append(process)
        return process

    def serve(self, address="127.0.0.1:0", *more):
        """With a token that the contexts send, unless another is given."""
        if not more:
            (self.project / "page-token").write_text(TOKEN + "\n")
            more = ("--token-file", "page-token")
        self.server = self.start("serve", "--address", address, *more)
        url = self.server.stdout.readline().strip()
        assert url.startswith("http://"), f"the server said {url!r}"
        return url.removesuffix(f"?token={TOKEN}")

    def stop(self):
        self.server.send_signal(signal.SIGTERM)
        assert self.server.wait(20) == 0, "the server did not end well"

    def watch(self, page):
        def said(message):
            if message.type == "error" and not (self.expected and re.search(self.expected, message.text)):
                self.errors.append(message.text)

        page.on("console", said)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        return page

    def shot(self, page, name):
        if self.shots:
            page.screenshot(path=f"{self.shots}/{name}.png", full_page=True)

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def no_sideways(page, where):
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1], f"{where} scrolls sideways: {wide[0]} > {wide[1]}"


def failures_in_two_clicks(trial, page, url):
    page.goto(url)
    row = page.locator("tr", has_text="galaxy-1")
    row.get_by_role("link", name="1", exact=True).click()
    page.get_by_text("ValueError: <script>alert(1)</script> loss is nan").first.wait_for()
    page.get_by_text("To blame is the task itself").first.wait_for()
    trial.shot(page, "run")
    page.get_by_role("link", name="train[lr=0.1]").first.click()
    page.get_by_role("heading", name="Run it by hand").wait_for()
    page.get_by_role("heading", name="Story").wait_for()
    trial.shot(page, "task")
    page.go_back()
    page.get_by_role("heading", name="Task sets").wait_for()
    page.go_back()
    page.get_by_role("heading", name="Runs").wait_for()
    print("the failure of a failed task: 1 click from the list of runs, 2 to all that is known of it")


def keys(page, url):
    page.goto(url)
    page.locator("tbody tr a").first.wait_for()
    page.keyboard.press("/")
    page.keyboard.type("galaxy")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/*")
    page.locator("nav.tabs").wait_for()
    page.keyboard.press("Escape")
    page.wait_for_function("() => location.pathname === '/'")
    page.keyboard.press("?")
    page.get_by_role("heading", name="Keys").wait_for()
    page.keyboard.press("Escape")


def lives(trial, page, url):
    """Follows a run while it goes on, and over a restart of the server."""
    driver = trial.start("run", "gated.yaml")
    page.goto(url)
    page.locator("tr", has_text="gated-1").get_by_text("running").first.wait_for()
    page.get_by_role("link", name="gated-1").first.click()
    page.get_by_role("heading", name="Running now").wait_for()
    page.get_by_text("0 %, 0 of 3 tasks").wait_for()
    (trial.project / "gate-1").touch()
    began = time.monotonic()
    page.get_by_text("33 %, 1 of 3 tasks").wait_for()
    print(f"the end of a task was on the page after {time.monotonic() - began:.2f} s, without a reload")
    trial.shot(page, "live")
    job = page.evaluate("fetch('/api/runs/gated-1/jobs?state=running').then((answer) => answer.json())")["jobs"][0]["job"]
    page.goto(f"{url}runs/gated-1/jobs/{job}")
    page.get_by_label("stdout").get_by_text("waiting for").wait_for()
    page.get_by_text(re.compile("Attempt 1 is on .* for")).wait_for()
    page.go_back()
    page.get_by_text("33 %, 1 of 3 tasks").wait_for()
    # While there is no server, the browser itself complains about what it cannot reach.
    trial.expected = "ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED"
    address = url.split("/")[2]
    trial.stop()
    page.locator("#link.bad").wait_for()
    (trial.project / "gate-2").touch()
    assert trial.serve(address) == url
    began = time.monotonic()
    page.get_by_text("66 %, 2 of 3 tasks").wait_for()
    print(f"{time.monotonic() - began:.2f} s after the restart of the server the page was right again")
    page.wait_for_function("() => document.getElementById('link').textContent === 'live'")
    (trial.project / "gate-3").touch()
    page.get_by_text("100 %, 3 of 3 tasks").wait_for()
    trial.expected = None
    page.locator("h1").get_by_text("done").wait_for()
    assert driver.wait(30) == 0


def many(trial, page, url, run, count):
    began = time.monotonic()
    page.goto(f"{url}runs/{run}/timeline")
    page.wait_for_function(f"() => document.querySelector('canvas')?.dataset.drawn?.startsWith('{count} ')", timeout=120_000)
    took = time.monotonic() - began
    own = page.evaluate("document.querySelector('canvas').dataset.drawn").split()[1]
    print(f"timeline of {count:,} jobs: {took:.2f} s from the address to the picture ({own} ms of it asking, packing and drawing)")
    trial.shot(page, f"timeline-{count}")
    page.locator("canvas").hover()
    began = time.monotonic()
    for _ in range(10):
        page.get_by_role("button", name="zoom in").click()
    print(f"  ten steps of zooming: {(time.monotonic() - began) * 1000:.0f} ms")
    page.goto(f"{url}runs/{run}")
    node = page.locator(".graph .node").first
    node.wait_for()
    began = time.monotonic()
    node.click()
    page.locator(".cells canvas").wait_for()
    page.wait_for_function("() => document.querySelectorAll('.counts').length > 1", timeout=60_000)
    print(f"  the tasks of one of its sets as cells: {time.monotonic() - began:.2f} s")
    trial.shot(page, f"cells-{count}")
    began = time.monotonic()
    page.goto(f"{url}runs/{run}/jobs?sort=wall&down=1")
    page.locator("tbody tr a").first.wait_for()
    print(f"  its jobs, the longest first: {time.monotonic() - began:.2f} s")


def weight(page, url):
    sizes = {}

    def came(response):
        if response.url.startswith(url) and "/api/events" not in response.url:
            try:
                sizes[response.url] = len(response.body())
            except Exception:
                pass

    page.on("response", came)
    page.goto(url)
    page.locator("tbody tr a").first.wait_for()
    page.wait_for_timeout(300)
    own = sum(size for address, size in sizes.items() if "/api/" not in address)
    assert own < 1_000_000, f"the page weighs {own} bytes"
    print(f"page weight: {own / 1000:.0f} kB in {len(sizes)} answers, nothing from elsewhere")


def looks(trial, browser, url):
    pages = ["", "runs/galaxy-1", "runs/galaxy-1/timeline", "runs/galaxy-1/usage", "runs/galaxy-1/jobs", "runs/galaxy-1/data", "runs/galaxy-1/site", "runs/galaxy-1/advice", "runs/tuning-1/search", "compare?run=galaxy-1&run=many-1"]
    job = None
    for name, width, scheme in [("phone", 390, "light"), ("phone-small", 340, "dark"), ("wide", 1280, "dark")]:
        context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme, extra_http_headers=HEADERS)
        page = trial.watch(context.new_page())
        if job is None:
            page.goto(url)
            found = page.evaluate("fetch('/api/runs/galaxy-1/jobs?state=failed').then((answer) => answer.json())")
            job = found["jobs"][0]["job"]
        for path in [*pages, f"runs/galaxy-1/jobs/{job}"]:
            page.goto(url + path)
            page.locator("h1").wait_for()
            page.wait_for_load_state("load")
            page.wait_for_timeout(500)
            no_sideways(page, f"/{path} at {width} pixels")
            trial.shot(page, f"{name}-{path.replace('/', '_').split('?')[0] or 'runs'}")
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        dark = sum(int(part) for part in re.findall(r"\d+", background)[:3]) < 150
        assert dark == (scheme == "dark"), f"{name}: {background} is not {scheme}"
        page.locator("#theme").click()
        other = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert other != background, "the button for day and night does nothing"
        context.close()


def searched(trial, page, url):
    page.goto(url)
    page.get_by_role("link", name="tuning-1").first.click()
    page.get_by_role("link", name="Search", exact=True).click()
    for title in ["History", "How trials learned", "What mattered", "Slices", "Parameters together", "Trials"]:
        page.get_by_role("heading", name=title, exact=True).wait_for()
    dots = page.locator("figure svg .dot").count()
    assert dots > 23, f"only {dots} dots are drawn"
    page.get_by_role("table", name="Trials").get_by_role("link").first.click()
    page.get_by_text("attempt").first.wait_for()
    page.goto(f"{url}runs/galaxy-1")
    page.get_by_role("link", name="Advice").wait_for()
    assert page.get_by_role("link", name="Search").count() == 0, "a run without a search has its tab"


def guarded(trial, browser):
    (trial.project / "token").write_text("open sesame\n".replace(" ", "-"))
    url = trial.serve("127.0.0.1:0", "--token-file", "token")
    assert url.endswith("/?token=open-sesame"), url
    trial.expected = "401"
    context = browser.new_context()
    page = trial.watch(context.new_page())
    answer = page.goto(url.split("?")[0])
    assert answer.status == 401, answer.status
    page.goto(url)
    page.get_by_role("heading", name="Runs").wait_for()
    assert "token" not in page.url, "the token stays in the address"
    page.wait_for_function("() => document.getElementById('link').textContent === 'live'")
    trial.expected = None
    context.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tulpar")
    parser.add_argument("--shots")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    arguments = parser.parse_args()
    trial = Trial(str(pathlib.Path(arguments.tulpar).resolve()), arguments.shots)
    if arguments.shots:
        pathlib.Path(arguments.shots).mkdir(parents=True, exist_ok=True)
    try:
        (trial.project / "workflow.yaml").write_text(WORKFLOW)
        (trial.project / "gated.yaml").write_text(GATED.replace("ROOT", str(trial.project)))
        (trial.project / "many.yaml").write_text(MANY)
        (trial.project / "tuning.yaml").write_text(TUNING)
        assert trial.run("run").returncode == 1, "one of its tasks fails"
        counts = [("many-1", 10_000)] + ([("many-2", 100_000)] if arguments.large else [])
        for _, count in counts:
            said = trial.run("simulate", "many.yaml", "-p", f"n={count // 2}", "--cpus", "640", "--nodes", "40", "--jitter", "0.5")
            assert said.returncode == 0, said.stderr
        said = trial.run("run", "tuning.yaml")
        assert said.returncode == 0, said.stderr
        # The store has all of it: what is measured here is the page.
        trial.run("runs")
        url = trial.serve()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=arguments.chromium, args=["--no-sandbox"])
            context = browser.new_context(viewport={"width": 1280, "height": 900}, extra_http_headers=HEADERS)
            context.set_default_timeout(30_000)
            page = trial.watch(context.new_page())
            try:
                weight(page, url)
                failures_in_two_clicks(trial, page, url)
                keys(page, url)
                for run, count in counts:
                    many(trial, page, url, run, count)
                lives(trial, page, url)
                searched(trial, page, url)
                page.goto(f"{url}compare?run=galaxy-1&run=many-1")
                page.get_by_text("Mean time of a task").wait_for()
            except Exception:
                print(f"{page.url} shows:\n{page.locator('body').inner_text()}\nits console: {trial.errors}")
                trial.shot(page, "failed")
                raise
            context.close()
            looks(trial, browser, url)
            trial.stop()
            guarded(trial, browser)
            trial.stop()
            browser.close()
        assert not trial.errors, "the browser's console says: " + "; ".join(trial.errors)
        print("no error in the browser's console")
        print("test result: ok. 9 passed; 0 failed; the page in a browser")
    finally:
        trial.end()


if __name__ == "__main__":
    sys.exit(main())
