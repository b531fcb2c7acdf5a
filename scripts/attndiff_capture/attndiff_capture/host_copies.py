"""Copies of tensors on the host, taken before the model reuses its buffers, and written when they are there."""

from collections import deque
from typing import Callable

import torch


class HostCopies:
    """A queue of calls' copies. A copy of a CUDA tensor is enqueued on the current stream into pinned memory, and
    waited for only when it is written; a copy of a host tensor is made at once.

    bytes_copied counts all copies, bytes_held those not yet written, peak_held the most of these.
    """

    def __init__(self, write: Callable, most_calls: int):
        """write(context, values) gets one call's host tensors by name. most_calls: how many may wait to be written."""
        self._write = write
        self._most_calls = most_calls
        self._open: list[tuple[str, torch.Tensor]] = []
        self._waiting: deque = deque()
        self.bytes_copied = self.bytes_held = self.peak_held = 0

    def take(self, name: str, value: torch.Tensor) -> None:
        value = value.detach()
        if value.is_cuda:
            copy = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
            copy.copy_(value, non_blocking=True)
        else:
            copy = value.clone(memory_format=torch.contiguous_format)
        self._open.append((name, copy))
        self.bytes_copied += _bytes(copy)
        self.bytes_held += _bytes(copy)
        self.peak_held = max(self.peak_held, self.bytes_held)

    def end_call(self, device: torch.device, context) -> None:
        """Closes one call's list; write gets context with it."""
        event = torch.cuda.current_stream(device).record_event() if device.type == "cuda" else None
        self._waiting.append((event, context, self._open))
        self._open = []
        self._drain(self._most_calls if event is not None else 0)

    def finish(self) -> None:
        """Waits for every copy and writes it."""
        self._drain(0)

    def _drain(self, keep: int) -> None:
        while len(self._waiting) > keep:
            event, context, items = self._waiting.popleft()
            if event is not None:
                event.synchronize()
            self._write(context, dict(items))
            self.bytes_held -= sum(_bytes(copy) for _, copy in items)


def _bytes(value: torch.Tensor) -> int:
    return value.numel() * value.element_size()
