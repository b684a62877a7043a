//! What is written stands against what a pool (23.9.6) made of it, measured with `condor_submit -dry-run` and jobs.

use tulpar_formats::htcondor::items::Items;
use tulpar_formats::htcondor::submit::{Description, Unwritable, Value};

fn written(value: Value) -> String {
    let text = Description::new().set("x", value).to_text().expect("can be written");
    text.strip_prefix("x = ").and_then(|text| text.strip_suffix('\n')).expect("one command").to_owned()
}

fn refused(value: Value) -> Unwritable {
    Description::new().set("x", value).to_text().expect_err("cannot be written").reason
}

#[test]
fn a_description_keeps_its_order_and_a_command_given_again_its_place() {
    let items = Items::new(["tag", "args"]);
    let text = Description::new()
        .comment("Written by Tulpar.\nOne job an item.")
        .set("executable", "bin/train.sh")
        .set("request_cpus", 2)
        .set("request_memory", "4096")
        .custom("WantGPULab", true)
        .custom("GPUJobLength", Value::string("short"))
        .set("output", Value::plain("logs/").then(Value::reference("tag")).then(Value::plain(".out")))
        .set("Request_CPUs", 4)
        .set("max_materialize", 1000)
        .queue_from(&items, "items.txt")
        .to_text();
    let expected = "\
# Written by Tulpar.
# One job an item.
executable = bin/train.sh
request_cpus = 4
request_memory = 4096
My.WantGPULab = true
My.GPUJobLength = \"short\"
output = logs/$(tag).out
max_materialize = 1000
queue tag,args from items.txt
";
    assert_eq!(text, Ok(expected.to_owned()));
}

