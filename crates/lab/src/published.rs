//! The three scientific workflows of a published study of data placement (Krawczuk et al., WORKS 2021), generated at
//! its shape, and its figures.
//!
//! The structure is that of the workflows' public generators with pre-processing in six jobs, as in the study. Numbers
//! of images follow from its figures; run times and sizes are those that it prints. It decides nothing.

mod characterisation;

pub use characterisation::{JobFigures, Shaped, ShapedJobs, WorkflowFigures};

use std::time::Duration;
use tulpar_core::catalogue::{Catalogue, FileServer, LOCAL, Link, Operation, Store};
use tulpar_core::planner::estimate::{Costs, Protocol};
use tulpar_core::planner::{Abstract, Builder, File, GroupId, Task, TaskId};
use tulpar_core::resources::{Capacity, Gpu};
use tulpar_core::site::{Node, Site};
use tulpar_core::units::Bytes;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Study {
    Galaxy,
    Lung,
    Crisis,
}

/// What the study prints for one scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Figures {
    pub jobs: u64,
    pub auxiliary: u64,
    pub threads: u32,
    pub staged_in: u64,
}

/// In the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioName {
    Baseline,
    ContainerInstalled,
    Clustering,
    Nfs,
    Auto,
}

impl ScenarioName {
    pub const ALL: [Self; 5] = [Self::Baseline, Self::ContainerInstalled, Self::Clustering, Self::Nfs, Self::Auto];

    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::ContainerInstalled => "container installed",
            Self::Clustering => "clustering",
            Self::Nfs => "nfs",
            Self::Auto => "auto",
        }
    }
}

/// The nodes of the study's pool.
const WORKERS: &str = "workers";

impl Study {
    pub const ALL: [(&'static str, Self); 3] =
        [("galaxy", Self::Galaxy), ("lung", Self::Lung), ("crisis", Self::Crisis)];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, study)| *study == self).expect("all are listed").0
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, study)| *study)
    }

    /// The study's workflow that this one is a version of, by the programs that only it has.
    pub fn of(graph: &Abstract) -> Option<Self> {
        let has = |name: &str| graph.kinds.iter().any(|kind| kind.split("::").any(|word| word == name));
        match () {
            () if has("vgg16_hpo") && has("augment_images") => Some(Self::Galaxy),
            () if has("predict_masks") && has("hpo") && has("evaluate") => Some(Self::Lung),
            () if has("late_fusion") && has("resnet_inference") => Some(Self::Crisis),
            () => None,
        }
    }

    pub fn figures(self, scenario: ScenarioName) -> Option<Figures> {
        let (jobs, clustered, auxiliary, staged_in) = match self {
            Self::Galaxy => (11, 1, 4, [111_950, 111_950, 28_803, 111_938]),
            Self::Lung => (7, 1, 4, [9_446, 9_446, 1_417, 9_438]),
            Self::Crisis => (16, 3, 6, [51_006, 51_006, 12_758, 50_987]),
        };
        let plain = |staged_in| Figures { jobs, auxiliary: 12, threads: 8, staged_in };
        match scenario {
            ScenarioName::Baseline => Some(plain(staged_in[0])),
            ScenarioName::ContainerInstalled => Some(plain(staged_in[1])),
            ScenarioName::Clustering => {
                Some(Figures { jobs: clustered, auxiliary, threads: 24, staged_in: staged_in[2] })
            }
            ScenarioName::Nfs => Some(plain(staged_in[3])),
            ScenarioName::Auto => None,
        }
    }

    /// How much longer than its baseline the study ran, where it prints that: in per cent, negative when shorter.
    pub fn longer(self, scenario: ScenarioName) -> Option<f64> {
        match (self, scenario) {
            (Self::Crisis, ScenarioName::Clustering) => Some(-16.0),
            (Self::Galaxy, ScenarioName::Nfs) => Some(13.0),
            _ => None,
        }
    }

    /// Why the generated shape stages in more files (or fewer, when negative) than the study prints.
    pub fn remainder(self, scenario: ScenarioName) -> Vec<(i64, String)> {
        let (jobs, more) = match self {
            Self::Galaxy => (11, 2),
            Self::Lung => (7, 0),
            Self::Crisis => (16, 0),
        };
        let mut reasons = Vec::new();
        let uses = || {
            let text = "uses of files: the shape has all those of the public generator, checkpoints included; the \
                        study's figure leaves room for two fewer and does not say which";
            (more, text.to_owned())
        };
        match scenario {
            ScenarioName::Clustering | ScenarioName::Auto => {}
            ScenarioName::Baseline => reasons.push(uses()),
            ScenarioName::ContainerInstalled => {
                reasons.push(uses());
                let text = "images: they are on the nodes and do not move; the study prints the figure of its baseline";
                reasons.push((-jobs, text.to_owned()));
            }
            ScenarioName::Nfs => {
                reasons.push(uses());
                let (rest, files) = if self == Self::Crisis { (3, "files") } else { (1, "file") };
                let text = format!(
                    "{files}: programs are installed on the shared file system, one a job less than in the baseline; \
                     the study's figure is lower by {rest} more, which it does not explain"
                );
                reasons.push((rest, text));
            }
        }
        reasons.retain(|(count, _)| *count != 0);
        reasons
    }

    /// The workflow at the shape of the study.
    pub fn workflow(self) -> Abstract {
        let mut shape = Shape::new(self);
        match self {
            Self::Galaxy => galaxy(&mut shape),
            Self::Lung => lung(&mut shape),
            Self::Crisis => crisis(&mut shape),
        }
        let mut graph = shape.builder.finish().expect("the study's workflows have no circle");
        shape.labels.into_iter().for_each(|(task, label)| graph.tasks[task.index()].label = Some(label.into()));
        shape.scratches.into_iter().for_each(|(task, bytes)| graph.tasks[task.index()].scratch = bytes);
        graph
    }
}

