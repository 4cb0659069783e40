"""Where torch's own tests come from, and what they import besides torch.

Inputs: the interpreter under test and its torch; a folder that the user names, or git and torch's public repository;
  pip's index.
Outputs: Torch: its version and commit; sources(): the folder of test files; packages(): a folder for PYTHONPATH.
Invariants: nothing is fetched into the project's tree but its build folder; what is there from an earlier run is
  used again; a fetch that fails leaves nothing behind and raises NotFetched with the last line that was said.
Tests: tests/torch_own/test_runner.py.
"""

import json
import os
import shutil
import subprocess

from compare import environment
from packages import NotFetched

REPOSITORY = "https://github.com/pytorch/pytorch"
PACKAGES = ("expecttest", "hypothesis")  # torch.testing._internal imports the first, some files of tests the second
FETCH_S = 900


class Torch:
    """The torch that a Python has."""

    def __init__(self, python):
        asked = ("import json, sys, torch\n"
                 "print(json.dumps([torch.__version__, torch.version.git_version, '%d.%d' % sys.version_info[:2]]))")
        text = subprocess.run([python, "-c", asked], capture_output=True, text=True, env=environment())
        if text.returncode != 0:
            raise NotFetched("no torch: " + last_line(text.stderr))
        self.version, self.commit, self.python = json.loads(text.stdout.splitlines()[-1])
        self.interpreter = python


def last_line(text):
    return (text.strip().splitlines() or ["nothing was said"])[-1]


def command(words, where):
    """Runs a command that may not ask anything."""
    variables = environment({"GIT_TERMINAL_PROMPT": "0"})
    try:
        done = subprocess.run(words, cwd=where, capture_output=True, text=True, env=variables, stdin=subprocess.DEVNULL,
                              timeout=FETCH_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotFetched(str(error)) from None
    if done.returncode != 0:
        raise NotFetched(last_line(done.stderr))


def complete(folder, make):
    """The folder that make(folder) fills, unless it is there."""
    if not os.path.exists(folder):
        part = f"{folder}.{os.getpid()}"
        os.makedirs(part)
        try:
            make(part)
            os.rename(part, folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


def sources(torch, folder, repository=REPOSITORY):
    """The folder `test` of the commit that this torch was built from; only that folder's files are fetched."""
    def make(part):
        git = ["git", "-c", "advice.detachedHead=false"]
        command([*git, "init", "--quiet"], part)
        command([*git, "remote", "add", "origin", repository], part)
        command([*git, "sparse-checkout", "set", "--no-cone", "/test/"], part)
        command([*git, "fetch", "--quiet", "--depth=1", "--filter=blob:none", "origin", torch.commit], part)
        command([*git, "checkout", "--quiet", "FETCH_HEAD"], part)
    return os.path.join(complete(os.path.join(folder, f"source-{torch.commit[:12]}"), make), "test")


def packages(torch, folder):
    """A folder with what torch's tests import."""
    def make(part):
        pip = [torch.interpreter, "-m", "pip", "--disable-pip-version-check"]
        command([*pip, "install", "--quiet", "--target", part, *PACKAGES], part)
    return complete(os.path.join(folder, f"packages-{torch.python}"), make)


def mark(folder):
    """A word that changes with the files of a folder of tests."""
    names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".py"))
    return [os.path.abspath(folder), [(name, os.stat(os.path.join(folder, name)).st_mtime_ns) for name in names]]
