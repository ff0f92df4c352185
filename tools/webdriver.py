# SPDX-License-Identifier: Apache-2.0
"""A real Chromium without a window, controlled through chromedriver (W3C WebDriver)."""
import base64
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request

ENTER, ESCAPE, ALT = "\ue007", "\ue00c", "\ue00a"
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Failure(Exception):
    """An error answer of the driver."""


def programs():
    """Returns the paths of Chromium and chromedriver, or None."""
    found = [shutil.which(name) for name in ("chromedriver", "chromium")]
    return found if all(found) else None


class Browser:
    def __init__(self, width, height):
        driver, chromium = programs()
        self.process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.session = ""
        try:
            self.address = f"http://127.0.0.1:{self._port()}"
            args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                    f"--window-size={width},{height}"]
            wanted = {"goog:chromeOptions": {"args": args, "binary": chromium},
                      "goog:loggingPrefs": {"browser": "ALL"}}
            answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self.session = "/session/" + answer["sessionId"]
        except BaseException:
            self.process.kill()
            raise

    def _port(self):
        for line in self.process.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                return found.group(1)
        raise Failure("chromedriver ended without a port")

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + self.session + path, data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as e:
            raise Failure(json.load(e)["value"]["message"].split("\n")[0]) from e

    def open(self, address):
        self.call("POST", "/url", {"url": address})

    def run(self, script, *args):
        """Runs the body of a function in the page and returns its value; waits if it is a
        promise."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def _element(self, selector):
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        return "/element/" + found[ELEMENT]

    def type(self, selector, text):
        self.call("POST", self._element(selector) + "/value", {"text": text})

    def click(self, selector):
        self.call("POST", self._element(selector) + "/click", {})

    def press(self, *keys):
        """Presses keys one after the other and releases them, without an element."""
        actions = [{"type": "keyDown", "value": k} for k in keys]
        actions += [{"type": "keyUp", "value": k} for k in reversed(keys)]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def resize(self, width, height):
        self.call("POST", "/window/rect", {"width": width, "height": height})

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def complaints(self):
        """Returns the errors and warnings of the console since the last call."""
        log = self.call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in log if entry["level"] in ("SEVERE", "WARNING")]

    def wait(self, script, *args, seconds=30):
        """Waits until the script's value is true and returns it; raises Failure after the time
        limit."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run(script, *args)
            if value:
                return value
            time.sleep(0.05)
        raise Failure(f"waited {seconds} s for: {script}")

    def close(self):
        try:
            self.call("DELETE", "")
        finally:
            self.process.terminate()
            self.process.wait()
