//! The command line, seen from outside: the real binary in a temporary folder, its exit code, stdout and stderr.

mod main {
    mod architecture;
    mod asked_before;
    mod asking;
    mod benching;
    mod catalogues;
    mod choosing;
    mod containers;
    mod crash;
    mod dagman;
    mod dax3;
    mod demo;
    mod demonstrating;
    mod docs;
    mod drilling;
    mod experiments;
    mod failing;
    mod handing_over;
    mod harness;
    mod help;
    mod io;
    mod keys;
    mod living;
    mod moving;
    mod names;
    mod page;
    mod pegasus;
    mod plan;
    mod planned;
    mod played;
    mod predict;
    mod pretended;
    mod reporting;
    mod reuse;
    mod searching;
    mod simulate;
    mod streaming;
    mod studied;
    mod together;
    mod tracked;
    mod truth;
    mod tuning;
    mod watching;
    mod wfformat;
}
