"""The versions of torch that an issue states as failing and as working."""

from __future__ import annotations

import pytest

from torchbisect.triage.issues.stated_torch import stated_torch


@pytest.mark.parametrize(
    ("text", "failing", "working"),
    [
        ("`2.8.0+cu128`", ("2.8.0+cu128",), ()),
        ("PyTorch version: 2.8.0+cu128", ("2.8.0+cu128",), ()),
        ("PyTorch 2.7", ("2.7",), ()),
        ("PyTorch: 2.13.0+cu130 and nightly", ("2.13.0+cu130", "nightly"), ()),
        ("PyTorch `2.11.0`", ("2.11.0",), ()),
        ("2.10.0.dev20251012+cu128", ("2.10.0.dev20251012+cu128",), ()),
        ("torch main @ abc1234", ("main@abc1234",), ()),
        ("main @ abc1234", ("main@abc1234",), ()),
        ("PyTorch version: 2.4.0a0+git1234", ("2.4.0a0+git1234",), ()),
        ("pip install torch==2.5.1", ("2.5.1",), ()),
        ("on v2.6.0-rc3 it fails", ("2.6.0rc3",), ()),
        ("nightly 20250101", ("2025-01-01",), ()),
        ("PyTorch version: 2.9.0a0+git…", ("2.9.0a0+git",), ()),
        ("PyTorch version: 2.9.0a0+git...", ("2.9.0a0+git",), ()),
        ("| PyTorch | 2.6.0+cu124 |", ("2.6.0+cu124",), ()),
        ("works in 2.5, broken in 2.6", ("2.6",), ("2.5",)),
        ("It works on 2.5.1 but fails on 2.6.0.", ("2.6.0",), ("2.5.1",)),
        ("2.5 works; 2.6 doesn't work", ("2.6",), ("2.5",)),
        ("regression from 2.5.1 to 2.6.0", ("2.6.0",), ("2.5.1",)),
        ("Python 3.11, CUDA 12.4, triton 3.1.0, numpy 2.1.2 works", (), ()),
        ("torchvision 0.20.0 and torch 2.5.0", ("2.5.0",), ()),
        ("The bug exists in PyTorch 2.3.1, 2.4.0 and nightly", ("2.3.1", "2.4.0", "nightly"), ()),
        ("**PyTorch version**: 2.5.1", ("2.5.1",), ()),
        ("- PyTorch Version (e.g., 1.0): 2.2.0", ("2.2.0",), ()),
        ("torch                    2.5.1                    pypi_0    pypi", ("2.5.1",), ()),
        (
            "[conda] torch                     2.6.0.dev20241112+cu121          pypi_0    pypi",
            ("2.6.0.dev20241112+cu121",),
            (),
        ),
        ("print(torch.__version__)  # 2.5.0+cpu", ("2.5.0+cpu",), ()),
        ("torch.__version__ == '2.4.1'", ("2.4.1",), ()),
        ("Fails on the nightly of 2025-02-15, worked on the day before.", ("2025-02-15",), ()),
        ("2023_08_17 nightly", ("2023-08-17",), ()),
        ("torch-2.6.0.dev20241112+cu121-cp310-cp310-linux_x86_64.whl", ("2.6.0.dev20241112+cu121",), ()),
        ("I am on latest main", ("main",), ()),
        ("Fixed in 2.8.0, PyTorch 2.7.1 is affected", ("2.7.1",), ("2.8.0",)),
        ("PyTorch 2.5.1 ✅\nPyTorch 2.6.0 ❌", ("2.6.0",), ("2.5.1",)),
        ("| torch | result |\n|---|---|\n| 2.5.1 | OK |\n| 2.6.0 | wrong |", ("2.6.0",), ("2.5.1",)),
        ("nvcr.io/nvidia/pytorch:24.10-py3", (), ()),
        ("Tested with torch nightly (2.8.0.dev20250601+cpu)", ("2.8.0.dev20250601+cpu",), ()),
        ("torch: 2.7.1\npython: 3.12", ("2.7.1",), ()),
        ("torch=2.3", ("2.3",), ()),
        ("PyTorch 2.6 (stable)", ("2.6",), ()),
        ("reproduces on pytorch main (commit deadbee1)", ("main@deadbee1",), ()),
        ("after upgrading from 2.1.2 to 2.2.0 compile crashes", ("2.2.0",), ("2.1.2",)),
        ("This no longer works in torch 2.4", ("2.4",), ()),
        ("pytorch 2.0.1+cu118 (python 3.10)", ("2.0.1+cu118",), ()),
        ("PyTorch version: 2.5.0.dev20240725+cu118\n\nworks in 2.4", ("2.5.0.dev20240725+cu118",), ("2.4",)),
        ("> PyTorch version: 2.3.0", ("2.3.0",), ()),
        ("torch.compile on 2.9 gives wrong numbers", ("2.9",), ()),
        ("PyTorch commit 1a2b3c4d5e", ("main@1a2b3c4d5e",), ()),
        ("built from source (2.9.0a0+gitabcdef0)", ("2.9.0a0+gitabcdef0",), ()),
        ("`torch==2.7.0+cpu` works, `torch==2.8.0+cpu` does not", ("2.8.0+cpu",), ("2.7.0+cpu",)),
        ("Good: 2.6.0\nBad: 2.7.0", ("2.7.0",), ("2.6.0",)),
        ("Works: torch 2.6.0\nBroken: torch 2.7.0", ("2.7.0",), ("2.6.0",)),
        ("broken between 2.5.1 (good) and 2.6.0 (bad)", ("2.6.0",), ("2.5.1",)),
        ("The last working version is 2.5.1. It fails on 2.6.0.", ("2.6.0",), ("2.5.1",)),
        ("bisected to nightly 20250301; nightly 20250228 is good", ("2025-03-01",), ("2025-02-28",)),
        (
            "reproduces with `2.11.0+cu130` to `2.13.0+cu130` but not with nightly (`2.14.0.dev20260725+cu130`)",
            ("2.11.0+cu130", "2.13.0+cu130"),
            ("2.14.0.dev20260725+cu130",),
        ),
        ("Only happens since 2.6; 2.5.1 was fine.", ("2.6",), ("2.5.1",)),
        ("PyTorch Version: v2.3.0-rc1", ("2.3.0rc1",), ()),
        ("torch 2.5.1 works, but torch 2.6.0 gives wrong results", ("2.6.0",), ("2.5.1",)),
        ("doesn't reproduce with 2.8", (), ("2.8",)),
    ],
)
def test_a_form_of_a_version(text: str, failing: tuple[str, ...], working: tuple[str, ...]) -> None:
    stated = stated_torch("", text)
    assert (stated.failing, stated.working) == (failing, working)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("2.7", "2.7"),
        ("Version: 2.5.1", "2.5.1"),
        ("- v2.5.1", "2.5.1"),
        ("main", "main"),
        ("2.5.1, 2.6.0, 2.13.0 (all same); 2.4.1 was fine", "2.5.1"),
        ("2.5.1 and 2.6", "2.5.1"),
        ("2.5 GHz", None),
        ("3.11, 3.12", None),
        ("3.11", None),
        ("NA", None),
    ],
)
def test_a_version_alone_where_only_versions_stand(text: str, first: str | None) -> None:
    assert stated_torch(text, text).first == first
