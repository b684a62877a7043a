"""Reads a generated data set with the libraries that users have, and compares it with numbers computed here anew.

Usage: judge.py FOLDER. Prints how many samples, and how many bytes of them, were found right.
"""
import glob
import json
import struct
import sys

import numpy as np

GAMMA = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def mix(value):
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


class Random:
    def __init__(self, seed, *stream):
        self.state = mix(seed ^ GAMMA)
        for part in stream:
            self.state = mix(self.state ^ mix((part + 1) & MASK))

    def next(self):
        self.state = (self.state + GAMMA) & MASK
        return mix(self.state)

    def below(self, bound):
        return (self.next() * bound) >> 64

    def around(self, mean, spread):
        reach = int(mean * spread)
        return mean - reach + self.below(2 * reach + 1)

    def fill(self, length):
        words = -(-length // 8)
        with np.errstate(over="ignore"):
            value = np.uint64(self.state) + np.arange(1, words + 1, dtype=np.uint64) * np.uint64(GAMMA)
            value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            value ^= value >> np.uint64(31)
        self.state = (self.state + words * GAMMA) & MASK
        return value.astype("<u8").tobytes()[:length]


def records(data, paths):
    """TFRecord: framing and checksums with crc32c, examples with the message of the tfrecord package."""
    import crc32c
    from tfrecord import example_pb2, reader

    def masked(content):
        crc = crc32c.crc32c(content)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    imagenet = data["kernel"] == "imagenet"
    for number, path in enumerate(paths):
        raw, at = open(path, "rb").read(), 0
        while at < len(raw):
            (length,) = struct.unpack_from("<Q", raw, at)
            assert masked(raw[at : at + 8]) == struct.unpack_from("<I", raw, at + 8)[0], path
            content = raw[at + 12 : at + 12 + length]
            assert masked(content) == struct.unpack_from("<I", raw, at + 12 + length)[0], path
            at += 16 + length
        many = 0
        for sample, record in enumerate(reader.tfrecord_iterator(path)):
            example = example_pb2.Example.FromString(bytes(record))
            random = Random(data["seed"], 2, number, sample)
            size = Random(data["seed"], 1, number, sample).around(data["sample_bytes"], data["spread"])
            (found,) = example.features.feature["image/encoded" if imagenet else "x"].bytes_list.value
            assert found == random.fill(size), (path, sample)
            if imagenet:
                assert list(example.features.feature["image/class/label"].int64_list.value) == [random.below(1000) + 1]
            else:
                targets = [random.below(1 << 20) / (1 << 15) for _ in range(4)]
                assert np.allclose(example.features.feature["y"].float_list.value, targets, rtol=1e-6)
            many += 1
            yield len(found)
        spread = data["spread"] if imagenet else 0
        assert many == max(1, Random(data["seed"], 0, number).around(data["samples_per_file"], spread)), path


def images(data, paths):
    import h5py

    for number, path in enumerate(paths):
        with h5py.File(path, "r") as file:
            voxels, extents = file["voxels"], file["extents"]
            assert list(file) == ["extents", "voxels"] and voxels.dtype == "<f4"
            assert voxels.chunks == (1536,) and extents.chunks == (512,)
            many = data["samples_per_file"]
            assert voxels.shape == (many * 7 * 1536,) and extents.shape == (many * 2 * 512,)
            for sample in range(many):
                content = Random(data["seed"], 2, number, sample).fill(7 * 6144 + 2 * 2048)
                found = voxels[sample * 7 * 1536 : (sample + 1) * 7 * 1536].tobytes()
                found += extents[sample * 1024 : (sample + 1) * 1024].tobytes()
                assert found == content, (path, sample)
                yield len(found)


def volumes(data, paths):
    import h5py

    for number, path in enumerate(paths):
        with h5py.File(path, "r") as file:
            raw = file["raw"]
            assert raw.dtype == "u1" and raw.shape == (160, 160, 160) and raw.chunks == (40, 40, 40)
            whole = raw[:]
            for chunk in range(64):
                z, y, x = chunk // 16 * 40, chunk // 4 % 4 * 40, chunk % 4 * 40
                found = whole[z : z + 40, y : y + 40, x : x + 40].tobytes()
                assert found == Random(data["seed"], 2, number, chunk).fill(64000), (path, chunk)
                yield len(found)


def shots(data, paths):
    for number, path in enumerate(paths):
        with np.load(path) as archive:
            assert sorted(archive) == ["signal", "time"]
            signal, time = archive["signal"], archive["time"]
        steps = Random(data["seed"], 1, number, 0).around(data["sample_bytes"], data["spread"]) // 56
        content = np.frombuffer(Random(data["seed"], 2, number, 0).fill(steps * 56), "u1").copy()
        content[3::4] &= 0xBF
        assert signal.shape == (steps, 14) and signal.tobytes() == content.tobytes(), path
        assert np.array_equal(time, np.arange(16) * 1e-3) and np.isfinite(signal).all()
        yield signal.nbytes + time.nbytes


folder = sys.argv[1]
data = json.load(open(folder + "/dataset.json"))["data"]
judge = {"imagenet": records, "cosmoflow": records, "cosmictagger": images, "ffn": volumes, "frnn": shots}
paths = sorted(path for path in glob.glob(folder + "/*") if not path.endswith(".json"))
assert len(paths) == data["files"]
sizes = list(judge[data["kernel"]](data, paths))
print(len(sizes), sum(sizes))
