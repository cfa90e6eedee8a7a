"""Charts are plain data that hide nothing."""

import json

import numpy as np
import pytest

from sleuth.core.finding import Series
from sleuth.core.observation import Role
from sleuth.views.charts import CHARTS, Material, charts
from sleuth.views.charts.thinning import stretches, thin_grid, thin_line
from tests.views import recordings, reports


@pytest.mark.parametrize("points", [12, 1000])
def test_a_spike_of_one_step_and_the_step_that_broke_are_drawn_however_few_points_there_are(points: int) -> None:
    loss = next(c for c in CHARTS["curves"](Material(recordings.recording()), points) if c.name == "loss")
    drawn = dict(zip(loss.figure["data"][0]["x"], loss.figure["data"][0]["y"], strict=True))
    assert len(drawn) <= points + 2
    assert drawn[recordings.SPIKE] == 9.0
    broken = next(trace for trace in loss.figure["data"] if trace["name"] == "NaN or Inf")
    assert broken["x"][:2] == [recordings.BROKEN, recordings.STEPS - 1]


def test_thinned_lines_keep_the_extremes_of_every_stretch() -> None:
    values = np.random.default_rng(1).normal(size=5000)
    x, y = thin_line(np.arange(5000), values, 300)
    assert len(x) <= 302
    assert (y.min(), y.max(), y[0], y[-1]) == (values.min(), values.max(), values[0], values[-1])


def test_one_odd_cell_survives_in_a_heat_map() -> None:
    grid = np.random.default_rng(1).normal(size=(1000, 3))
    grid[501, 1] = 40.0
    grid[:, 2] = np.where(np.arange(1000) % 2, grid[:, 2], np.nan)
    begins = stretches(grid, 50)
    thinned = thin_grid(grid, begins)
    assert thinned.shape == (50, 3)
    assert thinned[:, 1].max() == 40.0
    assert np.isfinite(thinned).all()


def test_every_kind_of_chart_is_there_in_the_order_of_the_page() -> None:
    found = charts(recordings.recording(), reports.sick())
    names = [chart.name for chart in found]
    assert [c.group for c in found] == sorted((c.group for c in found), key=list(CHARTS).index)
    assert len(set(names)) == len(names)
    wanted = "finding-1 loss lr gradient-norm heat-gradient heat-update heat-activation heat-dead gradient-flow sizes-gradient"
    assert set(f"{wanted} spread-weight time-steps memory-held".split()) <= set(names)
    for chart in found:
        json.dumps(chart.figure, allow_nan=False)


def test_nothing_is_drawn_where_nothing_was_seen() -> None:
    assert charts(None, None) == []
    assert [c.name for c in charts(None, reports.sick())] == ["finding-1"]


def test_a_curve_that_proves_two_findings_is_drawn_once() -> None:
    report = reports.sick()
    assert [f.series == report.findings[0].series for f in report.findings] == [True, True, True]
    assert isinstance(report.findings[0].series[0], Series)
    assert len(list(CHARTS["evidence"](Material(None, report), 100))) == 1


def test_heat_maps_tell_zero_from_missing_and_from_broken() -> None:
    material = Material(recordings.recording())
    heat = next(c for c in CHARTS["layers"](material, 1000) if c.name == f"heat-{Role.GRADIENT.value}")
    sizes, broken = heat.figure["data"]
    assert sizes["z"][0][-1] is None
    assert broken["z"][0][-1] == 1
    assert broken["z"][1][-1] is None
    assert sizes["z"][3][0] == pytest.approx(-1.0)
