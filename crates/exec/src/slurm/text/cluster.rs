//! What a cluster has, from `scontrol -o show node`, `show partition` and `show config`: enough to say which
//! jobs can never run there, and what a job must say so that Slurm gives it what it asked for.

use super::devices::{Device, device};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;
use tulpar_core::resources::{Capacity, Gpu, Named, Request, WHOLE};
use tulpar_core::site::Node;
use tulpar_core::units::Bytes;

pub(crate) const MIB: u64 = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    pub machines: Vec<Machine>,
    pub partitions: Vec<Partition>,
    pub configuration: Configuration,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    pub name: String,
    pub cpus: u32,
    pub mebibytes: u64,
    pub gres: Vec<Gres>,
    pub partitions: Vec<String>,
    /// As Slurm writes it: `IDLE`, `DOWN*+DRAIN`.
    pub state: String,
}

/// Some devices of a node: `gpu:a100:2` is two of the kind `a100` of `gpu`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gres {
    pub name: String,
    pub kind: String,
    pub count: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    pub name: String,
    pub is_default: bool,
    pub longest: Option<Duration>,
    pub most_nodes: Option<u32>,
    /// It gives memory to jobs that do not ask for it.
    pub gives_memory: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// One more than the largest index of an array.
    pub array_size: u32,
    /// Jobs that do not say how much memory they need get all of a node's.
    pub memory_must_be_said: bool,
    /// From SIGTERM to SIGKILL.
    pub kill_wait: Duration,
    /// Somebody remembers jobs that have left the controller's memory.
    pub accounting: bool,
}

impl Default for Configuration {
    fn default() -> Self {
        let kill_wait = Duration::from_secs(30);
        Self { array_size: 1001, memory_must_be_said: false, kill_wait, accounting: false }
    }
}

impl Cluster {
    /// From what the three commands print.
    pub fn read(nodes: &str, partitions: &str, configuration: &str) -> Self {
        Self {
            machines: nodes.lines().filter_map(machine).collect(),
            partitions: partitions.lines().filter_map(partition).collect(),
            configuration: read_configuration(configuration),
        }
    }

    /// For checks, predictions and simulations. Slurm does not tell what its devices are: their types do, or the site.
    pub fn nodes(&self, lines: &[(String, String)]) -> Vec<Node> {
        let open = self.open_to(lines);
        let node = |machine: &&Machine| {
            let mut gpus = Vec::new();
            for gres in machine.gres.iter().filter(|gres| gres.name == "gpu") {
                let Device { memory, capability } = device(&gres.kind, lines);
                gpus.extend((0..gres.count).map(|_| Gpu { id: String::new(), memory, capability }));
            }
            for (index, gpu) in gpus.iter_mut().enumerate() {
                gpu.id = index.to_string();
            }
            let others = machine.gres.iter().filter(|gres| gres.name != "gpu");
            let named: Named = others.map(|gres| (gres.name.clone(), gres.count.saturating_mul(WHOLE))).collect();
            let capacity = Capacity {
                milli_cpus: machine.cpus.saturating_mul(1000),
                memory: Bytes(machine.mebibytes * MIB),
                disk: Bytes(1_000_000_000_000_000),
                gpus,
                named,
                ..Capacity::default()
            };
            Node::new(machine.name.clone(), capacity)
        };
        open.iter().map(node).collect()
    }

    /// The machines of the partitions that these lines name, or of the default one.
    fn open_to(&self, lines: &[(String, String)]) -> Vec<&Machine> {
        let named = self.partitions_of(lines);
        let open = |machine: &&Machine| named.is_empty() || machine.partitions.iter().any(|name| named.contains(name));
        self.machines.iter().filter(open).collect()
    }

    fn partitions_of(&self, lines: &[(String, String)]) -> BTreeSet<String> {
        let said = lines.iter().rev().find(|(key, _)| matches!(key.trim_start_matches('-'), "partition" | "p"));
        match said {
            Some((_, names)) => names.split(',').map(|name| name.trim().to_owned()).collect(),
            None => self.partitions.iter().filter(|one| one.is_default).map(|one| one.name.clone()).collect(),
        }
    }

