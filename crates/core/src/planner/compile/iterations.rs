//! To which iteration a planned task belongs: its scatter is gone, so the number stands where the variable stood.

use crate::plan::number_name;
use crate::workflow::{Iteration, Settings, Task, Value};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A task that would still name a variable would be in no stage of a mode with barriers, and they would wait for ever.
pub(super) fn number(tasks: &mut [Task]) {
    // Holding the original keeps its address from being used again.
    let mut numbered: FxHashMap<(usize, u32), (Arc<Settings>, Arc<Settings>)> = FxHashMap::default();
    for task in tasks {
        let Some(Iteration::Variable(name)) = &task.settings.iteration else { continue };
        let values = task.run.planned().map(|planned| &planned.values);
        let value = values.and_then(|values| values.get(&number_name(name)).or_else(|| values.get(name)));
        let number = match value {
            Some(Value::Integer(value)) => u32::try_from(*value).unwrap_or(0),
            Some(value) => value.number().unwrap_or(0.0).max(0.0) as u32,
            None => 0,
        };
        let settings = task.settings.clone();
        let entry = numbered.entry((Arc::as_ptr(&settings) as usize, number)).or_insert_with(|| {
            let iteration = Some(Iteration::Number(number));
            (settings.clone(), Arc::new(Settings { iteration, ..(*settings).clone() }))
        });
        task.settings = entry.1.clone();
    }
}
