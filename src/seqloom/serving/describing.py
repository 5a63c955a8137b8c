"""What there is to say about a run that is served."""

from seqloom import __version__
from seqloom.config.schema.decoding import BeamConfig
from seqloom.config.schema.tags import tag_display_name
from seqloom.inside.explain import looks_of
from seqloom.runs.forecaster import Forecaster
from seqloom.serving.schema import LanguagePair, RunAnswer, RunsAnswer
from seqloom.serving.served import ROUTES, Served
from seqloom.serving.service import Service


def describe_all(service: Service) -> RunsAnswer:
    return RunsAnswer(
        version=__version__,
        limits=service.limits,
        runs=[describe(served) for served in service.catalogue.runs],
    )


def describe(served: Served) -> RunAnswer:
    run = served.run
    decoding = run.config.decoding
    layers, heads = looks_of(run.model.decoder)
    numbers: dict[str, object] = {}
    targets: list[str] = []
    if isinstance(run, Forecaster):
        columns, context = run.columns
        task = run.task.config
        numbers = {
            "observe": task.observe,
            "predict": task.predict,
            "columns": list(columns),
            "context": list(context),
        }
    else:
        targets = [tag_display_name(tag) for tag in run.languages.tags]
    known = {
        "name": served.name,
        "kind": served.kind,
        "route": ROUTES[served.kind],
        "languages": [LanguagePair(source=p.source, target=p.target) for p in served.pairs],
        "targets": targets or list(dict.fromkeys(pair.target for pair in served.pairs)),
        "parameters": served.parameters,
        "memory_bytes": served.memory,
        "engine": served.engine,
        "attention": bool(layers),
        "layers": layers,
        "heads": heads,
        "decoding": decoding.kind,
        "beam": decoding.width if isinstance(decoding, BeamConfig) else None,
    }
    return RunAnswer.model_validate({**known, **numbers})
