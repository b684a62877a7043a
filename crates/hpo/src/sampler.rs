//! Samplers: where the next trial is to look. Each sees the history and proposes one point; none of them knows who asks
//! or when.
//!
//! A sampler's memory is computed from the trials in the order in which they ended, never from the order of the asks:
//! a study that is rebuilt goes on as it would have.

mod cma;
mod gp;
mod grid;
mod nsga;
mod quasi;
mod tpe;

pub(crate) use gp::filled;
pub(crate) use nsga::{by_front, dominates};

use crate::error::StudyError;
use crate::history::History;
use crate::random::Stream;
use crate::space::{Point, Space};
use crate::trial::Trial;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Which sampler, and how it is set; by name with its defaults, or a mapping: `tpe`, `{tpe: {startup: 20}}`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "lowercase")]
pub enum Sampler {
    /// Tree-structured Parzen estimators over all parameters at once: the choice for most searches.
    Tpe(TpeSettings),
    /// Gaussian process: the fewest trials, where a trial takes minutes or more.
    Gp(GpSettings),
    /// CMA-ES: for many trials of numbers that interact.
    Cma(CmaSettings),
    /// Fills the space evenly (Halton's sequence, scrambled).
    Quasi,
    Random,
    /// Every combination once.
    Grid(GridSettings),
    /// NSGA-II: for several objectives.
    Nsga2(NsgaSettings),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TpeSettings {
    /// So many trials end before it begins to model; until then it fills the space evenly.
    pub startup: usize,
    /// How many points are drawn for each trial, of which the most promising is taken.
    pub candidates: usize,
}

impl Default for TpeSettings {
    fn default() -> Self {
        Self { startup: 10, candidates: 64 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GpSettings {
    pub startup: usize,
}

impl Default for GpSettings {
    fn default() -> Self {
        Self { startup: 10 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CmaSettings {
    /// The best of so many evenly spread trials is where it begins.
    pub startup: usize,
    /// First width of the search, as a share of each domain.
    pub width: f64,
}

impl Default for CmaSettings {
    fn default() -> Self {
        Self { startup: 10, width: 0.2 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GridSettings {
    /// How many values of a domain without steps are tried, its ends included.
    pub levels: u64,
}

impl Default for GridSettings {
    fn default() -> Self {
        Self { levels: 5 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NsgaSettings {
    pub population: usize,
}

impl Default for NsgaSettings {
    fn default() -> Self {
        Self { population: 50 }
    }
}

impl Default for Sampler {
    fn default() -> Self {
        Self::Tpe(TpeSettings::default())
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{0}` is no sampler; there are tpe, gp, cma, quasi, random, grid and nsga2")]
pub struct UnknownSampler(String);

impl FromStr for Sampler {
    type Err = UnknownSampler;

    fn from_str(text: &str) -> Result<Self, UnknownSampler> {
        Ok(match text {
            "tpe" => Self::Tpe(TpeSettings::default()),
            "gp" => Self::Gp(GpSettings::default()),
            "cma" | "cma-es" | "cmaes" => Self::Cma(CmaSettings::default()),
            "quasi" | "qmc" => Self::Quasi,
            "random" => Self::Random,
            "grid" => Self::Grid(GridSettings::default()),
            "nsga2" | "nsga-ii" | "nsga" => Self::Nsga2(NsgaSettings::default()),
            _ => return Err(UnknownSampler(text.to_owned())),
        })
    }
}

impl Serialize for Sampler {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Sampler {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrMap;
        impl<'de> Visitor<'de> for NameOrMap {
            type Value = Sampler;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the name of a sampler, as in tpe, or its settings, as in {tpe: {startup: 20}}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Sampler, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sampler, A::Error> {
                Sampler::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(NameOrMap)
    }
}

impl Sampler {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tpe(_) => "tpe",
            Self::Gp(_) => "gp",
            Self::Cma(_) => "cma",
            Self::Quasi => "quasi",
            Self::Random => "random",
            Self::Grid(_) => "grid",
            Self::Nsga2(_) => "nsga2",
        }
    }

    pub(crate) fn check(&self, objectives: usize, space: &Space) -> Result<(), StudyError> {
        if let Self::Grid(settings) = self {
            for parameter in space.parameters() {
                let values = parameter.domain.cells().unwrap_or(settings.levels);
                if values > grid::MOST_LEVELS {
                    let name = parameter.name.clone();
                    return Err(StudyError::LargeGrid { name, values, most: grid::MOST_LEVELS });
                }
            }
        }
        let wrong = |what, value: f64, must| Err(StudyError::Setting { what, value, must });
        match *self {
            Self::Gp(_) | Self::Cma(_) if objectives > 1 => {
                Err(StudyError::SamplerOfSeveral { sampler: self.name(), objectives })
            }
            Self::Tpe(settings) if settings.candidates == 0 => wrong("candidates", 0.0, "at least 1"),
            Self::Cma(settings) if !(settings.width > 0.0 && settings.width <= 1.0) => {
                wrong("width", settings.width, "above 0 and at most 1")
            }
            Self::Grid(settings) if settings.levels < 2 => wrong("levels", settings.levels as f64, "at least 2"),
            Self::Nsga2(settings) if settings.population < 4 => {
                wrong("population", settings.population as f64, "at least 4")
            }
            _ => Ok(()),
        }
    }
}

/// What a sampler sees when it is asked.
pub(crate) struct Context<'a> {
    pub(crate) space: &'a Space,
    pub(crate) trials: &'a [Trial],
    pub(crate) history: &'a History,
    pub(crate) seed: u64,
    /// Of the trial that is to begin.
    pub(crate) number: u64,
}

/// What samplers computed for earlier proposals of one study. It makes the next proposal cheaper and changes none, so it
/// is no part of the study.
#[derive(Debug, Clone, Default)]
pub struct SamplerMemory {
    gp: gp::Memory,
}

/// A sampler at work.
#[derive(Debug, Clone)]
pub(crate) enum Strategy {
    Tpe(tpe::Tpe),
    Gp(Box<gp::Gp>),
    Cma(Box<cma::Cma>),
    Quasi(quasi::Halton),
    Random,
    Grid(grid::Grid),
    Nsga2(nsga::Nsga),
}

impl Strategy {
    pub(crate) fn new(sampler: &Sampler, space: &Space, seed: u64) -> Self {
        let halton = || quasi::Halton::new(space.len(), seed);
        match *sampler {
            Sampler::Tpe(settings) => Self::Tpe(tpe::Tpe::new(settings, space, halton())),
            Sampler::Gp(settings) => Self::Gp(Box::new(gp::Gp::new(settings, halton()))),
            Sampler::Cma(settings) => Self::Cma(Box::new(cma::Cma::new(settings, space, halton()))),
            Sampler::Quasi => Self::Quasi(halton()),
            Sampler::Random => Self::Random,
            Sampler::Grid(settings) => Self::Grid(grid::Grid::new(settings, space)),
            Sampler::Nsga2(settings) => Self::Nsga2(nsga::Nsga::new(settings)),
        }
    }

    pub(crate) fn begun(&mut self, trial: &Trial) {
        match self {
            Self::Grid(grid) => grid.begun(trial),
            Self::Tpe(tpe) => tpe.begun(trial),
            Self::Cma(cma) => cma.begun(trial),
            _ => {}
        }
    }

    pub(crate) fn ended(&mut self, space: &Space, history: &History, trial: &Trial) {
        match self {
            Self::Cma(cma) => cma.ended(space, history, trial),
            Self::Nsga2(nsga) => nsga.ended(history, trial),
            Self::Tpe(_) | Self::Gp(_) | Self::Quasi(_) | Self::Random | Self::Grid(_) => {}
        }
    }

    /// Nothing when every point of a grid was given out.
    pub(crate) fn suggest(
        &self,
        context: &Context<'_>,
        stream: &mut Stream,
        memory: &mut SamplerMemory,
    ) -> Option<Point> {
        match self {
            Self::Tpe(tpe) => Some(tpe.suggest(context, stream)),
            Self::Gp(gp) => Some(gp.suggest(context, stream, &mut memory.gp)),
            Self::Cma(cma) => Some(cma.suggest(context, stream)),
            Self::Quasi(halton) => Some(context.space.at_units(&halton.units(context.number))),
            Self::Random => Some(random(context.space, stream)),
            Self::Grid(grid) => grid.suggest(context.space),
            Self::Nsga2(nsga) => Some(nsga.suggest(context, stream)),
        }
    }
}

/// What makes two points the same.
fn bits(point: &Point) -> Vec<Option<u64>> {
    point.iter().map(|number| number.map(f64::to_bits)).collect()
}

pub(crate) fn random(space: &Space, stream: &mut Stream) -> Point {
    let units: Vec<f64> = (0..space.len()).map(|_| stream.uniform()).collect();
    space.at_units(&units)
}
