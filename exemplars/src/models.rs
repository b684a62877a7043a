//! Models of any architecture: made from a seed, written to a file, read again, counted.
//!
//! The framework gives parameters random identities and draws random numbers from one source a process. Here identities are
//! numbered and the source is locked and seeded, so that a model file has the same bytes whenever it is made again.

use crate::arrays::Arrays;
use crate::failure::Failure;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Device, Tensor, TensorData};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

static RANDOM: Mutex<()> = Mutex::new(());

/// Whoever holds it is the only one in this process to draw random numbers on devices: initial weights and dropout.
pub fn random_numbers() -> MutexGuard<'static, ()> {
    RANDOM.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A model with initial weights that depend on the seed only. The caller holds [`random_numbers`].
pub fn fresh<M: Module>(
    seed: u64,
    device: &Device,
    make: impl FnOnce(&Device) -> Result<M, Failure>,
) -> Result<M, Failure> {
    device.seed(seed);
    Ok(make(device)?.materialize().map(&mut Numbered(0)))
}

/// All numbers of a model, also the running ones of batch normalisation, by their paths.
pub fn arrays<M: Module>(model: &M) -> Arrays {
    let mut collected = Collected::default();
    // Running averages are brought up to date by this, not by a mere visit.
    model.valid().visit(&mut collected);
    collected.arrays
}

/// How many numbers a model learns. Running averages are not among them.
pub fn parameters<M: Module>(model: &M) -> usize {
    let mut counted = Counted::default();
    model.visit(&mut counted);
    counted.sum
}

/// Writes a model to a file.
pub fn save<M: Module>(model: &M, path: &Path) -> Result<(), Failure> {
    arrays(model).save(path)
}

/// Puts the numbers of a file into a model of the same architecture.
pub fn load<M: Module>(model: M, path: &Path) -> Result<M, Failure> {
    filled(model, &Arrays::load(path)?).map_err(|what| Failure::data(path, what))
}

/// Puts numbers into a model of the same architecture.
pub fn filled<M: Module>(model: M, arrays: &Arrays) -> Result<M, String> {
    let mut filling = Filling { arrays, path: Vec::new(), taken: 0, wrong: None };
    let model = model.map(&mut filling);
    match filling.wrong {
        Some(what) => Err(what),
        None if filling.taken < arrays.arrays.len() => Err("it is of another architecture: it has more arrays".into()),
        None => Ok(model),
    }
}

struct Numbered(u64);

impl ModuleMapper for Numbered {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.0 += 1;
        let (_, tensor, mapper) = param.consume();
        Param::from_mapped_value(ParamId::from(self.0), tensor, mapper)
    }
}

#[derive(Default)]
struct Collected {
    arrays: Arrays,
    path: Vec<String>,
}

impl ModuleVisitor for Collected {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        let values = tensor.to_data().try_to_vec::<f32>().expect("parameters are 32-bit floating-point numbers");
        self.arrays.insert_floats(&self.path.join("."), tensor.dims().to_vec(), values);
    }
}

#[derive(Default)]
struct Counted {
    path: Vec<String>,
    sum: usize,
}

impl ModuleVisitor for Counted {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if !self.path.last().is_some_and(|name| name.starts_with("running_")) {
            self.sum += param.lazy_shape().num_elements();
        }
    }
}

struct Filling<'a> {
    arrays: &'a Arrays,
    path: Vec<String>,
    taken: usize,
    wrong: Option<String>,
}

impl ModuleMapper for Filling<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
        let expected = param.lazy_shape();
        match self.arrays.floats(&name) {
            Ok((shape, values)) if shape == expected.to_vec() => {
                self.taken += 1;
                param.map(|tensor| {
                    let data = TensorData::new(values.to_vec(), tensor.shape());
                    let filled = Tensor::from_data(data, &tensor.device());
                    filled.set_require_grad(tensor.is_require_grad())
                })
            }
            Ok((shape, _)) => {
                self.wrong.get_or_insert(format!(
                    "it is of another architecture: {name} is {shape:?}, not {:?}",
                    expected.to_vec()
                ));
                param
            }
            Err(what) => {
                self.wrong.get_or_insert(format!("it is of another architecture: {what}"));
                param
            }
        }
    }
}
