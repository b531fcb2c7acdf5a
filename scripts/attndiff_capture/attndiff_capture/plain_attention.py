"""The attention of DeepSeek-V4.1-Flash in plain torch, written from docs/numerics.md.

It follows the attribute names of the released inference code, so that recording can be tried on it, and it makes every
rounding that the page fixes; sums are torch's. It is meant to be read and compared with, and is slow.

Everything in a Geometry has the name of the released configuration's key.
"""

import math
from dataclasses import dataclass
from typing import Callable, Optional

import torch
import torch.nn.functional as F
from torch import nn

from . import quantisers

BF16 = torch.bfloat16


@dataclass(frozen=True)
class Geometry:
    """Dimensions and constants; the defaults are docs/numerics.md's micro configuration."""

    dim: int = 160
    n_heads: int = 6
    head_dim: int = 96
    rope_head_dim: int = 32
    q_lora_rank: int = 64
    o_lora_rank: int = 48
    o_groups: int = 2
    window_size: int = 8
    norm_eps: float = 1e-20
    compress_ratios: tuple = (0, 2, 2, 1, 1, 1)
    kv_source_layers: tuple = (1, 3)
    index_source_layers: tuple = (1, 3, 4)
    candidate_source_layer: int = 3
    candidate_topk_blocks: int = 2
    candidate_block_size: int = 4
    index_n_heads: int = 3
    index_head_dim: int = 64
    index_topk: int = 5
    rope_theta: float = 10000.0
    compress_rope_theta: float = 160000.0
    rope_factor: float = 16.0
    original_seq_len: int = 64
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    max_seq_len: int = 128
    max_batch_size: int = 1


