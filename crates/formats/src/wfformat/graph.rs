//! Edges between recorded tasks: their order, and who makes which file.

use super::Task;

/// Kahn's order; tasks on a cycle, and below one, are missing from it.
pub(super) fn order(tasks: &[Task]) -> Vec<u32> {
    let mut unmet: Vec<u32> = tasks.iter().map(|task| task.parents.len() as u32).collect();
    let mut order: Vec<u32> = (0..tasks.len() as u32).filter(|task| unmet[*task as usize] == 0).collect();
    let mut next = 0;
    while let Some(task) = order.get(next).copied() {
        next += 1;
        for child in &tasks[task as usize].children {
            let left = &mut unmet[*child as usize];
            *left -= 1;
            if *left == 0 {
                order.push(*child);
            }
        }
    }
    order
}

/// Tasks of one cycle, in its direction, when `order` leaves some out.
pub(super) fn cycle(tasks: &[Task], order: &[u32]) -> Option<Vec<u32>> {
    let mut left = vec![true; tasks.len()];
    order.iter().for_each(|task| left[*task as usize] = false);
    let mut at = left.iter().position(|left| *left)? as u32;
    // Every task that is left has a parent that is left: going up leads around.
    let mut position = vec![None; tasks.len()];
    let mut path = Vec::new();
    loop {
        if let Some(start) = position[at as usize] {
            path.drain(..start);
            path.reverse();
            return Some(path);
        }
        position[at as usize] = Some(path.len());
        path.push(at);
        at = *tasks[at as usize].parents.iter().find(|parent| left[**parent as usize])?;
    }
}

pub(super) fn makers(tasks: &[Task], files: usize) -> Vec<Option<u32>> {
    let mut makers = vec![None; files];
    for (number, task) in tasks.iter().enumerate() {
        for file in &task.outputs {
            makers[*file as usize].get_or_insert(number as u32);
        }
    }
    makers
}