    /// The longest time that a job with these lines may ask for.
    pub fn longest(&self, lines: &[(String, String)]) -> Option<Duration> {
        let named = self.partitions_of(lines);
        let limits = self.partitions.iter().filter(|one| named.contains(&one.name)).map(|one| one.longest);
        // Where one of several partitions has no limit, neither has the job.
        limits.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Mebibytes for each core of a job that does not say what it needs, where Slurm would give it all of a node's.
    pub fn memory_each_cpu(&self, lines: &[(String, String)]) -> Option<u64> {
        let named = self.partitions_of(lines);
        let given = self.partitions.iter().any(|one| named.contains(&one.name) && one.gives_memory);
        if given || !self.configuration.memory_must_be_said {
            return None;
        }
        let shares = self.open_to(lines).into_iter().filter(|machine| machine.cpus > 0);
        shares.map(|machine| machine.mebibytes / u64::from(machine.cpus)).filter(|share| *share > 0).min()
    }

    /// Whether nodes have such a resource; if not, it can only be a licence.
    pub fn has_gres(&self, name: &str) -> bool {
        self.machines.iter().any(|machine| machine.gres.iter().any(|gres| gres.name == name))
    }

    /// Which devices will do.
    pub fn choose(&self, request: &Request, lines: &[(String, String)]) -> Choice {
        if request.gpus == 0 || (request.gpu_memory.0 == 0 && request.gpu_capability == 0) {
            return Choice::Any;
        }
        let open = self.open_to(lines);
        let gpus = |machine: &&Machine| -> Vec<Gres> {
            machine.gres.iter().filter(|gres| gres.name == "gpu" && gres.count > 0).cloned().collect()
        };
        let fits = |gres: &Gres| will_do(request, device(&gres.kind, lines));
        let all: BTreeSet<String> = open.iter().flat_map(gpus).map(|gres| gres.kind).collect();
        let good: BTreeSet<String> =
            open.iter().flat_map(gpus).filter(|gres| fits(gres)).map(|gres| gres.kind).collect();
        if good.is_empty() || good == all {
            return Choice::Any;
        }
        if let [kind] = &good.iter().collect::<Vec<_>>()[..]
            && !kind.is_empty()
        {
            return Choice::Kind((*kind).clone());
        }
        // Slurm takes one type or any. Nodes whose devices all will not do can be left out, though.
        let mixed = open.iter().any(|machine| {
            let gpus = gpus(machine);
            gpus.iter().any(fits) && !gpus.iter().all(fits)
        });
        if mixed {
            let amount = |kind: &String| -> u32 {
                open.iter().flat_map(gpus).filter(|gres| gres.kind == *kind).map(|gres| gres.count).sum()
            };
            return match good.iter().filter(|kind| !kind.is_empty()).max_by_key(|kind| amount(kind)) {
                Some(kind) => Choice::Kind(kind.clone()),
                None => Choice::Any,
            };
        }
        let bad = open.iter().filter(|machine| {
            let gpus = gpus(machine);
            !gpus.is_empty() && !gpus.iter().any(fits)
        });
        Choice::Without(bad.map(|machine| machine.name.clone()).collect())
    }

    /// Why nothing here can ever run this, with the machine that comes nearest; `None` when something can.
    pub fn miss(&self, request: &Request, lines: &[(String, String)]) -> Option<String> {
        // A cluster that tells nothing of its nodes must not stop anybody.
        if self.machines.is_empty() {
            return None;
        }
        let partitions = self.partitions_of(lines);
        for name in &partitions {
            if !self.partitions.is_empty() && !self.partitions.iter().any(|one| one.name == *name) {
                let known: Vec<&str> = self.partitions.iter().map(|one| one.name.as_str()).collect();
                return Some(format!("there is no partition `{name}` here, but {}", known.join(", ")));
            }
        }
        let open = self.open_to(lines);
        if let Some((time, longest)) = request.time.zip(self.longest(lines))
            && time > longest
        {
            let (asked, longest) = (minutes(time), minutes(longest));
            return Some(format!("it may take {asked} minutes, but the partition ends jobs after {longest}"));
        }
        let lacks: Vec<(&Machine, Vec<String>)> =
            open.iter().map(|machine| (*machine, lacks(machine, request, lines))).collect();
        let fitting = lacks.iter().filter(|(_, lacks)| lacks.is_empty()).count();
        let wanted = usize::try_from(request.nodes.max(1)).unwrap_or(usize::MAX);
        if fitting >= wanted {
            return None;
        }
        if fitting > 0 {
            return Some(format!("it needs {wanted} nodes at once, but only {fitting} here have what each must have"));
        }
        let mut text = String::from("no node here can ever take it");
        if let Some((machine, lacks)) =
            lacks.iter().min_by_key(|(machine, lacks)| (lacks.len(), u32::MAX - best(machine, lines)))
        {
            let _ = write!(text, "; the nearest, {}, {}", machine.name, lacks.join(" and "));
        }
        Some(text)
    }
}

/// Which GPUs a job must be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    Any,
    /// Of this type.
    Kind(String),
    /// Any, but not on these nodes.
    Without(Vec<String>),
}

