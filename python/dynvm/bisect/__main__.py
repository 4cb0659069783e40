"""The command line of `dynvm bisect`."""

import json
import os
import sys

from dynvm import _library
from dynvm.bisect import reproducer
from dynvm.bisect.runs import Judge, Program
from dynvm.bisect.stages import Investigation, RIGHT, UNSTEADY

USAGE = """usage: dynvm bisect [-o DIR] [--check=COMMAND | --expect=FILE] [--tolerance=N] [--stderr] [--timeout=SECONDS]
                    [dynvm's options] [Python's options] script [arguments]

Runs the script under python and under dynvm, and where they differ finds what makes it so: a loop's traces, a part of dynvm, a pass, an operation, a kernel.
What it finds is on standard output, what it does on standard error; DIR (default: dynvm-bisect) is for `dynvm replay DIR`, which runs it again.
  --check=COMMAND   of the shell, ends with status 0 where a run is right: of what it has shown, in the files $DYNVM_BISECT_STDOUT and $DYNVM_BISECT_STDERR with the exit
                    status $DYNVM_BISECT_STATUS, or of files that the script has written
  --expect=FILE     what the script has to print
  --tolerance=N     floating-point numbers in texts may differ by that part (default: 1e-4)
  --stderr          standard error has to be the same too (without, only the last line of a script that fails)
  --timeout=SECONDS of one run, on the clock and of the processor (default: 600)
dynvm's options have the form --name=value here. Exit status: 0 the result is right, 1 it is wrong, 2 this command line is, 3 python's own two runs differ.
"""
_VALUED = ("--check", "--expect", "--tolerance", "--timeout")


class Wrong(Exception):
    """What the user has to change; its text is all that is printed."""


def number(name, text):
    try:
        value = float(text)
    except ValueError:
        raise Wrong(f"{name}: expected a number, got '{text}'") from None
    if not value >= 0:
        raise Wrong(f"{name}: expected a number that is not negative, got '{text}'")
    return value


def parsed(words):
    """(own options {name: value}, dynvm's options, the script's words)."""
    own, options, words = {}, [], list(words)
    while words and (words[0].startswith("--") or words[0] in ("-o", "-h")):
        word = words.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if name in ("-h", "--help"):
            return None
        if name in (*_VALUED, "-o"):
            if not equals and not words:
                raise Wrong(f"{name}: its value is missing")
            own[name] = value if equals else words.pop(0)
        elif name == "--stderr":
            own[name] = True
        else:
            options.append(word)
    if not words:
        raise Wrong("there is no script")
    return own, options, words


def main(words):
    def tell(text):
        print(f"dynvm bisect: {text}", file=sys.stderr, flush=True)

    try:
        given = parsed(words)
        if given is None:
            print(USAGE, end="")
            return 0
        own, options, script = given
        if "--check" in own and "--expect" in own:
            raise Wrong("--check and --expect: one of them")
        expect = None
        if "--expect" in own:
            try:
                with open(own["--expect"], encoding="utf-8", errors="surrogateescape") as file:
                    expect = file.read()
            except OSError as error:
                raise Wrong(f"--expect: {error}") from None
        judge = Judge(number("--tolerance", own.get("--tolerance", "1e-4")), expect, own.get("--check"), "--stderr" in own)
        program = Program(script, options, number("--timeout", own.get("--timeout", "600")))
    except Wrong as wrong:
        tell(f"{wrong}\n{USAGE}")
        return 2
    tables = json.loads(_library.load().dynvm_switches())
    verdict = Investigation(program, judge, tables, tell).run()
    name = " ".join(script)
    if verdict.kind == RIGHT:
        print(f"{name}: {verdict.text}")
        return 0
    if verdict.kind == UNSTEADY:
        print(f"{name}: {verdict.text}")
        return 3
    print(f"{name}: the result is wrong: {verdict.wrong}")
    for culprit in verdict.culprits:
        instead = f", but wrong in another way ({culprit.other.splitlines()[0]})" if culprit.other else ""
        print(f"right without {culprit.text()}: --disable={','.join(culprit.switches)}{instead}")
    for culprit in verdict.untraced:
        print(f"without {culprit.text()} the loop has no traces, and is right for that: --disable={','.join(culprit.switches)}")
    print(f"verdict: {verdict.text}")
    folder = own.get("-o", "dynvm-bisect")
    reproducer.write(folder, program, judge, verdict)
    print(f"{program.count} runs; `dynvm replay {os.path.relpath(folder)}` runs it again")
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
