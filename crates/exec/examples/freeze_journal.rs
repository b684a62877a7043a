//! Writes the journal of literal events to the path given: how `testdata/journals/v2.jsonl` was made.
//! A frozen journal is never written again; a new version of the format gets a new file.

#[path = "../tests/main/literal_events.rs"]
mod literal_events;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("give the path of the journal to write")?;
    let mut journal = tulpar_exec::journal::Journal::create(path.as_ref())?;
    for (at, batch) in literal_events::batches() {
        journal.append(at, &batch)?;
    }
    Ok(())
}