/// What is not known of a device might be enough.
fn will_do(request: &Request, device: Device) -> bool {
    (device.memory.0 == 0 || device.memory >= request.gpu_memory)
        && (device.capability == 0 || device.capability >= request.gpu_capability)
}

fn minutes(time: Duration) -> u64 {
    time.as_secs().div_ceil(60)
}

fn lacks(machine: &Machine, request: &Request, lines: &[(String, String)]) -> Vec<String> {
    let mut lacks = Vec::new();
    let cpus = request.milli_cpus.div_ceil(1000);
    if machine.cpus < cpus {
        lacks.push(format!("has {} cores, not {cpus}", machine.cpus));
    }
    let mebibytes = request.memory.0.div_ceil(MIB);
    if machine.mebibytes < mebibytes {
        lacks.push(format!("has {} MiB of memory, not {mebibytes}", machine.mebibytes));
    }
    let gpus = || machine.gres.iter().filter(|gres| gres.name == "gpu");
    let all: u32 = gpus().map(|gres| gres.count).sum();
    let good: u32 = gpus().filter(|gres| will_do(request, device(&gres.kind, lines))).map(|gres| gres.count).sum();
    if good < request.gpus {
        lacks.push(match (all, all >= request.gpus) {
            (0, _) => "has no GPU".to_owned(),
            (_, false) => format!("has {all} GPUs, not {}", request.gpus),
            (_, true) => format!("has GPUs ({}) that are {}", kinds(machine), too_small(request)),
        });
    }
    lacks
}

/// How good its best GPU is, so that among nodes that lack one thing the one with the better devices is nearer.
fn best(machine: &Machine, lines: &[(String, String)]) -> u32 {
    let gpus = machine.gres.iter().filter(|gres| gres.name == "gpu");
    gpus.map(|gres| 1 + device(&gres.kind, lines).capability).max().unwrap_or(0)
}

fn kinds(machine: &Machine) -> String {
    let kinds: Vec<&str> =
        machine.gres.iter().filter(|gres| gres.name == "gpu").map(|gres| gres.kind.as_str()).collect();
    kinds.join(", ")
}

fn too_small(request: &Request) -> String {
    let mut wanted = Vec::new();
    if request.gpu_capability > 0 {
        wanted.push(format!("below capability {}.{}", request.gpu_capability / 10, request.gpu_capability % 10));
    }
    if request.gpu_memory.0 > 0 {
        wanted.push(format!("below {} of memory", request.gpu_memory));
    }
    wanted.join(" or ")
}

/// The value of `key=` in a line of `scontrol -o`; values with blanks end at the next word with `=`, which none here needs.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_ascii_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

fn machine(line: &str) -> Option<Machine> {
    let number = |key: &str| value(line, key).and_then(|text| text.parse().ok());
    let list = |key: &str| value(line, key).filter(|text| *text != "(null)").map(str::to_owned);
    let cpus = number("CPUEfctv").or_else(|| number("CPUTot"))?;
    Some(Machine {
        name: value(line, "NodeName")?.to_owned(),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        mebibytes: number("RealMemory").unwrap_or(0),
        gres: list("Gres").map(|text| gres(&text)).unwrap_or_default(),
        partitions: list("Partitions").map(|text| text.split(',').map(str::to_owned).collect()).unwrap_or_default(),
        state: value(line, "State").unwrap_or("").to_owned(),
    })
}

