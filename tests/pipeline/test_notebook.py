"""The code of a notebook as a script, and one clear line for a file that is no notebook."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from torchbisect.core.errors import InputError
from torchbisect.pipeline.notebook import notebook_source


def written(*cells: Any) -> bytes:
    return json.dumps({"cells": cells, "nbformat": 4}).encode()


def code(text: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": text, "outputs": [{"data": {"x": [1.5, None]}}]}


def test_cells_are_joined_and_magics_left_out() -> None:
    cells = [
        code(["import torch\n", "%time x = 1"]),
        {"cell_type": "markdown", "source": 3},
        code("%%bash\nls"),
        code("y = !ls"),
    ]
    source, notes = notebook_source(b"\xef\xbb\xbf" + written(*cells), "a.ipynb")
    assert source == "import torch\nx = 1\n\npass  # y = !ls\n"
    assert notes == ("a.ipynb: left out what only a notebook can run: %time, %%bash, y = !ls",)


def test_magics_that_later_cells_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "base.py").write_text("BASE = 7\n__version__ = '1'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ACME_MODE", "slow")
    cells = [
        code("%%writefile written_by_a_cell.py\nLIMIT = 3\n"),
        code("%env ACME_MODE=fast\n%run base.py\nif BASE:\n    %cd sub"),
        code("import os\nfrom written_by_a_cell import LIMIT\n%matplotlib inline\n%env\n%cd -q ..\n%env A=$HOME"),
    ]
    source, notes = notebook_source(written(*cells), "a.ipynb")
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, "a", "exec"), names)
    assert (names["LIMIT"], names["BASE"], os.environ["ACME_MODE"]) == (3, 7, "fast")
    assert os.getcwd() == str(tmp_path / "sub")
    assert "__version__" not in names
    assert notes == ("a.ipynb: left out what only a notebook can run: %matplotlib inline, %env, %cd -q .., ...",)


def test_an_await_outside_of_a_function() -> None:
    cells = [
        code("async def get(x):\n    return await one(x)\nasync def one(x):\n    return x + 1"),
        code("é = [await get(1), (await\n get(await get(2)))]"),
    ]
    source, _ = notebook_source(written(*cells), "a.ipynb")
    names: dict[str, Any] = {}
    exec(compile(source, "a", "exec"), names)
    assert names["é"] == [2, 4]


def test_the_names_of_ipython_are_defined() -> None:
    source, _ = notebook_source(
        written(code("from __future__ import annotations\nx = 1"), code("display(x)")), "a.ipynb"
    )
    assert source.splitlines()[:2] == ["from __future__ import annotations", "display = print"]
    assert "get_ipython" not in source
    source, _ = notebook_source(written(code("print('google.colab' in str(get_ipython()))")), "a.ipynb")
    exec(compile(source, "a", "exec"), {})


def test_a_notebook_of_the_third_format() -> None:
    sheet = {"cells": [{"cell_type": "code", "input": ["a = 1\n", "b = 2"]}, {"cell_type": "heading", "source": "x"}]}
    assert notebook_source(json.dumps({"worksheets": [sheet]}).encode(), "a.ipynb") == ("a = 1\nb = 2\n", ())


NOT_A_NOTEBOOK = {
    "empty": b"",
    "text": b"import torch\n",
    "torn": written(code("x = 1"))[:-4],
    "list": b"[]",
    "number": b"7",
    "null": b"null",
    "utf-16": '{"cells": []}'.encode("utf-16"),
    "not-utf-8": b'{"cells": "\xff"}',
    "deep": b"[" * 1_000_000,
    "deep-output": b'{"cells": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "cells-is-an-object": b'{"cells": {"a": 1}}',
    "cell-is-text": written("code"),
    "cell-without-a-type": written({"source": "x = 1"}),
    "source-is-a-number": written(code(3)),
    "source-is-an-object": written(code({"x = 1": 1})),
    "source-has-a-number": written(code(["x = 1", 2])),
    "sheet-is-text": b'{"worksheets": ["x"]}',
    "no-code": written({"cell_type": "markdown", "source": "x"}),
    "code-of-megabytes": written(code("x = 1\n" * 400_000)),
}


@pytest.mark.parametrize("data", NOT_A_NOTEBOOK.values(), ids=NOT_A_NOTEBOOK)
def test_a_file_that_is_no_notebook(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^a\.ipynb ") as caught:
        notebook_source(data, "a.ipynb")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "line",
    [
        " " * 100_000 + "x y",
        "a " * 50_000 + "!",
        "%time" + " -a" * 30_000,
        "(" * 50_000,
        "-" * 50_000 + "%x",
        "%" + "x" * 99_000,
    ],
)
def test_a_long_line_takes_no_time_and_no_place_in_the_note(line: str) -> None:
    started = time.process_time()
    _, notes = notebook_source(written(code(["%matplotlib inline\n", line])), "a.ipynb")
    assert time.process_time() - started < 1.0
    assert len("".join(notes)) < 300