/// The machines of the study: a submit node with an HTTP server; three workers far away, two of them with a GPU.
pub fn testbed() -> Catalogue {
    let node = |number: u32| Node {
        kind: Default::default(),
        folder: None,
        name: format!("worker{number}"),
        capacity: Capacity {
            milli_cpus: 24_000,
            memory: Bytes(192_000_000_000),
            disk: Bytes(1_000_000_000_000),
            gpus: (number < 3)
                .then(|| Gpu { id: "0".to_owned(), memory: Bytes(24_000_000_000), capability: 75 })
                .into_iter()
                .collect(),
            ..Capacity::default()
        },
    };
    let server = FileServer { url: "http://submit/staging".to_owned(), operation: Operation::All };
    let store = Store { path: "/staging".to_owned(), shared: false, servers: vec![server], space: None };
    let local = Site { scratch: Some(store), ..Site::new(LOCAL, Vec::new()) };
    let workers = Site { staging: Some(LOCAL.to_owned()), ..Site::new(WORKERS, (1..=3).map(node).collect()) };
    // 10 Gbit/s at each node and 31 ms between the two places; a shared file system is mounted over the same way.
    let link = |from: &str| Link {
        from: from.to_owned(),
        to: WORKERS.to_owned(),
        bandwidth: Bytes(1_250_000_000),
        latency: Duration::from_millis(31),
    };
    Catalogue { sites: vec![local, workers], links: vec![link(LOCAL), link(WORKERS)], ..Catalogue::default() }
}

/// What moving files and starting jobs cost there: not fitted to the study's times, but what the programs that it used
/// do by default.
pub fn costs() -> Costs {
    Costs {
        // DAGMan looks every 5 s whether a job has ended (DAGMAN_USER_LOG_SCAN_INTERVAL), so 2.5 s too late in the mean.
        job: 2.5,
        protocol: Some(Protocol {
            // pegasus-transfer starts wget or curl for each file: a connection is made, then the file is asked for.
            fetch: 2.0,
            // It gives many files to one scp, which waits for a word about the name of each and one about its end.
            send: 2.0,
            // NFS 4 on Linux: OPEN and READ, OPEN and WRITE; the answer to the one write of a small file is that it is kept.
            read: 2.0,
            write: 2.0,
            // TCP on Linux begins with ten segments, and half of a receive buffer of at most 6 MiB is the window
            // (tcp_rmem, tcp_adv_win_scale): 31 ms away one connection carries 101 MB/s, whatever the link does.
            first_window: 14_480.0,
            window: 3_145_728.0,
        }),
        ..Costs::default()
    }
}

/// Where tasks of the study go.
pub fn testbed_sites() -> Vec<String> {
    vec![WORKERS.to_owned()]
}

struct Shape {
    builder: Builder,
    image: u32,
    labels: Vec<(TaskId, &'static str)>,
    scratches: Vec<(TaskId, u64)>,
}

/// What a job of the study needs: CPUs, GPUs, memory in GB, seconds.
type Needs = (u32, u32, u64, f64);

impl Shape {
    fn new(study: Study) -> Self {
        let mut builder = Builder::new(study.name());
        let size = match study {
            Study::Galaxy => 2_400_000_000,
            Study::Lung => 4_100_000_000,
            Study::Crisis => 4_600_000_000,
        };
        let image = builder.image(&format!("{}.sif", study.name()), size);
        Self { builder, image, labels: Vec::new(), scratches: Vec::new() }
    }

