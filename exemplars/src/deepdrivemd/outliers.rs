//! Which points of a cloud are lonely: how far their neighbours are, in a bounded sample of the cloud, so that a million
//! points cost a million times the sample and not a million squared. It knows nothing of molecules.

/// Points, and how near others usually are.
#[derive(Debug, Clone)]
pub(crate) struct Cloud {
    sample: Vec<Vec<f64>>,
    neighbours: usize,
    usual: f64,
}

/// More points than this add little to what is known of the cloud's density.
const SAMPLE: usize = 1000;

impl Cloud {
    pub(crate) fn of(points: &[Vec<f64>], neighbours: usize) -> Self {
        let every = points.len().div_ceil(SAMPLE).max(1);
        let sample: Vec<Vec<f64>> = points.iter().step_by(every).cloned().collect();
        let mut cloud = Self { neighbours: neighbours.min(sample.len().saturating_sub(1)), sample, usual: 1.0 };
        let mut reaches: Vec<f64> = cloud.sample.iter().map(|point| cloud.reach(point)).collect();
        reaches.sort_unstable_by(f64::total_cmp);
        cloud.usual = reaches.get(reaches.len() / 2).copied().unwrap_or(1.0).max(1e-9);
        cloud
    }

    /// How far the farthest of its nearest neighbours is, in units of what is usual: about 1 inside the cloud, more
    /// outside.
    pub(crate) fn loneliness(&self, point: &[f64]) -> f64 {
        self.reach(point) / self.usual
    }

    fn reach(&self, point: &[f64]) -> f64 {
        let square = |other: &Vec<f64>| other.iter().zip(point).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        let mut squares: Vec<f64> = self.sample.iter().map(square).collect();
        if squares.is_empty() {
            return 0.0;
        }
        squares.select_nth_unstable_by(self.neighbours, f64::total_cmp).1.sqrt()
    }
}

/// The `count` candidates that are loneliest, at most `most` of each group. Candidates are numbers of points with their
/// groups.
pub(crate) fn loneliest(candidates: &[(usize, usize)], loneliness: &[f64], count: usize, most: usize) -> Vec<usize> {
    let mut order = candidates.to_vec();
    order.sort_unstable_by(|a, b| loneliness[b.0].total_cmp(&loneliness[a.0]).then(a.cmp(b)));
    let mut chosen: Vec<(usize, usize)> = Vec::new();
    for candidate in order {
        let alike = chosen.iter().filter(|other| other.1 == candidate.1).count();
        if chosen.len() < count && alike < most {
            chosen.push(candidate);
        }
    }
    chosen.into_iter().map(|(point, _)| point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_far_from_the_cloud_is_lonely_and_one_inside_is_not() {
        let grid: Vec<Vec<f64>> = (0..100).map(|n| vec![f64::from(n % 10), f64::from(n / 10)]).collect();
        let cloud = Cloud::of(&grid, 8);
        assert!((0.9..1.3).contains(&cloud.loneliness(&[4.0, 4.0])));
        assert!(cloud.loneliness(&[30.0, 30.0]) > 10.0);
    }

    #[test]
    fn the_loneliest_are_chosen_and_no_group_has_more_than_its_share() {
        let loneliness = [9.0, 8.0, 7.0, 1.0, 2.0];
        let candidates = [(0, 1), (1, 1), (2, 1), (3, 2), (4, 3)];
        assert_eq!(loneliest(&candidates, &loneliness, 3, 2), [0, 1, 4]);
        assert_eq!(loneliest(&candidates, &loneliness, 9, 9), [0, 1, 2, 4, 3]);
    }
}
