"""Everything that can go wrong because of what a user gave us.

    SeqloomError
    ├── ConfigError      a recipe or an override cannot be used                 exit 78
    ├── DataError        a line, a pair or a text cannot be used                exit 65
    ├── NotFoundError    a file or a run folder is not there                    exit 66
    ├── StorageError     a file cannot be written, or was damaged on disk       exit 74
    └── TrainingError    the training itself went wrong (a loss that is no number)  exit 1

Each message says where, what, and what to do. All problems of one kind are collected before
anything is raised, so that nobody has to fix a file one error at a time. Mistakes of our own
are `assert`s and show a traceback; these never do.
"""


class SeqloomError(Exception):
    """The parent of every error a user can cause and mend."""

    exit_code = 1


class ConfigError(SeqloomError):
    """A recipe or an override cannot be used."""

    exit_code = 78


class DataError(SeqloomError):
    """A line, a pair or a text cannot be used."""

    exit_code = 65


class NotFoundError(SeqloomError):
    """A file or a run folder is not there."""

    exit_code = 66


class StorageError(SeqloomError):
    """A file cannot be written, or what was written has been damaged since."""

    exit_code = 74


class TrainingError(SeqloomError):
    """Training went wrong: a loss, gradient or weight is no longer a number."""