/// `gpu:a100:2(S:0-1),fpga:1`; `gpu:4`; a count may be `2K`.
fn gres(text: &str) -> Vec<Gres> {
    let mut bare = String::new();
    let mut depth = 0;
    for letter in text.chars() {
        depth += i32::from(letter == '(');
        if depth == 0 {
            bare.push(letter);
        }
        depth -= i32::from(letter == ')');
    }
    let one = |part: &str| {
        let fields: Vec<&str> = part.split(':').collect();
        let (name, kind, count) = match fields[..] {
            [name] => (name, "", "1"),
            [name, count] if amount(count).is_some() => (name, "", count),
            [name, kind] => (name, kind, "1"),
            [name, kind, count] => (name, kind, count),
            _ => return None,
        };
        let count = amount(count)?;
        (!name.is_empty()).then(|| Gres { name: name.to_owned(), kind: kind.to_owned(), count })
    };
    bare.split(',').filter_map(one).collect()
}

fn amount(text: &str) -> Option<u32> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor: u64 = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    let count = digits.parse::<u64>().ok()?.saturating_mul(factor);
    Some(u32::try_from(count).unwrap_or(u32::MAX))
}

fn partition(line: &str) -> Option<Partition> {
    let memory = |key: &str| value(line, key).is_some_and(|text| text != "UNLIMITED" && text != "0");
    Some(Partition {
        name: value(line, "PartitionName")?.to_owned(),
        is_default: value(line, "Default") == Some("YES"),
        longest: value(line, "MaxTime").and_then(duration),
        most_nodes: value(line, "MaxNodes").and_then(|text| text.parse().ok()),
        gives_memory: memory("DefMemPerNode") || memory("DefMemPerCPU"),
    })
}

/// `7-00:00:00`, `12:00:00`, `30:00`, `30`; `None` when there is no limit.
pub fn duration(text: &str) -> Option<Duration> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (days.parse::<u64>().ok()?, rest),
        None => (0, text),
    };
    let parts = rest.split(':').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<_>>>()?;
    let seconds = match (&parts[..], days > 0) {
        ([hours], true) => hours * 3600,
        ([hours, minutes], true) => hours * 3600 + minutes * 60,
        ([minutes], false) => minutes * 60,
        ([minutes, seconds], false) => minutes * 60 + seconds,
        ([hours, minutes, seconds], _) => hours * 3600 + minutes * 60 + seconds,
        _ => return None,
    };
    Some(Duration::from_secs(days * 86400 + seconds))
}

