"""Quantiser round trips: to a narrow format and back, as docs/numerics.md defines them.

Each takes a float tensor, works on blocks of neighbouring entries of its last axis, and returns float32 values that are
exact in bfloat16. The last block of a row may be short.
"""

import torch
import torch.nn.functional as F

E2M1_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
E4M3_LARGEST = 448.0
E2M1_LARGEST = 6.0
SMALLEST_NORMAL = 2.0**-126
SMALLEST_E4M3 = 2.0**-9


def pow2ceil(v: torch.Tensor) -> torch.Tensor:
    """The smallest power of two that is at least v, for positive normal float32 v; others pass unchanged."""
    bits = v.contiguous().view(torch.int32)
    exponent = (bits >> 23) + ((bits & 0x7FFFFF) != 0).int()
    return torch.where(torch.isfinite(v), (exponent << 23).view(torch.float32), v)


def to_e2m1(v: torch.Tensor) -> torch.Tensor:
    """Nearest e2m1 value of |v| <= 6; a middle goes to the even code. NaN stays, and so does the sign of zero."""
    a = v.abs()
    code = torch.zeros_like(a, dtype=torch.int64)
    # Between neighbours n and n + 1 the middle itself belongs to the lower one where n is even.
    for lower in range(7):
        middle = (E2M1_MAGNITUDES[lower] + E2M1_MAGNITUDES[lower + 1]) / 2
        code += (a > middle) if lower % 2 == 0 else (a >= middle)
    rounded = torch.copysign(torch.tensor(E2M1_MAGNITUDES, device=v.device)[code], v)
    return torch.where(torch.isnan(v), v, rounded)


def _in_blocks(x: torch.Tensor, block: int) -> torch.Tensor:
    width = x.shape[-1]
    return F.pad(x.float(), (0, -width % block)).unflatten(-1, (-1, block))


def _rows(blocks: torch.Tensor, width: int) -> torch.Tensor:
    return blocks.flatten(-2)[..., :width]


def fp8(x: torch.Tensor) -> torch.Tensor:
    """e4m3 with a power-of-two scale for each 32 entries."""
    blocks = _in_blocks(x, 32)
    scale = pow2ceil(blocks.abs().amax(-1, keepdim=True).clamp_min(1e-4) / E4M3_LARGEST)
    codes = (blocks / scale).clamp(-E4M3_LARGEST, E4M3_LARGEST).to(torch.float8_e4m3fn)
    return _rows(codes.float() * scale, x.shape[-1])


def fp4_e8m0(x: torch.Tensor) -> torch.Tensor:
    """e2m1 with a power-of-two scale for each 32 entries."""
    blocks = _in_blocks(x, 32)
    amax = blocks.abs().amax(-1, keepdim=True).clamp_min(E2M1_LARGEST * SMALLEST_NORMAL)
    scale = pow2ceil(amax / E2M1_LARGEST)
    return _rows(to_e2m1((blocks / scale).clamp(-E2M1_LARGEST, E2M1_LARGEST)) * scale, x.shape[-1])


def fp4_e4m3(x: torch.Tensor) -> torch.Tensor:
    """e2m1 with an e4m3 scale for each 16 entries."""
    blocks = _in_blocks(x, 16)
    amax = blocks.abs().amax(-1, keepdim=True).clamp_min(E2M1_LARGEST * SMALLEST_E4M3)
    scale = (amax / E2M1_LARGEST).clamp_max(E4M3_LARGEST).to(torch.float8_e4m3fn).float()
    return _rows(to_e2m1((blocks / scale).clamp(-E2M1_LARGEST, E2M1_LARGEST)) * scale, x.shape[-1])


def quantise_weight(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A matrix [out, in] as e4m3 codes and e8m0 scales [ceil(out/32), ceil(in/32)], one for each 32 x 32 block."""
    out, width = w.shape
    tiles = F.pad(w.float(), (0, -width % 32, 0, -out % 32)).unflatten(1, (-1, 32)).unflatten(0, (-1, 32))
    scale = pow2ceil(tiles.abs().amax((1, 3)).clamp_min(1e-4) / E4M3_LARGEST)
    codes = (tiles / scale[:, None, :, None]).flatten(2, 3).flatten(0, 1)[:out, :width]
    return codes.to(torch.float8_e4m3fn).contiguous(), scale.to(torch.float8_e8m0fnu)


def dequantise_weight(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """The float32 values of a matrix given as e4m3 codes [out, in] and e8m0 scales of its 32 x 32 blocks."""
    out, width = codes.shape
    spread = scale.float().repeat_interleave(32, 0)[:out].repeat_interleave(32, 1)[:, :width]
    return codes.float() * spread
