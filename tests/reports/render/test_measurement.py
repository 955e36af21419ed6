"""The renderings of a measured search: table, sparkline and chart."""

from __future__ import annotations

import dataclasses
import math

from torchbisect.reports.model.measurement import (
    CountChange,
    FlagEffect,
    GeneratedKernels,
    MeasuredBuild,
    MeasurementReport,
    sparkline,
)
from torchbisect.reports.model.report import Report
from torchbisect.reports.render import html, markdown
from torchbisect.reports.render.measurement_chart import ratio_chart
from torchbisect.reports.render.terminal import summary

MEASURED = MeasurementReport(
    "time",
    "s",
    "2.1.0",
    1.2,
    0.01,
    ("Each run is a fresh process.",),
    (
        MeasuredBuild("2.1.0", "not-worse", 1.0, 0.99, 1.01, 9, 0.00123, 0.00123),
        MeasuredBuild("2.2.0", "untestable", reason="fails", detail="the script ended"),
        MeasuredBuild(
            "2.3.0", "worse", 1.31, 1.29, 1.33, 9, 0.0016, 0.00122, None, "", (CountChange("kernel-count", 3, 7),)
        ),
        MeasuredBuild("2.4.0", "worse", math.inf, math.inf, math.inf, 1, 1.0, 0.0),
    ),
    "step",
    1.0,
    "One step, from 2.1.0 to 2.3.0, is 100% of the change.",
)


def test_every_rendering_has_the_numbers(whole: Report) -> None:
    report = dataclasses.replace(whole, measurement=MEASURED)
    text = markdown.render(report)
    assert "| `2.3.0` | 1.6 ms | 1.31 | 1.29 to 1.33 | 9 | worse; kernel-count 3 → 7 |" in text
    assert "| `2.2.0` | - | - | - | - | untestable: fails |" in text
    assert "▁█ One step" in text
    assert "expected, as in eager mode" not in text
    page = html.render(report)
    assert "worse by 1.2" in page
    assert "1.29 to 1.33" in page
    assert "kernel-count 3 → 7" in page
    assert "against itself: 1 (0.99 to 1.01), 9 pairs" in str(summary(report))


def test_a_reader_is_told_how_to_measure_the_minimal_script(whole: Report) -> None:
    command = "torchbisect check --torch 2.3.0 --measure time --worse-by 1.2 --against 2.1.0 minimal.py"
    assert whole.minimal is not None
    minimal = dataclasses.replace(whole.minimal, command=command)
    report = dataclasses.replace(whole, measurement=MEASURED, minimal=minimal)
    for text in (markdown.render(report), html.render(report), str(summary(report))):
        assert command in text
    assert "This measures it" not in markdown.render(whole)


def test_the_kernels_of_both_builds_stand_side_by_side(whole: Report) -> None:
    kernels = (
        GeneratedKernels("2.1.0", "kernels-2.1.0.py", ("cpp_fused_add_0", "extern_kernels.mm")),
        GeneratedKernels("2.3.0", "kernels-2.3.0.py", ("cpp_fused_add_0", "cpp_fused_mul_1", "extern_kernels.mm")),
    )
    report = dataclasses.replace(whole, measurement=dataclasses.replace(MEASURED, kernels=kernels))
    text = markdown.render(report)
    assert "| calls on torch `2.1.0`: 2 | calls on torch `2.3.0`: 3 |" in text
    assert "| - | `cpp_fused_mul_1` |\n| `extern_kernels.mm` | `extern_kernels.mm` |" in text
    for rendering in (text, html.render(report), str(summary(report))):
        assert "kernels-2.1.0.py" in rendering
    assert "<td><code></code></td><td><code>cpp_fused_mul_1</code></td>" in html.render(report)


def test_flags_that_make_up_for_the_change_are_named(whole: Report) -> None:
    flags = (FlagEffect("torch._inductor.config.epilogue_fusion = False", 1.02, 0.99, 1.04),)
    report = dataclasses.replace(whole, measurement=dataclasses.replace(MEASURED, flags=flags))
    assert "| `torch._inductor.config.epilogue_fusion = False` | 1.02 (0.99 to 1.04) |" in markdown.render(report)
    assert '<td class="figure">1.02 (0.99 to 1.04)</td>' in html.render(report)
    assert "no longer worse with torch._inductor.config.epilogue_fusion = False" in str(summary(report))


def test_a_build_lies_where_its_ratio_is() -> None:
    chart = ratio_chart(MEASURED)
    assert chart is not None
    good, bad = chart.points
    assert good.top > chart.threshold - 8 > bad.top, "a higher ratio lies further up"
    assert bad.high < bad.top + 8 < bad.low
    assert (good.kind, bad.kind) == ("good", "bad")


def test_no_ratio_is_no_chart() -> None:
    assert ratio_chart(dataclasses.replace(MEASURED, builds=MEASURED.builds[1:2])) is None


def test_a_sparkline_of_equal_numbers_is_flat() -> None:
    assert sparkline([2.0, 2.0, 2.0]) == "▁▁▁"
    assert sparkline([]) == ""


def test_names_and_units_of_a_foreign_report_are_shown_and_not_obeyed(whole: Report) -> None:
    foreign = dataclasses.replace(MEASURED, measure="a\x1b[2Jb", unit="<img src=x> | [a](http://host.example)")
    report = dataclasses.replace(whole, measurement=foreign)
    assert "\x1b" not in str(summary(report))
    text = markdown.render(report)
    assert "<img" not in text
    assert "](http://host.example)" not in text
    assert "\x1b" not in text
