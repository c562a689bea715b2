"""The one exception a user's mistake raises: a single line that names the value and the remedy."""


class UserError(ValueError):
    """Bad input. Entry points print it as one line and exit with status 2."""
