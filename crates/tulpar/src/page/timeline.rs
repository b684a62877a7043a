//! Who ran where and when: every attempt as columns, or what can be seen of very many in a window of so many pixels; and
//! what each node did.

use super::facts::RunFacts;
use super::jobs::number;
use super::{Given, Page, Stores, Trouble, json, lock};
use crate::replay::{self, Standing};
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use tulpar_report::live::{Lanes, Spans, Window};
use tulpar_store::Bars;
use tulpar_transfer::Asked;

/// So many runs are remembered.
const MOST: usize = 4;
/// More lanes than this are no screen.
const MOST_LANES: usize = 400;
/// More columns than this neither.
const MOST_COLUMNS: u64 = 4096;

#[derive(Default)]
pub(super) struct Timelines {
    /// The one used last is last.
    known: Mutex<Vec<(String, Arc<Drawn>)>>,
}

/// The attempts of a run, and where they are shown.
struct Drawn {
    bars: Bars,
    /// In the order in which they are shown.
    places: Vec<String>,
    place: Vec<u32>,
    lanes: OnceLock<Lanes>,
}

impl Drawn {
    fn new(bars: Bars, facts: &RunFacts) -> Self {
        let mut ids: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut names: Vec<String> = Vec::new();
        let mut first_of: BTreeMap<String, u32> = BTreeMap::new();
        let mut place = Vec::with_capacity(bars.len());
        for at in bars.nodes.iter().copied().zip(bars.hosts.iter().copied()) {
            place.push(*ids.entry(at).or_insert_with(|| {
                let name = facts.place(Some(at.0), bars.names[at.1 as usize].as_deref());
                let name = name.unwrap_or_else(|| facts.site.name.clone());
                *first_of.entry(name).or_insert_with_key(|name| {
                    names.push(name.clone());
                    names.len() as u32 - 1
                })
            }));
        }
        let mut order: Vec<u32> = (0..names.len() as u32).collect();
        order.sort_by(|one, other| natural(&names[*one as usize], &names[*other as usize]));
        let mut shown = vec![0; names.len()];
        order.iter().zip(0..).for_each(|(name, place)| shown[*name as usize] = place);
        place.iter_mut().for_each(|place| *place = shown[*place as usize]);
        let places = order.iter().map(|name| std::mem::take(&mut names[*name as usize])).collect();
        Drawn { bars, places, place, lanes: OnceLock::new() }
    }

    fn spans(&self) -> Spans<'_> {
        Spans { place: &self.place, started: &self.bars.started, ended: &self.bars.ended }
    }
}

/// `node2` before `node10`.
fn natural(one: &str, other: &str) -> Ordering {
    let parts = |text: &str| {
        let digits = text.find(|letter: char| letter.is_ascii_digit()).unwrap_or(text.len());
        let (word, rest) = text.split_at(digits);
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        (word.to_owned(), rest[..end].parse::<u64>().unwrap_or(0), rest[end..].to_owned())
    };
    let ((word, number, rest), (other_word, other_number, other_rest)) = (parts(one), parts(other));
    let here = (word, number).cmp(&(other_word, other_number));
    match here {
        Ordering::Equal if rest.is_empty() || other_rest.is_empty() => {
            rest.cmp(&other_rest).then_with(|| one.cmp(other))
        }
        Ordering::Equal => natural(&rest, &other_rest).then_with(|| one.cmp(other)),
        differ => differ,
    }
}

impl Timelines {
    fn of(&self, stores: &Stores, run: &str, facts: &RunFacts) -> Result<Arc<Drawn>, Trouble> {
        let known = lock(&self.known).iter().find(|(name, _)| name == run).map(|(_, drawn)| drawn.clone());
        let bars = stores.ask(|store| match &known {
            Some(known) => store.later_bars(run, &known.bars),
            None => store.all_bars(run).map(Some),
        })?;
        let drawn = match (bars, known) {
            (None, Some(known)) => known,
            (bars, _) => Arc::new(Drawn::new(bars.unwrap_or_default(), facts)),
        };
        let mut known = lock(&self.known);
        known.retain(|(name, _)| name != run);
        known.push((run.to_owned(), drawn.clone()));
        if known.len() > MOST {
            known.remove(0);
        }
        Ok(drawn)
    }
}

#[derive(Serialize)]
struct TimelineView<'a> {
    seq: u64,
    /// Microseconds; all times are counted from here.
    from: u64,
    /// Columns: the position of an attempt in each of them is the same.
    jobs: Vec<u32>,
    n: Vec<u32>,
    start: Vec<u64>,
    /// -1 while it runs.
    end: Vec<i64>,
    states: String,
    kinds: Vec<i64>,
    /// Positions in `places`, where all attempts are there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    place: Vec<u32>,
    places: &'a [String],
    #[serde(flatten)]
    part: Option<PartView<'a>>,
}

/// Of a window: what is known of the whole, and the lanes of what is seen.
#[derive(Serialize)]
struct PartView<'a> {
    attempts: usize,
    /// The last end, or start of what runs.
    ends: u64,
    /// The kinds of all attempts.
    all_kinds: Vec<i64>,
    any_failed: bool,
    /// The place of each lane of the whole, a position in `places`.
    lanes: &'a [u32],
    lane: Vec<u32>,
}

#[derive(Serialize)]
struct NodesView {
    nodes: Vec<NodeView>,
}

#[derive(Clone, Default, Serialize)]
struct NodeView {
    name: String,
    running: u64,
    ran: u64,
    failed: u64,
    busy_us: u64,
}

