"""Splits of a range of nightlies by Python and variant."""

from __future__ import annotations

import datetime

from hypothesis import given
from hypothesis import strategies as st

from torchbisect.bisect.sources.variant_pairs import PythonVariant, split_range

DAY = datetime.timedelta(days=1)


@given(st.data())
def test_the_parts_of_a_split_cover_both_ends_and_share_a_day(data: st.DataObject) -> None:
    start = datetime.date(2026, 1, 1)
    pairs = [PythonVariant(f"cp3{number}", variant) for number in (11, 12) for variant in ("cu126", "cu130")]
    offered = {pair: sorted(start + day * DAY for day in data.draw(st.sets(st.integers(0, 12)))) for pair in pairs}
    first, last = start, start + 12 * DAY
    split = split_range(first, last, offered, pairs)
    days = sorted({day for own in offered.values() for day in own})
    if not days:
        assert not split.parts
        assert split.notice
        return
    assert split.parts[0].first == days[0]
    assert split.parts[-1].last == days[-1]
    for part in split.parts:
        assert part.first in offered[part.pair]
        assert part.last in offered[part.pair]
    joined = all(a.last == b.first for a, b in zip(split.parts, split.parts[1:]))
    assert joined or "nothing joins" in (split.notice or "")
    for pair in pairs:
        if days[0] in offered[pair] and days[-1] in offered[pair]:
            assert len(split.parts) == 1
            assert split.notice is None


def test_a_range_beyond_the_end_of_a_variant_is_split_with_a_notice() -> None:
    old = [datetime.date(2026, 4, day) for day in range(1, 8)]
    new = [datetime.date(2026, 4, day) for day in range(3, 20)]
    pairs = [PythonVariant("cp311", "cu128"), PythonVariant("cp311", "cu130")]
    split = split_range(datetime.date(2026, 4, 1), datetime.date(2026, 4, 19), dict(zip(pairs, (old, new))), pairs)
    assert [(s.pair.variant, s.first.day, s.last.day) for s in split.parts] == [("cu128", 1, 7), ("cu130", 7, 19)]
    assert "the range is split: 2026-04-01 to 2026-04-07 cu128 for cp311" in (split.notice or "")
