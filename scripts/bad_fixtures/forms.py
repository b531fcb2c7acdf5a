"""How other writers store the same file: allowed forms, and forms close to them that are not."""

import h5py
import numpy as np

from base import bf16_bits, bf16_type, put
from cases import bad, legal

X = "/steps/0000/layers/0001/x"
CALL = "/steps/0000/layers/0001"
WEIGHTS = "/layers/0001/weights"
SHAPE = (4, 32)


def values(f, path=X):
    """A bf16 dataset's numbers."""
    d = f[path]
    raw = np.empty(d.shape, np.uint16)
    d.id.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, mtype=bf16_type())
    return (raw.astype(np.uint32) << 16).view(np.float32)


def again(f, path, file_type, raw, **how):
    group, name = path.rsplit("/", 1)
    return put(f[group], name, file_type, raw, **how)


def creation(chunk=None, gzip=False, shuffle=False, fletcher=False):
    p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chunk:
        p.set_chunk(chunk)
    if shuffle:
        p.set_shuffle()
    if gzip:
        p.set_deflate(6)
    if fletcher:
        p.set_fletcher32()
    return p


@legal("plain")
def _(f):
    pass


@legal("latest_format", open=dict(libver="latest"))
def _(f):
    pass


@legal("user_block", open=dict(userblock_size=512))
def _(f):
    """MATLAB's v7.3 files begin with a block of text."""


@legal("big_endian")
def _(f):
    again(f, X, bf16_type(h5py.h5t.ORDER_BE), bf16_bits(values(f)).byteswap())
    sink = f[WEIGHTS]["sink"][:]
    again(f, WEIGHTS + "/sink", h5py.h5t.IEEE_F32BE, sink.astype(">f4"))
    idx = f[CALL + "/expected/idx"][:]
    again(f, CALL + "/expected/idx", h5py.h5t.STD_I32BE, idx.astype(">i4"))
    f["config"].attrs.create("dim", 32, dtype=">i8")
    f["config"].attrs.create("eps", 1e-20, dtype=">f8")


@legal("uint16_with_attribute")
def _(f):
    again(f, X, h5py.h5t.STD_U16LE, bf16_bits(values(f))).attrs["dtype"] = "bfloat16"


@bad("uint16_without_attribute", X, ["expected bfloat16 [4, 32]", "uint16 without the attribute dtype"])
def _(f):
    again(f, X, h5py.h5t.STD_U16LE, bf16_bits(values(f)))


@bad("uint16_said_to_be_half", X, ["uint16 without the attribute dtype"])
def _(f):
    again(f, X, h5py.h5t.STD_U16LE, bf16_bits(values(f))).attrs["dtype"] = "float16"


@bad("opaque", X, ["an opaque type of 2 bytes"])
def _(f):
    """ml_dtypes' bfloat16 as numpy void, as h5py stores it."""
    again(f, X, h5py.h5t.py_create(np.dtype("V2")), bf16_bits(values(f)).view("V2"))


@bad("half_taken_for_bf16", X, ["found float16 (IEEE half)"])
def _(f):
    again(f, X, h5py.h5t.IEEE_F16LE, values(f).astype("<f2"))


@bad("custom_float", X, ["a float type of 16 bits with 6 exponent and 9 mantissa bits"])
def _(f):
    t = h5py.h5t.IEEE_F32LE.copy()
    t.set_fields(15, 9, 6, 0, 9)
    t.set_precision(16)
    t.set_size(2)
    t.set_ebias(31)
    again(f, X, t, bf16_bits(values(f)))


@bad("custom_bias", X, ["a float type of 16 bits with 8 exponent and 7 mantissa bits"])
def _(f):
    t = bf16_type()
    t.set_ebias(128)
    again(f, X, t, bf16_bits(values(f)))


@legal("float32_exact")
def _(f):
    again(f, X, h5py.h5t.IEEE_F32LE, values(f))


@bad("float32_inexact", X, ["float32 data that no bfloat16 equals", "at [0, 5]"])
def _(f):
    v = values(f)
    v[0, 5] = np.float32(1.0001)
    again(f, X, h5py.h5t.IEEE_F32LE, v)


@bad("float64", X, ["found float64"])
def _(f):
    again(f, X, h5py.h5t.IEEE_F64LE, values(f).astype(np.float64))


@legal("chunked")
def _(f):
    again(f, X, bf16_type(), bf16_bits(values(f)), dcpl=creation((3, 7)))


@legal("compressed_and_checksummed")
def _(f):
    again(f, X, bf16_type(), bf16_bits(values(f)), dcpl=creation((3, 7), True, True, True))
    wq_b = values(f, WEIGHTS + "/wq_b")
    again(f, WEIGHTS + "/wq_b", bf16_type(), bf16_bits(wq_b), dcpl=creation((16, 48), gzip=True))


@legal("resizable")
def _(f):
    space = h5py.h5s.create_simple(SHAPE, (h5py.h5s.UNLIMITED, 32))
    again(f, X, bf16_type(), bf16_bits(values(f)), dcpl=creation((2, 32)), space=space)


@legal("compact")
def _(f):
    p = creation()
    p.set_layout(h5py.h5d.COMPACT)
    again(f, X, bf16_type(), bf16_bits(values(f)), dcpl=p)


@bad("lzf_filter", X, ["a filter that fixtures do not use", "filter 32000 (lzf)"])
def _(f):
    v = bf16_bits(values(f))
    del f[X]
    f[CALL].create_dataset("x", data=v, compression="lzf").attrs["dtype"] = "bfloat16"


