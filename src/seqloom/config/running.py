"""What running text asks of the rest of a recipe's data."""

from seqloom.config.corpora import RunningTextConfig
from seqloom.config.data import DataConfig, FilterConfig


def running_text_problems(data: DataConfig) -> list[str]:
    """Why this running text cannot be learned or scored; empty where there is none."""
    problems = []
    splits = {"train": data.train, "dev": data.dev, "test": data.test}
    running = data.is_running_text
    for name, corpora in splits.items():
        strangers = {one.kind for one in corpora if isinstance(one, RunningTextConfig) != running}
        if strangers == {"hold-out"}:
            problems.append(
                f"data.{name}: lines held out here and there would tear running text apart; hold out "
                f"its end: data.train.end = 0.9 and data.{name} = {{ kind = 'running-text', path = …, "
                "begin = 0.9 }"
            )
        elif strangers:
            problems.append(
                f"data.{name}: {', '.join(sorted(strangers))} cannot be mixed with data.train, of "
                "which one is running text and the other is not; use one kind for all splits"
            )
        shapes = {
            (one.length, one.context) for one in corpora if isinstance(one, RunningTextConfig)
        }
        if len(shapes) > 1:
            problems.append(
                f"data.{name}: its files are read as one text, so they have one length and one "
                "context; make them equal"
            )
    if running and data.filter != FilterConfig():
        problems.append(
            "data.filter: a line left out would tear running text apart; take data.filter away"
        )
    return problems