    /// Files that exist, as one group.
    fn given(&mut self, name: impl Fn(u64) -> String, count: u64, size: u64) -> GroupId {
        self.files(name, count, File { size, ..File::default() })
    }

    fn program(&mut self, name: &str) -> GroupId {
        self.files(|_| name.to_owned(), 1, File { size: 10_000, program: true, ..File::default() })
    }

    fn files(&mut self, name: impl Fn(u64) -> String, count: u64, like: File) -> GroupId {
        let files: Vec<_> =
            (0..count).map(|number| self.builder.file(File { name: name(number).into(), ..like.clone() })).collect();
        self.builder.group(files)
    }

    /// What a task makes, as one group; all of it is a result, as in the generators.
    fn made(&mut self, task: TaskId, name: impl Fn(u64) -> String, count: u64, size: u64) -> GroupId {
        let group = self.files(name, count, File { size, stage_out: true, register: true, ..File::default() });
        self.builder.writes(task, group);
        group
    }

    fn task(&mut self, name: String, program: (&str, GroupId), needs: Needs, reads: &[GroupId]) -> TaskId {
        let kind = self.builder.kind(program.0);
        let (cpus, gpus, memory, seconds) = needs;
        let task = self.builder.task(Task {
            name: name.into(),
            kind,
            runtime: Some(seconds),
            milli_cpus: cpus * 1000,
            gpus,
            memory: memory * 1_000_000_000,
            image: Some(self.image),
            ..Task::default()
        });
        self.builder.reads(task, program.1);
        reads.iter().for_each(|group| self.builder.reads(task, *group));
        task
    }

    /// What the study saw tasks write beyond their results: checkpoints, mostly.
    fn scratches(&mut self, bytes: &[(TaskId, u64)]) {
        self.scratches.extend(bytes);
    }

