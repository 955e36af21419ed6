"""Compare an eager and a compiled run, and keep the differences that are evidence against the compiler."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Set, Tuple

from ..run.eager_modes import may_have_ties
from ..run.fork import Run
from .comparison import compare
from .snapshot_diff import Difference

MAX_DIFFERENCES = 40

RunRole = Callable[[str], Run]


class Evidence:
    """The comparison of a script's runs, with the further runs that it turns out to need.

    Args:
        run_eager: returns an eager run of a role (``child.Job``), made when it is first asked for and kept.
        run_compiled: makes a compiled run of a role.
        source: the script's text, or that of the functions that it compiles.
    """

    def __init__(self, run_eager: RunRole, run_compiled: RunRole, source: str) -> None:
        self._eager_run = run_eager
        self._run_compiled = run_compiled
        self._source = source

    def observation(self) -> Dict[str, Any]:
        """Run a script compiled, compare, and remove the differences that are no evidence against the compiler."""
        eager, compiled = self._eager_run("eager"), self._run_compiled("compiled")
        notes = [*eager.notes, *compiled.notes]
        comparison = compare(eager, compiled)
        differences = comparison.differences
        if differences:
            repeated = compare(eager, self._eager_run("perturbed")).differences
            noise = _places(repeated)
            differences = _without(differences, noise)
            # A double-precision run takes time, so it is made only if the first difference depends on it.
            depends = differences and (differences[0].is_float or differences[0].is_secondary)
            if comparison.needs_reference and depends:
                reference = self._eager_run("float64")
                differences = _without(compare(eager, compiled, reference).differences, noise)
                if reference.ending["how"] != eager.ending["how"]:
                    notes.append("there is no double-precision reference: that run {}".format(reference.ending["how"]))
            told = _places([item for item in repeated if not _is_plain_global(item)])
            if told:
                places = ", ".join(sorted(told)[:5])
                notes.append("the eager run does not repeat itself: {} differ between two eager runs".format(places))
            differences = self._without_ties(differences, compiled)
        differences, depends_on_draws = self._without_draws(differences, compiled)
        dropped = eager.dropped_entries + compiled.dropped_entries
        if dropped:
            notes.append("the record of the runs was too large: {} entries were left out".format(dropped))
        return {**observation(eager.ending, compiled.ending, differences, notes), "drawn": depends_on_draws}

    def _without_ties(self, differences: List[Difference], compiled: Run) -> List[Difference]:
        """Return the differences that remain if eager makes the other choice among equal elements."""
        if not differences or not may_have_ties(self._source):
            return differences
        reversed_ties = self._eager_run("reversed_ties")
        if reversed_ties.ending["how"] != self._eager_run("eager").ending["how"]:
            return differences
        remaining = _places(compare(reversed_ties, compiled).differences)
        return [item for item in differences if _place(item) in remaining]

    def _without_draws(self, differences: List[Difference], compiled: Run) -> Tuple[List[Difference], bool]:
        """Return the differences that remain if random numbers do not depend on the order of draws.

        The second result is True if a difference, or the difference between the endings, did depend on the draws.
        """
        eager = self._eager_run("eager")
        check_failed = compiled.ending["how"] != eager.ending["how"] and _is_failed_check(compiled.ending)
        values = [item for item in differences if item.facts["attribute"] in ("value", "text")]
        draws = any(entry.facts.get("drew") for entry in eager.entries)
        if not draws or not (values or check_failed):
            return differences, False
        left = self._eager_run("deterministic_rng")
        right = self._run_compiled("deterministic_rng-compiled")
        endings_differ = left.ending["how"] != right.ending["how"] or left.ending["how"] != eager.ending["how"]
        remaining = _places(compare(left, right).differences)
        kept = [item for item in differences if item not in values or endings_differ or _place(item) in remaining]
        return kept, len(kept) < len(differences) or (check_failed and not endings_differ)


def observation(
    eager: Dict[str, Any], compiled: Dict[str, Any], differences: List[Difference], notes: List[str]
) -> Dict[str, Any]:
    """Return ``observation.Observation`` as JSON."""
    return {
        "eager": eager,
        "compiled": compiled,
        "differences": [item.facts for item in differences][:MAX_DIFFERENCES],
        "notes": list(dict.fromkeys(notes)),
    }


def _is_failed_check(ending: Dict[str, Any]) -> bool:
    """Return True if a script ended by a check of its own: an exit or a failed assertion."""
    return ending["how"] == "exited" or (ending.get("raised") or {}).get("name") == "AssertionError"


def _place(difference: Difference) -> str:
    return str(difference.facts["place"])


def _is_plain_global(difference: Difference) -> bool:
    """Return True for a global without tensors, such as a time or the name of a temporary file: nobody compiles it."""
    facts = difference.facts
    return str(facts["place"]).startswith("global ") and facts["attribute"] == "value" and not facts["detail"]


def _places(differences: List[Difference]) -> Set[str]:
    return {_place(item) for item in differences}


def _without(differences: List[Difference], places: Set[str]) -> List[Difference]:
    return [item for item in differences if _place(item) not in places]
