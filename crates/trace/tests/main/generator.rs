//! Writes small Darshan logs of any version, byte order and compression, from literal numbers.

use std::io::Write;

pub(crate) const MAGIC: i64 = 6_567_223;

/// What to write; `slots` are the numbers that modules have in this log version.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) version: &'static str,
    pub(crate) big_endian: bool,
    pub(crate) compression: u8,
    pub(crate) partial: u64,
    pub(crate) names: Vec<(u64, &'static str)>,
    /// (slot, version of the records, records)
    pub(crate) modules: Vec<(usize, u32, Vec<u8>)>,
}

impl Recipe {
    pub(crate) fn new(version: &'static str) -> Recipe {
        let names = vec![(7, "/data/train/part-0.tfrecord"), (8, "/data/model.h5")];
        Recipe { version, big_endian: false, compression: 0, partial: 0, names, modules: Vec::new() }
    }

    pub(crate) fn word(&self, value: i64) -> [u8; 8] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub(crate) fn words(&self, values: &[i64]) -> Vec<u8> {
        values.iter().flat_map(|value| self.word(*value)).collect()
    }

    pub(crate) fn floats(&self, values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|value| self.word(value.to_bits().cast_signed())).collect()
    }

    fn half(&self, value: u32) -> [u8; 4] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub(crate) fn compress(&self, bytes: &[u8]) -> Vec<u8> {
        match self.compression {
            0 => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            1 => {
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            _ => bytes.to_vec(),
        }
    }

    /// A DXT trace; segments are (offset, length, start, end, thread), `threads` says whether the log has the last.
    pub(crate) fn trace(
        &self,
        (id, rank): (i64, i64),
        threads: bool,
        writes: &[(i64, i64, f64, f64, i64)],
        reads: &[(i64, i64, f64, f64, i64)],
    ) -> Vec<u8> {
        let mut bytes = self.words(&[id, rank, 0]);
        let mut host = b"node01".to_vec();
        host.resize(64, 0);
        bytes.extend(host);
        bytes.extend(self.words(&[writes.len() as i64, reads.len() as i64]));
        for (offset, length, start, end, thread) in writes.iter().chain(reads) {
            bytes.extend(self.words(&[*offset, *length]));
            bytes.extend(self.floats(&[*start, *end]));
            if threads {
                bytes.extend(self.word(*thread));
            }
        }
        bytes
    }

    /// The file. Module regions are compressed as two streams, as two ranks would write them.
    pub(crate) fn build(&self) -> Vec<u8> {
        let is_new = self.version == "3.41";
        let mut job = if is_new {
            self.words(&[1000, 1_700_000_000, 250_000_000, 1_700_000_100, 750_000_000, 4, 4242])
        } else {
            self.words(&[1000, 1_700_000_000, 1_700_000_100, 4, 4242])
        };
        let mut metadata = b"lib_ver=3.5.0\nh=romio_no_indep_rw=true;cb_nodes=4\n".to_vec();
        metadata.resize(1024, 0);
        job.extend(metadata);
        job.extend(b"python train.py --epochs 2\nlustre\t/data\next4\t/\0");
        let mut names = Vec::new();
        for (id, name) in &self.names {
            names.extend(self.word(id.cast_signed()));
            if self.version == "3.00" {
                names.extend(self.half(name.len() as u32));
                names.extend(name.as_bytes());
            } else {
                names.extend(name.as_bytes());
                names.push(0);
            }
        }
        let slots = if is_new { 64 } else { 16 };
        let header = if is_new { 1328 } else { 360 };
        let (job, names) = (self.compress(&job), self.compress(&names));
        let mut regions = vec![job, names];
        let mut maps = vec![(0i64, 0i64); slots + 1];
        let mut versions = vec![0u32; slots];
        maps[0] = (header + regions[0].len() as i64, regions[1].len() as i64);
        for (slot, version, bytes) in &self.modules {
            let (first, second) = bytes.split_at(bytes.len() / 2);
            let mut region = self.compress(first);
            region.extend(self.compress(second));
            maps[slot + 1] = (header + regions.iter().map(Vec::len).sum::<usize>() as i64, region.len() as i64);
            versions[*slot] = *version;
            regions.push(region);
        }
        let mut file = self.version.as_bytes().to_vec();
        file.resize(8, 0);
        file.extend(self.word(MAGIC));
        file.push(self.compression);
        if is_new {
            file.resize(24, 0);
            file.extend(self.word(self.partial.cast_signed()));
        } else {
            file.resize(20, 0);
            file.extend(self.half(self.partial as u32));
        }
        for (offset, length) in maps {
            file.extend(self.words(&[offset, length]));
        }
        for version in versions {
            file.extend(self.half(version));
        }
        assert_eq!(file.len() as i64, header);
        file.extend(regions.concat());
        file
    }
}
