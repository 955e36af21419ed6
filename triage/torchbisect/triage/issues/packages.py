"""Packages that may be installed because a stranger's script imports them.

Installing a package may run its makers' code with a network, before any sandbox of ours. A name in an issue is all it
takes to ask for one, and anybody can publish one. So only well-known ones, by the name that they are imported by.
"""

from __future__ import annotations

from collections.abc import Iterable

INSTALLABLE = {
    "accelerate": "accelerate",
    "beartype": "beartype",
    "cv2": "opencv-python-headless",
    "datasets": "datasets",
    "diffusers": "diffusers",
    "einops": "einops",
    "expecttest": "expecttest",
    "huggingface_hub": "huggingface-hub",
    "hypothesis": "hypothesis",
    "jaxtyping": "jaxtyping",
    "lightning": "lightning",
    "matplotlib": "matplotlib",
    "networkx": "networkx",
    "numpy": "numpy",
    "omegaconf": "omegaconf",
    "packaging": "packaging",
    "pandas": "pandas",
    "peft": "peft",
    "PIL": "pillow",
    "psutil": "psutil",
    "pytest": "pytest",
    "safetensors": "safetensors",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "sympy": "sympy",
    "tensordict": "tensordict",
    "timm": "timm",
    "tokenizers": "tokenizers",
    "torchao": "torchao",
    "torchaudio": "torchaudio",
    "torchvision": "torchvision",
    "tqdm": "tqdm",
    "transformers": "transformers",
    "typing_extensions": "typing-extensions",
    "yaml": "pyyaml",
}


def installable(imports: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The packages to install for these imports, and the imports for which none may be."""
    names = list(imports)
    known = tuple(INSTALLABLE[name] for name in names if name in INSTALLABLE)
    return known, tuple(name for name in names if name not in INSTALLABLE)
