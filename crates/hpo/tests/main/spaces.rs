//! Spaces: short forms, forms as data, conditions, and what is said about mistakes.

use tulpar_hpo::{Domain, Parameter, Space, Value, Values};

fn parsed(text: &str) -> Domain {
    Parameter::parse(text).unwrap().domain
}

fn refused(texts: &[&str]) -> String {
    Space::parse(texts.iter().copied()).unwrap_err().to_string()
}

fn values(pairs: &[(&str, Value)]) -> Values {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

#[test]
fn short_forms_mean_what_they_look_like() {
    assert_eq!(parsed("lr=log(1e-5,1e-1)"), Domain::Float { low: 1e-5, high: 1e-1, log: true, step: None });
    assert_eq!(parsed("layers=int(1,8)"), Domain::Int { low: 1, high: 8, log: false, step: 1 });
    assert_eq!(parsed("width = int( 16, 1024, log )"), Domain::Int { low: 16, high: 1024, log: true, step: 1 });
    assert_eq!(parsed("x=float(0,1,step=0.1)"), Domain::Float { low: 0.0, high: 1.0, log: false, step: Some(0.1) });
    assert_eq!(
        parsed("opt=choice(adam,sgd)"),
        Domain::Choice(vec![Value::Text("adam".to_owned()), Value::Text("sgd".to_owned())])
    );
    assert_eq!(
        parsed("mixed=choice(16,0.5,true,'a, (b)')"),
        Domain::Choice(vec![Value::Int(16), Value::Float(0.5), Value::Bool(true), Value::Text("a, (b)".to_owned())])
    );
}

#[test]
fn mistakes_are_said_with_what_to_do() {
    assert_eq!(
        refused(&["lr=lgo(1,2)"]),
        "`lr`: `lgo` is no domain; there are float, log, int and choice (did you mean `log`?)"
    );
    assert_eq!(
        refused(&["lr=0.1"]),
        "`lr`: `0.1` is no domain; write float(0,1), log(1e-5,1e-1), int(1,8), int(1,1024,log) or choice(a,b)"
    );
    assert_eq!(refused(&["lr=log(0,1)"]), "`lr`: a log scale begins above 0, not at 0");
    assert_eq!(refused(&["x=float(2,1)"]), "`x`: the lower bound 2 is above the upper bound 1");
    assert_eq!(refused(&["x=float(1)"]), "`x`: a lower and an upper bound are needed, as in float(1,8)");
    assert_eq!(refused(&["x=float(0,one)"]), "`x`: `one` is no number");
    assert_eq!(refused(&["n=int(0,2.5)"]), "`n`: `2.5` is no whole number; use float(...) for parts");
    assert_eq!(refused(&["n=int(0,9,steps=2)"]), "`n`: `steps=2` is not known here; there are step=NUMBER and log");
    assert_eq!(refused(&["n=log(1,9,step=2)"]), "`n`: a log scale has no steps; leave one of the two out");
    assert_eq!(refused(&["x=float(0,1,step=2)"]), "`x`: a step is above 0 and at most the width of the domain, not 2");
    assert_eq!(refused(&["o=choice()"]), "`o`: there is nothing to choose from");
    assert_eq!(refused(&["o=choice(a,b,a)"]), "`o`: `a` is there twice");
    assert_eq!(refused(&["x=float(0,1)", "x=int(0,1)"]), "`x` is declared twice");
    assert_eq!(refused(&["=float(0,1)"]), "the parameter has no name; write NAME=float(0,1)");
    assert_eq!(
        refused(&["optimizer=choice(a,b)", "m=float(0,1) when optimiser=a"]),
        "`m` depends on `optimiser`, which is not in the space (did you mean `optimizer`?)"
    );
    assert_eq!(
        refused(&["opt=choice(a,b)", "m=float(0,1) when opt=c"]),
        "`m` is active when `opt` is `c`, which it can never be: it is one of a, b"
    );
    assert_eq!(refused(&["a=choice(1,2) when b=1", "b=choice(1,2) when a=1"]), "`a` depends on itself");
}

#[test]
fn steps_are_numbers_that_people_write() {
    let space = Space::parse(["x=float(0,1,step=0.1)"]).unwrap();
    assert_eq!(space.size(), Some(11));
    let point = space.point(&values(&[("x", Value::Float(0.1 + 0.2))])).unwrap();
    assert!(space.contains(&point));
    let mut study = tulpar_hpo::Study::new({
        let mut settings = tulpar_hpo::Settings::new(space, tulpar_hpo::Objective::minimize("y"));
        settings.sampler = "grid".parse().unwrap();
        settings
    })
    .unwrap();
    let mut seen = Vec::new();
    while let tulpar_hpo::Next::Start { values, .. } = study.ask() {
        seen.push(values["x"].to_string());
    }
    assert_eq!(seen, ["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"]);
}

#[test]
fn a_child_has_a_value_where_its_parent_says_so_and_nowhere_else() {
    let space = Space::parse(["opt=choice(adam,sgd)", "momentum=float(0,1) when opt=sgd"]).unwrap();
    let text = |text: &str| Value::Text(text.to_owned());
    assert!(space.point(&values(&[("opt", text("adam"))])).is_ok());
    assert!(space.point(&values(&[("opt", text("sgd")), ("momentum", Value::Float(0.5))])).is_ok());
    let message = |pairs: &[(&str, Value)]| space.point(&values(pairs)).unwrap_err().to_string();
    assert_eq!(message(&[("opt", text("sgd"))]), "`momentum` has no value");
    assert_eq!(
        message(&[("opt", text("adam")), ("momentum", Value::Float(0.5))]),
        "`momentum` has a value, but is not active: it needs opt=sgd"
    );
    assert_eq!(
        message(&[("opt", text("sgd")), ("momentum", Value::Float(1.5))]),
        "`momentum` = 1.5: it lies between 0 and 1"
    );
    assert_eq!(message(&[("otp", text("sgd"))]), "`otp` is not in the space (did you mean `opt`?)");
}

#[test]
fn spaces_are_data_in_every_form_and_keep_their_order() {
    let text = r#"{"lr": "log(1e-5, 1e-1)", "opt": ["adam", "sgd"], "layers": {"int": [1, 8]},
        "momentum": {"float": [0, 1], "step": 0.1, "when": {"opt": "sgd"}}, "decay": {"log": [1e-6, 1]}}"#;
    let space: Space = serde_json::from_str(text).unwrap();
    let short = Space::parse([
        "lr=log(1e-5,1e-1)",
        "opt=choice(adam,sgd)",
        "layers=int(1,8)",
        "momentum=float(0,1,step=0.1) when opt=sgd",
        "decay=log(1e-6,1)",
    ]);
    assert_eq!(space, short.unwrap());
    let written = serde_json::to_string(&space).unwrap();
    assert_eq!(serde_json::from_str::<Space>(&written).unwrap(), space);
    let wrong = serde_json::from_str::<Space>(r#"{"x": {"floot": [0, 1]}}"#).unwrap_err().to_string();
    assert!(wrong.contains("did not match") || wrong.contains("floot"), "{wrong}");
}
