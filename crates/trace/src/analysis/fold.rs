//! Folds the records of one log into the analysis of its job, as they come.

use super::coverage::Coverage;
use super::job::{Analysis, FILE_ROWS, Options};
use super::kind::{Format, Role};
use super::layer::Layer;
use super::traced::FileTrace;
use crate::darshan::{
    Heatmap, LustreRecord, Member, Module, ModuleEntry, Names, Operation, Record, Segment, Trace, Visitor,
};

/// The trace of a rank and a file whose segments are being folded in.
#[derive(Debug)]
pub(super) struct Current {
    id: u64,
    role: Role,
    wanted: bool,
    limit: usize,
    read: Coverage,
    trace: FileTrace,
}

pub(super) struct Fold<'a> {
    analysis: &'a mut Analysis,
    member: &'a Member,
    names: &'a Names,
    options: &'a Options,
}

impl<'a> Fold<'a> {
    pub(super) fn new(
        analysis: &'a mut Analysis,
        member: &'a Member,
        names: &'a Names,
        options: &'a Options,
    ) -> Fold<'a> {
        Fold { analysis, member, names, options }
    }

    fn wants_part(&self, id: u64, rank: i64) -> bool {
        let file = |files: &globset::GlobMatcher| self.names.get(id).is_some_and(|name| files.is_match(name));
        self.options.files.as_ref().is_none_or(file)
            && self.options.ranks.as_ref().is_none_or(|ranks| ranks.contains(&self.member.rank(rank)))
    }
}

impl Analysis {
    /// Only the files with the most bytes keep their timelines. Counters come before traces, so that they mostly know.
    fn thin_files(&mut self) {
        if self.file_timeline.len() < 2 * FILE_ROWS {
            return;
        }
        let files = &self.files;
        self.file_timeline.thin(FILE_ROWS, |id| {
            let (read, written) = files.rows.get(&id.cast_unsigned()).map_or((0, 0), super::FileRow::bytes);
            read.saturating_add(written)
        });
    }

    /// What a rank did to a file is known when its trace is over.
    pub(super) fn finish_trace(&mut self) {
        let Some(mut current) = self.current.take().filter(|current| current.wanted) else { return };
        let file = self.files.row(current.id).traced.get_or_insert_default();
        let trace = &current.trace;
        file.bytes_read = file.bytes_read.saturating_add(trace.bytes_read);
        file.bytes_written = file.bytes_written.saturating_add(trace.bytes_written);
        file.reads += trace.reads;
        file.writes += trace.writes;
        file.read_seconds += trace.read_seconds;
        file.write_seconds += trace.write_seconds;
        file.first = file.first.min(trace.first);
        file.last = file.last.max(trace.last);
        if trace.reads > 0 {
            file.readers = file.readers.saturating_add(1);
            file.read_by_rank += current.read.length();
            file.read.extend(&mut current.read, current.limit);
        }
    }
}