def rotary_frequencies(rope_dim: int, theta: float, orig_seq: int = 0, factor: float = 1, fast: float = 32, slow: float = 1):
    """float32 [rope_dim / 2]; with orig_seq > 0 the slow ones are divided by factor (YaRN)."""
    f = 1.0 / (theta ** (torch.arange(0, rope_dim, 2, dtype=torch.float32) / rope_dim))
    if orig_seq == 0:
        return f

    def corr(rotations):
        return rope_dim * math.log(orig_seq / (2 * math.pi * rotations)) / (2 * math.log(theta))

    low = max(math.floor(corr(fast)), 0)
    high = min(math.ceil(corr(slow)), rope_dim - 1)
    ramp = ((torch.arange(rope_dim // 2, dtype=torch.float32) - low) / max(high - low, 0.001)).clamp(0, 1)
    smooth = 1 - ramp
    return f / factor * (1 - smooth) + f * smooth


def rotary_table(positions: int, frequencies: torch.Tensor) -> torch.Tensor:
    """complex64 [positions, rope_dim / 2]: exp(i * position * frequency), the angle a float32 product."""
    angles = torch.arange(positions, dtype=torch.float32)[:, None] * frequencies[None, :]
    return torch.complex(torch.cos(angles), torch.sin(angles))


def rotate(x: torch.Tensor, turns: torch.Tensor, inverse: bool = False) -> None:
    """Turns the last entries of each row in place. x: bf16 [batch, tokens, (heads,) width]; turns: [tokens, rope_dim / 2]."""
    width = 2 * turns.shape[-1]
    tail = x[..., x.shape[-1] - width :].float().unflatten(-1, (-1, 2))
    cos, sin = turns.real, -turns.imag if inverse else turns.imag
    if x.ndim == 4:
        cos, sin = cos[:, None], sin[:, None]
    re, im = tail.unbind(-1)
    turned = torch.stack((re * cos - im * sin, re * sin + im * cos), -1).flatten(-2)
    x[..., x.shape[-1] - width :] = turned.to(x.dtype)


class Linear(nn.Module):
    """bf16(x @ weightᵀ), the sum in float32. Weight float32, bf16, or e4m3 with an e8m0 scale for each 32 x 32 block."""

    def __init__(self, width: int, out: int, dtype: torch.dtype = BF16):
        super().__init__()
        coarse = quantisers.dequantise_weight(*quantisers.quantise_weight(torch.randn(out, width) / width**0.5))
        self.weight = nn.Parameter(coarse.to(dtype), requires_grad=False)
        self.scale: Optional[nn.Parameter] = None

    def quantise(self) -> None:
        """Replaces the weight by e4m3 codes and scales."""
        codes, scale = quantisers.quantise_weight(self.weight.data)
        self.weight = nn.Parameter(codes, requires_grad=False)
        self.scale = nn.Parameter(scale, requires_grad=False)
        self.weight.scale = self.scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.scale is not None:
            w = quantisers.dequantise_weight(self.weight, self.scale)
            return F.linear(quantisers.fp8(x), w).to(x.dtype)
        return F.linear(x.float(), self.weight.float()).to(x.dtype)


class RMSNorm(nn.Module):
    """bf16(weight * (x * rsqrt(mean(x²) + eps))) in float32."""

    def __init__(self, width: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(1 + 0.2 * (2 * torch.rand(width) - 1), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        v = x.float()
        return (self.weight * (v * torch.rsqrt(v.square().mean(-1, keepdim=True) + self.eps))).to(x.dtype)


class Slots:
    """What layers hand on to later ones; each value stays until the next source writes it."""

    def __init__(self):
        self.compress_kv: Optional[torch.Tensor] = None  # a source's whole latent cache
        self.index_k: Optional[torch.Tensor] = None  # a source's whole key cache
        self.topk_idxs: Optional[torch.Tensor] = None  # the selection, offset by the attended window rows
        self.candidates: Optional[torch.Tensor] = None  # bool, one for each position


shared_attn = Slots()


def sparse_attn(q, kv, attn_sink, topk_idxs, softmax_scale):
    """Attention over chosen rows. q: bf16 [batch, tokens, heads, width]; kv: bf16 [batch, rows, width]; attn_sink: f32
    [heads]; topk_idxs: int32 [batch, tokens, k], -1 for none. Returns bf16 like q."""
    o = torch.empty_like(q)
    for b in range(q.shape[0]):
        for t in range(q.shape[1]):
            chosen = topk_idxs[b, t]
            rows = kv[b, chosen.clamp_min(0).long()].float()
            s = (q[b, t].float() @ rows.T) * softmax_scale
            s = s.masked_fill(chosen < 0, -torch.inf)
            m = torch.maximum(s.amax(-1, keepdim=True), attn_sink[:, None])
            e = torch.exp(s - m)
            total = torch.exp(attn_sink[:, None] - m) + e.sum(-1, keepdim=True)
            o[b, t] = ((e / total) @ rows).to(q.dtype)
    return o


class Compressor(nn.Module):
    """Pools each group of compress_ratio tokens into one latent, unrotated."""

    def __init__(self, layer_id: int, g: Geometry):
        super().__init__()
        self.compress_ratio = ratio = g.compress_ratios[layer_id]
        kind = BF16 if ratio == 1 else torch.float32
        self.wkv = Linear(g.dim, g.head_dim, kind)
        self.norm = RMSNorm(g.head_dim, g.norm_eps)
        if ratio > 1:
            self.wgate = Linear(g.dim, g.head_dim, torch.float32)
            shape = (g.max_batch_size, ratio, g.head_dim)
            self.register_buffer("kv_state", torch.zeros(shape), persistent=False)
            self.register_buffer("score_state", torch.full(shape, -torch.inf), persistent=False)

    def forward(self, x: torch.Tensor, start_pos: int) -> Optional[torch.Tensor]:
        """x: bf16 [batch, tokens, dim]. The latents that this call completed, bf16 [batch, groups, head_dim], or None."""
        if self.compress_ratio == 1:
            return self.norm(self.wkv(x))
        batch, tokens, _ = x.shape
        r = self.compress_ratio
        k, gate = self.wkv(x.float()), self.wgate(x.float())
        if start_pos == 0:
            whole = tokens // r * r
            self.kv_state[:batch, : tokens - whole] = k[:, whole:]
            self.score_state[:batch, : tokens - whole] = gate[:, whole:]
            k, gate = (v[:, :whole].unflatten(1, (-1, r)) for v in (k, gate))
        else:
            self.kv_state[:batch, start_pos % r] = k[:, 0]
            self.score_state[:batch, start_pos % r] = gate[:, 0]
            if (start_pos + 1) % r != 0:
                return None
            k, gate = self.kv_state[:batch, None], self.score_state[:batch, None]
        if k.shape[1] == 0:
            return None
        return self.norm((k * gate.softmax(2)).sum(2).to(x.dtype))


def best(score: torch.Tensor, k: int) -> torch.Tensor:
    """Where the k best are. docs/topk.md: among equal scores the choice is that of torch on the CPU; a GPU makes another."""
    return score.cpu().topk(k, -1).indices.to(score.device)


def candidate_blocks(score: torch.Tensor, visible: torch.Tensor, keep: int, block: int) -> torch.Tensor:
    """bool like score [batch, tokens, positions]: the blocks with the best members, the newest visible one among them.
    visible: int64 [tokens, 1]."""
    positions = score.shape[-1]
    blocks = F.pad(score, (0, -positions % block), value=-torch.inf).unflatten(-1, (-1, block)).amax(-1)
    numbers = torch.arange(blocks.shape[-1], device=score.device)
    blocks = torch.where((visible > 0) & (numbers == (visible - 1) // block), torch.inf, blocks)
    picked = best(blocks, min(keep, blocks.shape[-1]))
    kept = torch.zeros_like(blocks, dtype=torch.bool).scatter_(-1, picked, True) & (blocks > -torch.inf)
    return kept.repeat_interleave(block, -1)[..., :positions]


class Indexer(nn.Module):
    """Scores compressed positions and selects index_topk of them for each query."""

    def __init__(self, layer_id: int, g: Geometry):
        super().__init__()
        self.owns_k = layer_id in g.kv_source_layers
        self.is_candidate_source = layer_id == g.candidate_source_layer
        self.uses_candidates = 0 <= g.candidate_source_layer < layer_id
        self.candidate_topk_blocks, self.candidate_block_size = g.candidate_topk_blocks, g.candidate_block_size
        self.compress_ratio = g.compress_ratios[layer_id]
        self.n_heads = self.n_local_heads = g.index_n_heads
        self.index_head_dim, self.index_topk = g.index_head_dim, g.index_topk
        self.wq_b = Linear(g.q_lora_rank, g.index_n_heads * g.index_head_dim)
        self.weights_proj = Linear(g.dim, g.index_n_heads)
        self.freqs_cis: Optional[torch.Tensor] = None
        if self.owns_k:
            self.wk = Linear(g.head_dim, g.index_head_dim)
            self.k_norm = RMSNorm(g.index_head_dim, g.norm_eps)
            rows = g.max_seq_len // self.compress_ratio
            cache = torch.zeros(g.max_batch_size, rows, g.index_head_dim, dtype=BF16)
            self.register_buffer("k_cache", cache, persistent=False)

    def _publish_keys(self, latent: torch.Tensor, turns: torch.Tensor, first: int) -> None:
        k = self.k_norm(self.wk(latent))
        rotate(k, turns)
        k.copy_(quantisers.fp4_e8m0(k))
        self.k_cache[: k.shape[0], first : first + k.shape[1]] = k
        shared_attn.index_k = self.k_cache

    def forward(self, x, qr, latent, group_turns, start_pos: int, offset: int, observe: Callable) -> torch.Tensor:
        batch, tokens, _ = x.shape
        r = self.compress_ratio
        positions = (start_pos + tokens) // r
        if self.owns_k and latent is not None:
            self._publish_keys(latent, group_turns, start_pos // r)

        q = self.wq_b(qr)
        heads = q.unflatten(-1, (self.n_heads, self.index_head_dim))
        rotate(heads, self.freqs_cis[start_pos : start_pos + tokens])
        heads.copy_(quantisers.fp4_e8m0(heads))
        weights = self.weights_proj(x) * (self.index_head_dim**-0.5 * self.n_heads**-0.5)
        keys = shared_attn.index_k[:batch, :positions]
        dots = torch.einsum("bthd,bpd->bthp", heads.float(), keys.float()).to(x.dtype)
        terms = dots.relu() * weights[..., None]
        score = terms.float().sum(2).to(x.dtype)
        observe("index_q", heads)
        observe("index_w", weights)
        observe("index_score", score)

        if start_pos == 0:
            visible = (torch.arange(1, tokens + 1, device=x.device) // r)[:, None]
        else:
            visible = torch.full((1, 1), positions, device=x.device)
        score = score.masked_fill(torch.arange(positions, device=x.device) >= visible, -torch.inf)
        if self.is_candidate_source:
            keep, block = self.candidate_topk_blocks, self.candidate_block_size
            shared_attn.candidates = candidate_blocks(score, visible, keep, block)
            observe("candidates", shared_attn.candidates)
        elif self.uses_candidates:
            score = score.masked_fill(~shared_attn.candidates, -torch.inf)
        picks = best(score, min(self.index_topk, positions)).sort(-1).values
        return torch.where(picks < visible, picks + offset, -1).int()


class Attention(nn.Module):
    """One layer. observe(stage, tensor), when set, is told each value before anything overwrites it."""

    def __init__(self, layer_id: int, g: Geometry):
        super().__init__()
        self.layer_id = layer_id
        self.dim, self.eps, self.window_size = g.dim, g.norm_eps, g.window_size
        self.n_heads = self.n_local_heads = g.n_heads
        self.n_groups = self.n_local_groups = g.o_groups
        self.head_dim, self.rope_head_dim = g.head_dim, g.rope_head_dim
        self.q_lora_rank, self.o_lora_rank = g.q_lora_rank, g.o_lora_rank
        self.compress_ratio = ratio = g.compress_ratios[layer_id]
        self.softmax_scale = g.head_dim**-0.5
        self.attn_sink = nn.Parameter(2 * (2 * torch.rand(g.n_heads) - 1), requires_grad=False)
        self.wq_a = Linear(g.dim, g.q_lora_rank)
        self.q_norm = RMSNorm(g.q_lora_rank, g.norm_eps)
        self.wq_b = Linear(g.q_lora_rank, g.n_heads * g.head_dim)
        self.wkv = Linear(g.dim, g.head_dim)
        self.kv_norm = RMSNorm(g.head_dim, g.norm_eps)
        self.wo_a = Linear(g.n_heads * g.head_dim // g.o_groups, g.o_groups * g.o_lora_rank)
        self.wo_b = Linear(g.o_groups * g.o_lora_rank, g.dim)
        self.is_kv_source = layer_id in g.kv_source_layers
        self.is_index_source = layer_id in g.index_source_layers
        self.compressor = Compressor(layer_id, g) if self.is_kv_source else None
        self.indexer = Indexer(layer_id, g) if self.is_index_source else None

        def cache(rows):
            return torch.zeros(g.max_batch_size, rows, g.head_dim, dtype=BF16)

        self.register_buffer("window_kv_cache", cache(g.window_size), persistent=False)
        if self.is_kv_source:
            self.register_buffer("compress_kv_cache", cache(g.max_seq_len // ratio), persistent=False)
        yarn = (g.original_seq_len, g.rope_factor, g.beta_fast, g.beta_slow)
        frequencies = (
            rotary_frequencies(g.rope_head_dim, g.compress_rope_theta, *yarn)
            if ratio
            else rotary_frequencies(g.rope_head_dim, g.rope_theta)
        )
        self.register_buffer("freqs_cis", rotary_table(g.max_seq_len, frequencies), persistent=False)
        self.observe: Callable = lambda stage, value: None

    def _window(self, x: torch.Tensor, turns: torch.Tensor, start_pos: int):
        """The attended window rows and their index columns, int32 [tokens, columns]."""
        batch, tokens, _ = x.shape
        w = self.window_size
        kv = self.kv_norm(self.wkv(x))
        rotate(kv, turns)
        kv.copy_(quantisers.fp8(kv))
        self.observe("kv", kv)
        if start_pos > 0:
            self.window_kv_cache[:batch, start_pos % w] = kv[:, 0]
            slots = (start_pos % w + 1 + torch.arange(w, device=x.device)) % w
            return self.window_kv_cache[:batch], torch.where(slots > start_pos, -1, slots)[None].int()
        newest = torch.arange(max(0, tokens - w), tokens, device=x.device)
        self.window_kv_cache[:batch, newest % w] = kv[:, newest]
        t = torch.arange(tokens, device=x.device)[:, None]
        column = (t - w + 1).clamp_min(0) + torch.arange(min(tokens, w), device=x.device)
        return kv, torch.where(column > t, -1, column).int()

    def _compressed(self, x: torch.Tensor, qr: torch.Tensor, start_pos: int, offset: int):
        """The attended compressed rows and the offset selection, int32 [batch, tokens, k]."""
        batch, tokens, _ = x.shape
        r = self.compress_ratio
        positions = (start_pos + tokens) // r
        latent = turns = None
        if self.is_kv_source:
            latent = self.compressor(x, start_pos)
            shared_attn.compress_kv = self.compress_kv_cache
        if latent is not None:
            self.observe("latent", latent)
            groups = torch.arange(latent.shape[1], device=x.device)
            turns = self.freqs_cis[groups * r if start_pos == 0 else groups + (start_pos + 1 - r)]
        if self.is_index_source:
            if positions > 0:
                self.indexer.freqs_cis = self.freqs_cis
                selection = self.indexer(x, qr, latent, turns, start_pos, offset, self.observe)
            else:
                selection = torch.empty(batch, tokens, 0, dtype=torch.int32, device=x.device)
            shared_attn.topk_idxs = selection
        if latent is not None:
            rotate(latent, turns)
            first = start_pos // r
            self.compress_kv_cache[:batch, first : first + latent.shape[1]] = quantisers.fp4_e4m3(latent).to(x.dtype)
        return shared_attn.compress_kv[:batch, :positions], shared_attn.topk_idxs

    def forward(self, x: torch.Tensor, start_pos: int) -> torch.Tensor:
        """x: bf16 [batch, tokens, dim], the tokens that follow start_pos earlier ones."""
        batch, tokens, _ = x.shape
        turns = self.freqs_cis[start_pos : start_pos + tokens]
        qr = self.q_norm(self.wq_a(x))
        self.observe("qr", qr)
        q = self.wq_b(qr).unflatten(-1, (self.n_heads, self.head_dim))
        rotate(q, turns)
        rows, idx = self._window(x, turns, start_pos)
        idx = idx.expand(batch, -1, -1)
        if self.compress_ratio:
            more, selection = self._compressed(x, qr, start_pos, rows.shape[1])
            rows, idx = torch.cat((rows, more), 1), torch.cat((idx, selection), -1)
        o = sparse_attn(q, rows, self.attn_sink, idx.contiguous(), self.softmax_scale)
        for stage, value in (("q", q), ("rows", rows), ("idx", idx), ("o", o)):
            self.observe(stage, value)
        rotate(o, turns, inverse=True)
        per_group = o.reshape(batch, tokens, self.n_groups, -1)
        parts = self.wo_a.weight.view(self.n_groups, self.o_lora_rank, -1)
        og = torch.einsum("btgd,grd->btgr", per_group.float(), parts.float()).to(x.dtype).flatten(2)
        self.observe("og", og)
        return self.wo_b(og)


class Block(nn.Module):
    """A layer behind its norm, with a residual."""

    def __init__(self, layer_id: int, g: Geometry):
        super().__init__()
        self.attn_norm = RMSNorm(g.dim, g.norm_eps)
        self.attn = Attention(layer_id, g)

    def forward(self, h: torch.Tensor, start_pos: int) -> torch.Tensor:
        return h + self.attn(self.attn_norm(h), start_pos)


class PlainModel(nn.Module):
    """A stack of attention layers with random weights: what a running model looks like to the recorder.

    e4m3: wq_a, wq_b, wkv, wo_b and the indexer's wq_b as codes and scales, as in the released checkpoint. All weights have
    values that e4m3 and its scales hold: few significant bits, so that most sums are exact in any order, and what is
    recorded on different machines hardly differs."""

    def __init__(self, g: Geometry = Geometry(), seed: int = 0, e4m3: bool = False):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.layers = nn.ModuleList(Block(i, g) for i in range(len(g.compress_ratios)))
        if e4m3:
            for block in self.layers:
                attn = block.attn
                for linear in (attn.wq_a, attn.wq_b, attn.wkv, attn.wo_b, attn.indexer and attn.indexer.wq_b):
                    if linear is not None:
                        linear.quantise()

    @torch.inference_mode()
    def forward(self, h: torch.Tensor, start_pos: int) -> torch.Tensor:
        """h: bf16 [batch, tokens, dim]."""
        for block in self.layers:
            h = block(h, start_pos)
        return h
