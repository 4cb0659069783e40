"""A headless Chromium, spoken to over a pipe in the DevTools protocol: opens files, runs JavaScript, takes pictures.

    with Browser() as browser:
        page = browser.open("/tmp/page.html#trace=7")
        page.run("document.title")
        page.picture("/tmp/page.png")

find() gives the program, or None where there is none: tests are skipped then.
"""

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time


def find():
    return next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)


class Failure(Exception):
    pass


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def run(self, expression):
        """The value of a JavaScript expression; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise Failure(answer["exceptionDetails"].get("exception", {}).get("description", str(answer["exceptionDetails"])))
        return answer["result"].get("value")

    def wait(self, expression, seconds=20):
        """Until the expression is true; while there is no document yet, it is not."""
        until = time.monotonic() + seconds
        while not self.run(f"document.documentElement !== null && ({expression})"):
            if time.monotonic() > until:
                raise Failure(f"still not true: {expression}")
            time.sleep(0.02)

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **text)

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def errors(self):
        """What has been thrown and not caught, or written to the console as an error."""
        return self.browser.errors


class Browser:
    def __init__(self, size=(1600, 1000)):
        self.size, self.next, self.buffer, self.errors = size, 1, b"", []

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_child, self.write = os.pipe()
        self.read, from_child = os.pipe()
        high = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_child, from_child)]

        def place():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}", "--no-first-run", "--disable-dev-shm-usage",
                   "--hide-scrollbars", f"--window-size={self.size[0]},{self.size[1]}"]
        self.process = subprocess.Popen([find(), *options], preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (to_child, from_child, *high):
            os.close(end)
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (Failure, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.read)
        os.close(self.write)
        self.folder.cleanup()

    def message(self, seconds):
        until = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            if not select.select([self.read], [], [], max(0, until - time.monotonic()))[0]:
                raise Failure("the browser does not answer")
            piece = os.read(self.read, 1 << 20)
            if not piece:
                raise Failure("the browser has ended")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, seconds=60, **parameters):
        number, self.next = self.next, self.next + 1
        request = {"id": number, "method": method, "params": parameters}
        if session:
            request["sessionId"] = session
        os.write(self.write, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message(seconds)
            if answer.get("method") == "Runtime.exceptionThrown":
                details = answer["params"]["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description", details.get("text")))
            if answer.get("id") == number:
                if "error" in answer:
                    raise Failure(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, file, fragment=""):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        page.call("Runtime.enable")
        page.call("Page.enable")
        page.call("Page.navigate", url=pathlib.Path(file).resolve().as_uri() + fragment)
        return page
