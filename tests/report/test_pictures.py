import struct

import matplotlib as mpl

from fedcohort import report


def test_pictures_have_the_width_of_a_column(make, tmp_path):
    before = dict(mpl.rcParams)
    labels = ("md", "$x_{", "_hidden", "100 % & more")
    written = report.write_pictures(make(labels), tmp_path / "pictures")
    assert dict(mpl.rcParams) == before
    assert {path.suffix for path in written} == {".png", ".svg", ".pdf"}
    names = {path.stem for path in written}
    assert names >= {"progress-accuracy-best", "cost", "lorenz", "participation", "distance"}
    for path in written:
        if path.suffix == ".png":
            width, _ = struct.unpack(">II", path.read_bytes()[16:24])
            assert width == 1005  # 3.35 inches at 300 dots per inch
    legend = (tmp_path / "pictures" / "progress-accuracy-best.svg").read_text()
    assert "$x_{" in legend
    assert "_hidden" in legend


def test_the_same_picture_every_time(make, tmp_path):
    """Every picture of either kind; a PDF would have a date in it."""
    one, two = (
        report.write_pictures(
            make(("md",), rounds=8), tmp_path / name, formats=("svg", "pdf"), width=5
        )
        for name in ("one", "two")
    )
    assert [p.name for p in one] == [p.name for p in two]
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in two]
    assert {p.suffix: p.read_bytes()[:4] for p in one}[".pdf"] == b"%PDF"


def test_axes_are_readable(make, tmp_path, monkeypatch):
    """No mark-up in the labels of a logarithmic axis, no half rounds."""
    from matplotlib.figure import Figure

    drawn = {}

    def keep(figure, path, **_):
        figure.canvas.draw()
        ticks = figure.axes[0].get_xticklabels()
        drawn[path.stem] = [tick.get_text() for tick in ticks if tick.get_text()]

    monkeypatch.setattr(Figure, "savefig", keep)
    for rounds in (4, 200):
        report.write_pictures(make(rounds=rounds), tmp_path, formats=("png",))
        for name in ("progress-accuracy-rolling", "distance", "participation", "histogram"):
            assert all(label.lstrip("−").isdigit() for label in drawn[name]), drawn[name]
        assert drawn["cost"]
        assert not any("$" in label or "{" in label for label in drawn["cost"])
    assert {"1k", "10k"} <= set(drawn["cost"])


LONG = ("clustered-similarity", "md", "fedsampling-naive+scaffold", "clustered-similarity+feddyn")


def test_long_names_stay_on_the_picture(make, tmp_path, monkeypatch):
    """Titles and legends neither leave it nor run into each other."""
    from matplotlib.figure import Figure

    drawn = []

    def measure(figure, path, **_):
        figure.canvas.draw()
        titles = [axes.title for axes in figure.axes if axes.get_visible() and axes.get_title()]
        boxes = [each.get_window_extent() for each in (*titles, *figure.legends)]
        drawn.extend(path.stem for _ in boxes)
        for i, box in enumerate(boxes):
            assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1, path.stem
            assert not any(box.overlaps(other) for other in boxes[:i]), path.stem

    monkeypatch.setattr(Figure, "savefig", measure)
    report.write_pictures(make(LONG), tmp_path, formats=("png",))
    assert {"participation", "lorenz"} <= set(drawn)