fn read_configuration(text: &str) -> Configuration {
    let value = |key: &str| {
        let of = |line: &str| Some(line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim().to_owned());
        text.lines().find_map(of)
    };
    let number = |key: &str| value(key).and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let usual = Configuration::default();
    let memory_counts = value("SelectTypeParameters").is_some_and(|text| text.to_ascii_uppercase().contains("MEMORY"));
    let given = ["DefMemPerNode", "DefMemPerCPU"].iter().any(|key| number(key).is_some_and(|amount| amount > 0));
    Configuration {
        array_size: number("MaxArraySize").and_then(|size| u32::try_from(size).ok()).unwrap_or(usual.array_size),
        memory_must_be_said: memory_counts && !given,
        kill_wait: number("KillWait").map_or(usual.kill_wait, Duration::from_secs),
        accounting: value("AccountingStorageType").is_some_and(|kind| !kind.ends_with("/none") && kind != "(null)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: &str = "\
NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=4 CPUTot=4 CPULoad=2.04 AvailableFeatures=(null) ActiveFeatures=(null) Gres=(null) OS=Linux 6.1 #1 SMP  RealMemory=4000 AllocMem=0 State=IDLE Partitions=main 
NodeName=n2 CPUTot=4 Gres=gpu:v100:2(S:0-1) RealMemory=4000 State=IDLE Partitions=main,gpu
NodeName=n3 CPUTot=4 Gres=gpu:a100:2,fpga:1 RealMemory=4000 State=DOWN* Partitions=main,gpu
";
    const PARTITIONS: &str = "\
PartitionName=main Default=YES MaxNodes=UNLIMITED MaxTime=UNLIMITED DefMemPerNode=UNLIMITED
PartitionName=gpu Default=NO MaxNodes=2 MaxTime=1-00:00:00 DefMemPerCPU=1000
";
    const CONFIGURATION: &str = "\
AccountingStorageType   = accounting_storage/none
DefMemPerNode           = UNLIMITED
KillWait                = 5 sec
MaxArraySize            = 1001
SelectTypeParameters    = CR_CORE_MEMORY
";

    fn cluster() -> Cluster {
        Cluster::read(NODES, PARTITIONS, CONFIGURATION)
    }

    fn lines(lines: &[(&str, &str)]) -> Vec<(String, String)> {
        lines.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_cluster_is_read_as_its_commands_print_it() {
        let cluster = cluster();
        assert_eq!(
            cluster.configuration,
            Configuration {
                array_size: 1001,
                memory_must_be_said: true,
                kill_wait: Duration::from_secs(5),
                accounting: false
            }
        );
        assert_eq!(cluster.longest(&lines(&[("--partition", "gpu")])), Some(Duration::from_secs(86400)));
        assert_eq!(cluster.longest(&[]), None);
        assert_eq!(cluster.memory_each_cpu(&[]), Some(1000));
        assert_eq!(cluster.memory_each_cpu(&lines(&[("partition", "gpu")])), None);
        let nodes = cluster.nodes(&[]);
        assert_eq!(nodes.len(), 3);
        assert_eq!(nodes[1].capacity.gpus[1], Gpu { id: "1".into(), memory: Bytes(16_000_000_000), capability: 70 });
        assert_eq!(nodes[2].capacity.named["fpga"], 1000);
        assert!(cluster.has_gres("fpga") && !cluster.has_gres("matlab"));
        assert_eq!(cluster.nodes(&lines(&[("partition", "gpu")])).len(), 2);
    }

    #[test]
    fn what_can_never_run_is_said_with_the_nearest_miss() {
        let miss = |request: Request| cluster().miss(&request, &[]);
        assert_eq!(miss(Request::default()), None);
        assert_eq!(
            miss(Request { milli_cpus: 5000, ..Request::default() }).unwrap(),
            "no node here can ever take it; the nearest, n3, has 4 cores, not 5"
        );
        assert_eq!(
            miss(Request { gpus: 1, gpu_capability: 90, ..Request::default() }).unwrap(),
            "no node here can ever take it; the nearest, n3, has GPUs (a100) that are below capability 9.0"
        );
        assert_eq!(
            miss(Request { nodes: 4, ..Request::default() }).unwrap(),
            "it needs 4 nodes at once, but only 3 here have what each must have"
        );
        assert_eq!(
            cluster().miss(&Request::default(), &lines(&[("partition", "long")])).unwrap(),
            "there is no partition `long` here, but main, gpu"
        );
        let days = Request { time: Some(Duration::from_secs(3 * 86400)), ..Request::default() };
        assert_eq!(
            cluster().miss(&days, &lines(&[("partition", "gpu")])).unwrap(),
            "it may take 4320 minutes, but the partition ends jobs after 1440"
        );
    }

    #[test]
    fn memory_and_capability_choose_the_type() {
        let asks = |capability, memory| Request {
            gpus: 1,
            gpu_capability: capability,
            gpu_memory: Bytes(memory),
            ..Request::default()
        };
        assert_eq!(cluster().choose(&asks(0, 0), &[]), Choice::Any);
        assert_eq!(cluster().choose(&asks(70, 0), &[]), Choice::Any);
        assert_eq!(cluster().choose(&asks(80, 0), &[]), Choice::Kind("a100".into()));
        assert_eq!(cluster().choose(&asks(0, 20_000_000_000), &[]), Choice::Kind("a100".into()));
        let mut three = cluster();
        three.machines.push(Machine {
            name: "n4".into(),
            gres: gres("gpu:h100:4"),
            partitions: vec!["main".into()],
            ..Machine::default()
        });
        assert_eq!(three.choose(&asks(80, 0), &[]), Choice::Without(vec!["n2".into()]));
        three.machines[1].gres = gres("gpu:v100:2,gpu:a100:3");
        assert_eq!(three.choose(&asks(80, 0), &[]), Choice::Kind("a100".into()), "of which there are most");
    }

    #[test]
    fn time_limits_are_read_in_every_form() {
        assert_eq!(duration("UNLIMITED"), None);
        assert_eq!(duration("30"), Some(Duration::from_secs(1800)));
        assert_eq!(duration("7-00:00:00"), Some(Duration::from_secs(604_800)));
        assert_eq!(duration("1-12"), Some(Duration::from_secs(129_600)));
        assert_eq!(duration("02:30:00"), Some(Duration::from_secs(9000)));
    }
}