#[test]
fn every_argument_arrives_as_one_word() {
    let words = ["a", "b c", "", "it's", "say\"hi\"", "tab\tx", "back\\", "%d", "#h", "ü", "c,d"];
    assert_eq!(written(Value::arguments(words)), r#""a 'b c' '' 'it''s' say""hi"" 'tab	x' back\ %d #h ü c,d""#);
    assert_eq!(written(Value::arguments([])), "\"\"");
}

#[test]
fn dollars_never_become_macros() {
    assert_eq!(written(Value::plain("$(x) $HOME")), "$(DOLLAR)(x) $(DOLLAR)HOME");
    assert_eq!(written(Value::arguments(["$$(y)", "$$"])), "\"$$(DOLLARDOLLAR)(y) $$(DOLLARDOLLAR)\"");
    assert_eq!(written(Value::plain("$$$ c")), "$$$ c");
    assert_eq!(refused(Value::plain("$$$(x)")), Unwritable::Dollars);
    assert_eq!(refused(Value::plain("$$$ENV(HOME)")), Unwritable::Dollars);
    assert_eq!(refused(Value::plain("x$$$")), Unwritable::Dollars);
}

#[test]
fn an_environment_quotes_values_and_refuses_impossible_names() {
    let variables = [("A", "1"), ("B", "x y"), ("C", "it's"), ("D", "\"q\""), ("E", ""), ("F", "a;b|c=d")];
    assert_eq!(written(Value::environment(variables)), r#""A=1 B='x y' C='it''s' D=""q"" E= F=a;b|c=d""#);
    assert_eq!(refused(Value::environment([("A B", "1")])), Unwritable::Name("A B".to_owned()));
    assert_eq!(refused(Value::environment([("A", "1\n2")])), Unwritable::Control);
}

#[test]
fn a_classad_string_escapes_quotes_alone() {
    assert_eq!(written(Value::string("a\\b\"q\" ü  ")), r#""a\b\"q\" ü  ""#);
    assert_eq!(written(Value::string("end\\")), r#""end\""#);
    assert_eq!(refused(Value::string("two\nlines")), Unwritable::Control);
}

#[test]
fn a_value_that_ends_in_a_backslash_does_not_take_the_next_line() {
    let text = Description::new().set("a", "x\\").set("b", 1).to_text();
    assert_eq!(text, Ok("a = x\\$(NOTHING:)\nb = 1\n".to_owned()));
}

#[test]
fn transfer_lists_take_all_names_but_those_with_commas() {
    let names = ["a b.txt", "q\"uote.txt", "ünï.txt", "d$(x)", "it's", "semi;eq=", "pct%20", "back\\slash"];
    let expected = "a b.txt, q\"uote.txt, ünï.txt, d$(DOLLAR)(x), it's, semi;eq=, pct%20, back\\slash";
    assert_eq!(written(Value::files(names)), expected);
    assert_eq!(refused(Value::files(["a,b"])), Unwritable::Comma("a,b".to_owned()));
    assert_eq!(refused(Value::files([" a"])), Unwritable::BlankEdge);
}

#[test]
fn remaps_escape_what_parts_them_and_refuse_what_nothing_escapes() {
    let pairs = [("c=d.txt", "r/x=y.txt"), ("e\"f", "r/e\"f"), ("i j", "k l")];
    assert_eq!(written(Value::remaps(pairs)), "\"c\\=d.txt=r/x=y.txt; e\"f=r/e\"f; i j=k l\"");
    assert_eq!(refused(Value::remaps([("a;b", "c")])), Unwritable::Remap("a;b".to_owned()));
    assert_eq!(refused(Value::remaps([("a", "c\\d")])), Unwritable::Remap("c\\d".to_owned()));
}

#[test]
fn items_are_parted_by_commas_and_hold_no_other_blank_or_comma() {
    let mut items = Items::new(["tag", "in", "args"]);
    let first = [Value::plain("j-1"), Value::files(["a", "b c"]), Value::arguments(["$x", "t\tu", "e\\"])];
    assert_eq!(items.push(&first), Ok(()));
    assert_eq!(items.push(&[Value::plain("j-2"), Value::files(["d"]), Value::plain("\\")]), Ok(()));
    let expected = "\
j-1,a$(CM)$(SP)b$(SP)c,\"$(DOLLAR)x$(SP)'t$(TB)u'$(SP)e\\\"
j-2,d,\\$(NOTHING:)
";
    assert_eq!(items.to_text(), expected);
    let description = Description::new().set("executable", "x").queue_from(&items, "items").to_text();
    let expected = "\
BLANKS = - -\t-$(Step)
CM = ,
SP = $SUBSTR(BLANKS,1,1)
TB = $SUBSTR(BLANKS,3,1)
executable = x
queue tag,in,args from items
";
    assert_eq!(description, Ok(expected.to_owned()));
}

#[test]
fn macros_that_no_item_needs_are_not_defined() {
    let mut items = Items::new(["a"]);
    assert_eq!(items.push(&[Value::plain("x,y")]), Ok(()));
    let text = Description::new().queue_from(&items, "items").to_text();
    assert_eq!(text, Ok("CM = ,\nqueue a from items\n".to_owned()));
}

#[test]
fn what_a_job_would_inherit_from_the_first_item_is_refused() {
    let mut items = Items::new(["in", "args", "env"]);
    let values = |input: &[&'static str], name| {
        [Value::files(input.iter().copied()), Value::arguments([]), Value::environment([(name, "1")])]
    };
    assert_eq!(items.push(&values(&["a"], "A")), Ok(()));
    assert_eq!(items.push(&values(&[], "A")), Err(Unwritable::Inherited("in".to_owned())));
    assert_eq!(items.push(&values(&["b"], "B")), Err(Unwritable::Environment("env".to_owned())));
    assert_eq!(items.push(&values(&["b"], "A")), Ok(()));
    assert_eq!(items.to_text(), "a,\"\",\"A=1\"\nb,\"\",\"A=1\"\n");

    let mut items = Items::new(["a", "b"]);
    assert_eq!(items.push(&[Value::plain(""), Value::plain("x")]), Ok(()));
    assert_eq!(items.push(&[Value::plain("y"), Value::plain("x")]), Ok(()));
    assert_eq!(items.to_text(), "$(NOTHING:),x\ny,x\n");
    assert_eq!(items.push(&[Value::plain("y")]), Err(Unwritable::Fields { expected: 2, found: 1 }));
}

#[test]
fn names_of_commands_are_names() {
    assert!(Description::new().set("a b", 1).to_text().is_err());
    assert!(Description::new().custom("9x", 1).to_text().is_err());
    assert!(Description::new().set("x", Value::reference("a)b")).to_text().is_err());
}
