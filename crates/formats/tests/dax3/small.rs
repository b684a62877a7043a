//! Rules of DAX, one each.

use super::{dax, good, said};
use tulpar_core::diagnostic::line_column;
use tulpar_formats::pegasus::dax3;
use tulpar_formats::pegasus::{JobKind, Link, Namespace};

#[test]
fn arguments_carry_names_of_files_and_lose_line_breaks() {
    let model = good(
        "<job id='a' name='p'><argument>-x \"two  spaces\"\n\t -i <file name='f'/>\r\n<filename file='g'/> &lt;&#33;\
         <![CDATA[<&>]]></argument></job>",
    );
    assert_eq!(model.jobs[0].arguments, "-x \"two  spaces\" -i f g <!<&>");
}

#[test]
fn uses_have_the_defaults_of_the_schema() {
    let model = good(
        "<job id='a' name='p'><uses name='i' link='input'/><uses file='o' link='output' transfer='false' \
         register='false'/><uses name='t' link='input' transfer='optional'/><uses name='c' link='checkpoint'/>\
         <uses name='e' executable='true'/></job>",
    );
    let uses = &model.jobs[0].uses;
    let links: Vec<Link> = uses.iter().map(|used| used.link).collect();
    assert_eq!(links, [Link::Input, Link::Output, Link::Input, Link::Checkpoint, Link::Input]);
    assert_eq!((uses[0].stage_out, uses[0].register_replica, uses[0].optional), (true, true, false));
    assert_eq!((uses[1].stage_out, uses[1].register_replica), (false, false));
    assert!(uses[2].optional);
}

#[test]
fn profiles_take_the_spelling_of_their_namespace() {
    let model = good(
        "<job id='a' name='p'><profile namespace='ENV' key='Path'> /x </profile>\
         <profile namespace='dagman' key='retry'>2</profile></job>",
    );
    assert_eq!(model.jobs[0].profiles.get(Namespace::Env, "Path"), Some("/x"));
    assert_eq!(model.jobs[0].profiles.get(Namespace::Dagman, "RETRY"), Some("2"));
}

#[test]
fn a_compound_transformation_brings_programs_and_data() {
    let model = good(
        "<executable namespace='n' name='run' version='1' installed='false'><pfn url='/r'/></executable>\
         <executable namespace='n' name='lib' version='1'><pfn url='/l' site='s'/></executable>\
         <transformation namespace='n' name='run' version='1'><uses name='run'/><uses name='lib'/>\
         <uses name='table' executable='false'/></transformation>\
         <job id='a' namespace='n' name='run' version='1'/><job id='b' name='run'/>",
    );
    let run = &model.transformations[0];
    assert_eq!((run.sites.len(), run.sites[0].stageable, run.sites[0].site.as_str()), (1, true, "local"));
    assert_eq!(run.requires.iter().map(ToString::to_string).collect::<Vec<_>>(), ["n::lib:1"]);
    assert_eq!((model.jobs[0].uses.len(), model.jobs[1].uses.len()), (1, 0));
    assert!(!model.transformations[1].sites[0].stageable, "a program is installed unless it says otherwise");
}

#[test]
fn a_program_among_the_uses_lies_where_its_transformation_does() {
    let model = good(
        "<executable name='tool'><pfn url='file:///t' site='local'/></executable>\
         <job id='a' name='sh'><uses name='tool' executable='true' link='input'/></job>",
    );
    assert_eq!(model.replicas.find("tool")[0].pfn, "file:///t");
}

#[test]
fn sub_workflows_keep_their_kind_and_file() {
    let model = good("<dax id='a' name='i.dax'><argument>-q</argument></dax><dag id='b' file='r.dag'/>");
    assert_eq!((model.jobs[0].kind, model.jobs[1].kind), (JobKind::SubWorkflow, JobKind::Dag));
    assert_eq!(model.jobs[1].file.map(|file| model.file(file)), Some("r.dag"));
    assert_eq!(model.jobs[0].arguments, "-q");
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let text = dax("<job id='a' name='p' colour='red'><uses name='f' link='sideways'/><sound/></job>\n\
         <job id='a' name='q'><profile namespace='stat' key='size'>1</profile></job>\n\
         <job name='r'/>\n<child ref='a'><parent ref='z'/></child>");
    let (model, findings) = dax3::read(&text);
    assert!(model.is_some());
    let places: Vec<String> = findings
        .iter()
        .map(|finding| {
            let line = finding.span.map_or(0, |span| line_column(&text, &span).0);
            format!("{line} {} {}", finding.code, finding.message)
        })
        .collect();
    assert_eq!(
        places,
        [
            "2 X004 the attribute `colour` of `job` has no effect here",
            "2 X006 `sideways` is no kind of `link`",
            "2 X004 a DAX has no element `sound` inside `job`; it is left out",
            "3 X007 two jobs have the id `a`",
            "3 X009 the profile `size` of `stat` has no effect here",
            "4 X005 `job` must have the attribute `id`",
            "5 X008 there is no job with the id `z`",
        ]
    );
}

#[test]
fn only_adag_is_a_dax() {
    assert!(dax3::is_dax("\u{feff}<?xml version='1.0'?>\n<!-- <adag> -->\n<p:adag name='x'/>"));
    assert!(!dax3::is_dax("<sitecatalog/>"));
    assert!(!dax3::is_dax("adag: x"));
    assert_eq!(said(&dax3::read("<other/>").1), ["X004 the first element of a DAX is `adag`, not `other`"]);
}
