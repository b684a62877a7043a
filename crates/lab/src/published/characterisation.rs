//! The characterisation that the study prints of its baseline, job level and workflow level, and what of it the generated
//! shapes say themselves.
//!
//! The numbers are the study's. Nothing is planned with them here.

use super::Study;
use rustc_hash::FxHashSet;
use serde::Serialize;
use tulpar_core::planner::{Abstract, FileId, TaskId};

/// One kind of job in the baseline. Of several jobs of a kind the study averages CPU and GPU and adds up the rest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct JobFigures {
    pub name: &'static str,
    /// The task sets that it stands for, in the generated shape and in the exemplars.
    #[serde(skip)]
    pub sets: &'static [&'static str],
    pub read_mb: f64,
    pub written_mb: f64,
    /// 100 × (user + system time) / wall time.
    pub cpu_percent: f64,
    pub peak_memory_gb: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_gpu_memory_gb: Option<f64>,
    pub seconds: f64,
}

/// A whole workflow in the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WorkflowFigures {
    pub jobs: u64,
    pub auxiliary: u64,
    pub input_files: u64,
    pub input_gb: f64,
    pub container_gb: f64,
    pub read_gb: f64,
    pub written_gb: f64,
    pub peak_memory_gb: f64,
    pub peak_gpu_memory_gb: f64,
    pub cpu_hours: f64,
    pub gpu_hours: f64,
}

/// What a generated shape says of itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shaped {
    /// In the order of [`Study::job_level`].
    pub jobs: Vec<ShapedJobs>,
    pub input_files: u64,
    pub input_gb: f64,
    pub container_gb: f64,
    /// Of what tasks hold while they compute.
    pub cpu_hours: f64,
    pub gpu_hours: f64,
}

/// All jobs of one kind together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ShapedJobs {
    pub jobs: u64,
    /// The files that they take, programs included, and those that they leave, with what they write besides.
    pub taken_mb: f64,
    pub left_mb: f64,
    pub seconds: f64,
}

const fn job(
    name: &'static str,
    sets: &'static [&'static str],
    [read_mb, written_mb, cpu_percent, peak_memory_gb]: [f64; 4],
    gpu: Option<(f64, f64)>,
    seconds: f64,
) -> JobFigures {
    let (gpu_percent, peak_gpu_memory_gb) = match gpu {
        Some((percent, memory)) => (Some(percent), Some(memory)),
        None => (None, None),
    };
    JobFigures {
        name,
        sets,
        read_mb,
        written_mb,
        cpu_percent,
        peak_memory_gb,
        gpu_percent,
        peak_gpu_memory_gb,
        seconds,
    }
}

const GALAXY: [JobFigures; 4] = [
    job(
        "pre-process",
        &["preprocess_images", "augment_images", "dataset", "preprocess", "augment"],
        [435.47, 260.71, 99.85, 0.08],
        None,
        135.21,
    ),
    job("HPO", &["vgg16_hpo", "hpo"], [2900.37, 3404.28, 1426.22, 41.19], Some((53.22, 4.13)), 3421.48),
    job("train", &["train_model", "train"], [1754.6, 2091.05, 789.51, 18.8], Some((68.92, 4.13)), 1453.53),
    job(
        "inference and evaluation",
        &["eval_model", "evaluate"],
        [1440.85, 527.82, 404.01, 3.78],
        Some((26.76, 4.42)),
        51.84,
    ),
];

const LUNG: [JobFigures; 5] = [
    job("pre-process", &["preprocess"], [8107.44, 143.99, 120.0, 0.37], None, 337.85),
    job("HPO", &["hpo"], [3816.46, 84.8, 100.75, 5.96], Some((68.19, 22.99)), 4947.24),
    job("train", &["train_model", "train"], [540.71, 8010.01, 104.83, 5.12], Some((62.48, 22.99)), 557.4),
    job("inference", &["predict_masks", "predict"], [396.57, 0.86, 106.89, 3.1], Some((10.39, 22.99)), 22.51),
    job("evaluation", &["evaluate"], [0.39, 0.37, 129.44, 0.43], None, 6.13),
];

