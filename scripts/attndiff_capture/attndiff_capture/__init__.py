"""Records attndiff fixtures from a running PyTorch model. docs/capture.md describes it."""

from .errors import CaptureError
from .record import Recorder, record

__all__ = ["CaptureError", "Recorder", "record"]
