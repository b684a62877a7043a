//! Single requests for drawing, in bounded number. Requests of one rank to one file in one direction that begin soon after
//! each other become one; how soon depends on how many there are. Does not draw.

use crate::darshan::Segment;

/// Requests that are held.
const MOST: usize = 100_000;

/// One request, or several in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    pub rank: i64,
    /// Record number.
    pub file: u64,
    pub written: bool,
    /// Seconds since the start of the job.
    pub start: f64,
    pub end: f64,
    pub requests: u64,
    pub bytes: u64,
}

impl Request {
    fn key(&self) -> (i64, u64, bool) {
        (self.rank, self.file, self.written)
    }

    /// Whether another one begins so soon after this one that it is drawn with it.
    fn reaches(&self, other: &Request, width: f64) -> bool {
        self.key() == other.key() && other.start >= self.start && other.start < self.start + width
    }

    fn take(&mut self, other: &Request) {
        self.end = self.end.max(other.end);
        self.requests += other.requests;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The requests of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Requests {
    pub held: Vec<Request>,
    /// Requests that begin in so many seconds are one; nothing is merged at zero.
    pub width: f64,
    /// Requests that are not here because even so they were too many: those with the fewest bytes.
    pub left_out: u64,
    run_time: f64,
}

impl Requests {
    pub(super) fn new(run_time: f64) -> Requests {
        let run_time = if run_time.is_finite() { run_time.max(1e-3) } else { 1.0 };
        Requests { run_time, ..Requests::default() }
    }

    pub(super) fn add(&mut self, (rank, file, written): (i64, u64, bool), segments: &[Segment], delay: f64) {
        for segment in segments {
            let (start, end) = (segment.start + delay, segment.end + delay);
            if segment.length < 0 || !start.is_finite() || !end.is_finite() || end < start {
                continue;
            }
            let bytes = segment.length.cast_unsigned();
            let next = Request { rank, file, written, start, end, requests: 1, bytes };
            match self.held.last_mut() {
                Some(last) if last.reaches(&next, self.width) => last.take(&next),
                _ => self.held.push(next),
            }
            if self.held.len() > MOST {
                self.thin();
            }
        }
    }

    fn thin(&mut self) {
        self.held.sort_by(|a, b| a.key().cmp(&b.key()).then(a.start.total_cmp(&b.start)));
        while self.held.len() > MOST / 2 {
            self.width = (self.width * 2.0).max(self.run_time * 1e-7);
            if self.width > 2.0 * self.run_time {
                self.held.sort_by_key(|request| std::cmp::Reverse(request.bytes));
                self.left_out += self.held[MOST / 2..].iter().map(|request| request.requests).sum::<u64>();
                self.held.truncate(MOST / 2);
                return;
            }
            let width = self.width;
            self.held.dedup_by(|next, before| {
                let joins = before.reaches(next, width);
                if joins {
                    before.take(next);
                }
                joins
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Requests};
    use crate::darshan::Segment;

    fn segment(start: f64) -> Segment {
        Segment { offset: 0, length: 10, start, end: start + 1e-4, thread: 0 }
    }

    #[test]
    fn few_requests_stay_as_they_are() {
        let mut requests = Requests::new(10.0);
        requests.add((0, 7, false), &[segment(1.0), segment(1.0001)], 0.5);
        let starts: Vec<f64> = requests.held.iter().map(|request| request.start).collect();
        assert_eq!((starts, requests.width), (vec![1.5, 1.5001], 0.0));
    }

    #[test]
    fn many_requests_become_few_with_the_same_sums() {
        let mut requests = Requests::new(1000.0);
        for rank in 0..4 {
            for index in 0..100_000 {
                requests.add((rank, 7, rank == 1), &[segment(f64::from(index) * 0.01)], 0.0);
            }
        }
        assert!(requests.held.len() <= MOST && requests.held.len() > 100, "{}", requests.held.len());
        assert_eq!(requests.held.iter().map(|request| request.requests).sum::<u64>(), 400_000);
        assert_eq!(requests.held.iter().map(|request| request.bytes).sum::<u64>(), 4_000_000);
        assert!(requests.width > 0.0 && requests.left_out == 0);
    }

    #[test]
    fn what_cannot_be_merged_is_left_out_and_counted() {
        let mut requests = Requests::new(10.0);
        for file in 0..250_000 {
            requests.add((0, file, false), &[segment(1.0)], 0.0);
        }
        let held: u64 = requests.held.iter().map(|request| request.requests).sum();
        assert!(requests.held.len() <= MOST);
        assert_eq!(held + requests.left_out, 250_000);
    }
}
