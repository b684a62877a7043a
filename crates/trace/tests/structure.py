"""Writes HDF5 files with h5py and says what lies in them, in the words of our reader: FOLDER → a line of JSON a file."""

import json
import sys

import h5py
import numpy as np

NAMES = {"i": "int", "u": "uint", "f": "float", "c": "complex"}
FILTERS = {2: "shuffle", 3: "fletcher32", 32000: "lzf"}


def typed(dtype):
    """The name of a type, and the bytes of a value where it lies in place."""
    string = h5py.check_string_dtype(dtype)
    if string is not None:
        return ("string", None) if string.length is None else (f"string of {string.length}", string.length)
    if h5py.check_vlen_dtype(dtype) is not None:
        return f"sequence of {typed(h5py.check_vlen_dtype(dtype))[0]}", None
    if h5py.check_enum_dtype(dtype) is not None:
        return f"enum of {typed(np.dtype(dtype.str))[0]}", dtype.itemsize
    if h5py.check_ref_dtype(dtype) is not None:
        return "reference", 8
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return "×".join(map(str, shape)) + f" of {typed(base)[0]}", dtype.itemsize
    if dtype.names is not None:
        return "fields (" + ", ".join(f"{n} {typed(dtype[n])[0]}" for n in dtype.names) + ")", dtype.itemsize
    if dtype.kind == "b":
        return "bool", 1
    if dtype.kind == "V":
        return f"opaque of {dtype.itemsize}", dtype.itemsize
    order = " big-endian" if dtype.byteorder == ">" else ""
    return f"{NAMES[dtype.kind]}{8 * dtype.itemsize}{order}", dtype.itemsize


def dataset(name, found):
    layouts = {h5py.h5d.COMPACT: "compact", h5py.h5d.CONTIGUOUS: "contiguous", h5py.h5d.CHUNKED: "chunked"}
    layouts[h5py.h5d.VIRTUAL] = "virtual"
    settings = found.id.get_create_plist()
    kind, each = typed(found.dtype)
    one = {"name": name, "kind": "dataset", "type": kind, "layout": layouts[settings.get_layout()]}
    if settings.get_external_count():
        one["layout"] = "external"
    if found.shape is None:
        one["bytes"] = 0
    else:
        one["shape"] = list(found.shape)
        if each is not None:
            one["bytes"] = int(np.prod(found.shape, dtype=object)) * each
    if found.chunks:
        one["chunk"] = list(found.chunks)
    filters = [settings.get_filter(at) for at in range(settings.get_nfilters())]
    if filters:
        one["filters"] = [f"gzip {values[0]}" if code == 1 else FILTERS[code] for code, _, values, _ in filters]
    return one


def walk(group, path, known, out):
    for name in sorted(group, key=lambda name: name.encode()):
        own = f"{path}/{name}"
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.SoftLink):
            out.append({"name": own, "kind": "link", "target": link.path})
            continue
        if isinstance(link, h5py.ExternalLink):
            out.append({"name": own, "kind": "link", "target": f"{link.filename}:{link.path}"})
            continue
        found = group[name]
        address = h5py.h5o.get_info(found.id).addr
        if address in known:
            out.append({"name": own, "kind": "link", "target": known[address]})
            continue
        known[address] = own
        if isinstance(found, h5py.Group):
            out.append({"name": own, "kind": "group"})
            walk(found, own, known, out)
        elif isinstance(found, h5py.Datatype):
            out.append({"name": own, "kind": "type", "type": typed(found.dtype)[0]})
        else:
            out.append(dataset(own, found))
    return out


def fill(file):
    data = np.arange(60 * 8 * 8, dtype="f4").reshape(60, 8, 8)
    train = file.create_group("train")
    train.create_dataset("image", data=data, chunks=(4, 8, 8), compression="gzip", compression_opts=6, shuffle=True)
    train.create_dataset("label", data=np.arange(60), maxshape=(None,), chunks=(16,))
    train.create_dataset("mask", data=data > 5, chunks=(60, 8, 8), compression="lzf", fletcher32=True)
    train.create_dataset("both", (4, 4), "u1", maxshape=(None, None), chunks=(2, 2))
    deep = file.create_group("a/b/c/d")
    deep["big"] = np.zeros((2, 3), ">i4")
    deep["half"] = np.float16(1.5)
    deep["none"] = h5py.Empty("f8")
    deep["complex"] = np.zeros(3, "c16")
    deep["raw"] = np.zeros(3, "V5")
    deep.create_dataset("small", (4,), "u1", dcpl=compact(), data=np.zeros(4, "u1"))
    text = file.create_group("text")
    text["names"] = ["one", "two", "three"]
    text["fixed"] = np.array([b"one", b"three"])
    text.create_dataset("lists", (2,), h5py.vlen_dtype(np.int16))
    text.create_dataset("colours", (2,), h5py.enum_dtype({"red": 1, "green": 2}, "u2"))
    text.create_dataset("points", (7,), np.dtype([("x", "f8"), ("at", "i2", (2, 3)), ("in", [("t", "S3"), ("u", "u4")])]))
    text.create_dataset("seen", (7,), h5py.ref_dtype)
    file["kind"] = np.dtype([("x", "f8"), ("y", "f8")])
    file.create_dataset("of_kind", (3,), file["kind"])
    links = file.create_group("ways")
    links["again"] = train["image"]
    links["circle"] = file
    links["soft"] = h5py.SoftLink("/train/label")
    old = file.create_group("old")
    old["nowhere"] = h5py.SoftLink("nowhere")
    # It makes the group one of the new kind, in any file.
    links["outside"] = h5py.ExternalLink("other.h5", "/x")
    # Attributes that do not fit into the first block of the header.
    for number in range(40):
        train["image"].attrs[f"note {number}"] = "x" * 40


def compact():
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_layout(h5py.h5d.COMPACT)
    return settings


def many(file):
    group = file.create_group("shots")
    for number in range(300):
        group.create_dataset(f"shot {number}", (number, 3), "f4")


folder = sys.argv[1]
for name, settings, fills in [
    ("default", {}, [fill, many]),
    ("earliest", {"libver": "earliest"}, [fill]),
    ("v108", {"libver": ("v108", "v108")}, [fill]),
    ("latest", {"libver": "latest"}, [fill]),
    ("ordered", {"track_order": True}, [fill]),
    ("user", {"userblock_size": 2048}, [fill]),
]:
    path = f"{folder}/{name}.h5"
    with h5py.File(path, "w", **settings) as file:
        for one in fills:
            one(file)
    with h5py.File(path, "r") as file:
        known = {h5py.h5o.get_info(file.id).addr: "/"}
        print(json.dumps({"name": name, "objects": walk(file, "", known, [])}))
with h5py.File(f"{folder}/dense.h5", "w", libver="latest") as file:
    many(file)
    file["one"] = 1.0
np.savez(f"{folder}/plain.npz", x=np.zeros((5, 2), "f4"), y=np.zeros(5, "i8"), z=np.float64(1.0))
np.savez_compressed(f"{folder}/packed.npz", text=np.array(["ab", "c"]), pairs=np.zeros(3, [("a", "f4"), ("b", "i2")]))
np.save(f"{folder}/big.npy", np.zeros((3, 4), ">f8"))
