"""Virtual environments with packages from the index that pip is configured for, made once and kept.

Inputs:  a folder, requirements as pip takes them; DYNVM_TEST_PYTHON, the Python that environments are made of. Outputs: Environment.python, variables with which
         a program runs in it. What cannot be had is NotFetched, with pip's last word.
Invariants: an environment is as its row wants it, or made anew: FOLDER/complete says for what it was made. With `sees_own` it sees the packages of the Python
         that it is made of, behind its own: torch stays that one, and no other is installed.
Tests:   tests/popular/test_runner.py, tests/public/test_public.py.
"""

import json
import os
import shutil
import subprocess

from compare import DYNVM, PYTHON, ROOT, environment


class NotFetched(Exception):
    """A package, or what it needs, cannot be had; the text is pip's last line."""


class Environment:
    def __init__(self, folder, requirements, sees_own=False):
        self.folder, self.requirements, self.sees_own = folder, list(requirements), sees_own
        self.environment = os.path.join(folder, "env")
        self.python = os.path.join(self.environment, "bin", "python")

    def variables(self):
        """Of a program that is to run in it."""
        return {"VIRTUAL_ENV": self.environment, "PATH": os.path.dirname(self.python) + os.pathsep + os.environ["PATH"]}

    def pip(self, *arguments):
        command = [self.python, "-m", "pip", "--disable-pip-version-check", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise NotFetched((done.stderr.strip() or f"pip: exit status {done.returncode}").splitlines()[-1])

    def wanted(self):
        """What `complete` must say."""
        return json.dumps([self.requirements, self.sees_own])

    def fill(self):
        """Installs into the new environment."""
        held = self.see_own() if self.sees_own else []
        self.pip("install", "--quiet", *self.requirements, *held)

    def see_own(self):
        """Puts the packages of the Python that this one is made of behind its own; gives the requirements that keep torch as it is."""
        text = "import json, sysconfig, importlib.metadata as m; print(json.dumps([sysconfig.get_path('purelib'), m.version('torch')]))"
        shown = subprocess.run([PYTHON, "-c", text], capture_output=True, text=True, env=environment())
        if shown.returncode != 0:
            raise NotFetched("the tested Python has no torch")
        own, version = json.loads(shown.stdout)
        there = subprocess.run([self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True, env=environment())
        with open(os.path.join(there.stdout.strip(), "behind.pth"), "w", encoding="utf-8") as file:
            file.write(own + "\n")
        return [f"torch=={version}"]

    def make(self):
        """Makes the environment, unless it is there as the row wants it."""
        done = os.path.join(self.folder, "complete")
        if os.path.exists(done) and open(done).read() == self.wanted():
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        subprocess.run([PYTHON, "-m", "venv", self.environment], check=True, env=environment())
        self.fill()
        with open(done, "w") as file:
            file.write(self.wanted())

    def check_dynvm(self):
        """Raises NotFetched where DYNVM belongs to another environment, RuntimeError where it does not run at all."""
        shown = subprocess.run([DYNVM, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, env=environment(self.variables()))
        if shown.returncode != 0:
            raise RuntimeError(f"{DYNVM} ends with status {shown.returncode} in {self.environment}: {shown.stderr[-800:]}")
        if shown.stdout.strip() != self.environment:
            raise NotFetched(f"{DYNVM} runs in an environment of its own: name the one of a build folder by DYNVM")


def folder_for(name):
    """Where environments of a suite are kept, each Python version apart: build/NAME-X.Y."""
    version = subprocess.run([PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True, check=True)
    return os.path.join(ROOT, "build", f"{name}-{version.stdout.strip()}")
