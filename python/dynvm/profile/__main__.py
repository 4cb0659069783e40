"""The command `dynvm profile [-o DIR] [options] script [arguments]`.

The script runs in a child process, so that it sees nothing of this one: its arguments, standard input, output and exit status are as under `dynvm`.
What is presented goes to standard error. Tests: tests/profile/test_profile.py.
"""

import os
import signal
import subprocess
import sys

USAGE = """usage: dynvm profile [-o DIR] [dynvm's options] [Python's options] script [arguments]
       dynvm profile --show DIR

Runs the script as dynvm does, and shows where the time went: tables on standard error, and in DIR (default: dynvm-profile)
  profile.json              all that was measured (docs/profile.md)
  trace.json                a timeline for Perfetto (ui.perfetto.dev) or chrome://tracing
  profile.speedscope.json   a flame graph for speedscope.app
  index.html                the viewer; opens in any browser
--show: the tables and files once more, from the profile.json of an earlier run.
"""


def launcher():
    """The `dynvm` that this process was started by: beside the library that is loaded; else the environment's."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            folder, name = os.path.split(line.split(maxsplit=5)[-1].strip())
            if name.startswith("libdynvm-cp"):
                return os.path.join(os.path.dirname(os.path.dirname(folder)), "bin", "dynvm")
    return os.path.join(sys.prefix, "bin", "dynvm")


def run_script(folder, words):
    """The exit status of the child, -N for signal N."""
    os.makedirs(folder, exist_ok=True)
    data = os.path.join(folder, "profile.json")
    if os.path.exists(data):
        os.remove(data)  # what is there afterwards is this run's
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the script's
    reset = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    return subprocess.run([launcher(), f"--profile={folder}", *words], preexec_fn=reset).returncode


def present(folder, words=None):
    """words: the script's command line, where it has just run. Tables on standard error, files in the folder. False where there is no profile."""
    from . import advice, formats, machine, model, report, viewer
    try:
        profile = model.read(folder)
    except (OSError, ValueError) as error:
        print(f"dynvm profile: no profile was written: {error}", file=sys.stderr)
        return False
    if words is not None:
        profile.data["program"]["command"] = " ".join(words)
    if not profile.machine:
        profile.machine = machine.measure()
    profile.advice = advice.findings(profile)
    profile.write(folder)
    formats.write_timeline(profile, os.path.join(folder, "trace.json"))
    formats.write_speedscope(profile, os.path.join(folder, "profile.speedscope.json"))
    viewer.write(profile, os.path.join(folder, "index.html"))
    print(report.text(profile), file=sys.stderr)
    print(f"in {folder}: index.html, profile.json, trace.json, profile.speedscope.json", file=sys.stderr)
    return True


def main(words):
    folder = "dynvm-profile"
    while words and words[0] in ("-o", "--show", "-h", "--help"):
        option = words.pop(0)
        if option in ("-h", "--help"):
            print(USAGE, end="")
            return 0
        if not words:
            print(f"dynvm profile: {option}: DIR is missing", file=sys.stderr)
            return 2
        folder = words.pop(0)
        if option == "--show":
            return 0 if present(folder) else 1
    if not words:
        print(USAGE, end="", file=sys.stderr)
        return 2
    status = run_script(folder, words)
    sys.stderr.flush()
    present(folder, words)
    if status < 0:  # end by the same signal
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