const CRISIS: [JobFigures; 9] = [
    job("pre-process image", &["preprocess_images", "resize"], [1185.06, 1457.79, 660.74, 0.07], None, 212.48),
    job("pre-process text", &["preprocess_tweets", "clean"], [11.84, 1.12, 121.99, 0.133], None, 8.8),
    job(
        "HPO ResNet-50",
        &["hpo_train_resnet", "hpo-image"],
        [28_321.72, 786.75, 186.22, 6.44],
        Some((68.73, 1.67)),
        1424.91,
    ),
    job("HPO BiLSTM", &["hpo_train_bilstm", "hpo-text"], [4464.78, 0.95, 269.51, 4.13], Some((20.92, 22.64)), 1031.6),
    job(
        "train ResNet-50",
        &["train_resnet", "train-image"],
        [17_702.71, 728.7, 179.75, 5.94],
        Some((63.73, 1.76)),
        871.99,
    ),
    job("train BiLSTM", &["train_bilstm", "train-text"], [2032.84, 5.84, 272.56, 4.03], Some((20.9, 22.64)), 625.09),
    job(
        "inference ResNet-50 (CPU)",
        &["resnet_inference", "infer-image"],
        [2734.55, 231.07, 2386.63, 16.64],
        None,
        3003.4,
    ),
    job(
        "inference BiLSTM",
        &["bilstm_inference", "infer-text"],
        [400.48, 0.58, 111.57, 4.13],
        Some((42.41, 22.64)),
        65.95,
    ),
    job("evaluation", &["late_fusion", "fuse"], [384.47, 58.59, 161.01, 11.18], Some((3.72, 0.83)), 211.76),
];

impl Study {
    /// The job level of the baseline.
    pub fn job_level(self) -> &'static [JobFigures] {
        match self {
            Self::Galaxy => &GALAXY,
            Self::Lung => &LUNG,
            Self::Crisis => &CRISIS,
        }
    }

    /// The workflow level of the baseline.
    pub fn workflow_level(self) -> WorkflowFigures {
        let (jobs, input_files, [input_gb, container_gb, read_gb, written_gb], [memory, gpu_memory], [cpu, gpu]) =
            match self {
                Self::Galaxy => (11, 28_793, [0.374, 2.4, 6.29, 6.14], [41.19, 4.42], [33.23, 1.93]),
                Self::Lung => (7, 1408, [3.6, 4.1, 12.56, 8.05], [5.96, 22.99], [37.63, 1.64]),
                Self::Crisis => (16, 12_747, [3.2, 4.6, 55.89, 3.2], [16.74, 22.64], [48.76, 2.45]),
            };
        WorkflowFigures {
            jobs,
            auxiliary: 12,
            input_files,
            input_gb,
            container_gb,
            read_gb,
            written_gb,
            peak_memory_gb: memory,
            peak_gpu_memory_gb: gpu_memory,
            cpu_hours: cpu,
            gpu_hours: gpu,
        }
    }

    /// What `graph`, the generated shape of this study, says of itself.
    pub fn shaped(self, graph: &Abstract) -> Shaped {
        let mut jobs = vec![ShapedJobs::default(); self.job_level().len()];
        let (mut cpu_seconds, mut gpu_seconds) = (0.0, 0.0);
        let bytes = |files: &[FileId]| files.iter().map(|file| graph.files[file.index()].size).sum::<u64>();
        for id in graph.ids() {
            let task = &graph.tasks[id.index()];
            let seconds = task.runtime.unwrap_or(0.0);
            cpu_seconds += seconds * f64::from(task.milli_cpus) / 1000.0;
            gpu_seconds += seconds * f64::from(task.gpus);
            let kind = graph.kinds[task.kind as usize].as_str();
            let Some(place) = self.job_level().iter().position(|known| known.sets.contains(&kind)) else { continue };
            let taken: u64 = graph.inputs(id).iter().map(|group| bytes(graph.files_of(*group))).sum();
            let left: u64 = graph.outputs(id).iter().map(|group| bytes(graph.files_of(*group))).sum();
            let sum = &mut jobs[place];
            sum.jobs += 1;
            sum.taken_mb += taken as f64 / 1e6;
            sum.left_mb += (left + task.scratch) as f64 / 1e6;
            sum.seconds += seconds;
        }
        let (input_files, input_bytes) = inputs(graph);
        Shaped {
            jobs,
            input_files,
            input_gb: input_bytes as f64 / 1e9,
            container_gb: graph.images.iter().map(|image| image.size).sum::<u64>() as f64 / 1e9,
            cpu_hours: cpu_seconds / 3600.0,
            gpu_hours: gpu_seconds / 3600.0,
        }
    }
}

