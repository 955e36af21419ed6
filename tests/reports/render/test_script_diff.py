"""The marked lines of two scripts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchbisect.reports.render.script_diff import side_by_side


@given(st.lists(st.sampled_from(["a = 1", "  b = 2", "", "c = 3"]), max_size=12), st.data())
def test_side_by_side(lines: list[str], data: st.DataObject) -> None:
    kept = [line.strip() for line in lines if data.draw(st.booleans())]
    before, after = side_by_side("\n".join(lines), "\n".join(kept))
    assert [line.text for line in before] == ("\n".join(lines).rstrip("\n").split("\n"))
    assert [line.text for line in after] == ("\n".join(kept).rstrip("\n").split("\n"))
    left = [line.text.strip() for line in before if not line.changed and line.text.strip()]
    assert left == [line.text.strip() for line in after if not line.changed and line.text.strip()]
    if kept == [line.strip() for line in lines]:
        assert not any(line.changed for line in (*before, *after))
