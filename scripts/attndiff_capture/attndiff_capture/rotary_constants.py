"""The rotary constants behind a model's tables.

The released attention keeps the table of complex turns, `freqs_cis`, and not the numbers it was made from. Where these
are given they are checked against the table; where not, they are recovered from its second row, whose angles are the
frequencies themselves.
"""

import itertools
import math
from collections.abc import Mapping
from typing import Any, Optional

import torch

from .errors import CaptureError
from .plain_attention import rotary_frequencies

# Fixture name of each constant, and the released configuration's key for it.
KEYS = {
    "rope_theta": "rope_theta",
    "compress_rope_theta": "compress_rope_theta",
    "rope_factor": "rope_factor",
    "beta_fast": "beta_fast",
    "beta_slow": "beta_slow",
    "orig_seq": "original_seq_len",
}
# What is written for constants that no recorded layer and no table depends on.
DEFAULTS = {
    "rope_theta": 10000.0,
    "compress_rope_theta": 160000.0,
    "rope_factor": 1.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "orig_seq": 0,
}
# A float32 frequency, read back through float32 sine and cosine, is this close to itself.
RELATIVE_ERROR = 1e-6


def constants_of(window_table: Optional[torch.Tensor], compress_table: Optional[torch.Tensor], config: Any) -> dict:
    """The six constants by their fixture names.

    window_table, compress_table: complex [positions, rope_dim / 2] of a layer of ratio 0 and of another one, None where
    the model has none. config: None, a mapping or an object with the released configuration's keys.
    """
    found = dict(DEFAULTS)
    if config is not None:
        found |= {ours: _entry(config, theirs, DEFAULTS[ours]) for ours, theirs in KEYS.items()}
    if window_table is not None:
        f = _frequencies(window_table)
        if config is None:
            found["rope_theta"] = _theta_of(f)
        _check(f, {**found, "orig_seq": 0}, "rope_theta")
    if compress_table is not None:
        f = _frequencies(compress_table)
        if config is None:
            found |= _compress_constants_of(f)
        _check(f, found, "compress_rope_theta")
    return found


def _entry(config: Any, key: str, default):
    value = config.get(key) if isinstance(config, Mapping) else getattr(config, key, None)
    if value is None:
        raise CaptureError(f"the configuration has no {key!r}; recording needs {', '.join(KEYS.values())}")
    return type(default)(value)


def _frequencies(table: torch.Tensor) -> torch.Tensor:
    if table.shape[0] < 2:
        raise CaptureError("freqs_cis has one position only, from which no frequency can be read")
    turn = table[1].detach().cpu()
    return torch.atan2(turn.imag, turn.real)


def _agrees(f: torch.Tensor, made: torch.Tensor) -> bool:
    return bool(((f - made).abs() <= RELATIVE_ERROR * made.abs()).all())


def _made(f: torch.Tensor, constants: dict, theta: str) -> torch.Tensor:
    yarn = (constants["orig_seq"], constants["rope_factor"], constants["beta_fast"], constants["beta_slow"])
    return rotary_frequencies(2 * f.numel(), constants[theta], *yarn)


def _check(f: torch.Tensor, constants: dict, theta: str) -> None:
    if not _agrees(f, _made(f, constants, theta)):
        values = ", ".join(f"{KEYS[name]} {value:g}" for name, value in constants.items())
        raise CaptureError(f"the model's freqs_cis does not come from {values}; pass config= with the model's own")


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _theta_of(f: torch.Tensor) -> float:
    """From the slowest frequency, theta^(-2k / rope_dim); rounded to six digits, which a float32 frequency gives."""
    k = f.numel() - 1
    return DEFAULTS["rope_theta"] if k == 0 else _rounded(math.exp(-math.log(float(f[k])) * f.numel() / k), 6)


def _compress_constants_of(f: torch.Tensor) -> dict:
    plain = {**DEFAULTS, "compress_rope_theta": _theta_of(f)}
    if _agrees(f, _made(f, plain, "compress_rope_theta")):
        return _without_window(plain)
    last = f.numel() - 1
    logs = torch.log(f.double())
    for k, digits in itertools.product(range(last - 1, -1, -1), (6, 4, 3, 2)):
        # Beyond the ramp every frequency is divided by the factor, so that two of them give theta, and one the factor.
        theta = _rounded(math.exp(float(logs[k] - logs[last]) * f.numel() / (last - k)), digits)
        if theta <= 1:
            continue
        factor = _rounded(float(torch.exp(-logs[last])) / theta ** (last / f.numel()), 4)
        for exponent in range(4, 22):
            tried = {**DEFAULTS, "compress_rope_theta": theta, "rope_factor": factor, "orig_seq": 2**exponent}
            if factor > 0 and _agrees(f, _made(f, tried, "compress_rope_theta")):
                return _without_window(tried)
    raise CaptureError("the rotary constants cannot be read off freqs_cis; pass config= with " + ", ".join(KEYS.values()))


def _without_window(constants: dict) -> dict:
    return {name: value for name, value in constants.items() if name != "rope_theta"}
