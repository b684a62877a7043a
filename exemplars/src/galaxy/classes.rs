//! The five classes and the votes that make a galaxy a clear member of one: the thresholds are those that are usual for
//! the Galaxy Zoo 2 (smooth 0.469, features or disk 0.430, and so on).

/// The classes, in the order of their numbers.
pub(crate) const CLASSES: [&str; 5] =
    ["completely round smooth", "in-between smooth", "cigar-shaped smooth", "edge-on", "spiral"];

/// The columns of the table of votes, after `GalaxyID`: answers of question 1 to 11.
pub(crate) const ANSWERS: [usize; 11] = [3, 2, 2, 2, 4, 2, 3, 7, 3, 3, 6];

/// All columns of the table of votes, by their published names.
pub(crate) fn columns() -> Vec<String> {
    let mut columns = vec!["GalaxyID".to_owned()];
    for (question, answers) in ANSWERS.iter().enumerate() {
        columns.extend((1..=*answers).map(|answer| format!("Class{}.{answer}", question + 1)));
    }
    columns
}

/// The class of a galaxy by the share of votes for an answer; none where people did not agree.
pub(crate) fn class_of(share: impl Fn(&str) -> f32) -> Option<usize> {
    let (smooth, disk) = (share("Class1.1") >= 0.469, share("Class1.2") >= 0.430);
    let shape = ["Class7.1", "Class7.2", "Class7.3"].iter().position(|answer| share(answer) >= 0.5);
    match shape {
        Some(shape) if smooth => Some(shape),
        _ if disk && share("Class2.1") >= 0.602 => Some(3),
        _ if disk && share("Class2.2") >= 0.715 && share("Class4.1") >= 0.619 => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(votes: &[(&str, f32)]) -> Option<usize> {
        class_of(|column| votes.iter().find(|(name, _)| *name == column).map_or(0.0, |(_, share)| *share))
    }

    #[test]
    fn clear_votes_make_a_class_and_others_none() {
        assert_eq!(class(&[("Class1.1", 0.9), ("Class7.1", 0.8)]), Some(0));
        assert_eq!(class(&[("Class1.1", 0.9), ("Class7.3", 0.5)]), Some(2));
        assert_eq!(class(&[("Class1.1", 0.4), ("Class7.3", 0.5)]), None);
        assert_eq!(class(&[("Class1.2", 0.7), ("Class2.1", 0.61)]), Some(3));
        assert_eq!(class(&[("Class1.2", 0.9), ("Class2.2", 0.8), ("Class4.1", 0.7)]), Some(4));
        assert_eq!(class(&[("Class1.2", 0.9), ("Class2.2", 0.8), ("Class4.1", 0.5)]), None);
    }

    #[test]
    fn the_table_has_the_published_thirty_seven_columns_of_votes() {
        let columns = columns();
        assert_eq!(columns.len(), 38);
        assert_eq!(columns[..5], ["GalaxyID", "Class1.1", "Class1.2", "Class1.3", "Class2.1"]);
        assert_eq!(columns[37], "Class11.6");
    }
}
