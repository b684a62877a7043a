//! The little linear algebra that samplers need: Cholesky factors that grow row by row, and eigenvectors of small
//! symmetric matrices. The order of every sum is fixed, so the digits are too.

/// A lower triangle, rows one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cholesky {
    rows: Vec<f64>,
    pub(crate) size: usize,
}

fn start(row: usize) -> usize {
    row * (row + 1) / 2
}

/// Eight sums at once, which the compiler turns into vector instructions; always in the same order.
pub(crate) fn dot(one: &[f64], other: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (ones, others) = (one.chunks_exact(8), other.chunks_exact(8));
    let tail: f64 = ones.remainder().iter().zip(others.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in ones.zip(others) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7])) + tail
}

impl Cholesky {
    pub(crate) fn row(&self, row: usize) -> &[f64] {
        &self.rows[start(row)..start(row + 1)]
    }

    /// Grows by the row of a matrix, up to and with its diagonal. A diagonal that is not positive, which rounding can
    /// make, is lifted.
    pub(crate) fn push(&mut self, matrix_row: &[f64]) {
        let size = self.size;
        let base = self.rows.len();
        self.rows.reserve(size + 1);
        for column in 0..=size {
            let (done, new) = self.rows.split_at(base);
            let sum =
                if column == size { dot(new, new) } else { dot(new, &done[start(column)..start(column) + column]) };
            let left = matrix_row[column] - sum;
            let value = if column == size {
                left.max(1e-12 * matrix_row[size].abs().max(1e-300)).sqrt()
            } else {
                left / done[start(column + 1) - 1]
            };
            self.rows.push(value);
        }
        self.size += 1;
    }

    pub(crate) fn truncate(&mut self, size: usize) {
        if size < self.size {
            self.rows.truncate(start(size));
            self.size = size;
        }
    }

    /// L x = b
    pub(crate) fn solve_lower(&self, b: &[f64]) -> Vec<f64> {
        let mut x = Vec::with_capacity(self.size);
        for row in 0..self.size {
            let factors = self.row(row);
            let value = (b[row] - dot(&factors[..row], &x)) / factors[row];
            x.push(value);
        }
        x
    }

    /// Lᵀ x = b
    pub(crate) fn solve_upper(&self, b: &[f64]) -> Vec<f64> {
        let mut x = b.to_vec();
        for row in (0..self.size).rev() {
            let factors = self.row(row);
            x[row] /= factors[row];
            let value = x[row];
            for (left, factor) in x[..row].iter_mut().zip(factors) {
                *left -= factor * value;
            }
        }
        x
    }

    pub(crate) fn solve(&self, b: &[f64]) -> Vec<f64> {
        self.solve_upper(&self.solve_lower(b))
    }

    pub(crate) fn log_determinant(&self) -> f64 {
        2.0 * (0..self.size).map(|row| crate::math::log(self.row(row)[row])).sum::<f64>()
    }

    /// The inverse of the whole matrix, as a lower triangle of rows.
    pub(crate) fn inverse(&self) -> Vec<f64> {
        let size = self.size;
        // Columns of L⁻¹, each as a row, beginning at the diagonal.
        let mut columns: Vec<Vec<f64>> = Vec::with_capacity(size);
        for column in 0..size {
            let mut x = Vec::with_capacity(size - column);
            x.push(1.0 / self.row(column)[column]);
            for row in column + 1..size {
                let factors = self.row(row);
                let value = -dot(&factors[column..row], &x) / factors[row];
                x.push(value);
            }
            columns.push(x);
        }
        let mut inverse = Vec::with_capacity(start(size));
        for row in 0..size {
            for column in 0..=row {
                inverse.push(dot(&columns[row], &columns[column][row - column..]));
            }
        }
        inverse
    }
}

/// Eigenvalues and eigenvectors (as columns, row by row) of a symmetric matrix, by Jacobi's rotations.
pub(crate) fn symmetric_eigen(matrix: &[f64], size: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = matrix.to_vec();
    let mut vectors = vec![0.0; size * size];
    (0..size).for_each(|at| vectors[at * size + at] = 1.0);
    for _ in 0..60 {
        let off: f64 = (0..size).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i * size + j].powi(2)).sum();
        let diagonal: f64 = (0..size).map(|i| a[i * size + i].powi(2)).sum();
        if off <= 1e-24 * diagonal.max(1e-300) {
            break;
        }
        for p in 0..size {
            for q in p + 1..size {
                let apq = a[p * size + q];
                if apq.abs() < 1e-300 {
                    continue;
                }
                let theta = (a[q * size + q] - a[p * size + p]) / (2.0 * apq);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let t = if theta == 0.0 { 1.0 } else { t };
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for k in 0..size {
                    let (x, y) = (a[k * size + p], a[k * size + q]);
                    a[k * size + p] = c * x - s * y;
                    a[k * size + q] = s * x + c * y;
                }
                for k in 0..size {
                    let (x, y) = (a[p * size + k], a[q * size + k]);
                    a[p * size + k] = c * x - s * y;
                    a[q * size + k] = s * x + c * y;
                }
                for k in 0..size {
                    let (x, y) = (vectors[k * size + p], vectors[k * size + q]);
                    vectors[k * size + p] = c * x - s * y;
                    vectors[k * size + q] = s * x + c * y;
                }
            }
        }
    }
    ((0..size).map(|at| a[at * size + at]).collect(), vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATRIX: [[f64; 3]; 3] = [[4.0, 2.0, 0.6], [2.0, 5.0, 1.0], [0.6, 1.0, 3.0]];

    #[test]
    fn a_factor_solves_inverts_and_has_the_determinant() {
        let mut factor = Cholesky::default();
        MATRIX.iter().enumerate().for_each(|(row, values)| factor.push(&values[..=row]));
        let x = factor.solve(&[1.0, 2.0, 3.0]);
        for (row, right) in MATRIX.iter().zip([1.0, 2.0, 3.0]) {
            assert!((dot(row, &x) - right).abs() < 1e-12);
        }
        assert!((crate::math::exp(factor.log_determinant()) - 44.6).abs() < 1e-10);
        let inverse = factor.inverse();
        let full = |i: usize, j: usize| inverse[start(i.max(j)) + i.min(j)];
        for (i, row) in MATRIX.iter().enumerate() {
            for j in 0..3 {
                let product: f64 = (0..3).map(|k| row[k] * full(k, j)).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn eigenvectors_make_the_matrix_again() {
        let flat: Vec<f64> = MATRIX.iter().flatten().copied().collect();
        let (values, vectors) = symmetric_eigen(&flat, 3);
        for (i, row) in MATRIX.iter().enumerate() {
            for (j, expected) in row.iter().enumerate() {
                let sum: f64 = (0..3).map(|k| vectors[i * 3 + k] * values[k] * vectors[j * 3 + k]).sum();
                assert!((sum - expected).abs() < 1e-10);
            }
        }
    }
}
