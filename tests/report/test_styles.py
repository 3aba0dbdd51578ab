from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest

from fedcohort.report._figure import DARK, LIGHT, ORACLE, style, swatch

# Machado et al. (2009), severity 1: what people without one kind of cone see
SEEN = {
    "all": np.eye(3),
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def linear(colour):
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(light):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    t = xyz @ light / np.array([0.9505, 1, 1.089])
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one, other):
    low, high = sorted(float(np.array([0.2126, 0.7152, 0.0722]) @ linear(c)) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("palette", "paper"), [(LIGHT, "#ffffff"), (DARK, "#161d27")])
def test_colours_stand_out_from_the_background(palette, paper):
    assert min(contrast(colour, paper) for colour in palette) >= 3  # WCAG 1.4.11


@pytest.mark.parametrize("palette", [LIGHT, DARK])
@pytest.mark.parametrize("eyes", SEEN)
def test_colours_differ_for_all_eyes(palette, eyes):
    seen = [lab(np.clip(np.array(SEEN[eyes]) @ linear(colour), 0, 1)) for colour in palette]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 10


def test_no_two_schemes_look_alike_even_without_colour():
    looks = [style(i) for i in range(40)]
    assert len({(look.colour, look.dash, look.marker) for look in looks}) == 40
    grey = [(look.dash, look.marker) for look in looks[:20]]
    assert len(set(grey[:10])) == 10


def test_a_swatch_is_a_drawing():
    for i in range(40):
        assert len(ElementTree.fromstring(swatch(i, "md"))) == 2  # noqa: S314 - our own text
        guide = ElementTree.fromstring(swatch(i, "target" + ORACLE))  # noqa: S314 - our own text
        assert len(guide) == 1  # a dashed line without a marker
