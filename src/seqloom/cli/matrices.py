"""Parses matrices in command-line options.

For example, "5,1 4,3 -2,6" is a matrix with three rows and two columns.
"""

from dataclasses import dataclass, field

MATRIX_SYNTAX = "Numbers of a row are separated by commas, rows by spaces or semicolons"


@dataclass
class MatrixParser:
    """Parses the matrices that a user gives as options, and collects error messages.

    problems: the error messages about all values parsed so far
    """

    problems: list[str] = field(default_factory=list)

    def parse(self, option: str, value: str) -> list[list[float]]:
        """Return the rows of a matrix.

        If an entry is not a number, adds an error message to `problems` and uses 0 for the entry.

        option: name of the option, for the error message
        """
        rows = [row.split(",") for row in value.replace(";", " ").split()]
        return [[self._number(option, text) for text in row] for row in rows]

    def parse_vector(self, option: str, value: str) -> list[float]:
        """Return the numbers of a vector, which is written as a matrix with one row.

        If there are more rows, adds an error message to `problems`.
        """
        rows = self.parse(option, value)
        if len(rows) > 1:
            self.problems.append(
                f"{option} '{value}' has {len(rows)} rows, but must be one vector such as 2,2.5"
            )
        return rows[0] if rows else []

    def _number(self, option: str, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            self.problems.append(
                f"{option}: '{text}' is not a number. {MATRIX_SYNTAX}, for example 5,1 4,3"
            )
            return 0.0
