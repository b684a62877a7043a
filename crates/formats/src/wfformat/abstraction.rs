//! A recorded WfFormat instance as the planner sees a workflow: what ran once, to be planned anew.
//!
//! What nobody makes exists beside the driver, what nobody reads is a result. Machines of the record are not looked at.

use crate::wfformat::Instance;
use rustc_hash::FxHashMap;
use tulpar_core::planner::{Abstract, Builder, Circle, File, GroupId, NONE, Task, TaskId};

/// Files of one maker with the same readers become one group.
pub fn from_wfformat(instance: &Instance) -> Result<Abstract, Circle> {
    let mut builder = Builder::new(&instance.name);
    let makers = instance.makers();
    let mut readers: Vec<Vec<u32>> = vec![Vec::new(); instance.files.len()];
    for (at, task) in instance.tasks.iter().enumerate() {
        task.inputs.iter().for_each(|file| readers[*file as usize].push(at as u32));
    }
    let mut known: FxHashMap<(Option<u32>, &[u32]), usize> = FxHashMap::default();
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for (at, (maker, readers)) in makers.iter().zip(&readers).enumerate() {
        let group = *known.entry((*maker, readers)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(at as u32);
    }
    for task in &instance.tasks {
        let kind = builder.kind(&task.kind);
        builder.task(Task {
            name: task.name.as_str().into(),
            kind,
            runtime: task.runtime,
            milli_cpus: (task.cores * 1000.0).ceil().clamp(0.0, f64::from(u32::MAX)) as u32,
            gpus: task.gpus.ceil().clamp(0.0, f64::from(u32::MAX)) as u32,
            memory: task.memory.unwrap_or(0),
            ..Task::default()
        });
    }
    for files in groups {
        let first = files[0] as usize;
        let (maker, readers) = (makers[first].unwrap_or(NONE), &readers[first]);
        let stage_out = maker != NONE && readers.is_empty();
        let ids: Vec<_> = files
            .iter()
            .map(|file| {
                let file = &instance.files[*file as usize];
                builder.file(File { name: file.id.as_str().into(), size: file.size, stage_out, ..File::default() })
            })
            .collect();
        let group: GroupId = builder.group(ids);
        if maker != NONE {
            builder.writes(TaskId(maker), group);
        }
        readers.iter().for_each(|reader| builder.reads(TaskId(*reader), group));
    }
    for (at, task) in instance.tasks.iter().enumerate() {
        task.parents.iter().for_each(|parent| builder.after(TaskId::from(at), TaskId(*parent)));
    }
    builder.finish()
}
