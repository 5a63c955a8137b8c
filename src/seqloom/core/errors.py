"""Errors that users can cause and fix.

    SeqloomError
    ├── ConfigError      a recipe or an override is not valid                   exit code 78
    ├── DataError        a line, a pair or a text cannot be used                exit code 65
    ├── NotFoundError    a file or a run folder does not exist                  exit code 66
    ├── StorageError     a file cannot be written, or is damaged on disk        exit code 74
    ├── TrainingError    training failed, for example because the loss is NaN   exit code 1
    └── PeerError        another rank of the job failed and prints the error    exit code 1

Each message says where the problem is, what is wrong and what to do. All problems of one kind are
collected before an error is raised, so that a user can fix them together. The command line prints
the message of these errors without a traceback. A bug in seqloom itself shows as a
failed `assert`, which is printed with a traceback.
"""


class SeqloomError(Exception):
    """Base class of all errors that a user can cause and fix."""

    exit_code = 1


class ConfigError(SeqloomError):
    """A recipe, an option or an argument is not valid."""

    exit_code = 78


class DataError(SeqloomError):
    """Data cannot be used, for example a line, a sentence pair or a text."""

    exit_code = 65


class NotFoundError(SeqloomError):
    """A file or a run folder does not exist."""

    exit_code = 66


class StorageError(SeqloomError):
    """A file cannot be written, or was damaged after it was written."""

    exit_code = 74


class TrainingError(SeqloomError):
    """Training failed: a loss, gradient or weight is NaN or infinite, or there is too little
    memory."""


class PeerError(SeqloomError):
    """Another rank of the job has failed.

    That rank prints the error, so this rank prints nothing.
    """
