#!/usr/bin/env python3
"""Inference of small models of transformers and timm under eager, torch.compile and dynvm.

Usage:   bench/zoo.py [--only A,B] [--modes eager,compile,dynvm] [--quick] [--rounds N] [--threads N] [--jobs N] [--part K/N] [--json FILE] [--markdown FILE]
         ./check runs it in parts, with --modes eager,dynvm --quick and several jobs, for what it says of results and traces.
Inputs:  the rows of bench/zoo_models.py; transformers, timm and torchvision, fetched on first use into build/zoo-X.Y beside the environment's torch;
         the interpreter and launcher of .venv, or DYNVM_TEST_PYTHON and DYNVM.
Outputs: a line for each model, below them the geometric means and "N passed, N failed, N skipped"; the same as JSON and as Markdown. With --jobs, what
         failed runs once more by itself. Exit status 1 when a model failed, gave
         other results than eager (within RELATIVE; tokens exactly), or had less than COMPILED_SHARE of its tensor operations in traces after
         warm-up; 77 when the packages cannot be fetched.
Method:  that of bench/run.py.
"""

import argparse
import concurrent.futures
import glob
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

import run

PACKAGES = ("transformers==4.57.6", "timm==1.0.31")
REQUIREMENTS = ("huggingface_hub<1.0", "tokenizers>=0.22,<=0.23.0", "safetensors", "regex", "requests", "packaging", "pyyaml", "tqdm", "pillow")
COMPILED_SHARE = 0.98
RELATIVE = 1e-4  # of the largest value


def packages_folder():
    """The folder for PYTHONPATH with the packages, filled unless it is; None when it cannot be."""
    version = subprocess.run([run.PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True, check=True).stdout.strip()
    folder = os.path.join(run.ROOT, "build", "zoo-" + version)
    done = os.path.join(folder, ".complete")
    if os.path.exists(done) and open(done).read() == str(PACKAGES):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    print("fetching", *PACKAGES, file=sys.stderr)
    pip = [run.PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder]
    minor = subprocess.run([run.PYTHON, "-c", "import torch; print(torch.__version__.split('.')[1])"], capture_output=True, text=True, check=True).stdout
    vision = f"torchvision==0.{int(minor) + 15}.*"  # its version for torch 2.minor; it asks for a torch of its own, as timm does
    for packages in (["--no-deps", *PACKAGES, vision], REQUIREMENTS):
        if subprocess.run([*pip, *packages]).returncode != 0:
            return None
    for library in glob.glob(os.path.join(folder, "torchvision", "*.so")):
        os.remove(library)  # its operators are made for one build of torch, and not needed: zoo_models.allow_torchvision
    with open(done, "w") as file:
        file.write(str(PACKAGES))
    return folder


def close(expected, got):
    """Equal within RELATIVE of the largest expected value, as in float32; integers (tokens) exactly."""
    if len(expected) != len(got):
        return False
    if all(isinstance(value, int) for value in expected):
        return expected == got
    scale = max((abs(value) for value in expected if not math.isnan(value)), default=0.0)
    return all(abs(a - b) <= RELATIVE * scale or (math.isnan(a) and math.isnan(b)) for a, b in zip(expected, got))


def warm_share(row):
    """The share of tensor operations in compiled traces since the worker was warm; None when there were none."""
    total, compiled = (row["report"][key] - row["warm"][key] for key in ("tensor_ops_total", "tensor_ops_compiled"))
    return compiled / total if total else None


def faults(rows):
    """What is wrong with one model's rows, in words."""
    found = [f"{mode}: {row['error'].strip().splitlines()[-1]}" for mode, row in rows.items() if "error" in row]
    expected = rows.get("eager", {}).get("results")
    for mode, row in rows.items():
        if expected is not None and "results" in row and not close(expected, row["results"]):
            found.append(f"{mode}: results differ")
    mine = rows.get("dynvm", {})
    if "report" in mine:
        share = warm_share(mine)
        if share is None or share < COMPILED_SHARE:
            aborts = ", ".join(f"{name} {count}" for name, count in mine["report"]["aborts"].items())
            found.append(f"compiled {'nothing' if share is None else f'{100 * share:.1f} %'} ({aborts})")
    return found


COLUMNS = ("model", "eager ms", "compile ms", "dynvm ms", "dynvm : eager", "dynvm : compile", "compiled when warm", "record+compile ms", "faults")


def ratio(rows, slow, fast):
    """How many times as fast as another a mode is; None where one is missing."""
    return rows[slow]["min_us"] / rows[fast]["min_us"] if all("min_us" in rows.get(mode, {}) for mode in (slow, fast)) else None


def cells(name, rows, wrong):
    mine = rows.get("dynvm", {})
    share = warm_share(mine) if "report" in mine else None
    times = [f"{rows[mode]['min_us'] / 1e3:.2f}" if "min_us" in rows.get(mode, {}) else "-" for mode in run.MODES]
    ratios = ["-" if r is None else f"{r:.2f}x" for r in (ratio(rows, "eager", "dynvm"), ratio(rows, "compile", "dynvm"))]
    return (name, *times, *ratios, "-" if share is None else f"{100 * share:.1f} %",
            f"{mine['record_ms'] + mine['compile_ms']:.0f}" if "record_ms" in mine else "-", "; ".join(wrong) or "none")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="rows of bench/zoo_models.py, separated by commas")
    parser.add_argument("--modes", default=",".join(run.MODES), help="comma separated, of %(default)s")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="short, torch.compile's default mode only")
    parser.add_argument("--jobs", type=int, default=1, help="models at a time; the times are not worth much then")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="each N'th model, from the K'th")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--markdown", metavar="FILE")
    arguments = parser.parse_args()
    packages = packages_folder()
    if packages is None:
        print("the packages cannot be fetched", file=sys.stderr)
        return 77
    listed = subprocess.run([run.PYTHON, "-c", "import zoo_models; print(*zoo_models.names())"], cwd=run.BENCH, capture_output=True, text=True, check=True)
    names = arguments.only.split(",") if arguments.only else listed.stdout.split()
    part, parts = map(int, arguments.part.split("/"))
    names = names[part - 1::parts]
    modes = arguments.modes.split(",")
    all_rows, lines = {}, [COLUMNS]

    def show(name, rows, keep_faults):
        """Keeps and prints a model's line, with faults only where they are final; whether there are none."""
        wrong = faults(rows)
        all_rows[name] = rows
        if keep_faults or not wrong:
            lines.append(cells(name, rows, wrong))
            print("  ".join(lines[-1]), flush=True)
        return not wrong

    folder = tempfile.mkdtemp(prefix="dynvm-zoo-")
    try:
        runner = run.Runner(folder, arguments, {"PYTHONPATH": packages, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"})
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            measured = pool.map(lambda name: run.measure_case(runner, "zoo/" + name, modes), names)
            again = [name for name, rows in zip(names, measured) if not show(name, rows, keep_faults=arguments.jobs == 1)]
        failed = sum(not show(name, run.measure_case(runner, "zoo/" + name, modes), keep_faults=True) for name in again) if arguments.jobs > 1 else len(again)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for slow in ("eager", "compile"):
        ratios = [r for r in (ratio(rows, slow, "dynvm") for rows in all_rows.values()) if r is not None]
        if ratios:
            print(f"{len(ratios)} models: dynvm {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f} times as fast as {slow}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(all_rows, file, indent=1)
    if arguments.markdown:
        run.write_markdown(arguments.markdown, lines, arguments)
    print(f"{len(names) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
