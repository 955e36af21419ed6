"""Packages that are installed if a stranger's script imports them.

Installing a package may run its authors' code with a network, outside of the sandbox. Anybody can publish a package and
name it in an issue. So only well-known packages are allowed here, by the name of their import.
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
    """Return the packages to install for these imports, and the imports without an allowed package."""
    names = list(imports)
    known = tuple(INSTALLABLE[name] for name in names if name in INSTALLABLE)
    return known, tuple(name for name in names if name not in INSTALLABLE)
