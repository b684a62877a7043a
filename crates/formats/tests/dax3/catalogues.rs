//! The text catalogues of Pegasus 4, beside a workflow of any version.

use super::said;
use std::collections::BTreeMap;
use tulpar_formats::pegasus::{Namespace, Reading, Text, Texts, read};

fn reading<'t>(replicas: Option<&'t str>, transformations: Option<&'t str>, sites: Option<&'t str>) -> Reading<'t> {
    let text = |name, text: Option<&'t str>| text.map(|text| Text { name, text });
    let workflow = "<adag name='x'><file name='own'><pfn url='/own'/></file><job id='a' name='p'/></adag>";
    let texts = Texts {
        workflow: Text { name: "x.dax", text: workflow },
        replicas: text("rc.txt", replicas),
        transformations: text("tc.txt", transformations),
        sites: text("sites.xml", sites),
        properties: None,
    };
    read(&texts, &BTreeMap::from([("BASE".to_owned(), "/base".to_owned())]))
}

#[test]
fn replicas_are_lines_with_a_name_a_place_and_attributes() {
    let text = "# comment\n\nf.a file://${BASE}/f.a site=\"local\"\nf.a http://h/f.a pool=\"web\"\n\
        \"with space\" \"/x y\"\nown /other site=\"local\"\n(.*)\\.gz /z/[1] regex=\"true\"\nalone\n";
    let reading = reading(Some(text), None, None);
    assert_eq!(
        said(&reading.findings),
        ["X010 rc.txt:8: a replica is a logical name, a place, and attributes like site=\"local\""]
    );
    let model = reading.model.expect("a model");
    let places = |name: &str| -> Vec<(String, String)> {
        model.replicas.find(name).into_iter().map(|place| (place.site, place.pfn)).collect()
    };
    let pair = |site: &str, pfn: &str| (site.to_owned(), pfn.to_owned());
    assert_eq!(places("f.a"), [pair("local", "file:///base/f.a"), pair("web", "http://h/f.a")]);
    assert_eq!(places("with space"), [pair("local", "/x y")]);
    assert_eq!(places("own"), [pair("local", "/own")], "the workflow's own entry wins");
    assert_eq!(places("q.gz"), [pair("local", "/z/q")]);
}

#[test]
fn programs_are_blocks() {
    let text = "tr n::p:1.0 {\n  profile env \"A\" \"b c\"\n  site pool {\n    pfn \"/bin/p\" arch \"x86_64\" os \"linux\"\n    \
        type \"STAGEABLE\" container \"img\"\n  }\n}\ncont img {\n  type \"singularity\"\n  image \"docker:///o/i\"\n}\n";
    let reading = reading(None, Some(text), None);
    assert_eq!(said(&reading.findings), Vec::<String>::new());
    let model = reading.model.expect("a model");
    let found = &model.transformations[0];
    assert_eq!(found.name.to_string(), "n::p:1.0");
    assert_eq!(found.profiles.get(Namespace::Env, "A"), Some("b c"));
    let site = &found.sites[0];
    assert_eq!((site.site.as_str(), site.pfn.as_str(), site.stageable), ("pool", "/bin/p", true));
    assert_eq!((site.container.as_deref(), model.containers[0].image.as_str()), (Some("img"), "docker:///o/i"));
}

#[test]
fn what_cannot_be_read_is_said_with_its_file_and_line() {
    let found = reading(None, Some("tr a {\n site s {\n  colour \"red\"\n } }"), Some("<sitecatalog/>"));
    assert_eq!(
        said(&found.findings),
        [
            "X010 tc.txt:3: a site of a program has no `colour`",
            "X010 sites.xml is in XML, which is read for workflows only"
        ]
    );
    for broken in ["tr a {", "tr", "tr a { site", "tr \"a", "tr a { profile env \"x\" }", "tr a }", "cont x { image"] {
        assert!(!reading(None, Some(broken), None).findings.is_empty(), "{broken}");
    }
}