impl Page {
    /// `?after=SEQ`: only attempts of jobs that changed since. `?width=1200&from=0&to=9000000&lane=0&lanes=100`: what can
    /// be seen of those between two times in some lanes, when so many pixels show them.
    pub(super) fn timeline(&self, run: &str, asked: &Asked) -> Given {
        let facts = self.run_facts(run)?;
        let line = self.board.line(run);
        let from = line.as_ref().and_then(|line| line.started).map_or(0, |started| started.0);
        let kinds_of = |bars: &Bars| -> Vec<i64> {
            bars.names.iter().map(|set| facts.kind(set.as_deref()).map_or(-1, i64::from)).collect()
        };
        let Some(width) = number::<u64>(asked, "width")? else {
            let after: Option<u64> = number(asked, "after")?;
            let drawn = match after {
                Some(after) => Arc::new(Drawn::new(self.stores.ask(|store| store.bars(run, Some(after)))?, &facts)),
                None => self.timelines.of(&self.stores, run, &facts)?,
            };
            let all: Vec<u32> = (0..drawn.bars.len() as u32).collect();
            let view = view(&drawn, from, &kinds_of(&drawn.bars), &all);
            return json(&TimelineView { place: drawn.place.clone(), ..view });
        };
        let drawn = self.timelines.of(&self.stores, run, &facts)?;
        let bars = &drawn.bars;
        let lanes = drawn.lanes.get_or_init(|| Lanes::pack(drawn.spans()));
        let last = |(started, ended): (&u64, &u64)| (*started).max(*ended);
        let ends = bars.started.iter().zip(&bars.ended).map(last).max().unwrap_or(from);
        let running = line.is_some_and(|line| line.standing == Standing::Running);
        let until = if running { replay::now().0.max(ends) } else { ends };
        let (first, count) = (number(asked, "lane")?.unwrap_or(0), number(asked, "lanes")?.unwrap_or(MOST_LANES));
        let window = Window {
            lanes: first..first.saturating_add(count.min(MOST_LANES)),
            from: from.saturating_add(number(asked, "from")?.unwrap_or(0)),
            to: number(asked, "to")?.map_or(until, |to: u64| from.saturating_add(to)),
            columns: width.clamp(1, MOST_COLUMNS),
        };
        let seen = lanes.seen(drawn.spans(), &window, |bar| bars.states[bar] == b'f');
        let kinds = kinds_of(bars);
        let shown: Vec<u32> = seen.iter().map(|(_, bar)| *bar).collect();
        let mut used = vec![false; kinds.len()];
        bars.sets.iter().for_each(|set| used[*set as usize] = true);
        let part = PartView {
            attempts: bars.len(),
            ends: ends.saturating_sub(from),
            all_kinds: kinds.iter().zip(used).filter(|(_, used)| *used).map(|(kind, _)| *kind).collect(),
            any_failed: bars.states.contains(&b'f'),
            lanes: lanes.places(),
            lane: seen.iter().map(|(lane, _)| *lane).collect(),
        };
        json(&TimelineView { part: Some(part), ..view(&drawn, from, &kinds, &shown) })
    }

    pub(super) fn nodes(&self, run: &str) -> Given {
        let facts = self.run_facts(run)?;
        let drawn = self.timelines.of(&self.stores, run, &facts)?;
        let named = |name: &String| NodeView { name: name.clone(), ..NodeView::default() };
        let mut nodes: Vec<NodeView> = drawn.places.iter().map(named).collect();
        let bars = &drawn.bars;
        for (bar, state) in bars.states.iter().enumerate() {
            let node = &mut nodes[drawn.place[bar] as usize];
            match state {
                b'r' => node.running += 1,
                b'f' => node.failed += 1,
                _ => {}
            }
            if *state != b'r' {
                node.ran += 1;
                node.busy_us += bars.ended[bar].saturating_sub(bars.started[bar]);
            }
        }
        json(&NodesView { nodes })
    }
}

fn view<'a>(drawn: &'a Drawn, from: u64, kinds: &[i64], shown: &[u32]) -> TimelineView<'a> {
    let bars = &drawn.bars;
    let column = |of: &dyn Fn(usize) -> u64| shown.iter().map(|bar| of(*bar as usize)).collect::<Vec<u64>>();
    let of = |column: &[u32]| shown.iter().map(|bar| column[*bar as usize]).collect::<Vec<u32>>();
    let end = |bar: &u32| match bars.ended[*bar as usize] {
        0 => -1,
        end => end.saturating_sub(from) as i64,
    };
    TimelineView {
        seq: bars.seq,
        from,
        jobs: of(&bars.jobs),
        n: of(&bars.n),
        start: column(&|bar| bars.started[bar].saturating_sub(from)),
        end: shown.iter().map(end).collect(),
        states: shown.iter().map(|bar| char::from(bars.states[*bar as usize])).collect(),
        kinds: shown.iter().map(|bar| kinds[bars.sets[*bar as usize] as usize]).collect(),
        place: Vec::new(),
        places: &drawn.places,
        part: None,
    }
}

#[cfg(test)]
mod tests {
    use super::natural;

    #[test]
    fn names_with_numbers_are_sorted_as_people_count() {
        let mut names = ["node10", "node2", "a", "node2b", "gpu-1-10", "gpu-1-9", "node", ""];
        names.sort_by(|one, other| natural(one, other));
        assert_eq!(names, ["", "a", "gpu-1-9", "gpu-1-10", "node", "node2", "node2b", "node10"]);
    }
}