/// Files that no task makes, without programs, modules of programs and checkpoints: what the study calls inputs.
pub(crate) fn inputs(graph: &Abstract) -> (u64, u64) {
    let outputs = |task: TaskId| graph.outputs(task).iter().flat_map(|group| graph.files_of(*group).iter().copied());
    let made: FxHashSet<FileId> = graph.ids().flat_map(outputs).collect();
    let extra = |name: &str| name.ends_with(".py") || name.ends_with(".pkl");
    let given = (0..graph.files.len()).map(FileId::from).filter(|file| !made.contains(file));
    let given = given.map(|file| &graph.files[file.index()]).filter(|file| !extra(&file.name));
    given.fold((0, 0), |(files, bytes), file| (files + 1, bytes + file.size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_job_of_the_shapes_is_in_the_published_table_and_every_row_has_jobs() {
        for (name, study) in Study::ALL {
            let graph = study.workflow();
            for kind in &graph.kinds {
                let rows = study.job_level().iter().filter(|row| row.sets.contains(&kind.as_str())).count();
                assert_eq!(rows, 1, "{name}: {kind}");
            }
            let shaped = study.shaped(&graph);
            assert!(shaped.jobs.iter().all(|jobs| jobs.jobs > 0), "{name}: {shaped:?}");
            assert_eq!(shaped.jobs.iter().map(|jobs| jobs.jobs).sum::<u64>(), study.workflow_level().jobs, "{name}");
            // Times are the study's own.
            for (row, jobs) in study.job_level().iter().zip(&shaped.jobs) {
                assert!((jobs.seconds - row.seconds).abs() < 1e-6, "{name}, {}: {jobs:?}", row.name);
            }
        }
    }

    #[test]
    fn the_shapes_have_the_published_inputs_and_images() {
        for (name, study) in Study::ALL {
            let (shaped, published) = (study.shaped(&study.workflow()), study.workflow_level());
            assert_eq!(shaped.input_files, published.input_files, "{name}");
            assert!((shaped.input_gb / published.input_gb - 1.0).abs() < 0.01, "{name}: {} GB", shaped.input_gb);
            assert!((shaped.container_gb - published.container_gb).abs() < 1e-9, "{name}");
        }
    }

    #[test]
    fn the_workflow_level_is_that_of_its_jobs() {
        // The study's own sums: what its jobs read and wrote, and the largest of them.
        for (name, study) in Study::ALL {
            let whole = study.workflow_level();
            let most = |of: fn(&JobFigures) -> f64| study.job_level().iter().map(of).fold(0.0, f64::max);
            assert!((most(|row| row.peak_memory_gb) / whole.peak_memory_gb - 1.0).abs() < 0.01, "{name}");
            assert_eq!(most(|row| row.peak_gpu_memory_gb.unwrap_or(0.0)), whole.peak_gpu_memory_gb, "{name}");
            let sum = |of: fn(&JobFigures) -> f64| study.job_level().iter().map(of).sum::<f64>() / 1000.0;
            assert!((sum(|row| row.read_mb) / whole.read_gb - 1.0).abs() < 0.05, "{name}: {}", sum(|row| row.read_mb));
            let written = sum(|row| row.written_mb);
            assert!((written / whole.written_gb - 1.0).abs() < 0.05, "{name}: {written}");
        }
    }
}
