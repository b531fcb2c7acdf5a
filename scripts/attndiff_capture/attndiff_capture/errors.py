"""What recording refuses, in words."""


class CaptureError(RuntimeError):
    """Something about the model or the run that cannot be recorded; the message names it."""
