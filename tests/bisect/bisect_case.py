"""What these suites share: the package from the source tree, the installed dynvm, scripts and their reports."""

import json
import os
import sys

from compare import CompareCase, ROOT, run

PACKAGE = os.path.join(ROOT, "python")
sys.path.insert(0, PACKAGE)
INSTALLED = os.path.join(ROOT, ".venv", "bin", "dynvm")
PLAIN = os.path.join(ROOT, ".venv", "bin", "python")


def is_there():
    """The installed dynvm, with torch in its environment."""
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return os.path.exists(INSTALLED)


class BisectCase(CompareCase):
    def outcome(self, text, *options, env=None, same=True, name="script.py"):
        """(outcome, report) of a script of this text under dynvm; same: it shows what python shows."""
        script, file = self.script(text, name), os.path.join(self.folder, "report.json")
        if os.path.exists(file):
            os.remove(file)
        outcome = run(INSTALLED, [*options, f"--report={file}", script], env=env, cwd=self.folder, timeout=300)
        if same:
            plain = run(PLAIN, [script], cwd=self.folder, timeout=300)
            self.assertEqual((outcome.status, outcome.stdout, outcome.stderr), (plain.status, plain.stdout, plain.stderr), outcome)
        report = {}
        if os.path.exists(file):
            with open(file, encoding="utf-8") as stream:
                report = json.load(stream)
        return outcome, report

    def bisect(self, text, *options, env=None, name="script.py", folder="found"):
        """(outcome, bisect.json or None) of `dynvm bisect`."""
        script, folder = self.script(text, name), os.path.join(self.folder, folder)
        outcome = run(INSTALLED, ["bisect", "-o", folder, *options, script], env=env, cwd=self.folder, timeout=900)
        file = os.path.join(folder, "bisect.json")
        if not os.path.exists(file):
            return outcome, None
        with open(file, encoding="utf-8") as stream:
            return outcome, json.load(stream)
