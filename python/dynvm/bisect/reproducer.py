"""The folder that `dynvm bisect` leaves, and `dynvm replay DIR` on it: the same runs once more.

DIR holds bisect.json (command line, options, culprits, how a result is judged), expected.out and wrong.out, a copy of the script, and the traces of the wrong run as they
were recorded (*.ir), which `dynvm replay DIR --heuristics=...` compiles again. Tests: tests/bisect/test_bisect.py.
"""

import json
import os
import shutil
import sys

from dynvm.bisect.runs import Judge, Program

FILE = "bisect.json"
# Variables that change what a script does, or what dynvm does with it.
_VARIABLES = ("DYNVM_", "PYTHON", "OMP_", "MKL_", "CUDA_VISIBLE_DEVICES", "TORCH_")
_OWN = ("DYNVM_BISECT_", "DYNVM_CACHE")


def script_of(words):
    """The word that is a script's file, or None (-c, -m)."""
    for word in words:
        if word in ("-c", "-m"):
            return None
        if not word.startswith("-") and os.path.isfile(word):
            return word
    return None


def write(folder, program, judge, verdict):
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if name.endswith(".ir"):
            os.remove(os.path.join(folder, name))
    usual = program.dynvm()
    program.dynvm(options=(f"--record-to={os.path.abspath(folder)}",))
    script = script_of(program.words)
    if script is not None:
        shutil.copyfile(script, os.path.join(folder, os.path.basename(script)))
    texts = [("wrong.out", usual.stdout), ("wrong.err", usual.stderr)]
    expected = judge.expect if judge.expect is not None else judge.expected.stdout if judge.expected is not None else None
    if expected is not None:
        texts.append(("expected.out", expected))
    for name, text in texts:
        with open(os.path.join(folder, name), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    about = {"command": program.words, "script": script, "options": program.options, "folder": os.getcwd(),
             "variables": {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES) and not name.startswith(_OWN)},
             "verdict": verdict.text, "wrong": verdict.wrong, "option": verdict.option, "culprits": [switch for culprit in verdict.culprits for switch in culprit.switches],
             "untraced": [switch for culprit in verdict.untraced for switch in culprit.switches], "tolerance": judge.tolerance, "check": judge.check, "stderr": judge.stderr, "expect": judge.expect is not None, "status": usual.status}
    with open(os.path.join(folder, FILE), "w", encoding="utf-8") as file:
        json.dump(about, file, indent=1)
        file.write("\n")


def replay(folder, write_line=print):
    """0: it is as it was found: wrong, and right with the option that avoids it. 1: it is not."""
    with open(os.path.join(folder, FILE), encoding="utf-8") as file:
        about = json.load(file)
    words, place = list(about["command"]), about["folder"]
    if about["script"] is not None and not os.path.isfile(os.path.join(place, about["script"])):
        place = folder  # the copy
        words[words.index(about["script"])] = os.path.basename(about["script"])
    os.environ.update(about["variables"])
    expect = None
    if about["expect"]:
        with open(os.path.join(folder, "expected.out"), encoding="utf-8", errors="surrogateescape") as file:
            expect = file.read()
    program = Program(words, about["options"], folder=place)
    judge = Judge(about["tolerance"], expect, about["check"], about["stderr"])
    write_line(f"found: {about['verdict']}")
    if judge.by_python():
        judge.expected = program.python()
    wrong = judge.opinion(program.dynvm())
    write_line(f"dynvm: {wrong or 'right'}")
    avoided = ""
    if about["option"]:
        avoided = judge.opinion(program.dynvm(options=(about["option"],)))
        write_line(f"dynvm {about['option']}: {avoided or 'right'}")
    same = bool(wrong) and not avoided
    write_line("as it was found" if same else "not as it was found")
    sys.stdout.flush()
    return 0 if same else 1
