"""The command line of `dynvm lab`."""

import argparse
import os
import sys

from dynvm.lab import plot, runs, search, table
from dynvm.lab.settings import Setting, Wrong, grid, parse_axis, sample

EPILOG = """
Each run is a process of its own, with --cache=off; DYNVM_OPTIONS holds for all. The settings take turns. NAME is a number of docs/heuristics.md; `policy` varies
--policy: --vary policy=default,never_inline.py. Ranges NAME=LOW..HIGH are for --search random and halving. What the script prints as a line
`dynvm-lab: NAME VALUE` is a measure too. docs/lab.md says what each measure is.
"""


def parser():
    options = argparse.ArgumentParser(prog="dynvm lab", description="Runs a script under many settings and compares what they cost.", epilog=EPILOG)
    options.add_argument("script", help="the script; its own arguments stand behind --")
    options.add_argument("--vary", action="append", default=[], metavar="NAME=VALUE,...", help="values of a number, or of `policy`; may be given more than once")
    options.add_argument("--search", choices=("grid", "random", "halving"), default="grid", help="all combinations (default), some at random, or successive halving of these")
    options.add_argument("--runs", type=int, metavar="N", help="settings that --search random and halving choose (default: 16)")
    options.add_argument("--seed", type=int, default=0, help="of that choice (default: 0)")
    options.add_argument("--repeat", type=int, default=5, metavar="N", help="runs of each setting, and of the best and the default once more for the test (default: 5)")
    options.add_argument("--measure", metavar="NAME", help="what settings are compared by: a measure, or one of the script's (default: iteration_us, or wall_s where that is not known)")
    options.add_argument("--higher", action="store_true", help="more of it is better")
    options.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="of one run (default: 600)")
    options.add_argument("-o", "--out", default="dynvm-lab", metavar="DIR", help="where table and plot are saved (default: dynvm-lab)")
    options.add_argument("--no-plot", action="store_true", help="save the tables only")
    return options


def checked(words):
    """(arguments, the script's own, settings); Wrong: anything in them is."""
    split = words.index("--") if "--" in words else len(words)
    given = parser().parse_args(words[:split])
    if not os.path.isfile(given.script):
        raise Wrong(f"there is no script {given.script}")
    if not given.vary:
        raise Wrong("nothing to vary: give --vary NAME=VALUE,...")
    for name, least in (("repeat", 1), ("runs", 1), ("timeout", 0.001)):
        if getattr(given, name) is not None and getattr(given, name) < least:
            raise Wrong(f"--{name}: expected at least {least}, got {getattr(given, name)}")
    if given.runs is not None and given.search == "grid":
        raise Wrong("--runs is for --search random and halving; the grid runs all combinations (--repeat: how often)")
    axes = [parse_axis(text) for text in given.vary]
    names = [axis.name for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise Wrong(f"--vary: {name} is given more than once")
    settings = grid(axes) if given.search == "grid" else sample(axes, given.runs or 16, given.seed)
    if len(settings) < 2:
        raise Wrong("nothing to compare: all values are the default's")
    return given, words[split + 1:], settings


def tell(text):
    print(text, file=sys.stderr, flush=True)


def experiment(given, arguments, settings):
    """(laboratory, hottest loop): everything has been run."""
    hottest = runs.Hottest()

    def run(setting):
        return runs.run(setting, given.script, arguments, hottest, given.timeout)

    first = run(Setting())  # also fills the caches of the file system; not counted
    if first.failure:
        raise Wrong(f"{given.script} under the default setting: {first.failure}")
    by = given.measure or ("iteration_us" if first.measures["iteration_us"] is not None else "wall_s")
    if first.measures.get(by) is None:
        raise Wrong(f"--measure: {by} is not measured of {given.script}; there are {', '.join(name for name, value in first.measures.items() if value is not None)}")
    laboratory = search.Laboratory(run, tell, by, given.higher)
    if given.search == "halving":
        laboratory.halve(settings, given.repeat)
    else:
        laboratory.repeat(settings, given.repeat)
    return laboratory, hottest, search.Laboratory(run, tell, by, given.higher)


def main(words):
    try:
        given, arguments, settings = checked(words)
        laboratory, hottest, fresh = experiment(given, arguments, settings)
    except Wrong as wrong:
        tell(f"dynvm lab: {wrong}")
        return 2
    verdict = search.confirm(laboratory, fresh, given.repeat)
    print(f"{given.script}: the hottest loop: {hottest}; sorted by {laboratory.by}, medians")
    table.print_table(laboratory, print)
    print(verdict.text(laboratory.by), flush=True)
    os.makedirs(given.out, exist_ok=True)
    table.save_csv(laboratory, os.path.join(given.out, "lab.csv"))
    table.save_json(laboratory, os.path.join(given.out, "lab.json"), script=given.script, loop=str(hottest), best=verdict.best.name, differs=verdict.differs,
                    p=verdict.p, change=verdict.change)
    saved = ["lab.csv", "lab.json"]
    if not given.no_plot:
        try:
            plot.save_plots(laboratory, f"{os.path.basename(given.script)} under dynvm", [os.path.join(given.out, name) for name in ("lab.png", "lab.svg")])
            saved += ["lab.png", "lab.svg"]
        except ImportError:
            tell(f"dynvm lab: no plot: it needs matplotlib ({sys.executable} -m pip install matplotlib)")
    print(f"saved in {given.out}: {', '.join(saved)}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
