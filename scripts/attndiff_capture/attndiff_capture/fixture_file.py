"""Writes fixture format 1 (docs/fixture-format.md) piece by piece.

The file is a temporary one beside its final name until publish(); close() without it leaves nothing.
"""

import os
import tempfile
from typing import Union

import h5py
import numpy as np
import torch

FORMAT_NAME = "attndiff-fixture"
FORMAT_VERSION = 1


def bfloat16_type() -> h5py.h5t.TypeFloatID:
    """HDF5's float type of 16 bits with the fields of bfloat16, little endian."""
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_size(2)
    kind.set_precision(16)
    kind.set_ebias(127)
    return kind


def number(index: int) -> str:
    return f"{index:04d}"


def layer_path(layer: int) -> str:
    return f"/layers/{number(layer)}"


def step_path(step: int) -> str:
    return f"/steps/{number(step)}"


def call_path(step: int, layer: int) -> str:
    return f"{step_path(step)}/layers/{number(layer)}"


def stage_path(step: int, layer: int, stage: str) -> str:
    middle = "" if stage in ("q", "o", "idx", "out") else "stages/"
    return f"{call_path(step, layer)}/expected/{middle}{stage}"


class FixtureFile:
    """One fixture being written. tensor_bytes counts the elements' bytes."""

    def __init__(self, path: Union[str, os.PathLike]):
        self.path = os.fspath(path)
        folder, name = os.path.split(os.path.abspath(self.path))
        handle, self._temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=folder)
        os.close(handle)
        self.tensor_bytes = 0
        self._file = None
        try:
            os.chmod(self._temporary, 0o666 & ~_umask())
            self._file = h5py.File(self._temporary, "w", libver=("earliest", "v110"), track_order=False)
            for group in ("config", "layers", "steps"):
                self._file.create_group(group)
            self._file.attrs["attndiff_format"] = FORMAT_NAME
            self._file.attrs["format_version"] = np.int32(FORMAT_VERSION)
        except BaseException:
            self.close()
            raise

    def texts(self, producer: str, note: str) -> None:
        self._file.attrs["producer"] = producer
        self._file.attrs["note"] = note

    def attributes(self, path: str, values: dict) -> None:
        """Integers as int64, real numbers as float64, booleans as uint8."""
        group = self._file.require_group(path)
        for name, value in values.items():
            if isinstance(value, (bool, np.bool_)):
                value = np.uint8(value)
            elif isinstance(value, (int, np.integer)):
                value = np.int64(value)
            elif isinstance(value, (float, np.floating)):
                value = np.float64(value)
            group.attrs[name] = value

    def tensor(self, path: str, value: torch.Tensor) -> None:
        """A host tensor: bf16, float32, int32, uint8, or bool as uint8."""
        value = value.detach().contiguous()
        self.tensor_bytes += value.numel() * value.element_size()
        if value.dtype == torch.bfloat16:
            kind = bfloat16_type()
            raw = value.view(torch.int16).numpy()
            parent, name = path.rsplit("/", 1)
            space = h5py.h5s.create_simple(tuple(value.shape))
            group = self._file.require_group(parent).id
            created = h5py.h5d.create(group, name.encode(), kind, space, dcpl=_plain())
            if value.numel():
                # Memory and file have the same type, so that the library moves bytes and converts nothing.
                created.write(h5py.h5s.ALL, h5py.h5s.ALL, raw, mtype=kind)
            return
        if value.dtype == torch.bool:
            value = value.view(torch.uint8)
        self._file.create_dataset(path, data=value.numpy(), track_times=False)

    def e4m3(self, path: str, codes: torch.Tensor, scale: torch.Tensor) -> None:
        """A weight as e4m3 codes [out, in] with e8m0 scales beside it."""
        self.tensor(path, codes.detach().view(torch.uint8))
        self._file[path].attrs["quant"] = "e4m3-e8m0-32"
        self.tensor(path + "_scale", scale.detach().view(torch.uint8))

    def flush(self) -> None:
        self._file.flush()

    def publish(self) -> None:
        """Gives the complete file its name, replacing an older one."""
        self._file.close()
        self._file = None
        os.replace(self._temporary, self.path)

    def close(self) -> None:
        """Removes what was not published. May be called twice."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if os.path.exists(self._temporary):
            os.unlink(self._temporary)


def _plain() -> h5py.h5p.PropDCID:
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_obj_track_times(False)
    return properties


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_tensor(dataset: h5py.Dataset) -> torch.Tensor:
    """A stored tensor: bf16 for 16-bit floats, else its own type."""
    if dataset.dtype == np.float32 and dataset.id.get_type().get_size() == 2:
        return torch.from_numpy(dataset[()]).to(torch.bfloat16)
    return torch.from_numpy(dataset[()])
