//! Elementary functions whose last digit is the same on every machine, and those of the normal distribution.
//!
//! The functions of `std` are those of the platform's C library; a search that is replayed elsewhere must not differ.

pub(crate) use libm::{erfc, exp, log, pow};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

const LN_SQRT_TAU: f64 = 0.918_938_533_204_672_7;

/// How much of a normal distribution lies below.
pub(crate) fn normal_below(x: f64) -> f64 {
    0.5 * erfc(-x * FRAC_1_SQRT_2)
}

pub(crate) fn normal_density(x: f64) -> f64 {
    exp(-0.5 * x * x - LN_SQRT_TAU)
}

/// How much of a normal distribution lies between, without the loss of digits far from the middle.
pub(crate) fn normal_between(low: f64, high: f64) -> f64 {
    if low > 0.0 { normal_below(-low) - normal_below(-high) } else { normal_below(high) - normal_below(low) }
}

/// Below which value this share of a normal distribution lies: Acklam's rational approximation and one step of Halley.
pub(crate) fn normal_quantile(share: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 5] =
        [-5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 4] = [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416];
    let share = share.clamp(1e-300, 1.0 - 1e-16);
    let tail = |q: f64| {
        (((((C[0] * q + C[1]) * q + C[2]) * q + C[3]) * q + C[4]) * q + C[5])
            / ((((D[0] * q + D[1]) * q + D[2]) * q + D[3]) * q + 1.0)
    };
    let x = if share < 0.02425 {
        tail((-2.0 * log(share)).sqrt())
    } else if share > 1.0 - 0.02425 {
        -tail((-2.0 * log(1.0 - share)).sqrt())
    } else {
        let q = share - 0.5;
        let r = q * q;
        (((((A[0] * r + A[1]) * r + A[2]) * r + A[3]) * r + A[4]) * r + A[5]) * q
            / (((((B[0] * r + B[1]) * r + B[2]) * r + B[3]) * r + B[4]) * r + 1.0)
    };
    let error = normal_below(x) - share;
    let step = error * (2.0 * PI).sqrt() * exp(0.5 * x * x);
    if step.is_finite() { x - step / (1.0 + 0.5 * x * step) } else { x }
}

/// The logarithm of a sum of exponentials.
pub(crate) fn log_sum_exp(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    // What is e^-40 of the largest changes no digit that matters, and exponentials are what this costs.
    largest + log(values.iter().map(|value| value - largest).filter(|value| *value > -40.0).map(exp).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_shares_undo_each_other() {
        for share in [1e-12, 1e-4, 0.01, 0.3, 0.5, 0.77, 0.999, 1.0 - 1e-9] {
            let back = normal_below(normal_quantile(share));
            assert!((back - share).abs() < 1e-12 + 1e-6 * share.min(1.0 - share), "{share} came back as {back}");
        }
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
    }

    #[test]
    fn what_lies_between_keeps_its_digits_far_out() {
        let far = normal_between(10.0, 11.0);
        assert!((far / 7.619_853_024_160_525e-24 - 1.0).abs() < 1e-3, "{far}");
    }
}
