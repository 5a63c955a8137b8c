"""The command `seqloom track`."""

from pathlib import Path
from typing import Annotated, Literal

from seqloom.cli.options import RunPath, flag, option
from seqloom.cli.output import print_message
from seqloom.cli.process.interrupts import current_command, set_interruption_message


def track(
    run_folder: RunPath,
    to: Annotated[
        Literal["tensorboard", "mlflow", "wandb"],
        option("TRACKER", "Tracker: tensorboard, mlflow or wandb."),
    ] = "tensorboard",
    out: Annotated[Path, option("FOLDER", "Folder to write to.")] = Path("tracking"),
    follow: Annotated[bool, flag("--follow", "Wait for new events until training ends.")] = False,
) -> None:
    """Copy the losses and scores of a run to an experiment tracker, after or during training.

    wandb stores runs offline, unless WANDB_MODE says otherwise. mlflow writes to
    MLFLOW_TRACKING_URI if it is set.
    """
    set_interruption_message(
        lambda: f"Interrupted. To copy the events again, run: {current_command()}"
    )

    from seqloom.jobs.tracking.journal import read_scalars
    from seqloom.jobs.tracking.trackers import open_tracker

    tracker = open_tracker(to, run_folder, out)
    events = 0
    try:
        for scalars in read_scalars(run_folder, follow=follow):
            tracker.write(scalars)
            events += 1
    finally:
        tracker.close()
    print_message(f"{out}: {events:,} events of {run_folder} for {to}")
