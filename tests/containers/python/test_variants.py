"""Choice of a CUDA variant, and reasons why a build can't compute on the GPU."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from torchbisect.containers.python.variants import (
    Gpu,
    choose_variant,
    cuda_version,
    gpu_failure,
    incompatibility,
    parse_gpus,
)
from torchbisect.core.build import Build
from torchbisect.core.errors import InputError

OFFERED = ["cpu", "cu118", "cu121", "cu124", "cu126", "cu128", "cu130", "cu132", "rocm6.3", "xpu"]
GPUS = st.builds(
    Gpu,
    st.just("a GPU"),
    st.sampled_from(["450.80.02", "470.57", "525.60.13", "560.28", "580.65.06", "610.1"]).map(Version),
    st.sampled_from([(3, 5), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (9, 0), (10, 0), (12, 0), (13, 0)]),
)


@pytest.mark.parametrize(
    ("driver", "capability", "expected"),
    [
        ("580.65.06", (9, 0), "cu132"),
        ("570.26", (9, 0), "cu128"),
        ("525.60.13", (8, 0), "cu128"),
        ("470.57.02", (8, 0), "cu118"),
        ("580.65.06", (7, 0), "cu128"),
        ("580.65.06", (6, 1), "cu126"),
        ("570.86", (12, 0), "cu128"),
    ],
)
def test_the_newest_variant_that_runs_is_chosen(driver: str, capability: tuple[int, int], expected: str) -> None:
    assert choose_variant(OFFERED, [Gpu("a GPU", Version(driver), capability)]) == expected


def test_without_a_gpu_the_cpu_variant_is_chosen() -> None:
    assert choose_variant(OFFERED, []) == "cpu"
    assert choose_variant(["cpu"], [Gpu("a GPU", Version("580"), (9, 0))]) == "cpu"


@given(st.lists(st.sampled_from(OFFERED), unique=True), GPUS)
def test_the_chosen_variant_runs_and_no_newer_one_does(offered: list[str], gpu: Gpu) -> None:
    cuda = [variant for variant in offered if cuda_version(variant)]
    fitting = [variant for variant in cuda if incompatibility(variant, gpu) is None]
    if cuda and not fitting:
        with pytest.raises(InputError, match="no variant of torch runs on a GPU"):
            choose_variant(offered, [gpu])
        return
    chosen = choose_variant(offered, [gpu])
    assert chosen in fitting or (chosen == "cpu" and not cuda)
    assert all((cuda_version(variant) or (0, 0)) <= (cuda_version(chosen) or (99, 9)) for variant in fitting)


@pytest.mark.parametrize(
    ("variant", "cuda"),
    [
        ("cu126", (12, 6)),
        ("cu118", (11, 8)),
        ("cu130", (13, 0)),
        ("cpu", None),
        ("rocm6.3", None),
        (f"cu{'9' * 5000}", None),
    ],
)
def test_cuda_version_of_a_variant(variant: str, cuda: tuple[int, int] | None) -> None:
    assert cuda_version(variant) == cuda


def test_the_drivers_listing_is_parsed() -> None:
    listing = (
        "NVIDIA H100 80GB HBM3, 550.54.15, 9.0\nNVIDIA A100, PCIe, 535.1, 8.0\n\n[Insufficient Permissions]\nx, y, z\n"
    )
    listing += (
        f"x, {'9' * 5000}, 9.0\nx, 550, {'9' * 5000}.0\nx, 550, 9.{'0' * 5000}\n{'x' * 10**6}, 550, 9.0\nx, 1, ².0\n"
    )
    assert parse_gpus(listing) == [
        Gpu("NVIDIA H100 80GB HBM3", Version("550.54.15"), (9, 0)),
        Gpu("NVIDIA A100, PCIe", Version("535.1"), (8, 0)),
    ]


@given(st.text())
def test_any_listing_can_be_read(listing: str) -> None:
    assert all(isinstance(gpu, Gpu) for gpu in parse_gpus(listing))


WORKS = {"built": "12.6", "available": True, "capability": [9, 0], "architectures": ["sm_80"], "sum": 4.0}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"built": None}, "not-a-cuda-build"),
        ({"available": False}, "gpu-unusable"),
        ({"sum": None, "error": "no kernel image is available"}, "no-kernels-for-gpu"),
    ],
)
def test_reasons_why_a_build_cannot_compute_on_the_gpu(change: dict[str, Any], reason: str | None) -> None:
    refused = gpu_failure("a warning\n" + json.dumps({**WORKS, **change}) + "\n", Build("2.8.0"))
    assert (refused.reason if refused else None) == reason


def test_no_answer_is_a_failure() -> None:
    texts = ["", "Segmentation fault", "[]", "null", "3", '"x"', "[" * 100_000, "9" * 5000, json.dumps(WORKS)[:-3]]
    texts += [json.dumps({**WORKS, name: {}}) for name in WORKS]
    for answer in texts:
        refused = gpu_failure(answer, Build("2.8.0"))
        assert refused is not None
        assert refused.reason == "gpu-unusable"
