//! What a run cost, by prices that somebody gave, and the energy that it took: measured where that was recorded, else
//! by a model whose assumptions stand beside it.

use crate::gather::{Gathered, Used};
use crate::measured::{Measured, seconds};
use crate::words::shown;
use serde::Serialize;

/// Prices and powers. Without a price there is no cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// For a core, a GPU and a gigabyte of memory that is held for an hour.
    pub cpu_hour: Option<f64>,
    pub gpu_hour: Option<f64>,
    pub gb_hour: Option<f64>,
    pub currency: String,
    /// Watts of a core and of a GPU at work, and of a gigabyte of memory.
    pub core_watts: f64,
    pub gpu_watts: f64,
    pub gb_watts: f64,
    /// What cooling and supply take for each watt of computing: 1 is nothing beside it.
    pub overhead: f64,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            cpu_hour: None,
            gpu_hour: None,
            gb_hour: None,
            currency: String::new(),
            core_watts: 10.0,
            gpu_watts: 300.0,
            gb_watts: 0.37,
            overhead: 1.0,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spent {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub currency: String,
    /// How the cost is made up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cost_of: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_kwh: Option<f64>,
    /// `measured` or `model`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub energy_by: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub assumptions: String,
}

/// `joules` is what was recorded of the machine while the run was driven.
pub(crate) fn spent(rates: &Rates, gathered: &Gathered, measured: &Measured, joules: Option<f64>) -> Spent {
    let hours = |seconds: f64| seconds / 3600.0;
    let all = &gathered.used;
    let held_cpu = hours(measured.cpu.held_seconds);
    let held_gpu = hours(measured.gpu.map_or(0.0, |gpu| gpu.held_seconds));
    let held_gb = all.iter().map(|used| used.asked.memory_us as f64).sum::<f64>() / 1e9 / 3.6e9;
    let mut spent = Spent { currency: rates.currency.clone(), ..Spent::default() };
    let priced = [
        ("core hours", held_cpu, rates.cpu_hour),
        ("GPU hours", held_gpu, rates.gpu_hour),
        ("GB hours", held_gb, rates.gb_hour),
    ];
    for (what, amount, price) in priced {
        if let Some(price) = price {
            *spent.cost.get_or_insert(0.0) += amount * price;
            spent.cost_of.push(format!("{} {what} × {} = {}", shown(amount), shown(price), shown(amount * price)));
        }
    }
    if let Some(joules) = joules {
        spent.energy_kwh = Some(joules / 3.6e6);
        spent.energy_by = "measured".to_owned();
        spent.assumptions =
            "What the processors of the whole machine took while the run was driven (RAPL), whoever used \
                             them; no GPUs, no supply, no cooling."
                .to_owned();
        return spent;
    }
    let sum = |field: fn(&Used) -> u64| all.iter().map(field).sum::<u64>();
    if sum(|used| used.tasks) == 0 {
        return spent;
    }
    let known = sum(|used| used.measured) > 0;
    let cpu = if known { hours(seconds(sum(|used| used.cpu_us))) } else { held_cpu };
    let busy: f64 = all.iter().map(|used| used.asked.busy_milli_gpu_us).sum::<f64>() / 1000.0 / 3.6e9;
    let sampled = sum(|used| used.with_gpu) > 0;
    let gpu = if sampled { busy } else { held_gpu };
    let memory: f64 = all.iter().map(|used| used.peak_rss as f64 / 1e9 * hours(seconds(used.wall_us))).sum();
    let watt_hours = cpu * rates.core_watts + gpu * rates.gpu_watts + memory * rates.gb_watts;
    spent.energy_kwh = Some(watt_hours * rates.overhead / 1000.0);
    spent.energy_by = "model".to_owned();
    spent.assumptions = format!(
        "A model, not a measurement: {} W for each core {}, {} W for each GPU {}, {} W for each GB of the peak memory of \
         tasks, times {} for supply and cooling; nothing for what idles, for disks and for the network.",
        shown(rates.core_watts),
        if known { "while it was busy" } else { "that was held" },
        shown(rates.gpu_watts),
        if sampled { "while it was busy" } else { "that was held" },
        shown(rates.gb_watts),
        shown(rates.overhead)
    );
    spent
}

/// One sentence or two, for people.
pub(crate) fn sentences(spent: &Spent) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(cost) = spent.cost {
        let currency = if spent.currency.is_empty() { String::new() } else { format!(" {}", spent.currency) };
        sentences.push(format!("Cost: {}{currency} ({}).", shown(cost), spent.cost_of.join("; ")));
    }
    if let Some(energy) = spent.energy_kwh {
        let (value, unit) = if energy < 0.1 { (energy * 1000.0, "Wh") } else { (energy, "kWh") };
        sentences.push(format!("Energy: {} {unit}. {}", shown(value), spent.assumptions));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::Asked;
    use crate::measured::Utilisation;

    fn facts() -> (Gathered, Measured) {
        let held = |held_seconds| Utilisation { capacity: 4.0, held_seconds, of_makespan: 0.5, of_execution: None };
        let measured = Measured {
            makespan_seconds: 3600.0,
            execution_seconds: None,
            first_start_seconds: None,
            cpu: held(7200.0),
            gpu: Some(held(3600.0)),
            improvement: None,
            improvement_against: None,
        };
        let asked = Asked { memory_us: 4_000_000_000 * 3_600_000_000, ..Asked::default() };
        let used = Used {
            tasks: 1,
            measured: 1,
            wall_us: 3_600_000_000,
            cpu_us: 3_600_000_000,
            peak_rss: 2_000_000_000,
            asked,
            ..Used::default()
        };
        let mut gathered = Gathered::default();
        gathered.used.push(used);
        (gathered, measured)
    }

    #[test]
    fn a_cost_is_what_was_held_times_its_price_and_nothing_without_one() {
        let (gathered, measured) = facts();
        assert_eq!(spent(&Rates::default(), &gathered, &measured, None).cost, None);
        let rates = Rates { cpu_hour: Some(0.04), gpu_hour: Some(1.2), currency: "EUR".into(), ..Rates::default() };
        let spent = spent(&rates, &gathered, &measured, None);
        assert_eq!(spent.cost, Some(2.0 * 0.04 + 1.2));
        assert_eq!(sentences(&spent)[0], "Cost: 1.28 EUR (2 core hours × 0.040 = 0.080; 1 GPU hours × 1.20 = 1.20).");
    }

    #[test]
    fn energy_is_measured_where_it_was_recorded_and_else_a_model_that_says_so() {
        let (gathered, measured) = facts();
        let model = spent(&Rates::default(), &gathered, &measured, None);
        // One core hour, one GPU hour held, and two gigabytes for an hour.
        let expected: f64 = (10.0 + 300.0 + 0.74) / 1000.0;
        assert!((model.energy_kwh.expect("a model") - expected).abs() < 1e-12);
        assert!(model.assumptions.contains("10 W for each core while it was busy, 300 W for each GPU that was held"));
        let measured = spent(&Rates::default(), &gathered, &measured, Some(7.2e6));
        assert_eq!((measured.energy_kwh, measured.energy_by.as_str()), (Some(2.0), "measured"));
    }
}
