"""The table of a laboratory: printed, and saved as CSV and JSON."""

import csv
import json

from dynvm.lab import noise
from dynvm.lab.runs import MEASURES
from dynvm.lab.search import Laboratory


def measures_of(laboratory: Laboratory):
    """The laboratory's measures in their order, then the script's own by name; those that no run has are left out."""
    found = {name for runs in laboratory.results.values() for run in runs for name, value in run.measures.items() if value is not None}
    return [name for name in MEASURES if name in found] + sorted(found - set(MEASURES))


def shown(number):
    """With three or four digits that say something."""
    if number == int(number) and abs(number) < 1e6:
        return f"{int(number)}"
    return f"{number:.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def cell(values):
    """"12.1 +-0.3": the median, and the median distance from it where there is one."""
    if not values:
        return "-"
    spread = noise.spread(values)
    return shown(noise.median(values)) + (f" +-{shown(spread)}" if spread else "")


def print_table(laboratory, write):
    """The best setting first, by laboratory.by; failed ones last, with their reason."""
    names = measures_of(laboratory)
    rows = [["setting", "runs", *(f"[{name}]" if name == laboratory.by else name for name in names)]]
    for setting in laboratory.ordered():
        runs = laboratory.results[setting]
        rows.append([setting.name, str(len(runs)), *(cell(laboratory.values(setting, name)) for name in names)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        write("  ".join([row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:]))]).rstrip())
    for setting in laboratory.ordered():
        if laboratory.failure(setting):
            write(f"{setting.name}: {laboratory.failure(setting)}")


def save_csv(laboratory, path):
    """One row a run, with the setting's values in columns of their own."""
    names = measures_of(laboratory)
    varied = sorted({name for setting in laboratory.results for name in setting.values})
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["setting", "run", *varied, *names, "failure"])
        for setting in laboratory.ordered():
            for number, run in enumerate(laboratory.results[setting], 1):
                values = [setting.values.get(name, "") for name in varied]
                writer.writerow([setting.name, number, *values, *("" if run.measures.get(name) is None else run.measures[name] for name in names), run.failure])


def save_json(laboratory, path, **more):
    """{"by", more ..., "settings": [{"name", "values", "median": {}, "spread": {}, "runs": [{measures}], "policy": {}, "failure"}]}, the best first."""
    names = measures_of(laboratory)
    settings = []
    for setting in laboratory.ordered():
        values = {name: laboratory.values(setting, name) for name in names}
        runs = laboratory.results[setting]
        settings.append({"name": setting.name, "values": setting.values, "median": {name: noise.median(found) for name, found in values.items() if found},
                         "spread": {name: noise.spread(found) for name, found in values.items() if found}, "runs": [run.measures for run in runs],
                         "policy": runs[0].policy, "failure": laboratory.failure(setting)})
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"by": laboratory.by, **more, "settings": settings}, file, indent=1)
        file.write("\n")