impl Visitor for Fold<'_> {
    fn wants(&mut self, entry: &ModuleEntry) -> bool {
        if entry.partial && !self.analysis.partial.contains(&entry.module) {
            self.analysis.partial.push(entry.module);
        }
        let wanted = Layer::of(entry.module).is_some()
            || matches!(entry.module, Module::Lustre | Module::Heatmap | Module::Hdf5Dataset);
        // What HDF5 and the machine say of files is in the layers below, or moves nothing.
        if !wanted && !matches!(entry.module, Module::Hdf5File | Module::BlueGene) {
            self.analysis.unread.insert(entry.module);
        }
        wanted
    }

    fn record(&mut self, record: &Record) {
        if !self.wants_part(record.id, record.rank) {
            return;
        }
        if record.module == Module::Hdf5Dataset {
            self.analysis.totals.dataset(record);
        }
        let Some(layer) = Layer::of(record.module) else { return };
        match layer {
            Layer::Posix => self.analysis.totals.posix(record),
            Layer::MpiIo => self.analysis.totals.mpi_io(record),
            Layer::Stdio | Layer::Dfs => {}
        }
        let rank = self.analysis.kept_rank(self.member.rank(record.rank));
        self.analysis.files.add(record, self.member.job.processes);
        self.analysis.performance.entry(layer).or_default().add(layer, record, rank);
    }

    fn lustre(&mut self, record: &LustreRecord) {
        let stripes = record.layouts.iter().map(|layout| layout.stripe_count).max().unwrap_or(0);
        if let Some(row) = self.analysis.files.rows.get_mut(&record.id) {
            row.stripes = row.stripes.max(stripes);
        }
    }

    fn heatmap(&mut self, record: &Heatmap) {
        let is_posix = self.names.get(record.id).is_some_and(|name| name.ends_with("POSIX") || name.ends_with("STDIO"));
        let width = record.bin_width;
        let rank = self.member.rank(record.rank);
        let is_left_out = self.options.ranks.as_ref().is_some_and(|ranks| !ranks.contains(&rank));
        if !is_posix || !width.is_finite() || width <= 0.0 || self.options.files.is_some() || is_left_out {
            return;
        }
        let rank = self.analysis.kept_rank(rank);
        let mut row = self.analysis.heat.row(rank);
        for (column, bins) in [(0, &record.read), (1, &record.written)] {
            for (index, bytes) in bins.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
                let start = index as f64 * width + self.member.delay;
                row.add(column, (start, start + width), *bytes as f64);
            }
        }
    }

    fn trace(&mut self, trace: &Trace) {
        let Some(layer) = Layer::of(trace.module) else { return };
        self.analysis.finish_trace();
        self.analysis.traced.entry(layer).or_default().begin_trace();
        let rank = self.analysis.kept_rank(self.member.rank(trace.rank));
        self.analysis.hosts.entry(rank).or_insert_with(|| trace.host.clone());
        self.analysis.thin_files();
        self.analysis.current = Some(Current {
            id: trace.id,
            role: self.names.get(trace.id).map_or(Role::Other, |name| Format::of(name).role()),
            wanted: self.wants_part(trace.id, trace.rank) && layer == Layer::Posix,
            limit: self.analysis.ranges(),
            read: Coverage::default(),
            trace: FileTrace::default(),
        });
    }

    fn segments(&mut self, trace: &Trace, operation: Operation, segments: &[Segment]) {
        let Some(layer) = Layer::of(trace.module) else { return };
        if !self.wants_part(trace.id, trace.rank) {
            return;
        }
        let rank = self.analysis.kept_rank(self.member.rank(trace.rank));
        let analysis = &mut *self.analysis;
        let summary = analysis.traced.entry(layer).or_default();
        let column = usize::from(operation == Operation::Write);
        let delay = self.member.delay;
        let Some(current) = analysis.current.as_mut().filter(|_| layer != Layer::MpiIo) else {
            // MPI-IO's bytes are in the timeline as those of POSIX below it.
            summary.add((rank, Role::Other), operation, segments, delay, |_, _| {});
            return;
        };
        if let Some(requests) = &mut analysis.requests {
            requests.add((rank, trace.id, operation == Operation::Write), segments, delay);
        }
        let mut row = analysis.timeline.row(rank);
        let mut file_row = analysis.file_timeline.row(trace.id.cast_signed());
        let limit = current.limit;
        summary.add((rank, current.role), operation, segments, delay, |span, segment| {
            row.add(column, span, segment.length as f64);
            file_row.add(column, span, segment.length as f64);
            current.trace.first = current.trace.first.min(span.0);
            current.trace.last = current.trace.last.max(span.1);
            if operation == Operation::Read {
                current.trace.bytes_read = current.trace.bytes_read.saturating_add(segment.length.cast_unsigned());
                current.trace.reads += 1;
                current.trace.read_seconds += span.1 - span.0;
                current.read.add(segment.offset, segment.length, limit);
            } else {
                current.trace.bytes_written =
                    current.trace.bytes_written.saturating_add(segment.length.cast_unsigned());
                current.trace.writes += 1;
                current.trace.write_seconds += span.1 - span.0;
            }
        });
    }
}
