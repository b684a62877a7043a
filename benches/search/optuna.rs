//! Optuna as the peer: the same problems, seeds and budgets in one process of Python.

use super::problems::PROBLEMS;
use std::process::Command;

/// By problem and sampler: the best of each seed; then milliseconds of an ask and a tell near 1000 trials.
pub fn run(seeds: u32, trials: u32, samplers: &str) -> Option<serde_json::Value> {
    let mut script = String::from(
        "import json,sys,time,warnings\nfrom math import *\nimport optuna\nwarnings.filterwarnings('ignore')\n\
         optuna.logging.set_verbosity(optuna.logging.ERROR)\nS=optuna.samplers\n\
         make={'random':lambda s:S.RandomSampler(seed=s),'tpe':lambda s:S.TPESampler(seed=s),\
         'tpe multivariate':lambda s:S.TPESampler(seed=s,multivariate=True,group=True)}\nproblems={}\n",
    );
    for problem in &PROBLEMS {
        script.push_str("def objective(trial):\n F=trial.suggest_float\n");
        problem.python.lines().for_each(|line| script.push_str(&format!(" {line}\n")));
        script.push_str(&format!("problems[{:?}]=objective\n", problem.name));
    }
    script.push_str(&format!(
        "out={{}}\nfor name,f in problems.items():\n for sampler in {samplers:?}.split(','):\n  best=[]\n  for seed in range({seeds}):\n\
         \x20  study=optuna.create_study(sampler=make[sampler](seed))\n   study.optimize(f,n_trials={trials})\n   best.append(study.best_value)\n\
         \x20 out[name+'/'+sampler]=best\n\
         study=optuna.create_study(sampler=make['tpe'](0))\nf=problems['Hartmann-6']\n\
         study.optimize(f,n_trials=950)\nbegun=time.process_time()\nstudy.optimize(f,n_trials=50)\n\
         out['ms']=(time.process_time()-begun)/50*1000\nprint(json.dumps(out))\n"
    ));
    let output = Command::new("python3").args(["-c", &script]).output().ok()?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        println!("(without Optuna: {})", words.lines().last().unwrap_or_default());
        return None;
    }
    serde_json::from_slice(&output.stdout).ok()
}
