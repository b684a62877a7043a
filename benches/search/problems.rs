//! Functions whose best value is known.

use tulpar_hpo::{Space, Values};

pub struct Problem {
    pub name: &'static str,
    pub optimum: f64,
    pub space: &'static [&'static str],
    pub function: fn(&Values) -> f64,
    /// The same for Optuna: the body of `def objective(trial)`.
    pub python: &'static str,
}

impl Problem {
    pub fn space(&self) -> Space {
        Space::parse(self.space.iter().copied()).expect("a good space")
    }
}

pub const PROBLEMS: [Problem; 5] = [
    Problem {
        name: "Branin",
        optimum: 0.397_887,
        space: &["x0=float(-5,10)", "x1=float(0,15)"],
        function: branin,
        python: "x=F('x0',-5,10); y=F('x1',0,15)
return (y-5.1/(4*pi**2)*x**2+5/pi*x-6)**2+10*(1-1/(8*pi))*cos(x)+10",
    },
    Problem {
        name: "Hartmann-6",
        optimum: -3.322_37,
        space: &["x0=float(0,1)", "x1=float(0,1)", "x2=float(0,1)", "x3=float(0,1)", "x4=float(0,1)", "x5=float(0,1)"],
        function: hartmann,
        python: "x=[F(f'x{i}',0,1) for i in range(6)]
A=[[10,3,17,3.5,1.7,8],[0.05,10,17,0.1,8,14],[3,3.5,1.7,10,17,8],[17,8,0.05,10,0.1,14]]
P=[[1312,1696,5569,124,8283,5886],[2329,4135,8307,3736,1004,9991],[2348,1451,3522,2883,3047,6650],[4047,8828,8732,5743,1091,381]]
return -sum(a*exp(-sum(q*(v-p*1e-4)**2 for q,v,p in zip(Q,x,R))) for a,Q,R in zip([1,1.2,3,3.2],A,P))",
    },
    Problem {
        name: "mixed conditional",
        optimum: 0.05,
        space: &[
            "opt=choice(adam,sgd,rmsprop)",
            "lr=log(1e-5,1e-1)",
            "layers=int(1,8)",
            "dropout=float(0,0.5,step=0.05)",
            "momentum=float(0,1) when opt=sgd",
            "beta=float(0.8,1) when opt=adam",
        ],
        function: mixed,
        python: "opt=trial.suggest_categorical('opt',['adam','sgd','rmsprop']); lr=log10(trial.suggest_float('lr',1e-5,1e-1,log=True))
layers=trial.suggest_int('layers',1,8); dropout=trial.suggest_float('dropout',0,0.5,step=0.05)
loss=0.05+0.006*(layers-5)**2+1.0*(dropout-0.2)**2
if opt=='sgd': return loss+0.03*(lr+1.5)**2+0.3*(F('momentum',0,1)-0.9)**2
if opt=='adam': return loss+0.004+0.03*(lr+3)**2+6.0*(F('beta',0.8,1)-0.95)**2
return loss+0.01+0.03*(lr+3.5)**2",
    },
    Problem {
        name: "Rosenbrock-4",
        optimum: 0.0,
        space: &["x0=float(-2,2)", "x1=float(-2,2)", "x2=float(-2,2)", "x3=float(-2,2)"],
        function: rosenbrock,
        python: "x=[F(f'x{i}',-2,2) for i in range(4)]
return sum(100*(b-a*a)**2+(1-a)**2 for a,b in zip(x,x[1:]))",
    },
    Problem {
        name: "Ackley-10",
        optimum: 0.0,
        space: &[
            "x0=float(-32,32)",
            "x1=float(-32,32)",
            "x2=float(-32,32)",
            "x3=float(-32,32)",
            "x4=float(-32,32)",
            "x5=float(-32,32)",
            "x6=float(-32,32)",
            "x7=float(-32,32)",
            "x8=float(-32,32)",
            "x9=float(-32,32)",
        ],
        function: ackley,
        python: "x=[F(f'x{i}',-32,32)-7 for i in range(10)]
return 20+e-20*exp(-0.2*sqrt(sum(v*v for v in x)/10))-exp(sum(cos(2*pi*v) for v in x)/10)",
    },
];

fn number(values: &Values, name: &str) -> f64 {
    values.get(name).and_then(tulpar_hpo::Value::number).expect("a number")
}

fn numbers(values: &Values) -> Vec<f64> {
    (0..values.len()).map(|at| number(values, &format!("x{at}"))).collect()
}

fn branin(values: &Values) -> f64 {
    use std::f64::consts::PI;
    let (x, y) = (number(values, "x0"), number(values, "x1"));
    let valley = y - 5.1 / (4.0 * PI * PI) * x * x + 5.0 / PI * x - 6.0;
    valley * valley + 10.0 * (1.0 - 1.0 / (8.0 * PI)) * x.cos() + 10.0
}

fn hartmann(values: &Values) -> f64 {
    const A: [[f64; 6]; 4] = [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ];
    const P: [[f64; 6]; 4] = [
        [1312.0, 1696.0, 5569.0, 124.0, 8283.0, 5886.0],
        [2329.0, 4135.0, 8307.0, 3736.0, 1004.0, 9991.0],
        [2348.0, 1451.0, 3522.0, 2883.0, 3047.0, 6650.0],
        [4047.0, 8828.0, 8732.0, 5743.0, 1091.0, 381.0],
    ];
    let x = numbers(values);
    let term = |at: usize| {
        let sum: f64 = (0..6).map(|i| A[at][i] * (x[i] - P[at][i] * 1e-4).powi(2)).sum();
        [1.0, 1.2, 3.0, 3.2][at] * (-sum).exp()
    };
    -(0..4).map(term).sum::<f64>()
}

fn mixed(values: &Values) -> f64 {
    let (lr, layers, dropout) = (number(values, "lr").log10(), number(values, "layers"), number(values, "dropout"));
    let loss = 0.05 + 0.006 * (layers - 5.0).powi(2) + (dropout - 0.2).powi(2);
    match values["opt"].to_string().as_str() {
        "sgd" => loss + 0.03 * (lr + 1.5).powi(2) + 0.3 * (number(values, "momentum") - 0.9).powi(2),
        "adam" => loss + 0.004 + 0.03 * (lr + 3.0).powi(2) + 6.0 * (number(values, "beta") - 0.95).powi(2),
        _ => loss + 0.01 + 0.03 * (lr + 3.5).powi(2),
    }
}

fn rosenbrock(values: &Values) -> f64 {
    numbers(values).windows(2).map(|w| 100.0 * (w[1] - w[0] * w[0]).powi(2) + (1.0 - w[0]).powi(2)).sum()
}

fn ackley(values: &Values) -> f64 {
    use std::f64::consts::{E, TAU};
    let x: Vec<f64> = numbers(values).iter().map(|x| x - 7.0).collect();
    let n = x.len() as f64;
    let (squares, waves) =
        (x.iter().map(|x| x * x).sum::<f64>() / n, x.iter().map(|x| (TAU * x).cos()).sum::<f64>() / n);
    20.0 + E - 20.0 * (-0.2 * squares.sqrt()).exp() - waves.exp()
}
