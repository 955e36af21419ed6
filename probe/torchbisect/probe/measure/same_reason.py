"""The identity of a number that became worse, which keeps a shrunk script from being worse for another reason."""

from __future__ import annotations

from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.measure.comparison import BuildMeasurement
from torchbisect.probe.measure.measure import Measure, format_value

#: Shrinking makes the number smaller; a difference that falls by more than this factor is another one.
_FACTOR = 10.0
_TIMES = ("time", "cpu-time")


def signature_of(measure: Measure, found: BuildMeasurement) -> Signature:
    """Return the signature of a build that is worse.

    Its ``place`` is what was timed, ``lost`` is the difference in the number's unit, and ``compiled`` has the counts of
    the compiler that rose with the number.
    """
    rose = () if measure.counted else sorted(name for name, (before, after) in found.counts.items() if after > before)
    has_unit = measure.unit and found.value is not None and found.reference is not None
    return Signature(
        MismatchKind.SLOW,
        attribute=measure.text,
        place=found.timed if measure.text in _TIMES else "",
        compiled=" ".join(rose),
        lost=(found.value or 0.0) - (found.reference or 0.0) if has_unit else None,
    )


def other_reason(measure: Measure, ours: Signature, theirs: Signature) -> str | None:
    """Return why a smaller form of a script is worse for another reason than the script; ``None`` if it is not.

    What is timed must stay, and at least a tenth of the difference: two empty calls have a ratio too. Where counts of
    the compiler rose, one of them still must.
    """
    if ours.place and theirs.place != ours.place:
        return f"timed: {theirs.place}, not {ours.place}"
    if ours.lost is not None and theirs.lost is not None and theirs.lost < ours.lost / _FACTOR:
        return f"worse by {format_value(theirs.lost, measure.unit)}, not by {format_value(ours.lost, measure.unit)}"
    if ours.compiled and not set(ours.compiled.split()) & set(theirs.compiled.split()):
        return f"no more {ours.compiled.replace(' ', ' or ')} than on the reference"
    return None
