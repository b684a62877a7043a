//! Trajectories as files: the XYZ format that VMD, OVITO and others open. Numbers are written so that they are read as
//! the same numbers again.

use super::chain::{BEADS, CONTACT, Positions, distance};
use crate::failure::{Failure, read_text};
use std::fmt::Write;
use std::path::Path;

/// One moment of a trajectory.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    /// Where it comes from: words such as `iteration=2`.
    pub about: String,
    pub positions: Positions,
}

/// Pairs of beads whose contact is not given by the chain itself.
pub(super) fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..BEADS).flat_map(|first| (first + 3..BEADS).map(move |second| (first, second)))
}

impl Frame {
    /// The contact map: of every pair of beads how much it is in contact, from 0 to 255. Half is at the distance where a
    /// contact ends, so that two maps differ little where two conformations do.
    pub(super) fn contacts(&self) -> Vec<u8> {
        let near = |(first, second): (usize, usize)| {
            let beyond = distance(self.positions[first], self.positions[second]) - CONTACT;
            (255.0 / (1.0 + (4.0 * beyond).exp())).round() as u8
        };
        pairs().map(near).collect()
    }

    /// The iteration that its words name; 1 if they do not.
    pub(crate) fn iteration(&self) -> usize {
        let words = self.about.split_whitespace();
        words.filter_map(|word| word.strip_prefix("iteration=")).find_map(|number| number.parse().ok()).unwrap_or(1)
    }

    pub(crate) fn end_to_end(&self) -> f64 {
        distance(self.positions[0], self.positions[BEADS - 1])
    }
}

/// The text of frames.
pub(super) fn written(frames: &[Frame]) -> String {
    let mut text = String::new();
    for frame in frames {
        // A String takes everything.
        let _ = writeln!(text, "{}\n{}", frame.positions.len(), frame.about);
        for [x, y, z] in &frame.positions {
            let _ = writeln!(text, "C {x} {y} {z}");
        }
    }
    text
}

/// The frames of a file.
pub(super) fn read(path: &Path) -> Result<Vec<Frame>, Failure> {
    parsed(&read_text(path)?).map_err(|what| Failure::data(path, what))
}

/// The frames of several files, one after the other.
pub(super) fn read_all<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<Frame>, Failure> {
    let mut frames = Vec::new();
    for path in paths {
        frames.extend(read(path.as_ref())?);
    }
    Ok(frames)
}

fn parsed(text: &str) -> Result<Vec<Frame>, String> {
    let mut lines = text.lines().enumerate();
    let mut frames = Vec::new();
    while let Some((number, count)) = lines.next() {
        if count.trim().parse() != Ok(BEADS) {
            return Err(format!(
                "line {}: a frame with {BEADS} beads begins with that number, not {count:?}",
                number + 1
            ));
        }
        let about = lines.next().ok_or("it ends inside a frame")?.1.to_owned();
        let mut positions = Positions::with_capacity(BEADS);
        for _ in 0..BEADS {
            let (number, line) = lines.next().ok_or("it ends inside a frame")?;
            let mut words = line.split_whitespace().skip(1).map(str::parse::<f64>);
            match (words.next(), words.next(), words.next()) {
                (Some(Ok(x)), Some(Ok(y)), Some(Ok(z))) => positions.push([x, y, z]),
                _ => return Err(format!("line {}: a bead is a letter and three numbers, not {line:?}", number + 1)),
            }
        }
        frames.push(Frame { about, positions });
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::super::chain::folded;
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let mut odd = folded();
        odd[3] = [1.0 / 3.0, -2e-17, 1e300];
        let frames = [
            Frame { about: "iteration=1 simulation=2".into(), positions: folded() },
            Frame { about: String::new(), positions: odd },
        ];
        assert_eq!(parsed(&written(&frames)).unwrap(), frames);
    }

    #[test]
    fn what_is_no_trajectory_is_refused_with_its_line() {
        assert_eq!(parsed("3\nx\n").unwrap_err(), "line 1: a frame with 16 beads begins with that number, not \"3\"");
        assert_eq!(
            parsed("16\nx\nC 1 2\n").unwrap_err(),
            "line 3: a bead is a letter and three numbers, not \"C 1 2\""
        );
        assert_eq!(parsed("16\nx\nC 1 2 3\n").unwrap_err(), "it ends inside a frame");
    }

    #[test]
    fn partners_in_the_folded_hairpin_are_in_contact() {
        let contacts = Frame { about: String::new(), positions: folded() }.contacts();
        let of = |pair| contacts[pairs().position(|at| at == pair).unwrap()];
        assert!(of((0, 15)) > 200 && of((6, 9)) > 200 && of((0, 8)) < 10);
        assert_eq!(contacts.len(), 91);
    }
}
