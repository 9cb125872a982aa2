"""From an op's description to the plan of its launches. Pure but for the files that ``bytes @FILE`` arguments name.

    manifest = load_manifest(find_manifest(Path()))
    spec = manifest.op("softmax")                            or  adhoc_spec(AdhocOptions("k.ptx", …))
    module = outline(read_source(ptx_file(spec)))
    for case in cases_of(spec, overrides):
        plan = plan_case(spec, case, module, overrides)

Knows nothing of devices, click or rich. May import ``manifest``, ``ptx`` and what is below them.
"""

from __future__ import annotations
