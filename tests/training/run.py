#!/usr/bin/env python3
"""Runs random training programs under python and under dynvm: all that they show must be the same.

Usage:   run.py [--seeds A-B | SEED ...] [--mode MODE,...] [--seconds N] [--shrink] [--out FOLDER] [--all] [--show]
Inputs:  program.py's programs; without seeds COUNT of them from FIRST on (more with DYNVM_TEST_FULL), or with --seconds as many as there is time for.
         Modes: plain, hot (--hot=2), exit (with DYNVM_STRESS=exit), check (with DYNVM_STRESS=check); "all": the first three. DYNVM, DYNVM_TEST_PYTHON: what is tested.
Outputs: for each failure the seed, the mode, what differs and, with --shrink, a smaller program; --out: a file for each in FOLDER. The share of tensor
         operations that ran compiled; last line "N passed, N failed, N skipped"; exit status 1 when one failed. Skipped are programs that
         python itself does not bring to an end, and differences that open.def names (with --all, and where seeds are given, they fail).
Method:  programs run one after the other in workers (side.py), one for each mode; see hunt.py.
"""

import argparse
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from hunt import Session  # noqa: E402
from side import MODES  # noqa: E402
from compare import FULL, not_built  # noqa: E402
from verdicts import end_with_children  # noqa: E402

FIRST, COUNT = 0, 1500 if FULL else 40
USUAL = ("plain", "hot", "exit")
SHARE = 0.15   # of tensor operations that must run compiled over the usual programs


def script_of(finding):
    """The program as a file of its own."""
    head = [f"seed {finding.seed}, mode {finding.mode}" + ("" if finding.alone else ", only behind other programs of its worker"), *str(finding.difference).splitlines()]
    return "".join(f"# {line}\n" for line in head) + finding.text


def seeds_of(arguments):
    if arguments.given:
        return arguments.given
    if arguments.seeds:
        first, _, last = arguments.seeds.partition("-")
        return range(int(first), int(last or first) + 1)
    return range(FIRST, sys.maxsize) if arguments.seconds else range(FIRST, FIRST + COUNT)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("given", nargs="*", type=int)
    parser.add_argument("--seeds")
    parser.add_argument("--mode", default="all")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--all", action="store_true", help="reports what open.def names too")
    parser.add_argument("--show", action="store_true", help="prints the programs that fail")
    arguments = parser.parse_args()
    modes = USUAL if arguments.mode == "all" else tuple(arguments.mode.split(","))
    if not set(modes) <= set(MODES):
        parser.error(f"modes are {', '.join(MODES)}")
    if not_built():
        return 1
    end_with_children()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from program import generate_apart, namespace
    namespace()  # torch is imported once, in front of the forks
    session, begun, last = Session(modes, all=arguments.all or bool(arguments.given)), time.monotonic(), time.monotonic()
    for seed in seeds_of(arguments):
        if arguments.seconds and time.monotonic() - begun > arguments.seconds:
            break
        text = generate_apart(seed)
        if text is None:
            session.skipped += 1
            continue
        for finding in session.check(seed, text):
            print(f"FAILED seed {seed} mode {finding.mode}{'' if finding.alone else ' (only behind others)'}: {finding.difference}", flush=True)
            if arguments.shrink and finding.alone:
                session.smaller(finding)
                print(f"--- made smaller: {finding.difference}\n{finding.text}", flush=True)
            elif arguments.show:
                print(finding.text, flush=True)
            if arguments.out:
                os.makedirs(arguments.out, exist_ok=True)
                with open(os.path.join(arguments.out, f"{seed}_{finding.mode}.py"), "w", encoding="utf-8") as file:
                    file.write(script_of(finding))
        if time.monotonic() - last > 60:
            last = time.monotonic()
            print(f"up to seed {seed}, {last - begun:.0f} s: {session.counts()}", flush=True)
    session.close()
    compiled, total = session.compiled()
    share = compiled / total if total else 0.0
    print(f"{session.programs} programs in {', '.join(modes)}; {session.raised} end with an exception under python; {session.by_noise} differences are rounding's")
    for what, count in sorted(session.open.items(), key=lambda item: -item[1]):
        print(f"open: {count} times {what}")
    print(f"{compiled} of {total} tensor operations ({100 * share:.1f} %) ran compiled")
    if not arguments.given and not arguments.seeds and share < SHARE:
        session.failed += 1
        print(f"FAILED suite: only {share:.3f} ran compiled, not {SHARE}")
    print(session.counts())
    return 1 if session.failed else 0


if __name__ == "__main__":
    sys.exit(main())
