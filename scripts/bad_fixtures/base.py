"""A sound fixture written by h5py alone: format 1 from its description, without any code of attndiff."""

import h5py
import numpy as np

CONFIG_INTS = dict(
    dim=32, n_heads=2, head_dim=32, rope_dim=16, q_rank=48, o_rank=16, groups=2, window=4, index_heads=2,
    index_head_dim=32, index_topk=2, cand_topk_blocks=2, cand_block=1, max_seq=64, max_tokens=8, orig_seq=32)
CONFIG_REALS = dict(eps=1e-20, rope_theta=1e4, compress_rope_theta=1.6e5, rope_factor=16.0, beta_fast=32.0, beta_slow=1.0)

# layer_id, ratio, kv source, index source: a window layer, a ratio 2 source and its reader.
LAYERS = [(0, 0, 0, 0), (1, 2, 1, 1), (2, 2, 0, 0)]


def bf16_type(order=h5py.h5t.ORDER_LE):
    """The 16-bit float of the format: sign 15, exponent 7-14 with bias 127, mantissa 0-6."""
    t = h5py.h5t.IEEE_F32LE.copy()
    t.set_fields(15, 7, 8, 0, 7)
    t.set_precision(16)
    t.set_size(2)
    t.set_ebias(127)
    t.set_order(order)
    return t


def bf16_bits(values):
    """Upper halves of float32 numbers, truncated: any bf16 numbers will do."""
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def put(group, name, file_type, raw, shape=None, dcpl=None, space=None):
    """Creates a dataset of an exact file type from raw bytes in that type's own order; replaces one of that name."""
    if name in group:
        del group[name]
    space = space or h5py.h5s.create_simple(tuple(shape if shape is not None else raw.shape))
    d = h5py.h5d.create(group.id, name.encode(), file_type, space, dcpl)
    if raw is not None:
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(raw), mtype=file_type)
    return h5py.Dataset(d)


def put_bf16(group, name, values, **how):
    return put(group, name, bf16_type(), bf16_bits(values), **how)


def put_f32(group, name, values):
    return put(group, name, h5py.h5t.IEEE_F32LE, np.asarray(values, np.float32))


def weights(group, ratio, kv, index, random):
    c = CONFIG_INTS

    def bf16(name, *shape):
        put_bf16(group, name, random.standard_normal(shape) / np.sqrt(shape[-1]))

    def norm(name, n):
        put_f32(group, name, 1 + 0.1 * random.standard_normal(n))

    put_f32(group, "sink", random.standard_normal(c["n_heads"]))
    bf16("wq_a", c["q_rank"], c["dim"])
    norm("q_norm", c["q_rank"])
    bf16("wq_b", c["n_heads"] * c["head_dim"], c["q_rank"])
    bf16("wkv", c["head_dim"], c["dim"])
    norm("kv_norm", c["head_dim"])
    bf16("wo_a", c["groups"] * c["o_rank"], c["n_heads"] * c["head_dim"] // c["groups"])
    bf16("wo_b", c["dim"], c["groups"] * c["o_rank"])
    if kv:
        put_f32(group, "comp_wkv", random.standard_normal((c["head_dim"], c["dim"])) / 6)
        put_f32(group, "comp_wgate", random.standard_normal((c["head_dim"], c["dim"])) / 6)
        norm("comp_norm", c["head_dim"])
    if index:
        bf16("idx_wq_b", c["index_heads"] * c["index_head_dim"], c["q_rank"])
        bf16("idx_weights_proj", c["index_heads"], c["dim"])
        bf16("idx_wk", c["index_head_dim"], c["head_dim"])
        norm("idx_k_norm", c["index_head_dim"])


def expected(group, ratio, start, tokens, random):
    """The four principal stages, with made-up values of the right kind."""
    c = CONFIG_INTS
    length = (start + tokens) // ratio if ratio else 0
    columns = min(tokens, c["window"]) if start == 0 else c["window"]
    picks = min(c["index_topk"], length)
    rows = (tokens if start == 0 else c["window"]) + length
    put_bf16(group, "q", random.standard_normal((tokens, c["n_heads"], c["head_dim"])))
    put_bf16(group, "o", random.standard_normal((tokens, c["n_heads"], c["head_dim"])))
    idx = np.stack([random.permutation(rows)[: columns + picks] for _ in range(tokens)])
    put(group, "idx", h5py.h5t.STD_I32LE, idx.astype(np.int32))
    put_bf16(group, "out", random.standard_normal((tokens, c["dim"])))


def initial_state(f, start, random):
    c = CONFIG_INTS
    for number, (_, ratio, kv, index) in enumerate(LAYERS):
        g = f.create_group(f"initial_state/layers/{number:04}")
        put_bf16(g, "window", np.zeros((c["window"], c["head_dim"])))
        if kv:
            put_f32(g, "comp_kv_state", random.standard_normal((ratio, c["head_dim"])))
            put_f32(g, "comp_score_state", random.standard_normal((ratio, c["head_dim"])))
            put_bf16(g, "compress_kv", np.zeros((start // ratio, c["head_dim"])))
        if kv and index:
            put_bf16(g, "index_k", np.zeros((start // ratio, c["index_head_dim"])))


def write(f, start=0):
    """Fills an open file; a start past 0 declares the state that it resumes from."""
    random = np.random.default_rng(7)
    f.attrs["attndiff_format"] = "attndiff-fixture"
    f.attrs["format_version"] = np.int32(1)
    f.attrs["producer"] = "h5py"
    f.attrs["note"] = "written without attndiff"
    config = f.create_group("config")
    for name, value in CONFIG_INTS.items():
        config.attrs[name] = np.int64(value)
    for name, value in CONFIG_REALS.items():
        config.attrs[name] = np.float64(value)
    for number, (layer_id, ratio, kv, index) in enumerate(LAYERS):
        g = f.create_group(f"layers/{number:04}")
        g.attrs["layer_id"] = np.int64(layer_id)
        g.attrs["ratio"] = np.int64(ratio)
        flags = dict(is_kv_source=kv, is_index_source=index, is_candidate_source=0, uses_candidates=0)
        for name, value in flags.items():
            g.attrs[name] = np.uint8(value)
        weights(g.create_group("weights"), ratio, kv, index, random)
    steps = [(0, 4), (4, 1)] if start == 0 else [(start, 1), (start + 1, 1)]
    for number, (at, tokens) in enumerate(steps):
        g = f.create_group(f"steps/{number:04}")
        g.attrs["start_pos"] = np.int64(at)
        g.attrs["tokens"] = np.int64(tokens)
        for layer, (_, ratio, _, _) in enumerate(LAYERS):
            call = g.create_group(f"layers/{layer:04}")
            put_bf16(call, "x", random.standard_normal((tokens, CONFIG_INTS["dim"])))
            expected(call.create_group("expected"), ratio, at, tokens, random)
    if start:
        initial_state(f, start, random)
