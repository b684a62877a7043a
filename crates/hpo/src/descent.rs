//! Minimises a smooth function in a box: BFGS with projection and backtracking.

use crate::linear::dot;

/// A function that writes its gradient and gives its value.
pub(crate) trait Slope {
    fn at(&mut self, x: &[f64], gradient: &mut [f64]) -> f64;
}

impl<F: FnMut(&[f64], &mut [f64]) -> f64> Slope for F {
    fn at(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        self(x, gradient)
    }
}

/// Where it ends, from a start: the lowest place seen and its value.
pub(crate) fn minimise(
    mut function: impl Slope,
    from: &[f64],
    bounds: &[(f64, f64)],
    iterations: usize,
    tolerance: f64,
) -> (Vec<f64>, f64) {
    let size = from.len();
    let mut x: Vec<f64> = from.iter().zip(bounds).map(|(x, (low, high))| x.clamp(*low, *high)).collect();
    let mut gradient = vec![0.0; size];
    let mut value = function.at(&x, &mut gradient);
    let mut inverse = identity(size, 1.0);
    let mut fresh = true;
    for _ in 0..iterations {
        let held = |at: usize| {
            let (low, high) = bounds[at];
            (x[at] <= low && gradient[at] > 0.0) || (x[at] >= high && gradient[at] < 0.0)
        };
        let free: Vec<bool> = (0..size).map(|at| !held(at)).collect();
        let masked: Vec<f64> = gradient.iter().zip(&free).map(|(g, free)| if *free { *g } else { 0.0 }).collect();
        let norm = dot(&masked, &masked).sqrt();
        if norm < tolerance || !norm.is_finite() {
            break;
        }
        let mut step: Vec<f64> = (0..size)
            .map(|row| if free[row] { -dot(&inverse[row * size..(row + 1) * size], &masked) } else { 0.0 })
            .collect();
        if dot(&step, &masked) >= 0.0 {
            step = masked.iter().map(|g| -g).collect();
            inverse = identity(size, 1.0);
            fresh = true;
        }
        // The first step knows nothing of scale.
        let widest = bounds.iter().map(|(low, high)| high - low).fold(0.0, f64::max).min(4.0);
        let length = dot(&step, &step).sqrt();
        let mut rate = if fresh { (0.1 * widest / length).min(1.0) } else { (widest / length).min(1.0) };
        let mut moved = None;
        let mut next_gradient = vec![0.0; size];
        for _ in 0..12 {
            let next: Vec<f64> = x
                .iter()
                .zip(&step)
                .zip(bounds)
                .map(|((x, s), (low, high))| (x + rate * s).clamp(*low, *high))
                .collect();
            let next_value = function.at(&next, &mut next_gradient);
            let change: Vec<f64> = next.iter().zip(&x).map(|(next, x)| next - x).collect();
            if next_value.is_finite() && next_value <= value + 1e-4 * dot(&change, &masked) {
                moved = Some((next, next_value, change));
                break;
            }
            rate *= 0.35;
        }
        let Some((next, next_value, change)) = moved else {
            if fresh {
                break;
            }
            inverse = identity(size, 1.0);
            fresh = true;
            continue;
        };
        let bend: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(next, old)| next - old).collect();
        update(&mut inverse, &change, &bend, fresh);
        fresh = false;
        let gained = value - next_value;
        x = next;
        gradient = next_gradient;
        value = next_value;
        if gained <= tolerance * 1e-3 * (1.0 + value.abs()) {
            break;
        }
    }
    (x, value)
}

fn identity(size: usize, scale: f64) -> Vec<f64> {
    let mut matrix = vec![0.0; size * size];
    (0..size).for_each(|at| matrix[at * size + at] = scale);
    matrix
}

/// The formula of Broyden, Fletcher, Goldfarb and Shanno for the inverse.
fn update(inverse: &mut Vec<f64>, change: &[f64], bend: &[f64], fresh: bool) {
    let size = change.len();
    let curvature = dot(change, bend);
    if curvature <= 1e-12 * (dot(change, change) * dot(bend, bend)).sqrt() {
        return;
    }
    if fresh {
        *inverse = identity(size, curvature / dot(bend, bend));
    }
    let image: Vec<f64> = (0..size).map(|row| dot(&inverse[row * size..(row + 1) * size], bend)).collect();
    let factor = (1.0 + dot(bend, &image) / curvature) / curvature;
    for row in 0..size {
        for column in 0..size {
            inverse[row * size + column] += factor * change[row] * change[column]
                - (image[row] * change[column] + change[row] * image[column]) / curvature;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rosenbrock(x: &[f64], gradient: &mut [f64]) -> f64 {
        let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
        gradient[0] = -2.0 * a - 400.0 * x[0] * b;
        gradient[1] = 200.0 * b;
        a * a + 100.0 * b * b
    }

    #[test]
    fn a_bent_valley_is_followed_to_its_end() {
        let (x, value) = minimise(rosenbrock, &[-1.2, 1.0], &[(-2.0, 2.0), (-2.0, 2.0)], 200, 1e-9);
        assert!(value < 1e-10, "{x:?} {value}");
    }

    #[test]
    fn walls_are_kept() {
        let (x, _) = minimise(rosenbrock, &[-1.2, 0.2], &[(-2.0, 0.5), (-2.0, 2.0)], 200, 1e-9);
        assert!((x[0] - 0.5).abs() < 1e-9 && (x[1] - 0.25).abs() < 1e-4, "{x:?}");
    }
}