@bad("scaleoffset_filter", "/steps/0000/layers/0001/expected/idx", ["filter 6 (scaleoffset)"])
def _(f):
    idx = f[CALL + "/expected/idx"][:]
    del f[CALL + "/expected/idx"]
    f[CALL + "/expected"].create_dataset("idx", data=idx, scaleoffset=0, chunks=(2, 2))


@bad("unknown_filter", X, ["filter 31999"])
def _(f):
    """A filter that no library has: registered numbers of others look the same to a reader without their plug-in."""
    p = creation((4, 32))
    p.set_filter(31999, h5py.h5z.FLAG_OPTIONAL, (1, 2))
    v = bf16_bits(values(f))
    d = again(f, X, bf16_type(), None, shape=SHAPE, dcpl=p)
    d.id.write_direct_chunk((0, 0), v.tobytes())


@bad("checksum_wrong", X, ["cannot be read"])
def _(f):
    d = again(f, X, bf16_type(), None, shape=SHAPE, dcpl=creation((4, 32), fletcher=True))
    d.id.write_direct_chunk((0, 0), bf16_bits(np.ones(SHAPE)).tobytes() + b"\0\0\0\1")


@bad("deflate_broken", X, ["does not unpack to a whole chunk", "expected 256 bytes, found damaged data"])
def _(f):
    d = again(f, X, bf16_type(), None, shape=SHAPE, dcpl=creation((4, 32), gzip=True))
    d.id.write_direct_chunk((0, 0), b"x" * 100)


@bad("deflate_too_short", X, ["does not unpack to a whole chunk", "expected 256 bytes, found 64 bytes"])
def _(f):
    """A chunk that unpacks to less than a chunk: HDF5 1.10 reads past its buffer."""
    import zlib

    d = again(f, X, bf16_type(), None, shape=SHAPE, dcpl=creation((4, 32), gzip=True))
    d.id.write_direct_chunk((0, 0), zlib.compress(bf16_bits(np.ones((1, 32))).tobytes()))


@bad("chunk_too_short", X, ["does not unpack to a whole chunk", "expected 256 bytes, found 64 bytes"])
def _(f):
    d = again(f, X, bf16_type(), None, shape=SHAPE, dcpl=creation((4, 32)))
    d.id.write_direct_chunk((0, 0), bf16_bits(np.ones((1, 32))).tobytes())


@legal("other_writers_attributes")
def _(f):
    """Fixed strings as MATLAB and Julia write them, one-element arrays, h5py's booleans, Julia's bit fields."""
    string = h5py.string_dtype("ascii", 24)
    f.attrs.create("attndiff_format", np.array("attndiff-fixture", dtype=string.metadata and "S24"))
    f.attrs.create("format_version", np.array([1], np.int64))
    f.attrs["note"] = np.bytes_("bytes")
    layer = f["layers/0001"]
    layer.attrs["is_kv_source"] = np.bool_(True)
    layer.attrs["is_candidate_source"] = False
    put_bitfield(layer, "is_index_source", 1)
    f["layers/0000"].attrs["is_kv_source"] = np.int64(0)
    f["layers/0000"].attrs["layer_id"] = np.uint8(0)
    f["config"].attrs["dim"] = np.int16(32)
    f["config"].attrs.create("family", "deepseek-v41", dtype=h5py.string_dtype("utf-8", 12))
    f["config"].attrs.create("index_keys", ["slot"], dtype=h5py.string_dtype("utf-8"))
    f["config"].attrs["MATLAB_class"] = np.bytes_("struct")


def put_bitfield(owner, name, value):
    if name in owner.attrs:
        del owner.attrs[name]
    a = h5py.h5a.create(owner.id, name.encode(), h5py.h5t.STD_B8LE, h5py.h5s.create(h5py.h5s.SCALAR))
    a.write(np.array(value, np.uint8), mtype=h5py.h5t.STD_B8LE)


@bad("flag_of_two", "/layers/0001 attribute is_kv_source", ["0 or 1", "found 2"])
def _(f):
    t = h5py.enum_dtype({"NO": 0, "YES": 1, "PERHAPS": 2}, basetype="i1")
    f["layers/0001"].attrs.create("is_kv_source", 2, dtype=t)


@bad("flag_as_text", "/layers/0001 attribute is_kv_source", ["a string"])
def _(f):
    f["layers/0001"].attrs["is_kv_source"] = "true"


@bad("matlab_double", "/config attribute dim", ["an integer", "found float64"])
def _(f):
    """h5writeatt of a plain MATLAB number."""
    f["config"].attrs["dim"] = np.float64(32)


@bad("matlab_char_codes", "/ attribute attndiff_format", ["expected a string"])
def _(f):
    """MATLAB's v7.3 files hold text as character codes."""
    f.attrs["attndiff_format"] = np.frombuffer("attndiff-fixture".encode("utf-16le"), np.uint16)


@bad("matlab_references", "/#refs#", ["unknown object"])
def _(f):
    f.create_group("#refs#")


@bad("empty_attribute", "/config attribute dim", ["found 0 elements"])
def _(f):
    f["config"].attrs["dim"] = h5py.Empty("i8")


@bad("complex_attribute", "/config attribute dim", ["a compound"])
def _(f):
    f["config"].attrs["dim"] = np.complex128(32)


@bad("single_precision_eps", "/config attribute eps", ["expected float64, found float32"])
def _(f):
    f["config"].attrs["eps"] = np.float32(1e-20)
