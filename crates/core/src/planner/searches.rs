//! Searches in a plan that is laid out ahead: each is one task of it, since what it tries, and how many of its trials begin, is
//! known only when it runs. Whoever compiles the layout makes it the task set again that it was.

use crate::plan::Plan;
use crate::workflow::AxisValues;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many trials each search has, by the name of its task.
pub type Folded = BTreeMap<String, u32>;

/// Makes every search one task, and says how many trials each has.
pub fn fold_searches(plan: &mut Plan) -> Folded {
    let mut folded = Folded::new();
    for task in &mut plan.workflow.tasks {
        for axis in &mut task.scatter {
            if let AxisValues::Trials(search) = &mut axis.values {
                let search = Arc::make_mut(search);
                folded.insert(task.name.clone(), std::mem::replace(&mut search.trials, 1));
            }
        }
    }
    folded
}
