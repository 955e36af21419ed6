"""The kernels stage: the code that inductor generates for the shrunk script, on both builds side by side."""

from __future__ import annotations

from torchbisect.core.repro import Repro
from torchbisect.pipeline.session import Session
from torchbisect.probe.measure.kernel_calls import kernel_calls
from torchbisect.probe.measure.measuring_probe import MeasuringProbe
from torchbisect.probe.oracle import Oracle
from torchbisect.reports.model.measurement import GeneratedKernels
from torchbisect.reports.sanitize import without_machine_paths


def compare_kernels(session: Session, oracle: Oracle, repro: Repro, against: str) -> tuple[GeneratedKernels, ...]:
    """Save the generated code of both builds; return their kernels, the reference's first, or nothing."""
    if not isinstance(oracle, MeasuringProbe):
        return ()
    session.display.status("running the script once on each build, for the code that inductor generates")
    pair = oracle.generated_code(repro)
    if pair is None:
        return ()
    found = []
    for build, reading in ((against, pair.reference), (oracle.environment.build.name, pair.asked)):
        path = session.workspace.save_code(build, without_machine_paths("\n\n".join(reading.code)))
        found.append(GeneratedKernels(build, path, kernel_calls(reading.code)))
    return tuple(found)
