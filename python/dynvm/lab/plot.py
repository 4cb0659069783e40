"""The plot of a laboratory: one panel a measure, one row a setting, a dot a run, a bar at the median. Needs matplotlib, which dynvm does without."""

from dynvm.lab import noise
from dynvm.lab.runs import MEASURES
from dynvm.lab.table import measures_of

MOST_SETTINGS = 40


def save_plots(laboratory, title, paths):
    """Writes the plot to each of paths, in the format of its ending. ImportError: there is no matplotlib."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    settings = laboratory.ordered()[:MOST_SETTINGS]
    names = measures_of(laboratory)
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    figure, panels = pyplot.subplots(rows, columns, figsize=(1 + 2.9 * columns, rows * (1.1 + 0.3 * len(settings))), sharey=True, squeeze=False)
    for panel, name in zip(panels.flat, names):
        for position, setting in enumerate(settings):
            values = laboratory.values(setting, name)
            if values:
                panel.barh(position, noise.median(values), height=0.6, color="#4878a8" if setting.values else "#999999")
                panel.plot(values, [position] * len(values), "k.", markersize=3)
        panel.set_title(MEASURES.get(name, name), fontsize=9)
        panel.set_xlim(left=0)
        panel.tick_params(labelsize=8)
    for panel in list(panels.flat)[len(names):]:
        panel.set_visible(False)
    panels[0][0].set_yticks(range(len(settings)), [setting.name for setting in settings])
    panels[0][0].invert_yaxis()
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    for path in paths:
        figure.savefig(path, dpi=120, metadata={"Date": None} if path.endswith(".svg") else None)
    pyplot.close(figure)