    fn labelled(&mut self, label: &'static str, tasks: &[TaskId]) {
        self.labels.extend(tasks.iter().map(|task| (*task, label)));
    }
}

/// A part of `total` in `parts`; the first ones take what is left over.
fn share(total: u64, parts: u64, part: u64) -> u64 {
    total / parts + u64::from(part < total % parts)
}

const PARTS: u64 = 6;

fn galaxy(shape: &mut Shape) {
    const IMAGES: u64 = 28_793;
    // Pictures of two rare classes are multiplied; a tenth is kept for the end.
    const RARE: [(u64, u64); 2] = [(441, 7000), (3099, 4000)];
    const TEST: u64 = 2880;
    const SMALL: u64 = 6551;
    let preprocess = shape.program("preprocess_resize.py");
    let (mut rare, mut seen, mut kept) = ([Vec::new(), Vec::new()], Vec::new(), Vec::new());
    for part in 0..PARTS {
        let all = share(IMAGES, PARTS, part);
        let images = shape.given(|number| format!("part{part}/galaxy_{number}.jpg"), all, 12_989);
        let name = format!("preprocess_images_{part}");
        let task = shape.task(name, ("preprocess_images", preprocess), (1, 0, 1, 135.21 / 8.0), &[images]);
        let mut rest = all;
        for (class, (count, _)) in RARE.iter().enumerate() {
            let count = share(*count, PARTS, part);
            rest -= count;
            rare[class].push(shape.made(task, |number| format!("part{part}/rare{class}_{number}.jpg"), count, SMALL));
        }
        let test = share(TEST, PARTS, part);
        kept.push(shape.made(task, |number| format!("part{part}/test_{number}.jpg"), test, SMALL));
        seen.push(shape.made(task, |number| format!("part{part}/train_{number}.jpg"), rest - test, SMALL));
    }
    let augment = shape.program("preprocess_augment.py");
    let mut train: Vec<GroupId> = seen;
    for (class, (_, count)) in RARE.iter().enumerate() {
        let name = format!("augment_images_{class}");
        let needs = (1, 0, 1, 135.21 / 8.0);
        let task = shape.task(name, ("augment_images", augment), needs, &rare[class]);
        train.extend(&rare[class]);
        train.push(shape.made(task, |number| format!("augmented{class}_{number}.jpg"), *count, SMALL));
    }
    let modules = ["data_loader.py", "model_selection.py"].map(|name| shape.given(|_| name.to_owned(), 1, 10_000));
    let checkpoints = ["hpo.pkl", "train.pkl"].map(|name| shape.given(|_| name.to_owned(), 1, 1_000_000));
    let program = shape.program("vgg16_hpo.py");
    let mut reads = train.clone();
    reads.extend(modules);
    reads.push(checkpoints[0]);
    let hpo = shape.task("vgg16_hpo".to_owned(), ("vgg16_hpo", program), (15, 1, 41, 3421.48), &reads);
    let params = shape.made(hpo, |_| "best_params.txt".to_owned(), 1, 1000);
    let program = shape.program("train_model_vgg16.py");
    let mut reads = train;
    reads.extend(&kept);
    reads.extend(modules);
    reads.extend([checkpoints[1], params]);
    let training = shape.task("train_model".to_owned(), ("train_model", program), (8, 1, 19, 1453.53), &reads);
    shape.scratches(&[(hpo, 3_404_280_000), (training, 2_091_050_000 - 528_000_000)]);
    let model = shape.made(training, |_| "model.pth".to_owned(), 1, 528_000_000);
    shape.made(training, |_| "loss.png".to_owned(), 1, 50_000);
    let program = shape.program("eval_model_vgg16.py");
    let mut reads = kept;
    reads.extend(modules);
    reads.extend([model, params]);
    let eval = shape.task("eval_model".to_owned(), ("eval_model", program), (4, 1, 4, 51.84), &reads);
    shape.made(eval, |number| format!("result_{number}"), 2, 100_000);
}

fn lung(shape: &mut Shape) {
    const TRAIN: u64 = 492;
    const VALIDATION: u64 = 140;
    const TEST: u64 = 72;
    const XRAY: u64 = 5_080_000;
    const MASK: u64 = 30_000;
    const SMALL: u64 = 53_900;
    let preprocess = ("preprocess", shape.program("preprocess.py"));
    let masks = [("train", TRAIN), ("val", VALIDATION), ("test", TEST)]
        .map(|(part, count)| shape.given(|number| format!("{part}_{number}_mask.png"), count, MASK));
    let needs = (8, 0, 12, 337.85 / 3.0);
    let xrays = shape.given(|number| format!("train_{number}.png"), TRAIN, XRAY);
    let task = shape.task("preprocess_train".to_owned(), preprocess, needs, &[xrays, masks[0]]);
    let train_images = shape.made(task, |number| format!("train_{number}_norm.png"), 3 * TRAIN, SMALL);
    let train_masks = shape.made(task, |number| format!("train_{number}_norm_mask.png"), 2 * TRAIN, SMALL);
    let xrays = shape.given(|number| format!("val_{number}.png"), VALIDATION, XRAY);
    let task = shape.task("preprocess_val".to_owned(), preprocess, needs, &[xrays]);
    let validation = shape.made(task, |number| format!("val_{number}_norm.png"), VALIDATION, SMALL);
    let xrays = shape.given(|number| format!("test_{number}.png"), TEST, XRAY);
    let task = shape.task("preprocess_test".to_owned(), preprocess, needs, &[xrays]);
    let test = shape.made(task, |number| format!("test_{number}_norm.png"), TEST, SMALL);
    let [unet, utils] = ["unet.py", "utils.py"].map(|name| shape.given(|_| name.to_owned(), 1, 10_000));
    let checkpoint = shape.given(|_| "study_checkpoint.pkl".to_owned(), 1, 1_000_000);
    let learning = [train_images, train_masks, validation, masks[0], masks[1]];
    let program = ("hpo", shape.program("hpo.py"));
    let reads: Vec<GroupId> = learning.into_iter().chain([unet, checkpoint]).collect();
    let hpo = shape.task("hpo".to_owned(), program, (8, 1, 12, 4947.24), &reads);
    let params = shape.made(hpo, |_| "study_results.txt".to_owned(), 1, 1000);
    let program = ("train_model", shape.program("train_model.py"));
    let reads: Vec<GroupId> = learning.into_iter().chain([unet, utils, params]).collect();
    let training = shape.task("train_model".to_owned(), program, (8, 1, 24, 557.4), &reads);
    shape.scratches(&[(hpo, 84_800_000), (training, 8_010_010_000 - 81_600_000)]);
    let model = shape.made(training, |_| "model.h5".to_owned(), 1, 81_600_000);
    let program = ("predict_masks", shape.program("prediction.py"));
    let predict = shape.task("predict_masks".to_owned(), program, (8, 1, 12, 22.51), &[unet, test, model]);
    let predicted = shape.made(predict, |number| format!("pred_{number}_mask.png"), TEST, 12_000);
    let program = ("evaluate", shape.program("evaluate.py"));
    let reads = [masks[2], utils, test, train_images, predicted];
    let evaluate = shape.task("evaluate".to_owned(), program, (8, 0, 12, 6.13), &reads);
    shape.made(evaluate, |_| "EvaluationAnalysis.pdf".to_owned(), 1, 370_000);
}

fn crisis(shape: &mut Shape) {
    // The study's figures fit this number exactly, four times and in the clusters; five further inputs are in its
    // count of 12,747, and no job stages them.
    const IMAGES: u64 = 12_738;
    const UNUSED: u64 = 5;
    const PICTURE: u64 = 190_000;
    const SMALL: u64 = 114_000;
    let (mut text, mut pictures) = (Vec::new(), Vec::new());
    let program = ("preprocess_tweets", shape.program("preprocess_tweets.py"));
    let tweets: Vec<GroupId> = ["train", "val", "test"]
        .map(|part| {
            let tweets = shape.given(|_| format!("{part}_tweets.csv"), 1, 4_000_000);
            let task = shape.task(format!("preprocess_tweets_{part}"), program, (1, 0, 1, 8.8 / 3.0), &[tweets]);
            text.push(task);
            shape.made(task, |_| format!("preprocessed_{part}_tweets.csv"), 1, 400_000)
        })
        .to_vec();
    let program = ("preprocess_images", shape.program("preprocess_images.py"));
    let images: Vec<GroupId> = (0..PARTS)
        .map(|part| {
            let count = share(IMAGES, PARTS, part);
            let given = shape.given(|number| format!("part{part}/{number}.jpg"), count, PICTURE);
            let name = format!("preprocess_images_{part}");
            let task = shape.task(name, program, (7, 0, 1, 212.48 / PARTS as f64), &[given]);
            pictures.push(task);
            shape.made(task, |number| format!("part{part}/resized_{number}.jpg"), count, SMALL)
        })
        .collect();
    shape.given(|number| format!("unused_{number}"), UNUSED, PICTURE);
    let glove = shape.given(|_| "glove.twitter.27B.200d.txt".to_owned(), 1, 758_000_000);
    let mut pipeline = |shape: &mut Shape, model: &str, sets: [&[GroupId]; 3], needs: [Needs; 3], size: u64| {
        let names = [format!("hpo_train_{model}"), format!("train_{model}"), format!("{model}_inference")];
        let programs = [0, 1, 2].map(|step| shape.program(&format!("{}.py", names[step])));
        let hpo = shape.task(names[0].clone(), (&names[0], programs[0]), needs[0], sets[0]);
        let params = shape.made(hpo, |_| format!("best_{model}_hpo_params.txt"), 1, 1000);
        let reads: Vec<GroupId> = sets[1].iter().copied().chain([params]).collect();
        let train = shape.task(names[1].clone(), (&names[1], programs[1]), needs[1], &reads);
        let trained = shape.made(train, |_| format!("{model}_final_model"), 1, size);
        shape.made(train, |number| format!("{model}_curve_{number}.png"), 2, 50_000);
        let reads: Vec<GroupId> = sets[2].iter().copied().chain([trained]).collect();
        let infer = shape.task(names[2].clone(), (&names[2], programs[2]), needs[2], &reads);
        shape.made(infer, |_| format!("{model}_confusion_matrix.png"), 1, 50_000);
        let predictions = shape.made(infer, |number| format!("{model}_output_{number}.csv"), 2, 300_000);
        if model == "resnet" {
            shape.scratches(&[(hpo, 786_750_000), (train, 728_700_000 - size), (infer, 231_070_000)]);
            pictures.extend([hpo, train, infer])
        } else {
            text.extend([hpo, train, infer])
        }
        predictions
    };
    let with_glove: Vec<GroupId> = tweets.iter().copied().chain([glove]).collect();
    let needs = [(3, 1, 5, 1031.6), (3, 1, 5, 625.09), (2, 1, 5, 65.95)];
    let from_text = pipeline(shape, "bilstm", [&with_glove, &with_glove, &tweets], needs, 9_000_000);
    let needs = [(2, 1, 7, 1424.91), (2, 1, 6, 871.99), (24, 0, 17, 3003.4)];
    let from_images = pipeline(shape, "resnet", [&images, &images, &images], needs, 98_000_000);
    let program = ("late_fusion", shape.program("late_fusion.py"));
    let fusion = shape.task("late_fusion".to_owned(), program, (2, 1, 12, 211.76), &[from_text, from_images]);
    shape.made(fusion, |number| format!("late_fusion_{number}"), 6, 1_000_000);
    shape.labelled("text_pipeline", &text);
    shape.labelled("image_pipeline", &pictures);
}
