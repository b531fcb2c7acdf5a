"""Files that are cut, contradict themselves or lack something."""

import os
import subprocess
import sys

import h5py
import numpy as np

import base
from base import bf16_bits, bf16_type, put, put_bf16
from cases import bad
from forms import CALL, SHAPE, WEIGHTS, X, again, creation, values

OUT = CALL + "/expected/out"
IDX = "/steps/0001/layers/0001/expected/idx"
INDEXED = (1, 6)  # window 4 and two picks, of 4 + 2 rows


def sound(path, **options):
    with h5py.File(path, "w", **options) as f:
        base.write(f)


# --- not, or no longer, HDF5 ---


@bad("not_hdf5", words=["not an HDF5 file"], form="whole")
def _(path):
    path.write_bytes(b"PK\x03\x04 an archive, say")


@bad("no_bytes", words=["an empty file"], form="whole")
def _(path):
    path.write_bytes(b"")


@bad("truncated", words=["cut short or damaged"], form="whole")
def _(path):
    sound(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@bad("truncated_by_a_byte", words=["cut short or damaged"], form="whole")
def _(path):
    sound(path)
    path.write_bytes(path.read_bytes()[:-1])


@bad("newer_superblock", words=["a newer HDF5 file format", "version 0 to 3", "found 9"], form="whole")
def _(path):
    sound(path, libver="latest")
    content = bytearray(path.read_bytes())
    content[8] = 9
    path.write_bytes(content)


NEVER_CLOSED = """
import sys, os, h5py
sys.path.insert(0, sys.argv[1])
import base
f = h5py.File(sys.argv[2], "w", libver=sys.argv[3])
base.write(f)
if sys.argv[3] == "latest":
    f.flush()
os._exit(0)
"""


@bad("never_closed", words=["cut short or damaged"], form="whole")
def _(path):
    subprocess.run([sys.executable, "-c", NEVER_CLOSED, os.path.dirname(base.__file__), path, "earliest"], check=True)


@bad("never_closed_latest", words=["never closed by its writer"], form="whole")
def _(path):
    subprocess.run([sys.executable, "-c", NEVER_CLOSED, os.path.dirname(base.__file__), path, "latest"], check=True)


# --- header ---


@bad("newer_format", "/ attribute format_version", ["a newer format", "expected 1, found 2"])
def _(f):
    f.attrs["format_version"] = np.int32(2)


@bad("other_format", "/ attribute attndiff_format", ["not an attndiff fixture"])
def _(f):
    f.attrs["attndiff_format"] = "something"


@bad("plain_hdf5", "/ attribute attndiff_format", ["missing"], form="whole")
def _(path):
    with h5py.File(path, "w") as f:
        f["x"] = np.arange(3)


@bad("product_overflows", "/config", ["n_heads is 4611686018427387904, outside 1 to"])
def _(f):
    f["config"].attrs["n_heads"] = np.int64(1 << 62)


@bad("many_elements_due", WEIGHTS + "/wq_a", ["expected bfloat16 [16777216, 16777216]"])
def _(f):
    f["config"].attrs["dim"] = np.int64(1 << 24)
    f["config"].attrs["q_rank"] = np.int64(1 << 24)


# --- datasets ---


def absent(path):
    def make(f):
        del f[path]

    return make


bad("missing_weight", WEIGHTS + "/wkv", ["missing", "bfloat16 [32, 32]"])(absent(WEIGHTS + "/wkv"))
bad("missing_input", X, ["missing"])(absent(X))
bad("missing_out", OUT, ["missing"])(absent(OUT))
bad("missing_expected", CALL + "/expected", ["other calls of the file are recorded"])(absent(CALL + "/expected"))
bad("missing_step", "/steps/0000", ["missing"])(absent("/steps/0000"))


@bad("misspelt_stage", CALL + "/expected/ouput", ["unknown object"])
def _(f):
    f.move(OUT, CALL + "/expected/ouput")


@bad("misspelt_stage_hides_another", OUT, ["missing"])
def _(f):
    f.move(OUT, CALL + "/expected/ouput")


@bad("extra_dataset", CALL + "/y", ["unknown object"])
def _(f):
    f[CALL]["y"] = np.arange(3)


@bad("stage_of_one_call", "/steps/0001/layers/0000/expected/stages/qr", ["missing, though other calls"])
def _(f):
    put_bf16(f.create_group(CALL + "/expected/stages"), "qr", np.ones((4, 48)))


@bad("transposed_weight", WEIGHTS + "/wq_a", ["transposed as by a column-major writer", "[48, 32]", "found [32, 48]"])
def _(f):
    """The same bytes under reversed extents, as MATLAB, Julia and Fortran leave a matrix that was not transposed."""
    again(f, WEIGHTS + "/wq_a", bf16_type(), bf16_bits(values(f, WEIGHTS + "/wq_a").T))


@bad("column_major_heads", CALL + "/expected/q", ["transposed", "[4, 2, 32]", "found [32, 2, 4]"])
def _(f):
    again(f, CALL + "/expected/q", bf16_type(), bf16_bits(values(f, CALL + "/expected/q").T))


@bad("right_count_wrong_shape", X, ["wrong shape", "expected bfloat16 [4, 32], found [8, 16]"])
def _(f):
    again(f, X, bf16_type(), bf16_bits(values(f)).reshape(8, 16))


@bad("flattened", X, ["found [128]"])
def _(f):
    again(f, X, bf16_type(), bf16_bits(values(f)).ravel())


@bad("empty", X, ["found [0, 32]"])
def _(f):
    again(f, X, bf16_type(), None, shape=(0, 32))


@bad("scalar", X, ["found a scalar"])
def _(f):
    again(f, X, bf16_type(), None, space=h5py.h5s.create(h5py.h5s.SCALAR))


@bad("null", X, ["holds no data and no rule"])
def _(f):
    again(f, X, bf16_type(), None, space=h5py.h5s.create(h5py.h5s.NULL))


@bad("text_for_numbers", X, ["found a string"])
def _(f):
    del f[X]
    f[X] = "numbers"


@bad("int64_indices", IDX, ["expected int32", "found int64"])
def _(f):
    idx = f[IDX][:]
    again(f, IDX, h5py.h5t.STD_I64LE, idx.astype(np.int64))


@bad("group_for_dataset", X, ["found a group"])
def _(f):
    del f[X]
    f.create_group(X)


# --- storage ---


@bad("never_written", X, ["its data was never written"])
def _(f):
    again(f, X, bf16_type(), None, shape=SHAPE)


@bad("chunk_never_written", X, ["chunks were never written", "4 chunks, found 1"])
def _(f):
    d = again(f, X, bf16_type(), None, shape=SHAPE, dcpl=creation((1, 32)))
    d.id.write_direct_chunk((0, 0), bf16_bits(np.ones((1, 32))).tobytes())


@bad("extents_of_2_to_the_40", X, ["expected bfloat16 [4, 32], found [1048576, 1048576]"])
def _(f):
    again(f, X, bf16_type(), None, shape=(1 << 20, 1 << 20), dcpl=creation((1, 32)))


@bad("extents_that_overflow", X, ["wrong shape", "found [4611686018427387904, 8, 8]"])
def _(f):
    again(f, X, bf16_type(), None, shape=(1 << 62, 8, 8), dcpl=creation((1, 8, 8)))


@bad("soft_link", X, ["found a soft link"])
def _(f):
    del f[X]
    f[X] = h5py.SoftLink("/nowhere")


@bad("external_link", X, ["found an external link"])
def _(f):
    del f[X]
    f[X] = h5py.ExternalLink("absent.h5", "/x")


@bad("external_storage", X, ["its data lies in an external file"])
def _(f):
    p = creation()
    p.set_external(b"absent.bin", 0, 256)
    again(f, X, bf16_type(), None, shape=SHAPE, dcpl=p)


@bad("virtual_dataset", X, ["a virtual dataset"])
def _(f):
    layout = h5py.VirtualLayout(SHAPE, np.float32)
    layout[:] = h5py.VirtualSource("absent.h5", "/x", SHAPE)
    del f[X]
    f[CALL].create_virtual_dataset("x", layout)


# --- values: found by validate; replay carries numbers that are not finite through, and counts them ---


def not_finite(name, path, index, value):
    @bad(name, path, ["not finite", f"found {value} at [{', '.join(map(str, index))}]"], replay=None)
    def _(f):
        v = values(f, path)
        v[index] = float(value)
        bits = bf16_bits(v)
        if value == "nan":
            bits[index] = 0x7FC0
        again(f, path, bf16_type(), bits)


not_finite("nan_in_input", X, (2, 7), "nan")
not_finite("inf_in_input", X, (0, 0), "inf")
not_finite("nan_in_weight", WEIGHTS + "/wq_b", (3, 4), "nan")
not_finite("minus_inf_in_expected", CALL + "/expected/o", (1, 1, 2), "-inf")


@bad("nan_in_norm", WEIGHTS + "/kv_norm", ["not finite", "at [3]"], replay=None)
def _(f):
    f[WEIGHTS + "/kv_norm"][3] = np.nan


def index(name, words, change):
    @bad(name, IDX, words, replay=None)
    def _(f):
        idx = f[IDX][:]
        change(idx)
        f[IDX][:] = idx


def set_to(value):
    def change(idx):
        idx[0, 1] = value

    return change


def repeat(idx):
    idx[0, 4] = idx[0, 3]


index("index_below_minus_one", ["illegal indices", "-1 to 5", "found -2 at [0, 1]"], set_to(-2))
index("index_out_of_range", ["illegal indices", "-1 to 5", "found 6 at [0, 1]"], set_to(6))
index("index_twice", ["each position once in a row", "at [0, 4]"], repeat)


# --- contradictions ---


@bad("consumer_before_source", "/steps/0000/layers/0002", ["reads the slot compress_kv, which nothing wrote before"])
def _(f):
    drop_source(f)


def drop_source(f):
    """Takes the source out; its reader is left."""
    layer = f["layers/0001"]
    for name in ("is_kv_source", "is_index_source"):
        layer.attrs[name] = np.uint8(0)
    for name in ("comp_wkv", "comp_wgate", "comp_norm", "idx_wq_b", "idx_weights_proj", "idx_wk", "idx_k_norm"):
        del layer["weights"][name]


@bad("selection_of_nobody", "/steps/0000/layers/0001", ["reads the slot selection"])
def _(f):
    drop_source(f)


@bad("ratio_mismatch", "/steps/0000/layers/0002", ["of another ratio", "expected ratio 4", "layer 1, ratio 2"])
def _(f):
    f["layers/0002"].attrs["ratio"] = np.int64(4)
    for step, (rows, k) in (("0000", (4, 1)), ("0001", (1, 1))):
        idx = f[f"steps/{step}/layers/0002/expected/idx"][:]
        put(f[f"steps/{step}/layers/0002/expected"], "idx", h5py.h5t.STD_I32LE, idx[:, : 4 + k].clip(-1, rows))
    # Clipped rows may have a position twice: each gets its own.
    for step in ("0000", "0001"):
        d = f[f"steps/{step}/layers/0002/expected/idx"]
        d[:] = np.tile(np.arange(d.shape[1], dtype=np.int32), (d.shape[0], 1))


@bad("k_over_capacity", IDX, ["expected int32 [1, 6], found [1, 9]"])
def _(f):
    """More picks recorded than there are positions."""
    put(f["steps/0001/layers/0001/expected"], "idx", h5py.h5t.STD_I32LE, np.arange(9, dtype=np.int32).reshape(1, 9))


@bad("odd_resume_without_state", "/initial_state/layers/0001/comp_kv_state", ["missing"], start=5)
def _(f):
    del f["initial_state/layers/0001/comp_kv_state"]
    del f["initial_state/layers/0001/comp_score_state"]


@bad("resume_without_state", "/initial_state", ["missing", "position 5"], start=5)
def _(f):
    del f["initial_state"]


@bad("gap_between_steps", "/steps/0001 attribute start_pos", ["expected 4, found 6"])
def _(f):
    f["steps/0001"].attrs["start_pos"] = np.int64(6)


@bad("groups_do_not_divide", "/config", ["n_heads 2 is no multiple of groups 3"])
def _(f):
    f["config"].attrs["groups"] = np.int64(3)


@bad("everything_at_once", WEIGHTS + "/wkv",
     ["/steps/0000/layers/0001/x", "/steps/0001/extra", "not finite", "illegal indices", "5 violations"], replay=2)
def _(f):
    del f[WEIGHTS + "/wkv"]
    again(f, X, bf16_type(), bf16_bits(values(f)).reshape(8, 16))
    f["steps/0001"].create_group("extra")
    f[WEIGHTS + "/kv_norm"][3] = np.nan
    idx = f[IDX][:]
    idx[0, 1] = 6
    f[IDX][:] = idx
