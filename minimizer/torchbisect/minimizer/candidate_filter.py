"""Reject candidates that are not worth a question: they cannot run, or they are degenerate."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from torchbisect.minimizer.defects import class_members, count_defects
from torchbisect.minimizer.syntax.unbound_names import unbound_names


@dataclass(frozen=True)
class CandidateFilter:
    """The flaws of the script that a reduction starts from; a candidate may have these and no others.

    The mismatch may be about such a flaw: names that the script cannot bind, and its defects with their number.
    A candidate that reads one of the ``members`` of the script's classes and has lost it cannot work.
    """

    unbound: frozenset[str] = frozenset()
    defects: Mapping[str, int] = field(default_factory=dict)
    members: frozenset[str] = frozenset()

    @classmethod
    def of(cls, tree: ast.Module) -> CandidateFilter:
        """Return the filter for reductions of this script."""
        members = class_members(tree)
        return cls(unbound_names(tree), dict(count_defects(tree, members)), members)

    def accepts(self, tree: ast.Module, text: str) -> bool:
        """Tell whether a candidate is valid Python, binds its names and has no new defect."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(text, "candidate", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            return False
        if not unbound_names(tree) <= self.unbound:
            return False
        found = count_defects(tree, self.members)
        return all(count <= self.defects.get(defect, 0) for defect, count in found.items())
