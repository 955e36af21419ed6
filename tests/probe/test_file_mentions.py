"""What the text of a script says about the files that it uses."""

from __future__ import annotations

import pytest

from torchbisect.probe.file_mentions import levels_above, looks_at_files, named_parts


@pytest.mark.parametrize(
    "source",
    [
        "data = torch.load(name)",
        "with open(name) as file: pass",
        "frame = pandas.read_csv(name)",
        "image = cv2.imread(name)",
        "rows = Path(name).read_text()",
        "os.system('make data')",
        "from netCDF4 import Dataset\nd = Dataset(name)",
        "d = datasets.Dataset.from_csv(name)",
        "train = ImageFolder(name)",
        "exec(compile(text, name, 'exec'))",
        "eval(\"__import__('acme').data\")",
        "def f(:\n    open(name)",
        "match = glob('*.csv')",
        "readings = xarray.open_dataset(name)",
        "opened = [open_ for open_ in map(open, names)]",
        "rows = json.load(stream); again = json.loads(text)",
    ],
)
def test_a_script_that_looks_at_files(source: str) -> None:
    assert looks_at_files((source,))


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nprint(torch.ones(1))",
        "# open the door, read the config\nx = 1",
        '"""Load a model, and walk over the tree."""\nx = 1',
        "class A:\n    '''Reads it.'''\n    x = 1",
        "from torch.utils.data import DataLoader, Dataset\nclass D(Dataset): pass\nfor b in DataLoader(D()): pass",
        "import threading\nready = already = spread = 1",
        "def f():\n    global workload\n    workload = 1",
        "with ThreadPoolExecutor() as executor: executor.map(f, payload)",
        "model.load_state_dict(other.state_dict())",
        "class System:\n    system = 1\ny = self.system",
        "x, open_ = gate(x)\nopened.append(open_)\nreadings = self.readout(x)",
        "rows = json.loads('[1]')\nname = PurePosixPath('a/b').name\nupload(rows)",
    ],
)
def test_a_script_that_looks_at_none(source: str) -> None:
    assert not looks_at_files((source,))


def test_a_text_that_looks_is_enough() -> None:
    assert looks_at_files(("x = 1", "open(x)"))


def test_the_parts_of_paths_are_named() -> None:
    assert named_parts(("x = 'data/a.csv'",), ("--config=conf/b.yaml",)) == {
        "data",
        "a.csv",
        "--config",
        "conf",
        "b.yaml",
    }


@pytest.mark.parametrize(
    ("source", "levels"),
    [
        ("x = 1", 0),
        ("open('../data.csv')", 1),
        ("open('../../data.csv')", 2),
        ("Path(__file__).parent.parent", 1),
        ("Path(__file__).parents[2]", 2),
        ("os.path.dirname(os.path.dirname(__file__))", 1),
        ("os.pardir", 1),
    ],
)
def test_the_folders_above_are_counted(source: str, levels: int) -> None:
    assert levels_above((source,)) == levels
