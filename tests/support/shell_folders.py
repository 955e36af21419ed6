"""Folders whose scripts depend on the shell that they are typed in, and notebooks whose magics later cells need."""

from __future__ import annotations

from user_folders import COMPILED, Folder, notebook_text, script_text

SHELL = {
    "settings by the beginning of their names": Folder(
        {
            "train.py": script_text("""
                import os
                settings = {key[5:].lower(): value for key, value in os.environ.items() if key.startswith("ACME_")}
                def setting(name, default):
                    return os.environ.get(f"LAB_{name}", default)
                assert settings == {"rate": "0.5", "mode": "fast"} and setting("STEPS", "1") == "7"
                """)
        },
        shell={"ACME_RATE": "0.5", "ACME_MODE": "fast", "LAB_STEPS": "7"},
    ),
    "a name that a function is given": Folder(
        {
            "train.py": "import settings\nassert settings.SHARDS == 3\n" + COMPILED,
            "settings.py": "import os\ndef read(name):\n    return int(os.environ[name])\n"
            "SHARDS = read('SHARD_COUNT')\n",
        },
        shell={"SHARD_COUNT": "3"},
    ),
    "a seed for hashes that the script asks for": Folder(
        {"train.py": "import os\nassert os.environ.get('PYTHONHASHSEED') == '42'\n" + COMPILED},
        shell={"PYTHONHASHSEED": "42"},
    ),
    "a folder by the user's name": Folder(
        {
            "train.py": script_text("""
                import getpass, os
                from pathlib import Path
                assert (Path("scratch") / os.environ["USER"] / "w.txt").read_text() == "1"
                assert getpass.getuser() == "alice"
                """),
            "scratch/alice/w.txt": "1",
        },
        shell={"USER": "alice", "LOGNAME": "alice"},
    ),
    "a module by its dotted name, in a folder of PYTHONPATH": Folder(
        {
            "src/acme/__init__.py": "",
            "src/acme/train.py": "from .width import W\nassert W == 3 and __package__ == 'acme'\n" + COMPILED,
            "src/acme/width.py": "W = 3\n",
        },
        ("-m", "acme.train"),
        shell={"PYTHONPATH": "src"},
    ),
    "a notebook that goes into a folder, runs a file and writes a module": Folder(
        {
            "work/lab.ipynb": notebook_text(
                "%load_ext autoreload\n%env ACME_MODE=fast\n%run ../base.py",
                "%%writefile helper.py\nLIMIT = 0\n",
                "import os\nfrom helper import LIMIT\n%cd data",
                "async def double(x):\n    return x * 2\nassert await double(BASE) == 14 and not LIMIT",
                "assert os.environ['ACME_MODE'] == 'fast' and open('a.txt').read() == '1'\n" + COMPILED,
            ),
            "base.py": "BASE = 7\n",
            "work/data/a.txt": "1",
        },
        ("work/lab.ipynb",),
        plain=("-c", "0"),
    ),
}  # fmt: skip
