"""[data.expected]: the files of a public data set that a recipe needs."""

from pydantic import Field

from seqloom.config.schema.section import Section


class ExpectedFileConfig(Section):
    """A file of a data set."""

    file: str
    """Path of the file, relative to data.folder."""
    bytes: int = Field(gt=0)
    """Size of the file in bytes. A file of another size causes a warning."""


class ExpectedDataConfig(Section):
    """A public data set that does not come with seqloom: its origin and its files.

    Training and `seqloom doctor` compare the data folder with this list. Files that the data
    settings of the recipe do not use are not checked.
    """

    source: str
    """Name and origin of the data set."""
    licence: str
    """Licence of the data set."""
    files: tuple[ExpectedFileConfig, ...] = Field(min_length=1)
    """Files of the data set."""
